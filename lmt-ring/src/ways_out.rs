//! How messages of one peer are copied out of a ring: through the caches or past them.
//!
//! A rule says which are to go past them. That is half again as fast on some machines, and
//! slower than the string instruction on others, by the message's length and where its target
//! was; so those that come one by one are timed, and now and then a few of them go the other
//! way (`lmt_core::rival`). Of several at once all do as the rule says: no cache holds them.

use std::time::Instant;

use lmt_core::rival::ByLength;

use crate::sys::Emptying;

/// What is known of one peer's messages.
#[derive(Debug)]
pub(crate) struct WaysOut {
    /// Past the caches, or through them.
    rivals: ByLength,
    /// Messages that have begun and are not over.
    incoming: u32,
    /// Since when the only one is copied, if it is timed.
    timed: Option<Instant>,
}

impl WaysOut {
    /// Nothing is known of messages that go past the caches from so many bytes on. Those that
    /// are much longer are sure to be right there, so they are tried later.
    pub(crate) fn new(streaming_bytes: u64) -> Self {
        let rivals = ByLength::soon_below(streaming_bytes.saturating_mul(2));
        Self { rivals, incoming: 0, timed: None }
    }

    /// A message of so many bytes begins, which the rule sends past the caches or not; which
    /// way it goes.
    pub(crate) fn begin(&mut self, bytes: u64, is_past: bool) -> Emptying {
        self.incoming += 1;
        let is_only = self.incoming == 1;
        self.timed = (is_past && is_only).then(Instant::now);
        if is_past && !(is_only && self.rivals.of(bytes).takes_second()) {
            Emptying::Streamed
        } else {
            Emptying::Cached
        }
    }

    /// One of so many bytes is over, and has come or has not.
    pub(crate) fn end(&mut self, bytes: u64, is_whole: bool) {
        self.incoming = self.incoming.saturating_sub(1);
        if let Some(begun) = self.timed.take()
            && is_whole
        {
            self.rivals.of_mut(bytes).note(begun.elapsed(), bytes);
        }
    }
}

#[cfg(test)]
#[path = "ways_out_tests.rs"]
mod tests;
