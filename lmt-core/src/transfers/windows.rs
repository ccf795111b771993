//! What is under way to a peer, and which ways one of several messages to it takes.
#![forbid(unsafe_code)]

use super::rivals::Rivals;
use crate::belief::Beliefs;
use crate::in_flight::InFlight;
use crate::mechanism::Model;
use crate::rendezvous::Candidates;
use crate::selection::{LONG_WINDOW_BYTES, STREAM_OF_WINDOW_BYTES, STREAMS_AT_ONCE};

/// Who copies less than this part of a message is of no help: the end of one is left to
/// its sender also where that was busy all the time.
const HELPFUL_PART: u64 = 4;

/// What is under way to one peer, and what became of what was.
#[derive(Debug)]
pub(super) struct Window {
    /// Messages, announced and not done.
    pub in_flight: InFlight,
    /// The most of them at once since there were none, and the same before that.
    at_once: u32,
    last_at_once: u32,
    /// Bytes of announced messages that have come from the peer so far.
    pub received_bytes: u64,
    /// Whether this end could help with messages of several at once.
    pub helped: Beliefs,
    /// Whether as much has come from the peer while the last of these was under way:
    /// then this end could not help since it received.
    pub receives: bool,
    /// Which order the messages of a window take where streams go first otherwise.
    rivals: Rivals,
}

/// One of several messages, as it was when it was sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Among {
    received_bytes: u64,
}

impl Window {
    pub fn new() -> Self {
        Self {
            in_flight: InFlight::default(),
            at_once: 0,
            last_at_once: 0,
            received_bytes: 0,
            helped: Beliefs::new(),
            receives: false,
            rivals: Rivals::default(),
        }
    }

    /// Whether the next message is likely to be one of several that are under way at once, as
    /// those were that were announced last.
    pub const fn is_likely_of_several(&self) -> bool {
        self.last_at_once > 1
    }

    /// Whether a message that is sent now is one of several; `None` where it is not.
    pub fn among(&self, bytes: u64) -> Option<Among> {
        let is_one = self.in_flight.messages() >= STREAMS_AT_ONCE
            || (self.in_flight.messages() > 0 && self.is_long(bytes));
        is_one.then_some(Among { received_bytes: self.received_bytes })
    }

    /// Whether a message is long, and with what is under way more than caches hold, or what was
    /// under way before there was nothing: the next window is likely to become as long.
    fn is_long(&self, bytes: u64) -> bool {
        let together = self.in_flight.bytes().saturating_add(bytes).max(self.in_flight.last_most_bytes());
        bytes >= STREAM_OF_WINDOW_BYTES && together >= LONG_WINDOW_BYTES
    }

    /// The ways to try for one of several messages, or of several processes on a CPU
    /// (`crowded`). A sender that could not help with the last ones leaves it to the
    /// receiver. Where it could not since it receives as much, both cores are busy whoever
    /// copies: long messages go as a stream then, which may go past the caches where the
    /// kernel's copies do not. Who computes meanwhile moves no stream.
    pub fn ways(&mut self, bytes: u64, ways: &Candidates, crowded: bool) -> Candidates {
        let is_busy = !crowded && !self.helped.of(bytes).is_worth_asking();
        if is_busy
            && self.receives
            && self.is_long(bytes)
            && let Some(stream) = ways.with_stream_first()
        {
            return stream;
        }
        let ways = if is_busy || crowded { ways.with_one_end_first() } else { *ways };
        let is_stream = ways.as_slice().first().is_some_and(|first| first.model == Model::Stream);
        if is_stream && !crowded && self.rivals.are_streams_first(bytes) {
            return ways;
        }
        if self.in_flight.messages() >= STREAMS_AT_ONCE { ways.with_streams_last() } else { ways }
    }

    pub fn begin(&mut self, bytes: u64) {
        self.in_flight.begin(bytes);
        self.at_once = self.at_once.max(self.in_flight.messages());
        self.rivals.begin(self.in_flight.messages());
    }

    pub fn end(&mut self, bytes: u64) {
        self.in_flight.end(bytes);
        if self.in_flight.messages() == 0 {
            self.last_at_once = std::mem::take(&mut self.at_once);
        }
        self.rivals.end(self.in_flight.messages(), bytes);
    }

    /// One of several messages has arrived; whether this end could help tells of the next
    /// ones. Others tell nothing of those that are sent while they are under way.
    pub fn learn(&mut self, among: Among, bytes: u64, model: Model, copied_bytes: u64) {
        self.receives = self.received_bytes.wrapping_sub(among.received_bytes) >= bytes;
        let helped = self.helped.of(bytes);
        match model {
            Model::Both => helped.learn_of_asked(copied_bytes >= bytes / HELPFUL_PART),
            _ => helped.pass(),
        }
    }

    /// The peer is gone; another may get its number.
    pub fn forget(&mut self) {
        (self.helped, self.receives, self.rivals) = (Beliefs::new(), false, Rivals::default());
        (self.at_once, self.last_at_once) = (0, 0);
        self.in_flight.forget_last();
    }
}

#[cfg(test)]
#[path = "windows_tests.rs"]
mod tests;
