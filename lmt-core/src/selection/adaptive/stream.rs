//! One stream: what is chosen, what is tried, and when.

use super::arms::{Arm, Arms};
use super::budget::Budget;
use super::heard::Heard;
use super::lead::Lead;
use super::level::Level;
use super::meter::{Block, Meter, SAMPLES, Sample, Send};
use super::report::{StreamReport, WayReport};
use super::ways::{Way, Ways};

/// Blocks go in fours: a trial of one end, a block in which neither tries, a
/// trial of the other end, and another quiet block. Ends may time the same
/// exchange, so that one may take the other's trial for its own; in turns it does
/// less often. Not never: each end counts its own blocks, and the counts drift.
const CYCLE: u32 = 4;
/// Where one end chooses for both, the other has no turn.
const CYCLE_IN_TURN: u32 = 2;
/// A stream begins to try after so many blocks: one that is short is not worth it.
const BEFORE_FIRST: u32 = 12;
/// ... and where the other end may choose for both after so many, which does if it
/// tries anything.
const BEFORE_FIRST_UNLED: u32 = 2 * BEFORE_FIRST;
/// Each trial is compared with the quiet blocks before and behind it. They differ
/// by less than this (a logarithm), or it says nothing.
const STEADY: f64 = 0.25;
/// A trial ends early when its way takes so many times as long, in the first one
/// and in the first round only when it takes longer: what a way needs is made when
/// it is first used, and comes back into the caches in each first round.
const TOO_SLOW: f64 = 3.0;
const FIRST_TOO_SLOW: f64 = 20.0;
/// A settled stream waits so many blocks for its first trial, and from one to the
/// next twice as long each time, up to the last.
const FIRST_INTERVAL: u32 = 16;
const LAST_INTERVAL: u32 = 1024;
/// The longest that a bad way waits for another trial, in intervals.
const LONGEST_WAIT: f64 = 100.0;
/// So many rounds pass unseen after a block in which nothing was new, where nothing
/// is tried next: what is not asked costs nothing.
const REST_ROUNDS: f64 = 9.0;
/// The most messages of such a rest.
const LONGEST_REST: f64 = 1024.0;
/// Weight of one round in the mean length of rounds and messages.
const WEIGHT: f64 = 1.0 / 16.0;

/// A trial that waits for the quiet block behind it.
#[derive(Clone, Copy, Debug)]
struct Trial {
    arm: u8,
    before: f64,
    log: Option<f64>,
    /// It ended before its time, so that one message alone speaks.
    is_cut: bool,
}

/// What is known of one stream.
#[derive(Clone, Debug)]
pub(super) struct Stream {
    meter: Meter,
    block: Block,
    arms: Arms,
    level: Level,
    budget: Budget,
    lead: Lead,
    /// Rounds in a row by another way than the chosen, for the other end.
    followed: u8,
    /// The way of the messages now.
    current: u8,
    /// Rounds of the present block, and the block's number.
    rounds: u8,
    number: u32,
    /// Which block of a cycle is this end's for trials.
    turn: u32,
    /// The last quiet block (a logarithm of ns per byte).
    quiet: Option<f64>,
    trial: Option<Trial>,
    is_settled: bool,
    next_trial: u32,
    interval: u32,
    /// Messages that will be sent unseen, and whether such were.
    rest: u32,
    has_rested: bool,
    round_bytes: f64,
    message_bytes: f64,
    /// From 1; one more with each change.
    phase: u32,
    trials: u32,
    switches: u32,
    tried_ns: u64,
    total_ns: u64,
}

impl Stream {
    /// A stream of which nothing is known. `is_first` at one of the two ends.
    pub fn new(ways: &Ways<'_>, is_first: bool) -> Self {
        Self {
            meter: Meter::default(),
            block: Block::default(),
            arms: Arms::new(ways),
            level: Level::default(),
            budget: Budget::new(),
            lead: Lead::new(is_first),
            followed: 0,
            current: 0,
            rounds: 0,
            number: 0,
            turn: if is_first { 0 } else { CYCLE / 2 },
            quiet: None,
            trial: None,
            is_settled: false,
            next_trial: 0,
            interval: FIRST_INTERVAL,
            rest: 0,
            has_rested: false,
            round_bytes: 0.0,
            message_bytes: 0.0,
            phase: 1,
            trials: 0,
            switches: 0,
            tried_ns: 0,
            total_ns: 0,
        }
    }

    /// The way of a message that is about to be sent, where such have come.
    #[inline]
    pub fn send(&mut self, send: &Send, heard: &Heard) -> Way {
        if std::mem::take(&mut self.has_rested) {
            self.resume(send, heard);
        }
        if let Some(sample) = self.meter.send(send) {
            self.sampled(&sample, heard);
        }
        if let Some(arm) = self.lead.follow(heard, &self.arms) {
            (self.trial, self.quiet, self.current) = (None, None, arm);
        }
        self.arms.get(self.current).map_or(Way::Cells, |arm| arm.way)
    }

    /// The message goes another way than [`Self::send`] has said.
    pub const fn spoil(&mut self) {
        self.meter.spoil();
    }

    /// For so many further messages the way is the same, as long as the other
    /// end's is; they need not be told of.
    pub fn rest(&mut self) -> u32 {
        let rest = std::mem::take(&mut self.rest);
        self.has_rested |= rest > 0;
        rest
    }

    /// Messages were sent unseen.
    fn resume(&mut self, send: &Send, heard: &Heard) {
        let ns = send.now_ns.saturating_sub(self.meter.restart());
        self.total_ns = self.total_ns.saturating_add(ns);
        self.budget.earn(ns as f64 / self.usual_ns());
        self.lead.skip(heard);
    }

    /// Lets messages go unseen, if the last block has told nothing new.
    fn take_rest(&mut self) {
        let is_quiet = self.trial.is_none() && self.current == self.arms.chosen;
        let is_settled = self.is_settled || self.lead.is_led();
        if is_quiet && is_settled && self.level.is_usual() {
            let messages = REST_ROUNDS * (self.round_bytes / self.message_bytes.max(1.0)).max(1.0);
            self.rest = messages.min(LONGEST_REST) as u32;
        }
    }

    fn sampled(&mut self, sample: &Sample, heard: &Heard) {
        let weight = |old: f64| if old == 0.0 { 1.0 } else { WEIGHT };
        let (bytes, of_message) =
            (sample.bytes as f64, sample.bytes as f64 / f64::from(sample.messages.max(1)));
        self.round_bytes += (bytes - self.round_bytes) * weight(self.round_bytes);
        self.message_bytes += (of_message - self.message_bytes) * weight(self.message_bytes);
        self.total_ns = self.total_ns.saturating_add(sample.ns);
        self.lead.sample(sample, heard);
        if self.lead.is_led() {
            self.sampled_led(sample, heard);
            return;
        }
        if self.level.is_known() {
            self.budget.earn(sample.ns as f64 / self.usual_ns());
        }
        let is_trial = self.current != self.arms.chosen;
        // What is left of a block whose trial was cut short says nothing.
        if is_trial || !self.has_tried() {
            self.block.add(sample);
        }
        self.rounds += 1;
        if is_trial {
            // What takes longer is a pause of the application, more likely than not.
            let rounds = (sample.ns as f64 / self.usual_ns()).min(FIRST_TOO_SLOW);
            self.budget.spend(rounds, self.is_settled);
            self.tried_ns = self.tried_ns.saturating_add((rounds * self.usual_ns()) as u64);
            let is_last = usize::from(self.rounds) == SAMPLES;
            if is_last || self.is_too_slow(sample) {
                self.end_trial(!is_last);
            }
        }
        if usize::from(self.rounds) == SAMPLES {
            self.end_block(heard);
        }
    }

    /// A round of a stream for which the other end chooses: nothing is tried, and
    /// what the other keeps is chosen here.
    fn sampled_led(&mut self, sample: &Sample, heard: &Heard) {
        let is_chosen = self.current == self.arms.chosen;
        self.followed = if is_chosen { 0 } else { self.followed.saturating_add(1) };
        if self.lead.keeps(self.followed) {
            self.arms.lead_to(self.current);
            (self.level, self.followed) = (Level::default(), 0);
            self.switches = self.switches.saturating_add(1);
        }
        if self.followed == 0 {
            self.block.add(sample);
        }
        self.rounds += 1;
        if usize::from(self.rounds) < SAMPLES {
            return;
        }
        if let Some(log) = std::mem::take(&mut self.block).least().map(f64::ln)
            && self.level.block(log, true)
        {
            self.phase = self.phase.saturating_add(1);
        }
        self.count_block();
        if self.lead.end_block(heard) {
            self.followed = 0;
            self.change();
        }
        self.take_rest();
    }

    fn count_block(&mut self) {
        self.rounds = 0;
        self.number = self.number.wrapping_add(1);
    }

    /// Whether the present block was to be a trial that has ended already.
    fn has_tried(&self) -> bool {
        self.is_my_turn() && self.trial.is_some_and(|trial| trial.log.is_some())
    }

    const fn is_my_turn(&self) -> bool {
        let cycle = if self.lead.is_in_turn() { CYCLE_IN_TURN } else { CYCLE };
        self.number % cycle == self.turn % cycle
    }

    /// What a round takes by the chosen way.
    fn usual_ns(&self) -> f64 {
        self.level.ns_per_byte() * self.round_bytes
    }

    fn is_too_slow(&self, sample: &Sample) -> bool {
        let Some(Trial { arm, before, .. }) = self.trial else { return false };
        let is_first = self.arms.get(arm).is_some_and(|arm| arm.all_trials == 0);
        let bound = if is_first || self.rounds == 1 { FIRST_TOO_SLOW } else { TOO_SLOW };
        sample.ns_per_byte().ln() - before > bound.ln()
    }

    fn end_trial(&mut self, is_cut: bool) {
        let log = self.block.least().map(f64::ln);
        self.trial = match self.trial {
            Some(trial) if log.is_some() => Some(Trial { log, is_cut, ..trial }),
            _ => None,
        };
        self.current = self.arms.chosen;
    }

    fn end_block(&mut self, heard: &Heard) {
        let is_quiet = self.number % 2 == 1;
        let was_trial = self.has_tried();
        let block = std::mem::take(&mut self.block);
        if !was_trial && let Some(log) = block.least().map(f64::ln) {
            let has_changed = self.level.block(log, is_quiet);
            if is_quiet {
                self.judge(log);
                self.quiet = Some(log);
            }
            if has_changed {
                self.change();
            }
        }
        self.count_block();
        self.lead.end_block(heard);
        if self.is_my_turn() && self.trial.is_none() {
            self.begin_trial();
        }
        self.take_rest();
    }

    /// Compares the last trial with the blocks around it.
    fn judge(&mut self, after: f64) {
        let Some(Trial { arm, before, log: Some(log), is_cut }) = self.trial.take() else { return };
        if (after - before).abs() > STEADY.max(3.0 * self.level.noise()) {
            return;
        }
        self.arms.note(arm, log - f64::midpoint(before, after), is_cut);
        if let Some(better) = self.arms.better(self.level.noise()) {
            let shift = self.arms.choose(better);
            self.level.shift(shift);
            self.switches = self.switches.saturating_add(1);
            (self.current, self.quiet) = (better, None);
            self.hurry();
        } else if self.is_settled && self.arms.is_promising(arm, self.level.noise()) {
            self.hurry();
            self.arms.postpone(arm, self.number);
        }
    }

    /// A settled stream has reason to try more often again.
    const fn hurry(&mut self) {
        self.interval = FIRST_INTERVAL;
        self.next_trial = self.number;
    }

    /// The level has changed for good: what was found before may hold no more.
    fn change(&mut self) {
        self.arms.forget(self.phase);
        self.phase = self.phase.saturating_add(1);
        (self.is_settled, self.trial, self.quiet) = (false, None, None);
        self.current = self.arms.chosen;
        self.hurry();
    }

    fn begin_trial(&mut self) {
        let Some(before) = self.quiet.filter(|_| self.level.is_known()) else { return };
        let Some(arm) = self.next_trial() else { return };
        self.trial = Some(Trial { arm, before, log: None, is_cut: false });
        self.trials = self.trials.saturating_add(1);
        self.current = arm;
    }

    fn next_trial(&mut self) -> Option<u8> {
        let before_first = if self.lead.waits() { BEFORE_FIRST_UNLED } else { BEFORE_FIRST };
        if self.number < before_first {
            return None;
        }
        if !self.is_settled {
            let next = self.arms.next_to_explore(self.level.noise(), self.budget.is_scarce());
            if let Some(arm) = next.filter(|arm| self.budget.allows_change(self.cost(*arm))) {
                return Some(arm);
            }
            self.is_settled = true;
            (self.interval, self.next_trial) = (FIRST_INTERVAL, self.number + FIRST_INTERVAL);
        }
        let arm = self.arms.next_due()?;
        let due = self.arms.get(arm).map_or(u32::MAX, |arm| arm.due).max(self.next_trial);
        if self.number < due || !self.budget.allows_steady(self.cost(arm)) {
            return None;
        }
        let wait = f64::from(self.interval) * self.ratio(arm).powi(2).clamp(1.0, LONGEST_WAIT);
        self.arms.postpone(arm, self.number.saturating_add(wait as u32));
        self.next_trial = self.number.saturating_add(self.interval);
        self.interval = (2 * self.interval).min(LAST_INTERVAL);
        Some(arm)
    }

    /// How many times as long as the chosen way a way took when it was tried.
    fn ratio(&self, arm: u8) -> f64 {
        self.arms.get(arm).map_or(1.0, |arm| arm.log_ratio.exp())
    }

    /// What its trial will take, in usual rounds.
    fn cost(&self, arm: u8) -> f64 {
        SAMPLES as f64 * self.ratio(arm).max(1.0)
    }

    /// What is known, in a form to be shown.
    pub fn report<'a, N>(&'a self, name: N) -> StreamReport
    where
        N: Fn(Way) -> String + 'a,
    {
        let period_ns = self.level.ns_per_byte() * self.message_bytes;
        let way = |arm: &Arm| WayReport {
            way: name(arm.way),
            trials: arm.all_trials,
            period_ns: (arm.trials > 0).then(|| period_ns * arm.log_ratio.exp()),
        };
        StreamReport {
            message_bytes: self.message_bytes,
            period_ns: self.level.is_known().then_some(period_ns),
            chosen: self.arms.get(self.arms.chosen).map(|arm| name(arm.way)).unwrap_or_default(),
            ways: self.arms.all().iter().map(way).collect(),
            trials: self.trials,
            switches: self.switches,
            changes: self.phase - 1,
            is_settled: self.is_settled || self.lead.is_led(),
            is_led: self.lead.is_led(),
            tried_ns: self.tried_ns,
            total_ns: self.total_ns,
        }
    }

    /// The way that is chosen.
    pub fn chosen(&self) -> Way {
        self.arms.get(self.arms.chosen).map_or(Way::Cells, |arm| arm.way)
    }
}

#[cfg(test)]
#[path = "stream_tests.rs"]
mod tests;
