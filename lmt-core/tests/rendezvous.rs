//! The machine and the matcher against what MPI promises, in many simulated
//! worlds. `LMT_RENDEZVOUS_CASES` sets how many worlds of each kind are run
//! (default 150); `LMT_RENDEZVOUS_SEED` the first seed (default 1).

mod world;

use world::{Case, Tally, World};

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Runs the worlds that `case` makes of each seed.
fn worlds(case: impl Fn(u64) -> Case) -> Tally {
    let (first, cases) = (number("LMT_RENDEZVOUS_SEED", 1), number("LMT_RENDEZVOUS_CASES", 150));
    let mut tally = Tally::default();
    for seed in first..first + cases {
        let case = case(seed);
        let run = std::panic::AssertUnwindSafe(|| World::run(case, std::mem::take(&mut tally)));
        match std::panic::catch_unwind(run) {
            Ok(counted) => tally = counted,
            Err(panic) => {
                eprintln!("LMT_RENDEZVOUS_SEED={seed} LMT_RENDEZVOUS_CASES=1 repeats it: {case:?}");
                std::panic::resume_unwind(panic);
            }
        }
    }
    println!("{tally:?}");
    tally
}

fn ordinary(seed: u64) -> Case {
    Case {
        seed,
        endpoints: 2 + (seed % 4) as usize,
        operations: 40,
        max_bytes: [200, 1000, 5000][(seed % 3) as usize],
        fault_per_mille: 0,
        reliable: true,
        dies: None,
        hostile: None,
        receive_one_in: 1,
    }
}

#[test]
fn every_message_arrives_once_whole_and_in_order() {
    let tally = worlds(ordinary);
    assert!(tally.received > 0 && tally.eager > 0 && tally.truncated > 0);
    assert!(tally.known_by_both > 0);
    assert!(tally.cancelled > 0 && tally.cancel_too_late > 0 && tally.taken > 0);
    assert!(tally.receives_cancelled > 0 && tally.no_mechanism == 0);
}

#[test]
fn failing_mechanisms_hand_over_what_is_left() {
    let tally = worlds(|seed| Case { fault_per_mille: 20 + seed % 4 * 80, ..ordinary(seed) });
    assert!(tally.demoted > 0 && tally.no_mechanism == 0);
}

#[test]
fn both_ends_learn_that_no_mechanism_is_left() {
    let tally =
        worlds(|seed| Case { fault_per_mille: 100 + seed % 3 * 100, reliable: false, ..ordinary(seed) });
    assert!(tally.no_mechanism > 0 && tally.received > 0);
}

#[test]
fn operations_with_the_dead_end_and_the_others_go_on() {
    let tally = worlds(|seed| Case {
        fault_per_mille: seed % 3 * 40,
        dies: Some(seed as usize % 2),
        endpoints: 3 + (seed % 3) as usize,
        ..ordinary(seed)
    });
    assert!(tally.peer_dead > 0 && tally.received > 0);
}

#[test]
fn a_hostile_peer_harms_nobody_else() {
    let tally = worlds(|seed| Case {
        fault_per_mille: seed % 3 * 40,
        hostile: Some(0),
        endpoints: 3 + (seed % 3) as usize,
        ..ordinary(seed)
    });
    assert!(tally.protocol_errors > 0 && tally.received > 0);
}

#[test]
fn ten_thousand_unexpected_messages_find_their_receives() {
    let case = Case {
        operations: 24_000,
        endpoints: 2,
        max_bytes: 100,
        fault_per_mille: 20,
        receive_one_in: 1_000_000,
        ..ordinary(7)
    };
    let tally = World::run(case, Tally::default());
    assert!(tally.max_unexpected >= 10_000, "{tally:?}");
}
