//! A rank that is killed in the middle of a call: the others end in an error that names
//! it, within a second.
#![cfg(not(loom))]

mod common;

use std::time::{Duration, Instant};

use lmt_collectives::{Algorithm, Group, GroupError, Kind, Operation, Reduction};
use lmt_conformance::group::{Parent, Test};
use lmt_conformance::quiet::Load;
use lmt_conformance::test_name;
use nix::sys::signal::Signal;

use common::{Case, LIMIT, endpoint, group, try_case};

/// How soon the others must know.
const SOON: Duration = Duration::from_secs(1);

/// Calls all operations by all algorithms, in an order of the round's own, until one
/// fails.
fn call_until_broken(group: &Group<'_>, first: usize) -> GroupError {
    let cases: Vec<(Kind, Option<Algorithm>)> = Kind::ALL
        .into_iter()
        .flat_map(|kind| std::iter::once(None).chain(Algorithm::of(kind).map(Some)).map(move |by| (kind, by)))
        .collect();
    for round in first.. {
        let (kind, algorithm) = cases[round % cases.len()];
        // What many ranks check after a call keeps them from the next one.
        let share = if group.size() > 24 { 20 } else { 1 };
        let length = [100, 30_000, 400_000][round % 3] / share;
        let (root, round) = (round as u32 % group.size(), round as u32);
        match try_case(group, &Case { kind, algorithm, length, root, in_place: false, round }) {
            Ok(()) | Err(GroupError::Unsuitable(_)) => {}
            Err(error) => return error,
        }
    }
    unreachable!("rounds have no end")
}

/// Kills `victim` after a while; how long it is until all others have told of it.
fn kill_one(parent: &mut Parent, size: u32, victim: u32, after: Duration) -> Duration {
    for rank in 0..size {
        assert_eq!(parent.next_report(rank).as_deref(), Some("ready"));
    }
    std::thread::sleep(after);
    let killed = Instant::now();
    parent.kill(victim, Signal::SIGKILL as i32);
    for rank in (0..size).filter(|&rank| rank != victim) {
        let report = parent.next_report(rank).expect("a living rank tells its error");
        assert!(report.contains("rank"), "{report}");
    }
    killed.elapsed()
}

fn killed(name: &str, size: u32, round: u32) {
    let victim = round % size;
    // 5 to 150 ms: in some other call each time.
    let after = Duration::from_millis(5 + u64::from(round) * 29 % 145);
    let test = Test::new(name, size).time_limit(LIMIT).may_die(victim);
    let (load, mut took) = (Load::begin(), Duration::ZERO);
    test.run_with(
        |parent| took = kill_one(parent, size, victim, after),
        |ranks| {
            let endpoint = endpoint(ranks, |_| {});
            let group = group(&endpoint, ranks);
            ranks.report("ready");
            let error = call_until_broken(&group, round as usize * 17);
            ranks.report(&error);
            let names_the_victim = match &error {
                GroupError::Died { rank } => *rank == victim,
                // Somebody was just copying from or to it.
                GroupError::Transfer { rank, .. } => *rank == victim,
                GroupError::Failed { rank } => *rank != group.rank(),
                _ => false,
            };
            assert!(names_the_victim, "{error}");
            // Once broken it is for good, and at once.
            let fastest = (0..10).map(|_| {
                let again = Instant::now();
                group.run(Operation::barrier()).expect_err("the group is broken");
                again.elapsed()
            });
            // Other programs may delay some of them.
            assert!(fastest.min().is_some_and(|least| least < Duration::from_millis(100)));
        },
    );
    load.took_less("telling all others", took, SOON);
}

#[test]
fn of_two() {
    (0..6).for_each(|round| killed(test_name!(), 2, round));
}

#[test]
fn of_four() {
    (0..8).for_each(|round| killed(test_name!(), 4, round));
}

#[test]
fn of_nine() {
    (0..4).for_each(|round| killed(test_name!(), 9, round * 2));
}

/// More ranks than look at each other in one round of a meeting.
#[test]
fn of_twenty_four() {
    killed(test_name!(), 24, 20);
}

/// More than are all connected with each other: most hear of it from others.
#[test]
fn of_eighty() {
    killed(test_name!(), 80, 43);
}

/// A call is left while a message to or from a stopped rank is in flight: it ends within
/// the second for which that rank is waited for.
#[test]
fn beside_one_that_is_stopped() {
    let longest_ms = std::cell::Cell::new(0);
    for round in 0..4 {
        let (load, mut took) = (Load::begin(), Duration::ZERO);
        Test::new(test_name!(), 2).time_limit(LIMIT).may_die(1).run_with(
            |parent| {
                (0..2).for_each(|rank| assert_eq!(parent.next_report(rank).as_deref(), Some("ready")));
                std::thread::sleep(Duration::from_millis(4 * u64::from(round)));
                parent.kill(1, Signal::SIGSTOP as i32);
                let took_ms = parent.next_report(0).expect("rank 0 tells how long it took");
                let took_ms: u64 = took_ms.parse().expect("milliseconds");
                took = Duration::from_millis(took_ms);
                longest_ms.set(longest_ms.get().max(took_ms));
                parent.kill(1, Signal::SIGKILL as i32);
            },
            |ranks| {
                let endpoint = endpoint(ranks, |_| {});
                let group = group(&endpoint, ranks);
                let mut data = vec![1; 96 << 20];
                group.run(Operation::barrier()).expect("all are there");
                ranks.report("ready");
                let call = Operation::broadcast(round % 2, &mut data[..]).by(Algorithm::Messages);
                if group.rank() == 1 {
                    let _stopped = group.run(call).and_then(|()| group.run(Operation::barrier()));
                    return;
                }
                let mut left = Instant::now();
                let body = || {
                    group.scope(|scope| {
                        let _open = scope.start(call).expect("begun");
                        while left.elapsed() < Duration::from_millis(40) {
                            group.progress().expect("no fork");
                        }
                        left = Instant::now();
                        panic!("in the middle");
                    })
                };
                let result: Result<(), _> = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body));
                assert!(result.is_err());
                ranks.report(left.elapsed().as_millis());
            },
        );
        load.took_less("leaving the call", took, Duration::from_millis(1500));
    }
    // Else the message was never in flight when its rank was stopped.
    assert!(longest_ms.get() >= 900, "no round waited for the stopped rank: {} ms", longest_ms.get());
}

/// One that leaves the group while others are in a call, or come to it: they end.
#[test]
fn leaving_too_early() {
    let (load, mut took) = (Load::begin(), Duration::ZERO);
    Test::new(test_name!(), 3).time_limit(LIMIT).run_with(
        |parent| {
            for rank in [0, 2] {
                let took_ms = parent.next_report(rank).expect("it tells how long it took");
                took = took.max(Duration::from_millis(took_ms.parse().expect("milliseconds")));
            }
        },
        |ranks| {
            let endpoint = endpoint(ranks, |_| {});
            let group = group(&endpoint, ranks);
            group.run(Operation::barrier()).expect("all are there");
            if group.rank() == 1 {
                drop(group);
            } else {
                let begun = Instant::now();
                let error = group.run(Operation::barrier()).expect_err("rank 1 has left");
                ranks.report(begun.elapsed().as_millis());
                assert!(matches!(error, GroupError::Failed { rank: 1 }), "{error}");
            }
            // The endpoint lives on.
            ranks.barrier();
        },
    );
    load.took_less("hearing of one that has left", took, SOON);
}

/// One that leaves in order when all is done harms nobody.
#[test]
fn leaving_in_order() {
    Test::new(test_name!(), 4).time_limit(LIMIT).run(|ranks| {
        let endpoint = endpoint(ranks, |_| {});
        let group = group(&endpoint, ranks);
        for round in 0..40 {
            let kind = Kind::ALL[round as usize % Kind::ALL.len()];
            let case = Case { kind, algorithm: None, length: 50_000, root: 0, in_place: false, round };
            try_case(&group, &case).unwrap_or_else(|error| panic!("{case:?}: {error}"));
        }
        // Each leaves as soon as it has ended the last call; the others may still be in it.
    });
}

/// A rank that panics in the middle of a call takes no memory away from others, and
/// they end.
#[test]
fn panicking() {
    Test::new(test_name!(), 3).time_limit(LIMIT).run(|ranks| {
        let endpoint = endpoint(ranks, |_| {});
        let group = group(&endpoint, ranks);
        let mut data = vec![0; 100_000];
        if group.rank() == 2 {
            let left = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                group.scope(|scope| {
                    let _open = scope.start(Operation::broadcast(0, &mut data[..]));
                    panic!("in the middle");
                })
            }));
            assert!(left.is_err());
        } else {
            // It may be done with the broadcast, but not with what comes after.
            let first = group.run(Operation::broadcast(0, &mut data[..]));
            let error = first.and_then(|()| group.run(Operation::barrier())).expect_err("rank 2 has left");
            assert!(matches!(error, GroupError::Failed { rank: 2 }), "{error}");
        }
        ranks.barrier();
    });
}

/// A reduction of the caller's that panics: its call is left without memory in use, and
/// the others end.
#[test]
fn a_reduction_that_panics() {
    Test::new(test_name!(), 3).time_limit(LIMIT).run(|ranks| {
        let endpoint = endpoint(ranks, |_| {});
        let group = group(&endpoint, ranks);
        let own = group.rank();
        let with = Reduction::custom(5, 8, true, move |_, _| assert!(own != 1, "it has had enough"));
        for bytes in [64, 1 << 20] {
            let part = group.duplicate().expect("a group of its own");
            let run = || {
                let mut data = vec![0; bytes];
                part.run(Operation::allreduce_in_place(&mut data[..], &with))
            };
            let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run));
            match (own, result) {
                (1, result) => assert!(result.is_err(), "rank 1 has panicked"),
                // It may have had from rank 1 all that it needed.
                (_, Ok(Ok(()) | Err(GroupError::Failed { rank: 1 }))) => {}
                (_, other) => panic!("{:?}", other.expect("no panic here")),
            }
        }
        ranks.barrier();
    });
}
