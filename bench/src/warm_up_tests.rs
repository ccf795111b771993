//! Simulated trials: the clock is the test's.

use super::*;

/// What is chosen where an iteration takes `usec`, and trial number
/// `stalled` takes a second more.
fn chosen(usec: f64, stalled: Option<usize>) -> u64 {
    let mut warm_up = WarmUp::default();
    let mut iterations = 1;
    for trial in 0..1000 {
        let stall_s = if stalled == Some(trial) { 1.0 } else { 0.0 };
        match warm_up.took(iterations as f64 * usec * 1e-6 + stall_s) {
            Next::Try(more) => iterations = more,
            Next::Chosen(number) => return number,
        }
    }
    panic!("no end after 1000 trials");
}

#[test]
fn a_repetition_takes_about_the_time_aimed_at() {
    assert_eq!(chosen(1.0, None), 4000);
    assert_eq!(chosen(100.0, None), 40);
    assert_eq!(chosen(1500.0, None), 2);
}

#[test]
fn there_are_a_fewest_and_a_most() {
    assert_eq!(chosen(1e6, None), MIN_ITERATIONS);
    assert_eq!(chosen(1e-6, None), MAX_ITERATIONS);
    assert_eq!(chosen(0.0, None), MAX_ITERATIONS);
}

#[test]
fn one_interruption_changes_nothing() {
    for stalled in 0..20 {
        assert_eq!(chosen(1.0, Some(stalled)), 4000, "trial {stalled} was interrupted");
    }
}
