//! Arguments that are wrong, or differ between ranks: an error on every rank, within
//! time, and a group that goes on.
#![cfg(not(loom))]

mod common;

use lmt_collectives::{Algorithm, Block, Element, Group, GroupError, Kind, Operation, Operator, Reduction};
use lmt_conformance::group::{Group as Ranks, Test};
use lmt_conformance::test_name;

use common::{Case, LIMIT, endpoint, group, try_case};

fn with_group(name: &str, size: u32, body: impl Fn(&Group<'_>, &Ranks)) {
    Test::new(name, size).time_limit(LIMIT).run(|ranks| {
        let endpoint = endpoint(ranks, |_| {});
        let group = group(&endpoint, ranks);
        body(&group, ranks);
    });
}

/// The group does everything it did before.
fn goes_on(group: &Group<'_>) {
    for kind in Kind::ALL {
        let case = Case { kind, algorithm: None, length: 10_000, root: 0, in_place: false, round: 77 };
        try_case(group, &case).unwrap_or_else(|error| panic!("{case:?}: {error}"));
    }
}

/// What all ranks hear of a call that differs between them: a sentence that names both.
fn mismatch(result: Result<(), GroupError>, words: &[&str]) {
    let error = result.expect_err("the ranks call different things");
    assert!(matches!(error, GroupError::Mismatch { .. }), "{error}");
    let sentence = error.to_string();
    assert!(words.iter().any(|word| sentence.contains(word)), "{sentence}");
}

#[test]
fn roots_that_differ() {
    for_sizes(test_name!(), |group| {
        let mut data = vec![0; 100_000];
        let root = u32::from(group.rank() == 1);
        mismatch(group.run(Operation::broadcast(root, &mut data[..])), &["with root 0", "with root 1"]);
    });
}

#[test]
fn lengths_that_differ() {
    for_sizes(test_name!(), |group| {
        let mut data = vec![0; 100_000 + group.rank() as usize];
        mismatch(group.run(Operation::broadcast(0, &mut data[..])), &["of 100000 bytes", "of 100001 bytes"]);
    });
}

#[test]
fn operations_that_differ() {
    for_sizes(test_name!(), |group| {
        let mut data = [0; 64];
        let result = if group.rank() == 0 {
            group.run(Operation::barrier())
        } else {
            group.run(Operation::broadcast(0, &mut data[..]))
        };
        mismatch(result, &["barrier"]);
    });
}

#[test]
fn algorithms_that_differ() {
    for_sizes(test_name!(), |group| {
        let mut data = vec![0; 100_000];
        let by = if group.rank() == 0 { Algorithm::DirectRead } else { Algorithm::DirectWrite };
        mismatch(
            group.run(Operation::broadcast(0, &mut data[..]).by(by)),
            &["by direct-read", "by direct-write"],
        );
    });
}

#[test]
fn reductions_that_differ() {
    for_sizes(test_name!(), |group| {
        let operator = if group.rank() == 0 { Operator::Sum } else { Operator::Max };
        let with = Reduction::new(operator, Element::U64).expect("defined");
        let mut data = [0; 64];
        mismatch(group.run(Operation::allreduce_in_place(&mut data[..], &with)), &["allreduce"]);
    });
}

/// Two groups: one in which all ranks look at all others, and one of more rounds.
fn for_sizes(name: &str, body: impl Fn(&Group<'_>)) {
    // The ranks of the second are those of the first and more; one run does both.
    with_group(name, 9, |group, _| {
        body(group);
        goes_on(group);
        let few = group.split((group.rank() < 3).then_some(1), 0).expect("a part of the group");
        if let Some(few) = few {
            body(&few);
            goes_on(&few);
        }
    });
}

#[test]
fn one_rank_with_wrong_arguments() {
    with_group(test_name!(), 3, |group, _| {
        let mut into = vec![0; 300];
        let own = [1; 100];
        // One rank cannot share its output equally, or names a root that is none.
        let short = if group.rank() == 1 { 299 } else { 300 };
        let error = group.run(Operation::allgather(&own[..], &mut into[..short])).expect_err("one is wrong");
        match (group.rank(), &error) {
            (1, GroupError::Arguments(sentence)) => assert!(sentence.contains("299 bytes"), "{sentence}"),
            (_, GroupError::Mismatch { rank: 1, theirs, .. }) => {
                assert!(theirs.contains("wrong arguments"), "{theirs}")
            }
            other => panic!("{other:?}"),
        }
        goes_on(group);
        let error = group.run(Operation::broadcast(3, &mut into[..])).expect_err("there is no rank 3");
        assert!(error.to_string().contains("ranks count from 0"), "{error}");
        let block = [Block { offset: 250, bytes: 100 }; 3];
        let error = group.run(Operation::allgatherv(&own[..], &mut into[..], &block)).expect_err("too far");
        assert!(error.to_string().contains("reaches past"), "{error}");
        let error = group.run(Operation::barrier().by(Algorithm::Knomial(4))).expect_err("no barrier");
        assert!(error.to_string().contains("slots"), "{error}");
        goes_on(group);
    });
}

#[test]
fn blocks_whose_lengths_differ() {
    with_group(test_name!(), 3, |group, _| {
        // Rank 0 sends rank 1 a block of 5000 bytes, which expects 6000.
        let (own, size) = (group.rank(), 3);
        let length = |from: u32, to: u32| if (from, to) == (0, 1) { 5000 } else { 4000 };
        let wanted = |from: u32| if (from, own) == (0, 1) { 6000 } else { length(from, own) };
        let blocks = |lengths: Vec<u64>| {
            let mut offset = 0;
            let mut next = |bytes| {
                offset += bytes;
                Block { offset: offset - bytes, bytes }
            };
            lengths.into_iter().map(&mut next).collect::<Vec<Block>>()
        };
        let from_blocks = blocks((0..size).map(|to| length(own, to)).collect());
        let into_blocks = blocks((0..size).map(wanted).collect());
        let (from, mut into) = (vec![1; 20_000], vec![0; 20_000]);
        let operation = Operation::alltoallv(&from[..], &from_blocks, &mut into[..], &into_blocks);
        let result = group.run(operation.by(Algorithm::Pairwise));
        match (own, &result) {
            (1, Err(GroupError::Length { rank: 0, theirs_bytes: 5000, ours_bytes: 6000 })) => {}
            // The others may have been done with it.
            (0 | 2, Ok(()) | Err(GroupError::Failed { rank: 1 })) => {}
            other => panic!("{other:?}"),
        }
        // The group is broken, for all.
        let error = group.run(Operation::barrier()).expect_err("the group is broken");
        assert!(error.to_string().contains("rank 1") || own == 1, "{error}");
    });
}

#[test]
fn members_that_are_none() {
    with_group(test_name!(), 2, |_, ranks| {
        let own = endpoint_of_its_own();
        let error = Group::create(&own, &[ranks.address(0)]).err().expect("not a member");
        assert!(error.to_string().contains("not in the list"), "{error}");
        let error = Group::create(&own, &[own.address(), own.address()]).err().expect("twice");
        assert!(error.to_string().contains("twice"), "{error}");
        let alone = Group::create(&own, &[own.address()]).expect("a group of one");
        goes_on(&alone);
    });
}

fn endpoint_of_its_own() -> lmt::Endpoint {
    lmt::Endpoint::new().expect("an endpoint")
}

#[test]
fn in_place_on_some_ranks_only() {
    for_sizes(test_name!(), |group| {
        let with = Reduction::new(Operator::Sum, Element::U64).expect("defined");
        for bytes in [64, 1 << 20] {
            let (from, mut into) = (vec![1; bytes], vec![2; bytes]);
            let result = if group.rank() == 0 {
                group.run(Operation::allreduce_in_place(&mut into[..], &with))
            } else {
                group.run(Operation::allreduce(&from[..], &mut into[..], &with))
            };
            mismatch(result, &["allreduce"]);
        }
    });
}

/// Lengths of listed blocks that differ between two ranks, none of them 0 or one of them,
/// by every algorithm: the one that sees it says so, and nobody waits.
#[test]
fn listed_lengths_that_differ() {
    with_group(test_name!(), 3, |group, _| {
        let own = group.rank();
        for (algorithm, theirs) in
            Algorithm::of(Kind::Alltoall).flat_map(|by| [(by, 0), (by, 10), (by, 400_000)])
        {
            let part = group.duplicate().expect("a group of its own");
            // Rank 0 sends rank 1 another length than that expects.
            let outgoing = |to: u32| if (own, to) == (0, 1) { theirs } else { 64 };
            let incoming = |from: u32| if (from, own) == (0, 1) { 77 } else { 64 };
            let blocks = |length: &dyn Fn(u32) -> u64| {
                (0..3)
                    .map(|rank| Block { offset: u64::from(rank) * 400_000, bytes: length(rank) })
                    .collect::<Vec<_>>()
            };
            let (from, mut into) = (vec![1; 1_200_000], vec![0; 1_200_000]);
            let (from_blocks, into_blocks) = (blocks(&outgoing), blocks(&incoming));
            let operation = Operation::alltoallv(&from[..], &from_blocks, &mut into[..], &into_blocks);
            match (own, part.run(operation.by(algorithm))) {
                (_, Err(GroupError::Unsuitable(_))) => {}
                (1, Err(GroupError::Length { rank: 0, theirs_bytes, ours_bytes: 77 })) => {
                    assert_eq!(theirs_bytes, theirs, "{algorithm}");
                }
                (0 | 2, Ok(()) | Err(GroupError::Failed { rank: 1 })) => {}
                other => panic!("{algorithm}: {other:?}"),
            }
        }
    });
}
