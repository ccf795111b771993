//! What is measured, how often, and where more often.

use lmt_selector::calibration::{Chosen, Class, Course, EAGER, EAGER_MOST_BYTES};

/// The shortest message for which mechanisms are measured. One that is
/// announced takes at least two packets, and cells take no more than that many
/// bytes in one: below, cells are faster whatever the machine.
pub const MECHANISMS_FROM_BYTES: u64 = 256;
/// Repetitions of the first pass, which is to be soon everywhere.
const FIRST_REPETITIONS: u32 = 3;
/// A way that takes certainly longer than the fastest by this (a logarithm: half
/// as long again) is measured once a pass only.
const HOPELESS_REGRET: f64 = 0.4;
/// Ways that differ by less (a logarithm: 8 %) are worth more repetitions ...
const CLOSE_REGRET: f64 = 0.08;
/// ... until their difference is known better than this (1 %).
const GOOD_ERROR: f64 = 0.01;

/// How much is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    /// Passes over all classes, each with processes started anew.
    pub passes: u32,
    /// Repetitions of a pass.
    pub repetitions: u32,
    /// Passes over what is not decided by then, at most.
    pub further_passes: u32,
    /// The time for all of it, in seconds.
    pub time_s: u64,
}

impl Effort {
    /// `lmt tune`.
    pub const FULL: Self = Self { passes: 5, repetitions: 15, further_passes: 8, time_s: 1200 };
    /// `lmt tune --quick`: at most 3 minutes, start and end included.
    pub const QUICK: Self = Self { passes: 3, repetitions: 7, further_passes: 4, time_s: 150 };
}

/// Whether there is anything to measure of a way at this size.
pub fn is_useful(way: &str, bytes: u64) -> bool {
    match way {
        EAGER => bytes <= EAGER_MOST_BYTES,
        _ => bytes >= MECHANISMS_FROM_BYTES,
    }
}

/// How often each way is measured in one class, in the order of `ways`; 0 where
/// not at all. `class` is what is known of it.
pub fn repetitions(
    effort: Effort,
    pass: u32,
    bytes: u64,
    ways: &[String],
    class: Option<&Class>,
) -> Vec<u32> {
    let estimates = class.map(Class::estimates).unwrap_or_default();
    let of_way = |way: &String| match estimates.get(way.as_str()) {
        _ if !is_useful(way, bytes) => 0,
        None => FIRST_REPETITIONS,
        Some(estimate) if estimate.regret - 2.0 * estimate.error > HOPELESS_REGRET => {
            // In the passes over what is open it has no part.
            u32::from(pass < effort.passes)
        }
        Some(_) => effort.repetitions,
    };
    ways.iter().map(of_way).collect()
}

/// The classes whose way is not decided: another one may be as good or better,
/// and how the two differ is not known well. Where the way changes from one
/// class to the next it is looked at more closely.
pub fn undecided(course: &Course, chosen: &[Chosen]) -> Vec<u64> {
    let is_open = |(at, one): &(usize, &Chosen)| {
        let Some(class) = course.class(one.bytes) else { return false };
        let neighbours = [at.checked_sub(1), Some(at + 1)];
        let neighbours = neighbours.into_iter().flatten().filter_map(|at| chosen.get(at));
        let is_border = neighbours.into_iter().any(|other| other.way != one.way);
        let (close, good) = match is_border {
            true => (2.0 * CLOSE_REGRET, GOOD_ERROR),
            false => (CLOSE_REGRET, 1.5 * GOOD_ERROR),
        };
        let others = class.estimates();
        others.into_iter().any(|(_, estimate)| {
            estimate.regret - estimate.error < close && estimate.error > good && estimate.regret > 0.0
        })
    };
    chosen.iter().enumerate().filter(is_open).map(|(_, chosen)| chosen.bytes).collect()
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
