//! The ways of one stream, and what is known of each.

use super::ways::{Way, Ways};

/// The most ways that one stream tries.
pub(super) const MOST: usize = 14;
/// Only what is better by this is changed to (a logarithm: 3 %) ...
const HYSTERESIS: f64 = 0.03;
/// ... and by so many times what may be an error.
const CERTAINTY: f64 = 1.5;
/// What a median of a block may be off, against the mean of its two neighbours,
/// when two blocks in a row differ by 1 on the average.
const ERROR_OF_BLOCK: f64 = 1.1;
/// Older trials count less than the last so many.
const MEMORY: u16 = 8;
/// What costs this much more (a logarithm: twice) is tried last.
const HOPELESS: f64 = 0.7;
/// What may be better, but not certainly, is tried so often in a row at most.
const LOOKS: u16 = 6;
/// A trial that is better than those before by this (a logarithm: 15 %) says that
/// the way was warming up: memory is touched and mapped when it is first used.
const WARMER: f64 = 0.15;
/// ... which is worth so many looks.
const LOOKS_AT_WARMING: u16 = 12;
/// What costs so much more (a logarithm: 8 times) in its first trial is not
/// thought to be warming up.
const COLDEST: f64 = 2.1;

/// One way of a stream.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arm {
    pub way: Way,
    /// By what it costs more than the chosen way (a logarithm).
    pub log_ratio: f64,
    /// Trials since the last change.
    pub trials: u16,
    /// Whether the next trial may be much better.
    is_warming: bool,
    /// All trials.
    pub all_trials: u32,
    /// In which phase it was the best last; 0 if never.
    pub won: u32,
    /// A settled stream does not try it before this block.
    pub due: u32,
}

impl Arm {
    const fn new(way: Way) -> Self {
        Self { way, log_ratio: 0.0, trials: 0, is_warming: false, all_trials: 0, won: 0, due: 0 }
    }

    /// How far `log_ratio` may be off.
    fn error(&self, noise: f64) -> f64 {
        ERROR_OF_BLOCK * noise / f64::from(self.trials.clamp(1, MEMORY)).sqrt()
    }

    /// Whether it may be better by more than the hysteresis, and that is not
    /// certain yet.
    fn is_promising(&self, noise: f64) -> bool {
        let looks = if self.is_warming { LOOKS_AT_WARMING } else { LOOKS };
        let may_be_better = self.log_ratio - CERTAINTY * self.error(noise) < -HYSTERESIS;
        (1..looks).contains(&self.trials) && (self.is_warming || may_be_better)
    }

    /// The order in which what was not tried since a change is tried: what was
    /// the best in the phase before, what was never tried, what was good.
    fn prior(&self) -> (u32, bool, f64) {
        let is_hopeless = self.all_trials > 0 && self.log_ratio > HOPELESS;
        (u32::MAX - self.won, is_hopeless, if self.all_trials > 0 { self.log_ratio } else { 0.0 })
    }
}

fn by_ratio(one: &(u8, &Arm), other: &(u8, &Arm)) -> std::cmp::Ordering {
    one.1.log_ratio.total_cmp(&other.1.log_ratio)
}

/// All ways of a stream.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arms {
    list: [Arm; MOST],
    used: u8,
    pub chosen: u8,
}

impl Arms {
    pub fn new(ways: &Ways<'_>) -> Self {
        let mut arms = Self { list: [Arm::new(Way::Cells); MOST], used: 0, chosen: 0 };
        ways.iter().take(MOST).for_each(|way| arms.push(way));
        arms
    }

    fn push(&mut self, way: Way) {
        self.list[usize::from(self.used)] = Arm::new(way);
        self.used += 1;
    }

    pub fn all(&self) -> &[Arm] {
        &self.list[..usize::from(self.used)]
    }

    pub fn get(&self, at: u8) -> Option<&Arm> {
        self.all().get(usize::from(at))
    }

    fn others(&self) -> impl Iterator<Item = (u8, &Arm)> {
        let chosen = self.chosen;
        // There are at most MOST.
        (0_u8..).zip(self.all()).filter(move |(at, _)| *at != chosen)
    }

    /// One trial has shown that a way costs so much more than the chosen one.
    /// Where it was cut short, one message alone has, and that may have met
    /// something else: the next trial is to tell.
    pub fn note(&mut self, at: u8, log_ratio: f64, is_cut: bool) {
        let Some(arm) = self.list.get_mut(usize::from(at)) else { return };
        let is_better = log_ratio < arm.log_ratio - WARMER;
        arm.is_warming = match arm.all_trials {
            0 => log_ratio < COLDEST || is_cut,
            _ if arm.trials == 0 => is_cut,
            _ => is_better && log_ratio > 0.0,
        };
        arm.trials = arm.trials.saturating_add(1);
        arm.all_trials = arm.all_trials.saturating_add(1);
        let weight = if is_better && arm.trials <= LOOKS_AT_WARMING {
            // What was found before was something else.
            1.0
        } else {
            1.0 / f64::from(arm.trials.min(MEMORY))
        };
        arm.log_ratio += (log_ratio - arm.log_ratio) * weight;
    }

    pub fn postpone(&mut self, at: u8, due: u32) {
        if let Some(arm) = self.list.get_mut(usize::from(at)) {
            arm.due = due;
        }
    }

    /// The way that is certainly better than the chosen one, if there is one.
    pub fn better(&self, noise: f64) -> Option<u8> {
        let is_better =
            |arm: &Arm| arm.trials > 0 && arm.log_ratio < -HYSTERESIS - CERTAINTY * arm.error(noise);
        let better = self.others().filter(|(_, arm)| is_better(arm));
        better.min_by(by_ratio).map(|(at, _)| at)
    }

    /// Whether a way is worth another look soon.
    pub fn is_promising(&self, at: u8, noise: f64) -> bool {
        self.get(at).is_some_and(|arm| arm.is_promising(noise))
    }

    /// Chooses a way. Returns by how much it costs more than the one before.
    pub fn choose(&mut self, at: u8) -> f64 {
        let Arm { log_ratio: shift, trials, .. } = self.list[usize::from(at)];
        let before = &mut self.list[usize::from(self.chosen)];
        before.trials = before.trials.max(trials);
        // Of what was not tried since the last change the old ratio is a guess,
        // and stays what it is.
        let known = self.list.iter_mut().filter(|arm| arm.trials > 0);
        known.for_each(|arm| arm.log_ratio -= shift);
        self.chosen = at;
        shift
    }

    /// Where a way stands.
    pub fn place_of(&self, way: Way) -> Option<u8> {
        // There are at most MOST.
        self.all().iter().position(|arm| arm.way == way).map(|at| at as u8)
    }

    /// Chooses what the other end has chosen: by how much it costs more or less
    /// is not known here.
    pub fn lead_to(&mut self, at: u8) {
        self.chosen = at;
        for arm in &mut self.list {
            (arm.trials, arm.log_ratio) = (0, 0.0);
        }
    }

    /// A new phase begins: nothing is certain any more.
    pub fn forget(&mut self, phase: u32) {
        self.list[usize::from(self.chosen)].won = phase;
        for arm in &mut self.list {
            (arm.trials, arm.due) = (0, 0);
        }
        // To be compared with, it need not be tried.
        self.list[usize::from(self.chosen)].log_ratio = 0.0;
    }

    /// What an unsettled stream tries next: what it has not tried since the
    /// last change, then what is close. With `only_winners` nothing but what was
    /// the best in some phase.
    pub fn next_to_explore(&self, noise: f64, only_winners: bool) -> Option<u8> {
        let untried = self.others().filter(|(_, arm)| arm.trials == 0 && (arm.won > 0 || !only_winners));
        let first = untried.min_by(|(_, one), (_, other)| {
            let ((a, b, c), (x, y, z)) = (one.prior(), other.prior());
            (a, b).cmp(&(x, y)).then(c.total_cmp(&z))
        });
        let promising = || self.others().filter(|(_, arm)| arm.is_promising(noise));
        first.or_else(|| promising().min_by(by_ratio)).map(|(at, _)| at)
    }

    /// What a settled stream tries next, and from which block on.
    pub fn next_due(&self) -> Option<u8> {
        self.others().min_by_key(|(_, arm)| arm.due).map(|(at, _)| at)
    }
}

#[cfg(test)]
#[path = "arms_tests.rs"]
mod tests;
