//! When an answer is looked for first.
//!
//! Who looks for a message has a copy of the line that it will be in, and its sender has to take
//! that away before it can write: one way between the cores for that, and another for the line.
//! A receiver that looks only when the message is there pays the second alone. Where answers take
//! the same time again and again, it waits as long: a little less each time that its first look
//! finds one, and more when it does not.
//!
//! Where messages come at any time, or the application does other things for most of its time, it
//! does no good. So it is tried: some rounds with the wait and some without, of which the fastest
//! count. What did not win is tried again after ever more messages.
#![forbid(unsafe_code)]

use std::time::{Duration, Instant};

/// So many receives before the first trial.
const BEFORE_FIRST: u32 = 256;
/// So many after one that was lost, twice as many after the next, up to the last.
const REST: u32 = 4096;
const MOST_REST: u32 = 1 << 20;
/// Receives of a round.
const ROUND: u8 = 64;
/// Of those of a round so many first looks may be in vain: the wait is found by them.
const MOST_IN_VAIN: u8 = 16;
/// The rounds of a trial. That in which the wait is found is not timed.
const TRIAL: [Kind; 6] =
    [Kind::AtOnce, Kind::Unjudged, Kind::Waiting, Kind::AtOnce, Kind::Waiting, Kind::AtOnce];
/// What waits takes less than this part of the time of what does not.
const FASTER: f64 = 0.96;
/// So many rounds before a wait that has won is tried again, or one that takes more or less than
/// such a multiple of the time it took then.
const KEPT: u8 = 250;
const SLOWER: f64 = 1.5;
const QUICKER: f64 = 0.75;
/// An answer that takes longer comes from a core that shares no cache with this one, or is made
/// for long.
const FAR: Duration = Duration::from_nanos(200);
/// How the wait changes by what the first look found.
const LESS_NS: u32 = 1;
const MORE_NS: u32 = 16;

/// What a round is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    AtOnce,
    Unjudged,
    Waiting,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Resting,
    /// In the trial's round of this number.
    Trial(u8),
    /// So many rounds wait.
    Kept(u8),
}

/// What is known of one peer's answers.
#[derive(Debug)]
pub(crate) struct FirstLook {
    /// So many receives look at once before the next trial.
    resting: u32,
    /// Whether the last receive's first look found its message.
    found: bool,
    /// Whether answers that are waited for come from a core that is far.
    is_far: bool,
    phase: Phase,
    /// So long after a receive begins it looks first, if it waits, and at most.
    after_ns: u32,
    most_ns: u32,
    /// After a trial that is lost.
    next_rest: u32,
    /// Of the present round: its receives, and how many looked in vain first.
    turn: u8,
    in_vain: u8,
    /// When it began.
    began: Option<Instant>,
    /// The fastest round of each sort in the last trial.
    at_once: Duration,
    waiting: Duration,
}

impl FirstLook {
    /// Nothing is known yet; waits last up to `most_ns`, and there are none if that is 0.
    pub fn new(most_ns: u32) -> Self {
        Self {
            resting: BEFORE_FIRST,
            found: false,
            is_far: false,
            phase: Phase::Resting,
            after_ns: 0,
            most_ns,
            next_rest: REST,
            turn: 0,
            in_vain: 0,
            began: None,
            at_once: Duration::MAX,
            waiting: Duration::MAX,
        }
    }

    /// Waits until it is time to look; and learns of the receive before, for which there is time
    /// now.
    #[inline(always)] // The path of a short message.
    pub fn wait(&mut self) {
        if self.resting == 0
            && let Some(ns) = self.learn(Instant::now)
        {
            wait_for(ns);
        }
    }

    /// A receive has ended, or has looked for long; `at_first` says that its first look found the
    /// message. One of which this is not said looked in vain.
    #[inline(always)] // The path of a short message.
    pub const fn came(&mut self, at_first: bool) {
        self.resting = self.resting.saturating_sub(1);
        self.found = at_first;
    }

    /// Whether the line of the next message is to be asked for behind each: to have it takes long,
    /// and a peer that waits with its first look, as this side does, does not take it back
    /// meanwhile.
    #[inline(always)] // The path of a short message.
    pub const fn is_far(&self) -> bool {
        self.is_far
    }

    /// Learns of the last receive; how long the present one waits, in nanoseconds, if it does.
    #[inline(never)]
    fn learn(&mut self, now: impl FnOnce() -> Instant) -> Option<u32> {
        if self.phase == Phase::Resting {
            self.begin_trial(now());
        } else {
            self.note(now);
        }
        self.waits().then_some(self.after_ns)
    }

    /// Whether receives wait now.
    fn waits(&self) -> bool {
        match self.phase {
            Phase::Resting => false,
            Phase::Trial(round) => TRIAL[usize::from(round)] != Kind::AtOnce,
            Phase::Kept(_) => true,
        }
    }

    fn note(&mut self, now: impl FnOnce() -> Instant) {
        let found = std::mem::take(&mut self.found);
        if self.waits() {
            self.after_ns = match found {
                true => self.after_ns.saturating_sub(LESS_NS),
                false => (self.after_ns + MORE_NS).min(self.most_ns),
            };
            self.in_vain += u8::from(!found);
        }
        self.turn += 1;
        if self.turn == ROUND {
            self.end_round(now());
        }
    }

    #[cold]
    fn begin_trial(&mut self, now: Instant) {
        if self.most_ns == 0 {
            self.resting = u32::MAX;
            return;
        }
        (self.resting, self.is_far) = (0, false);
        (self.at_once, self.waiting) = (Duration::MAX, Duration::MAX);
        self.begin_round(Phase::Trial(0), now);
    }

    fn begin_round(&mut self, phase: Phase, now: Instant) {
        (self.phase, self.turn, self.in_vain, self.began) = (phase, 0, 0, Some(now));
    }

    #[cold]
    fn end_round(&mut self, now: Instant) {
        let took = self.began.map_or(Duration::MAX, |began| now.saturating_duration_since(began));
        match self.phase {
            Phase::Resting => {}
            Phase::Trial(round) => self.end_round_of_trial(round, took, now),
            Phase::Kept(_) if self.is_lost() => self.rest(),
            Phase::Kept(left) if left == 0 || self.is_another(took) => self.begin_trial(now),
            Phase::Kept(left) => self.begin_round(Phase::Kept(left - 1), now),
        }
    }

    fn end_round_of_trial(&mut self, round: u8, took: Duration, now: Instant) {
        match TRIAL[usize::from(round)] {
            Kind::AtOnce => self.at_once = self.at_once.min(took),
            Kind::Waiting if self.is_lost() => return self.rest(),
            Kind::Waiting => self.waiting = self.waiting.min(took),
            Kind::Unjudged => {}
        }
        if usize::from(round) + 1 < TRIAL.len() {
            self.begin_round(Phase::Trial(round + 1), now);
        } else if self.waiting < self.at_once.mul_f64(FASTER) {
            self.next_rest = REST;
            self.is_far = self.waiting > FAR * u32::from(ROUND);
            self.begin_round(Phase::Kept(KEPT), now);
        } else {
            self.rest();
        }
    }

    /// Whether a round takes so much more or less time than in the trial that something else is
    /// going on.
    fn is_another(&self, took: Duration) -> bool {
        took > self.waiting.mul_f64(SLOWER) || took < self.waiting.mul_f64(QUICKER)
    }

    /// Whether the round shows that no wait is right: too many looks in vain, or more than leave
    /// it below the longest.
    const fn is_lost(&self) -> bool {
        self.in_vain > MOST_IN_VAIN || self.after_ns >= self.most_ns
    }

    /// Looks at once for a while.
    fn rest(&mut self) {
        let next_rest = (self.next_rest * 2).min(MOST_REST);
        *self = Self { resting: self.next_rest, next_rest, ..Self::new(self.most_ns) };
    }
}

/// Lets so long pass; what two looks at the clock take, at least.
#[inline(never)]
fn wait_for(ns: u32) {
    let (begun, time) = (Instant::now(), Duration::from_nanos(ns.into()));
    while begun.elapsed() < time {}
}

#[cfg(test)]
#[path = "first_look_tests.rs"]
mod tests;
