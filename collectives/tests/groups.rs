//! Groups of groups, and calls that run side by side.
#![cfg(not(loom))]

mod common;

use std::time::{Duration, Instant};

use lmt_collectives::{Algorithm, Block, Element, GroupError, Kind, Operation, Operator, Reduction};
use lmt_conformance::group::Test;
use lmt_conformance::test_name;
use nix::sys::resource::{Resource, getrlimit, setrlimit};

use common::{Case, LIMIT, bytes, endpoint, group, try_case};

#[test]
fn parts_in_any_order() {
    Test::new(test_name!(), 6).time_limit(LIMIT).run(|ranks| {
        let endpoint = endpoint(ranks, |_| {});
        let whole = group(&endpoint, ranks);
        // Odd and even ranks, the highest first; rank 5 in none.
        let colour = (whole.rank() != 5).then_some(whole.rank() % 2);
        let part = whole.split(colour, -(whole.rank() as i32)).expect("it can be split");
        assert_eq!(part.is_some(), whole.rank() != 5);
        if let Some(part) = &part {
            let expected = [(4, vec![4, 2, 0]), (3, vec![3, 1])][(whole.rank() % 2) as usize].1.clone();
            assert_eq!(part.size() as usize, expected.len());
            let own = whole.rank().to_ne_bytes();
            let mut all = vec![0; 4 * expected.len()];
            part.run(Operation::allgather(&own[..], &mut all[..])).expect("a call");
            let found: Vec<u32> =
                all.as_chunks::<4>().0.iter().map(|bytes| u32::from_ne_bytes(*bytes)).collect();
            assert_eq!(found, expected);
        }
        // Calls of a part, of its copy and of the whole do not meet.
        let copy = part.as_ref().map(|part| part.duplicate().expect("a copy"));
        for round in 0..20 {
            for part in part.iter().chain(copy.iter()).chain(std::iter::once(&whole)) {
                let case = Case {
                    kind: Kind::ALL[round as usize % Kind::ALL.len()],
                    algorithm: None,
                    length: 20_000,
                    root: round % part.size(),
                    in_place: false,
                    round,
                };
                try_case(part, &case).unwrap_or_else(|error| panic!("{case:?}: {error}"));
            }
        }
    });
}

/// Calls of two ranks have cells again that calls before them had, whatever came between.
#[test]
fn cells_are_used_again_and_again() {
    Test::new(test_name!(), 2).time_limit(LIMIT).run(|ranks| {
        let endpoint = endpoint(ranks, |_| {});
        let group = group(&endpoint, ranks);
        let own = group.rank();
        for round in 0..30 {
            let lengths: Vec<u64> =
                (0..11).map(|call| (u64::from(round) * 37 + call * 20_011) % 196_609).collect();
            let given: Vec<Vec<u8>> =
                lengths.iter().zip(0..).map(|(&length, call)| bytes(round, call, own, length)).collect();
            let mut all: Vec<Vec<u8>> = lengths.iter().map(|length| vec![0; 2 * *length as usize]).collect();
            group.scope(|scope| {
                for ((given, all), call) in given.iter().zip(&mut all).zip(0..11) {
                    let operation = Operation::allgather(&given[..], &mut all[..]).by(Algorithm::Swap);
                    let _left_to_the_scope = scope.start(operation).expect("begun");
                    if call == round % 11 {
                        // No call at all: each says something else.
                        let wrong = Operation::broadcast(own, &mut [][..]);
                        let error = scope.start(wrong).expect("begun").wait().expect_err("another root");
                        assert!(matches!(error, GroupError::Mismatch { .. }), "{error}");
                    }
                }
            });
            for ((all, &length), call) in all.iter().zip(&lengths).zip(0..) {
                let expected = [bytes(round, call, 0, length), bytes(round, call, 1, length)].concat();
                assert!(*all == expected, "call {call} of {length} bytes, round {round}");
            }
        }
    });
}

#[test]
fn many_calls_at_once() {
    Test::new(test_name!(), 4).time_limit(LIMIT).run(|ranks| {
        let endpoint = endpoint(ranks, |_| {});
        let group = group(&endpoint, ranks);
        let (own, size) = (group.rank(), group.size());
        for round in 0..10 {
            // More than may be in flight: the others begin when there is room.
            let mut copies: Vec<Vec<u8>> = (0..12)
                .map(|call| if call % size == own { bytes(round, call, 0, 50_000) } else { vec![0; 50_000] })
                .collect();
            let mut sums: Vec<[u8; 8]> = vec![u64::from(own).to_ne_bytes(); 12];
            let with = Reduction::new(Operator::Sum, Element::U64).expect("defined");
            let mut parts = vec![u64::from(own).to_ne_bytes().repeat(4 * size as usize); 3];
            group.scope(|scope| {
                let mut open = Vec::new();
                for (call, (copy, sum)) in copies.iter_mut().zip(&mut sums).enumerate() {
                    let by = [None, Some(Algorithm::Messages), Some(Algorithm::DirectRead)][call % 3];
                    let root = call as u32 % size;
                    open.push(scope.start(Operation::broadcast(root, &mut copy[..]).by(by)).expect("begun"));
                    open.push(
                        scope.start(Operation::allreduce_in_place(&mut sum[..], &with)).expect("begun"),
                    );
                }
                for (part, by) in
                    parts.iter_mut().zip([None, Some(Algorithm::Messages), Some(Algorithm::Slots)])
                {
                    let operation = Operation::reduce_scatter_block_in_place(&mut part[..], &with);
                    open.push(scope.start(operation.by(by)).expect("begun"));
                }
                // Each rank fetches them in an order of its own; some it leaves to the scope.
                open.rotate_left(own as usize * 5);
                open.truncate(20);
                for pending in open {
                    let mut waited = pending;
                    let result = loop {
                        match waited.test() {
                            Ok(result) => break result,
                            Err(pending) => waited = pending,
                        }
                    };
                    result.expect("a call");
                }
            });
            for (call, copy) in copies.iter().enumerate() {
                assert!(*copy == bytes(round, call as u32, 0, 50_000), "call {call} of round {round}");
            }
            assert!(parts.iter().all(|part| part[..32] == 6_u64.to_ne_bytes().repeat(4)), "{parts:?}");
            assert!(sums.iter().all(|sum| u64::from_ne_bytes(*sum) == 6), "{sums:?}");
        }
    });
}

#[test]
fn seventeen_ranks() {
    Test::new(test_name!(), 17).time_limit(LIMIT).run(|ranks| {
        let endpoint = endpoint(ranks, |_| {});
        let group = group(&endpoint, ranks);
        for (round, kind) in Kind::ALL.into_iter().enumerate() {
            for length in [3, 40_000] {
                let case =
                    Case { kind, algorithm: None, length, root: 16, in_place: false, round: round as u32 };
                try_case(&group, &case).unwrap_or_else(|error| panic!("{case:?}: {error}"));
            }
        }
    });
}

#[test]
fn where_single_copy_is_denied() {
    Test::new(test_name!(), 3).time_limit(LIMIT).run(|ranks| {
        // One rank only; the others may.
        let alone = ranks.rank() == 1;
        let endpoint = endpoint(ranks, move |config| {
            config.mechanisms = alone.then(|| vec!["shm".to_owned()]);
        });
        let group = group(&endpoint, ranks);
        for (round, kind) in Kind::ALL.into_iter().enumerate() {
            for length in [5, 100_000] {
                let round = round as u32;
                let case = Case { kind, algorithm: None, length, root: 1, in_place: false, round };
                try_case(&group, &case).unwrap_or_else(|error| panic!("{case:?}: {error}"));
            }
        }
        let mut data = vec![0; 100_000];
        let named = group.run(Operation::broadcast(0, &mut data[..]).by(Algorithm::DirectRead));
        let sentence = named.expect_err("it reaches into others' memory").to_string();
        assert!(sentence.contains("may not reach") && sentence.contains("messages"), "{sentence}");
    });
}

/// Two ranks wait in two groups for what each has begun in the other.
#[test]
fn waits_that_cross() {
    Test::new(test_name!(), 2).time_limit(LIMIT).run(|ranks| {
        let endpoint = endpoint(ranks, |_| {});
        let one = group(&endpoint, ranks);
        let other = one.duplicate().expect("a copy");
        for round in 0..50 {
            let own = bytes(round, one.rank(), 0, 30_000);
            let mut all = vec![0; 60_000];
            if one.rank() == 0 {
                other.scope(|scope| {
                    let pending = scope.start(Operation::allgather(&own[..], &mut all[..])).expect("begun");
                    one.run(Operation::barrier()).expect("a barrier");
                    pending.wait().expect("an allgather");
                });
            } else {
                other.run(Operation::allgather(&own[..], &mut all[..])).expect("an allgather");
                one.run(Operation::barrier()).expect("a barrier");
            }
            assert!(all == [bytes(round, 0, 0, 30_000), bytes(round, 1, 0, 30_000)].concat());
        }
    });
}

/// Blocks on both sides of all thresholds, chosen by what no rank knows alone.
#[test]
fn uneven_blocks_without_a_name() {
    Test::new(test_name!(), 2).time_limit(LIMIT).run(|ranks| {
        let endpoint = endpoint(ranks, |_| {});
        let group = group(&endpoint, ranks);
        for (round, lengths) in
            [[300_000, 10], [10, 300_000], [8192, 262_145], [0, 1 << 20]].iter().enumerate()
        {
            let round = round as u32;
            let own = lengths[group.rank() as usize];
            let mut into = vec![0; own as usize];
            if group.rank() == 0 {
                let blocks =
                    [Block { offset: 0, bytes: lengths[0] }, Block { offset: lengths[0], bytes: lengths[1] }];
                let from = [bytes(round, 0, 0, lengths[0]), bytes(round, 0, 1, lengths[1])].concat();
                group.run(Operation::scatterv(0, &from[..], &blocks, &mut into[..])).expect("a scatter");
            } else {
                group.run(Operation::scatteredv(0, &mut into[..])).expect("a scatter");
            }
            assert!(into == bytes(round, 0, group.rank(), own), "round {round}");
        }
    });
}

/// One that may open no more files cannot map the board: it says why, and the others that
/// it is the reason.
#[test]
fn a_member_that_cannot_map_the_board_leaves_nobody_waiting() {
    Test::new(test_name!(), 4).time_limit(LIMIT).run(|ranks| {
        let endpoint = endpoint(ranks, |_| {});
        let group = group(&endpoint, ranks);
        for short in [2, 0] {
            let rank = group.rank();
            let (before, _) = getrlimit(Resource::RLIMIT_NOFILE).expect("a limit");
            let limit =
                |files| setrlimit(Resource::RLIMIT_NOFILE, files, before).expect("lowering is allowed");
            ranks.barrier();
            if rank == short {
                limit(0);
            }
            let begun = Instant::now();
            let made = group.duplicate().map(drop);
            let took = begun.elapsed();
            limit(before);
            let error = made.expect_err("no group without its board");
            match rank == short {
                true => assert!(!matches!(error, GroupError::Failed { .. }), "{error}"),
                // Who should have made the board has told before there was one.
                false if short == 0 => assert!(matches!(error, GroupError::Members(_)), "{error}"),
                false => assert_eq!(error, GroupError::Failed { rank: short }),
            }
            assert!(took < Duration::from_secs(1), "{took:?}");
            // The group itself goes on.
            ranks.barrier();
            group.duplicate().expect("all may open files again").run(Operation::barrier()).expect("a call");
        }
    });
}
