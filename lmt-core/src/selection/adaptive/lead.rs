//! Which of two ends chooses for both.
//!
//! Some ways are good only where both directions take them: cells that change
//! their owner with each message come back with the answer. Tried by one end
//! alone they are worse than what both have, and what both have is worse than
//! they. So where two ends send to one another in turn, the first of them tries
//! and chooses, and the other answers each message by the way it came.
//!
//! What is heard of the other end are its ways, not why it takes them. One that
//! chooses nothing at run time may change its way all the same: with shared
//! buffers, hints, or readers. What a trial looks like is known, though: it is
//! soon over the first time, there is another one in time, and all of them take a
//! small part of the messages. Nobody is led by other changes for long.

use super::arms::Arms;
use super::heard::Heard;
use super::meter::{SAMPLES, Sample};
use super::ways::Way;

/// After so many blocks in which the two do not send in turn, each is on its own.
const APART: u8 = 4;
/// What is followed for more rounds than these is no trial any more.
const LONGEST_TRIAL: u8 = SAMPLES as u8 + 1;
/// After so many blocks without a change each is on its own: one who chooses tries
/// something as often, unless all else takes several times as long.
pub(super) const STILL: u16 = 1024;
/// The other end's trials take so many rounds at most at first, twice what one
/// allows itself for a start, and one of so many later.
const STRAYS: u32 = 2048;
const STRAY_OF: u32 = 64;

/// What one end of a stream knows of the other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lead {
    is_first: bool,
    /// The messages of the present block: sent here, and come at its beginning.
    sent: u32,
    heard: u32,
    /// Blocks in a row in which the two did not send in turn.
    apart: u8,
    /// How the peer's messages come while it tries nothing, as far as is known.
    usual: Option<Way>,
    /// The peer's way has changed: it chooses.
    is_led: bool,
    /// ... and has come back from what may have been a trial.
    has_tried: bool,
    /// Rounds in a row in which its way was not the usual one.
    strayed: u8,
    /// Blocks since it was.
    still: u16,
    /// What is left for such rounds; each takes [`STRAY_OF`] of it. Where nothing
    /// is, nobody is followed any more.
    left: u32,
    /// What had come when the last message was answered.
    answered: u32,
}

impl Lead {
    pub const fn new(is_first: bool) -> Self {
        Self {
            is_first,
            sent: 0,
            heard: 0,
            apart: APART,
            usual: None,
            is_led: false,
            has_tried: false,
            strayed: 0,
            still: 0,
            left: STRAYS * STRAY_OF,
            answered: 0,
        }
    }

    /// Whether the two send in turn.
    pub const fn is_in_turn(&self) -> bool {
        self.apart < APART
    }

    /// Whether the other end may begin to choose for both.
    pub const fn waits(&self) -> bool {
        self.is_in_turn() && !self.is_first && self.left > 0
    }

    /// Whether the other end chooses.
    pub const fn is_led(&self) -> bool {
        self.is_led
    }

    /// Whether the other end keeps a way, after trials, that is not what it was.
    pub const fn keeps(&self, followed: u8) -> bool {
        self.has_tried && followed > LONGEST_TRIAL
    }

    /// A round has ended.
    pub fn sample(&mut self, sample: &Sample, heard: &Heard) {
        self.sent = self.sent.saturating_add(sample.messages);
        if !self.is_led {
            return;
        }
        if heard.way == self.usual {
            self.has_tried |= self.strayed > 0;
            self.strayed = 0;
            self.left = (self.left + 1).min(STRAYS * STRAY_OF);
            return;
        }
        (self.strayed, self.still) = (self.strayed.saturating_add(1), 0);
        self.left = self.left.saturating_sub(STRAY_OF);
        if self.has_tried && self.strayed > LONGEST_TRIAL {
            (self.usual, self.strayed) = (heard.way, 0);
        }
    }

    /// A block has ended. Returns whether this end is on its own from now on.
    pub fn end_block(&mut self, heard: &Heard) -> bool {
        let come = heard.count.wrapping_sub(self.heard);
        let rounds = SAMPLES as u32;
        // A message more or less may have come, as it happens.
        let in_turn = self.sent == rounds && come.abs_diff(rounds) <= 1;
        (self.sent, self.heard) = (0, heard.count);
        self.apart = if in_turn { 0 } else { self.apart.saturating_add(1).min(APART) };
        if !self.is_in_turn() {
            let was_led = self.is_led;
            *self = Self { heard: self.heard, ..Self::new(self.is_first) };
            return was_led;
        }
        self.usual = self.usual.or(heard.way);
        self.still = self.still.saturating_add(1);
        let is_trying = self.strayed <= LONGEST_TRIAL && self.still < STILL && self.left > 0;
        if is_trying || !self.is_led {
            return false;
        }
        // What it takes now is the usual way.
        (self.is_led, self.has_tried, self.strayed, self.usual) = (false, false, 0, heard.way);
        true
    }

    /// Messages have gone and come that are not to be counted.
    pub fn skip(&mut self, heard: &Heard) {
        (self.sent, self.heard) = (0, heard.count);
    }

    /// The way of an answer, where the other end chooses: the one by which it has
    /// sent, if that is one of this end's and nothing was answered by it yet.
    #[inline]
    pub fn follow(&mut self, heard: &Heard, arms: &Arms) -> Option<u8> {
        if !self.waits() || self.usual.is_none() {
            return None;
        }
        let is_new = std::mem::replace(&mut self.answered, heard.count) != heard.count;
        if !self.is_led && heard.way == self.usual {
            return None;
        }
        let place = heard.way.and_then(|way| arms.place_of(way));
        if !self.is_led && place.is_some() {
            (self.is_led, self.still) = (true, 0);
        }
        self.is_led.then(|| place.filter(|_| is_new).unwrap_or(arms.chosen))
    }
}

#[cfg(test)]
#[path = "lead_tests.rs"]
mod tests;
