//! Every operation by every algorithm, by real processes, against a serial model.
#![cfg(not(loom))]

mod common;

use lmt_collectives::{Algorithm, Group, GroupError, Kind};
use lmt_conformance::group::Test;
use lmt_conformance::test_name;

use common::{Case, LIMIT, endpoint, group, try_case};

/// Runs all cases of a kind; how many were done, by the algorithm.
fn all_cases(group: &Group<'_>, kind: Kind, lengths: &[u64], round: &mut u32) -> Vec<(Algorithm, u32)> {
    let mut done: Vec<(Algorithm, u32)> = Vec::new();
    for algorithm in std::iter::once(None).chain(Algorithm::of(kind).map(Some)) {
        let mut count = 0;
        for (at, &length) in lengths.iter().enumerate() {
            for in_place in [false, true] {
                *round += 1;
                let root = (at as u32 + *round) % group.size();
                let case = Case { kind, algorithm, length, root, in_place, round: *round };
                match try_case(group, &case) {
                    Ok(()) => count += 1,
                    Err(GroupError::Unsuitable(_)) if algorithm.is_some() => {}
                    Err(error) => panic!("{case:?}: {error}"),
                }
            }
        }
        if let Some(algorithm) = algorithm {
            done.push((algorithm, count));
        } else {
            assert_eq!(count as usize, 2 * lengths.len(), "{kind}: what is chosen always can");
        }
    }
    done
}

/// Around what fits into a slot, a page, a chunk, and beyond.
const LENGTHS: [u64; 12] = [0, 1, 7, 63, 512, 1365, 1366, 4096, 4097, 65536, 65537, 100_001];

fn everything(name: &str, size: u32, lengths: &[u64]) {
    Test::new(name, size).time_limit(LIMIT).run(|ranks| {
        let endpoint = endpoint(ranks, |_| {});
        let group = group(&endpoint, ranks);
        let mut round = 0;
        for kind in Kind::ALL {
            for (algorithm, count) in all_cases(&group, kind, lengths, &mut round) {
                // Recursive doubling and rings with other numbers of ranks have their
                // own tests; what is in the list at all does something.
                let is_for_others = algorithm == Algorithm::Swap && size != 2;
                assert_eq!(count > 0, !is_for_others, "{kind} by {algorithm} did nothing on {size} ranks");
            }
        }
    });
}

#[test]
fn alone() {
    everything(test_name!(), 1, &LENGTHS);
}

#[test]
fn two_ranks() {
    everything(test_name!(), 2, &LENGTHS);
}

#[test]
fn three_ranks() {
    everything(test_name!(), 3, &LENGTHS);
}

#[test]
fn four_ranks() {
    everything(test_name!(), 4, &LENGTHS);
}

#[test]
fn nine_ranks() {
    everything(test_name!(), 9, &[0, 1, 455, 456, 4097, 20_001]);
}
