use std::thread;

use super::*;
use crate::engine::socket::{SocketLink, group};

fn assignment(rank: u32) -> Assignment {
    Assignment {
        rank,
        parent: 0,
        cpu: 0,
        ways: vec!["a:get".into(), "b:put".into()],
        largest_bytes: 4096,
        rotation_bytes: 1 << 16,
    }
}

/// Does a turn with so many ranks as threads; what each says.
fn turn_of(ranks: u32, turn: &Turn) -> Vec<Result<Vec<Timed>, String>> {
    let (first, second) = (group(ranks as usize), group(ranks as usize));
    let work = |rank: u32, links: Vec<SocketLink>| {
        let mut rank = Rank::new(links, &assignment(rank)).unwrap();
        rank.turn(turn).map_err(|failure| failure.error.to_string())
    };
    thread::scope(|scope| {
        let both = first.into_iter().zip(second).zip(0..);
        let threads: Vec<_> =
            both.map(|((one, other), rank)| scope.spawn(move || work(rank, vec![one, other]))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

#[test]
fn ways_are_measured_as_often_as_asked_for() {
    for (ranks, off_cache) in [(2, false), (2, true), (4, false), (6, true)] {
        let ways = vec![
            PathTurn { way: 0, iterations: 3, repetitions: 4 },
            PathTurn { way: 1, iterations: 0, repetitions: 1 },
        ];
        let answers = turn_of(ranks, &Turn { bytes: 4096, off_cache, ways });
        let [first, others @ ..] = &answers[..] else { panic!() };
        let first = first.as_ref().unwrap();
        assert_eq!(first.iter().map(|timed| timed.times_ns.len()).collect::<Vec<_>>(), [4, 1]);
        assert_eq!(first[0].iterations, 3);
        assert!(first[1].iterations >= 2, "found by itself");
        assert!(first.iter().flat_map(|timed| &timed.times_ns).all(|ns| *ns > 0.0));
        // All found the same number.
        let found = |timed: &Vec<Timed>| timed[1].iterations;
        assert!(others.iter().all(|other| other.as_ref().map(found) == Ok(found(first))));
    }
}

#[test]
fn a_message_that_does_not_fit_is_a_failure() {
    let ways = vec![PathTurn { way: 0, iterations: 1, repetitions: 1 }];
    let answers = turn_of(2, &Turn { bytes: 1 << 20, off_cache: false, ways });
    assert!(answers.iter().all(|answer| answer.as_ref().is_err_and(|e| e.contains("too short"))));
}
