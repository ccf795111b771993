//! Which of two ends chooses for both.
//!
//! Some ways are good only where both directions take them: cells that change
//! their owner with each message come back with the answer. Tried by one end
//! alone they are worse than what both have, and what both have is worse than
//! they. So where two ends send to one another in turn, the first of them tries
//! and chooses, and the other answers each message by the way it came.

use super::heard::Heard;
use super::meter::{SAMPLES, Sample};
use super::ways::Way;

/// After so many blocks in which the two do not send in turn, each is on its own.
const APART: u8 = 4;

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
}

impl Lead {
    pub const fn new(is_first: bool) -> Self {
        Self { is_first, sent: 0, heard: 0, apart: APART, usual: None, is_led: false }
    }

    /// Whether the two send in turn.
    pub const fn is_in_turn(&self) -> bool {
        self.apart < APART
    }

    /// Whether the other end may begin to choose for both.
    pub const fn waits(&self) -> bool {
        self.is_in_turn() && !self.is_first
    }

    /// Whether the other end chooses.
    pub const fn is_led(&self) -> bool {
        self.is_led
    }

    /// A round has ended.
    pub fn sample(&mut self, sample: &Sample) {
        self.sent = self.sent.saturating_add(sample.messages);
    }

    /// A block has ended. Returns whether this end is on its own from now on.
    pub fn end_block(&mut self, heard: &Heard) -> bool {
        let come = heard.count.wrapping_sub(self.heard);
        let rounds = SAMPLES as u32;
        // A message more or less may have come, as it happens.
        let in_turn = self.sent == rounds && come.abs_diff(rounds) <= 1;
        (self.sent, self.heard) = (0, heard.count);
        self.apart = if in_turn { 0 } else { self.apart.saturating_add(1).min(APART) };
        if self.is_in_turn() {
            self.usual = self.usual.or(heard.way);
            return false;
        }
        self.usual = None;
        std::mem::take(&mut self.is_led)
    }

    /// Messages have gone and come that are not to be counted.
    pub fn skip(&mut self, heard: &Heard) {
        (self.sent, self.heard) = (0, heard.count);
    }

    /// The way by which the peer wants to be answered, if it says so.
    #[inline]
    pub fn follow(&mut self, heard: &Heard) -> Option<Way> {
        if !self.waits() || self.usual.is_none() {
            return None;
        }
        self.is_led |= heard.way != self.usual;
        heard.way.filter(|_| self.is_led)
    }
}

#[cfg(test)]
#[path = "lead_tests.rs"]
mod tests;
