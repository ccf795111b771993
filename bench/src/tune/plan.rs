//! What is measured, how often, and where more often.

use std::time::Duration;

use lmt_selector::calibration::{Chosen, Course, EAGER, EAGER_MAX_BYTES, Load};

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
    /// The part of that time, in percent, after which no such further pass
    /// begins.
    pub further_percent: u32,
}

impl Effort {
    /// `lmt tune`.
    pub const FULL: Self =
        Self { passes: 5, repetitions: 15, further_passes: 12, time_s: 1200, further_percent: 80 };
    /// `lmt tune --quick`: at most 3 minutes, start and end included; a minute
    /// and a half if the machine is not slow.
    pub const QUICK: Self =
        Self { passes: 3, repetitions: 7, further_passes: 16, time_s: 150, further_percent: 60 };

    /// With so much less time; no further pass begins later for it, nor sooner.
    pub fn without(self, time: Duration) -> Self {
        let time_s = self.time_s.saturating_sub(time.as_secs());
        // Of some hundreds of seconds, and 100 at most.
        let further_percent =
            (self.time_s * u64::from(self.further_percent)).checked_div(time_s).unwrap_or(0);
        let further_percent = further_percent.min(100) as u32;
        Self { time_s, further_percent, ..self }
    }

    /// How long before everything has to be over no further pass begins.
    pub fn without_further(self) -> Duration {
        let percent = 100 - self.further_percent.min(100);
        Duration::from_secs(self.time_s) * percent / 100
    }
}

/// Whether there is anything to measure of a way at this size.
pub fn is_useful(way: &str, bytes: u64) -> bool {
    match way {
        EAGER => bytes <= EAGER_MAX_BYTES,
        _ => bytes >= MECHANISMS_FROM_BYTES,
    }
}

/// Whether a way may be chosen under a load by itself: how long messages travel
/// in cells is decided by one pair on cache.
pub fn may_be_chosen(way: &str, load: Load) -> bool {
    way != EAGER || (load.pairs == 1 && !load.off_cache)
}

/// How often each way is measured in one class, in the order of `ways`; 0 where
/// not at all. `course` is what is known of it.
pub fn repetitions(effort: Effort, pass: u32, bytes: u64, ways: &[String], course: &Course) -> Vec<u32> {
    let may_be_chosen = |way: &str| may_be_chosen(way, course.load);
    let estimates = course.estimates_among(bytes, may_be_chosen);
    // In the passes over what is open it has no part.
    let once = u32::from(pass < effort.passes);
    let of_path = |way: &String| match estimates.get(way.as_str()) {
        _ if !is_useful(way, bytes) => 0,
        // For the page alone.
        _ if !may_be_chosen(way) => once,
        None => FIRST_REPETITIONS,
        Some(estimate) if estimate.regret - 2.0 * estimate.error > HOPELESS_REGRET => once,
        Some(_) => effort.repetitions,
    };
    ways.iter().map(of_path).collect()
}

/// The classes whose way is not decided: another one may be as good or better,
/// and how the two differ is not known well. Where the way changes from one
/// class to the next it is looked at more closely. Only ways count that may be
/// chosen; where the choice is another load's, nothing is open.
pub fn undecided(course: &Course, chosen: &[Chosen]) -> Vec<u64> {
    let may_be_chosen = |way: &str| may_be_chosen(way, course.load);
    let is_open = |(at, one): &(usize, &Chosen)| {
        let Some(class) = course.class(one.bytes).filter(|_| may_be_chosen(&one.way)) else { return false };
        let neighbours = [at.checked_sub(1), Some(at + 1)];
        let neighbours = neighbours.into_iter().flatten().filter_map(|at| chosen.get(at));
        let is_border = neighbours.into_iter().any(|other| other.way != one.way);
        let (close, good) = match is_border {
            true => (2.0 * CLOSE_REGRET, GOOD_ERROR),
            false => (CLOSE_REGRET, 1.5 * GOOD_ERROR),
        };
        let best = class.best_among(may_be_chosen);
        let mut estimates = course.estimates_among(one.bytes, may_be_chosen).into_iter();
        estimates.any(|(way, estimate)| {
            Some(way) != best && estimate.regret - estimate.error < close && estimate.error > good
        })
    };
    chosen.iter().enumerate().filter(is_open).map(|(_, chosen)| chosen.bytes).collect()
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
