use super::*;
use crate::algorithms::program;
use crate::simulation::{Case, any_call};

fn call(kind: Kind) -> Call {
    any_call(&Case::new(kind, 4, 8), 0)
}

fn refused(call: &Call, algorithm: Algorithm, part: &str) {
    let error = program(call, algorithm).unwrap_err().to_string();
    assert!(error.starts_with(&format!("{algorithm} cannot do this call: ")), "{error}");
    assert!(error.contains(part), "{error}");
}

#[test]
fn who_is_not_there_is_refused() {
    refused(&Call { rank: 4, ..call(Kind::Scatter) }, Algorithm::ParallelRead, "no rank 4 among 4");
    refused(
        &Call { root: 9, ..call(Kind::Scatter) },
        Algorithm::ParallelRead,
        "rank 9 is to be the root of 4",
    );
    refused(&Call { rank: 0, size: 0, ..call(Kind::Barrier) }, Algorithm::Messages, "no rank 0 among 0");
}

#[test]
fn another_kinds_algorithm_is_refused_and_its_own_are_named() {
    for kind in Kind::ALL {
        for algorithm in Algorithm::ALL.into_iter().filter(|algorithm| !algorithm.does(kind)) {
            refused(&call(kind), algorithm, &format!("{kind} is done by slots, messages"));
        }
    }
}

#[test]
fn numbers_of_nothing_are_refused() {
    for kind in Kind::ALL {
        for algorithm in Algorithm::of(kind).filter(|algorithm| algorithm.number().is_some()) {
            refused(&call(kind), algorithm.with_number(0), "must be at least 1");
        }
    }
}

#[test]
fn blocks_that_do_not_fit_are_refused() {
    let listed = |list: &[u64]| {
        let block = |&bytes: &u64| Block { offset: 0, bytes };
        Call { blocks: Blocks::Listed(list.iter().map(block).collect()), ..call(Kind::Gather) }
    };
    refused(&listed(&[8, 8]), Algorithm::Messages, "2 blocks and must have one for each of 4");
    refused(&listed(&[7, 8, 8, 8]), Algorithm::Messages, "7 bytes, and must have 8");
    let far = Block { offset: u64::MAX, bytes: 8 };
    let listed = Call { blocks: Blocks::Listed(vec![far; 4]), ..call(Kind::Gather) };
    refused(&listed, Algorithm::Messages, "2^57");
    for (rank, kind) in [(0, Kind::Scatter), (1, Kind::Scatter), (3, Kind::Gather), (2, Kind::Allgather)] {
        let large = Call { rank, bytes: u64::MAX, blocks: Blocks::Equal(u64::MAX), ..call(kind) };
        refused(&large, Algorithm::Messages, "2^57");
    }
    let parts = Call { bytes: 12, element_bytes: 8, ..call(Kind::Reduce) };
    refused(&parts, Algorithm::Messages, "12 bytes, or a part of them, are no whole elements of 8");
}

#[test]
fn domains_that_are_none_are_refused() {
    let of = |domains: &[[u32; 2]]| Call {
        domains: domains.iter().map(|&[node, cache]| Domain { node, cache }).collect(),
        ..call(Kind::Broadcast)
    };
    let same = |domains: [u32; 4]| of(&domains.map(|domain| [domain; 2]));
    let hierarchical = Algorithm::Hierarchical(64);
    refused(&of(&[[0, 0]; 2]), hierarchical, "of 2 ranks are known, and must be of all 4");
    refused(&same([0, 2, 2, 0]), hierarchical, "rank 1's domains are named after rank 2");
    refused(&same([0, 0, 1, 0]), hierarchical, "rank 2's domains are named after rank 1");
    refused(&same([0, 0, 0, 77]), hierarchical, "rank 3's domains are named after rank 77");
    assert!(program(&same([0, 1, 0, 1]), hierarchical).is_ok());
    let across = of(&[[0, 0], [1, 1], [0, 2], [1, 2]]);
    refused(&across, hierarchical, "rank 3's domains are named after rank 1 and rank 2, and must");
    assert!(program(&of(&[[0, 0], [1, 1], [0, 2], [1, 1]]), hierarchical).is_ok());
    assert!(program(&of(&[]), Algorithm::DirectRead).is_ok(), "who needs none does not look");
}

#[test]
fn what_does_not_fit_into_a_slot_says_what_does() {
    let large = Call { bytes: 4097, ..call(Kind::Broadcast) };
    refused(
        &large,
        Algorithm::Slots,
        "4097 bytes do not fit into a slot of 4096 bytes; all other algorithms",
    );
    let scattered = Call { bytes: 1366, blocks: Blocks::Equal(1366), ..call(Kind::Scatter) };
    refused(&scattered, Algorithm::Slots, "4098 bytes");
}

/// However large the numbers are that pass the checks: but for the reductions and
/// scans, which go by pieces of a fixed length, and take as many steps.
#[test]
fn no_numbers_are_too_large_to_answer() {
    let kinds = Kind::ALL.into_iter().filter(|kind| !kind.combines());
    for (kind, rank) in kinds.flat_map(|kind| (0..4).map(move |rank| (kind, rank))) {
        for algorithm in Algorithm::of(kind) {
            for bytes in [1 << 40, 1 << 55, 1 << 57] {
                let blocks = Blocks::Equal(bytes);
                let most = Call { rank, bytes, blocks: blocks.clone(), input_blocks: blocks, ..call(kind) };
                for number in [1, u32::MAX] {
                    let _answer = program(&most, algorithm.with_number(number));
                }
            }
        }
    }
}
