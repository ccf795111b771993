//! Every operation with lengths one element below, at and above those at which groups do
//! something else, by real processes, against a serial model: what fits into a slot, alone
//! or shared among the ranks, what goes through slots whatever rules say, where roots leave
//! slots, where two ranks swap a block whole, in pieces, or post it instead, and where
//! messages end. (Where pieces through slots end, at 4 MiB, is left to the choice's own
//! tests.)
#![cfg(not(loom))]

mod common;

use lmt_collectives::{Algorithm, Group, GroupError, Kind, slot_bytes};
use lmt_conformance::group::Test;
use lmt_conformance::test_name;

use common::{Case, LIMIT, Random, endpoint, group, is_reduction, try_case};

const KIB: u64 = 1 << 10;

/// In bytes of what a rank posts, or of a block.
fn thresholds(size: u32) -> Vec<u64> {
    let whole = [slot_bytes(size), 8 * KIB, 16 * KIB, 64 * KIB, 128 * KIB, 192 * KIB, 512 * KIB];
    let shared = whole.map(|bytes| bytes / u64::from(size));
    let mut all = [whole, shared].concat();
    all.sort_unstable();
    all.dedup();
    all
}

/// The lengths of a kind, in its elements.
fn lengths(kind: Kind, size: u32) -> Vec<u64> {
    let element_bytes = if is_reduction(kind) { 8 } else { 1 };
    let shared_state = |bytes| {
        let at: u64 = bytes / element_bytes;
        [at.saturating_sub(1), at, at + 1]
    };
    thresholds(size).into_iter().flat_map(shared_state).collect()
}

/// What is chosen for a length, and some algorithm by its name, which may be one that
/// cannot do the call: then all ranks say so.
fn try_length(group: &Group<'_>, kind: Kind, length: u64, round: u32, random: &mut Random) -> u32 {
    let named: Vec<Algorithm> = Algorithm::of(kind).collect();
    let named = named[random.below(named.len() as u64) as usize];
    let mut done = 0;
    for algorithm in [None, Some(named)] {
        let root = random.below(group.size().into()) as u32;
        let in_place = random.below(2) == 0;
        let case = Case { kind, algorithm, length, root, in_place, round };
        match try_case(group, &case) {
            Ok(()) => done += 1,
            Err(GroupError::Unsuitable(_)) if algorithm.is_some() => {}
            Err(error) => panic!("{case:?}: {error}"),
        }
    }
    done
}

fn straddled(name: &str, size: u32) {
    Test::new(name, size).time_limit(LIMIT).run(|ranks| {
        let endpoint = endpoint(ranks, |_| {});
        let group = group(&endpoint, ranks);
        // The same on all ranks, and another in each run; a failure tells the whole case.
        let id = ranks.id().to_bytes().map(u64::from);
        let mut random = Random(id.into_iter().fold(0, |sum, byte| sum << 5 ^ sum >> 59 ^ byte));
        let mut round = 0;
        for kind in Kind::ALL.into_iter().filter(|kind| *kind != Kind::Barrier) {
            let lengths = lengths(kind, size);
            let mut done = 0;
            for &length in &lengths {
                round += 1;
                done += try_length(&group, kind, length, round, &mut random);
            }
            assert!(done as usize >= lengths.len(), "{kind}: {done} of {lengths:?}");
        }
    });
}

#[test]
fn two_ranks() {
    straddled(test_name!(), 2);
}

#[test]
fn three_ranks() {
    straddled(test_name!(), 3);
}

#[test]
fn five_ranks() {
    straddled(test_name!(), 5);
}

/// Its slots are shorter.
#[test]
fn nine_ranks() {
    straddled(test_name!(), 9);
}
