use proptest::prelude::*;

use super::*;
use crate::selection::adaptive::simulation::{
    BYTES, Disturbances, PingPong, Random, candidates, number, stream_of,
};

/// Ways as they cost in traffic that touches its buffers and in traffic that does
/// not: the best of one is bad in the other.
const TOUCHED: [f64; 9] = [52e3, 50e3, 58e3, 49e3, 24e3, 61e3, 70e3, 55e3, 56e3];
const UNTOUCHED: [f64; 9] = [7.5e3, 7.9e3, 4.6e3, 9e3, 15e3, 21e3, 33e3, 8e3, 8.2e3];
/// All within 1 %.
const EQUAL: [f64; 6] = [10e3, 10.1e3, 9.95e3, 10.05e3, 10e3, 9.98e3];

/// In how many of the phases, of 1000 messages each, a pair was within 5 % of the
/// best way after 200 messages, and how many phases there were.
fn within(disturbances: &Disturbances, is_alone: bool) -> (u32, u32) {
    let (mut good, mut all) = (0, 0);
    for seed in 0..40 {
        let mut pair = PingPong::new(TOUCHED.len(), seed, disturbances.clone());
        for phase in 0..12 {
            let costs = if phase % 2 == 0 { &UNTOUCHED } else { &TOUCHED };
            pair.run(200, costs, is_alone);
            let rest = pair.run(800, costs, is_alone);
            // In the first two all ways are new.
            if phase >= 2 {
                good += u32::from(rest.loss() < 0.05);
                all += 1;
            }
        }
        assert!(!pair.ends[0].lead.is_led() && pair.ends[1].lead.is_led() != is_alone);
    }
    println!("{disturbances:?}, alone {is_alone}: {good} of {all}");
    (good, all)
}

/// Also where a way is good only if both directions take it.
#[test]
fn after_200_messages_of_a_phase_its_best_way_is_taken() {
    for (noise, apart, is_alone) in
        [(0.02, 1.0, true), (0.05, 1.0, true), (0.02, 1.0, false), (0.05, 1.0, false), (0.05, 3.0, false)]
    {
        let disturbances = Disturbances { noise, apart, first_use_ns: 20e3, ..Disturbances::FEW };
        let (good, all) = within(&disturbances, is_alone);
        assert!(good * 100 >= all * 95, "{disturbances:?}, alone {is_alone}: {good} of {all} phases");
    }
}

#[test]
fn over_a_long_run_trying_takes_at_most_one_percent_and_becomes_rare() {
    for seed in 0..4 {
        let mut pair = PingPong::new(9, seed, Disturbances::FEW);
        let mut trials = Vec::new();
        for _ in 0..4 {
            let passed = pair.run(100_000, &UNTOUCHED, false);
            trials.push(pair.ends[0].trials);
            assert!(trials.len() == 1 || passed.loss() < 0.01, "{:.4}", passed.loss());
        }
        for end in &pair.ends {
            assert!(
                end.tried_ns as f64 <= 0.01 * end.total_ns as f64,
                "{} of {}",
                end.tried_ns,
                end.total_ns
            );
        }
        let later = trials[3] - trials[2];
        assert!(later < trials[0], "{trials:?}");
        assert!(later < 100_000 / 200, "{trials:?}");
    }
}

#[test]
fn between_equal_ways_nothing_flaps() {
    for seed in 0..10 {
        let mut pair = PingPong::new(EQUAL.len(), seed, Disturbances { noise: 0.05, ..Disturbances::FEW });
        pair.run(50_000, &EQUAL, false);
        for end in &pair.ends {
            assert!(end.switches <= 3, "{} switches, {} changes", end.switches, end.phase - 1);
        }
    }
}

/// The machine is four times as slow for seconds at a time.
#[test]
fn regimes_of_the_machine_are_not_taken_for_ways() {
    let speed = |now_ns: f64| if ((now_ns / 2e9) as u64).is_multiple_of(2) { 1.0 } else { 4.0 };
    for seed in 0..4 {
        let mut pair = PingPong::new(9, seed, Disturbances { speed, ..Disturbances::FEW });
        pair.run(20_000, &UNTOUCHED, false);
        let rest = pair.run(1_000_000, &UNTOUCHED, false);
        assert!(rest.loss() < 0.01, "{:.4}", rest.loss());
        assert!(pair.now_ns > 16e9, "there were several regimes");
    }
}

/// Everything becomes twice as slow, little by little, and as fast as before.
#[test]
fn a_drift_changes_no_choice() {
    let speed = |now_ns: f64| 1.5 + 0.5 * (now_ns / 5e8).sin();
    let mut pair = PingPong::new(9, 5, Disturbances { speed, ..Disturbances::FEW });
    pair.run(5_000, &TOUCHED, false);
    let rest = pair.run(100_000, &TOUCHED, false);
    assert!(rest.loss() < 0.01, "{:.4}", rest.loss());
}

/// One of twenty messages is followed by a computation of a hundred times its
/// length.
#[test]
fn pauses_are_not_taken_for_slow_ways() {
    let disturbances = Disturbances { outlier_every: 20, ..Disturbances::FEW };
    let mut pair = PingPong::new(9, 6, disturbances);
    pair.run(2_000, &UNTOUCHED, false);
    let rest = pair.run(20_000, &UNTOUCHED, false);
    assert!(rest.loss() < 0.02, "{:.4}", rest.loss());
}

/// Windows of 64 messages that are begun at once, and an answer to each window.
#[test]
fn in_windows_the_time_of_whole_windows_counts() {
    let costs = [10e3, 6e3, 14e3, 9e3];
    let mut stream = stream_of(costs.len(), true);
    let mut random = Random(7);
    let (mut now_ns, mut events) = (1.0, 0);
    let mut last = [0_u32; 4];
    for window in 0..3_000 {
        let mut window_ns = 0.0;
        for message in 0..64 {
            // To begin a send takes the same by all ways.
            now_ns += 200.0;
            let send = Send { now_ns: now_ns as u64, bytes: BYTES, events, under_way: message };
            let way = number(stream.send(&send, &Heard::default()));
            window_ns += costs[way] * (0.95 + 0.1 * random.unit());
            last[way] += u32::from(window >= 2_000);
        }
        (now_ns, events) = (now_ns + window_ns, events + 1);
    }
    assert!(last[1] > 63_000, "{last:?}");
}

#[test]
fn a_message_that_goes_another_way_spoils_what_is_compared() {
    let mut stream = stream_of(2, true);
    for message in 0..1_000_u64 {
        let send = Send { now_ns: message * 1_000, bytes: BYTES, events: message, under_way: 0 };
        stream.send(&send, &Heard::default());
        stream.spoil();
    }
    assert_eq!((stream.trials, stream.level.is_known()), (0, false));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// Whatever the times are and whatever was heard, every message takes one of
    /// the ways, and of one way nothing is tried.
    #[test]
    fn any_times_do(
        ways in 1_usize..12,
        is_first in any::<bool>(),
        sends in prop::collection::vec((any::<u64>(), any::<u64>(), 0_u64..4, 0_u32..300), 1..400),
        // Ways that the stream has, that it does not have, cells and none; mostly in
        // turn, so that the other end may lead.
        first_count in any::<u32>(),
        heard in prop::collection::vec((0_usize..16, prop_oneof![9 => Just(1), 1 => any::<u32>()]), 400),
    ) {
        let mut stream = stream_of(ways, is_first);
        let mut events = 0_u64;
        let mut count = first_count;
        for ((now_ns, bytes, more, under_way), (at, come)) in sends.into_iter().zip(heard) {
            events += more;
            count = count.wrapping_add(come);
            let way = match at {
                14 => Some(Way::Cells),
                15 => None,
                _ => Some(Way::By(candidates(14).as_slice()[at])),
            };
            let send = Send { now_ns, bytes, events, under_way };
            let way = number(stream.send(&send, &Heard { way, count }));
            prop_assert!(way < ways);
            prop_assert!(ways > 1 || stream.trials == 0);
        }
        let report = stream.report(|way| number(way).to_string());
        prop_assert_eq!(report.ways.len(), ways);
    }
}
