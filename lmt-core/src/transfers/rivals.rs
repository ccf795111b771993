//! Which of two orders of ways windows of messages take: all of them streams first, or
//! streams last, for those that find some under way.
//!
//! Where a line crosses from core to core quickly a stream carries windows both ways in
//! three quarters of the time of single copies, where it does not it takes half as long
//! again; and a machine may change between the two within seconds. So windows are timed,
//! and from time to time a few of them take the other order.
#![forbid(unsafe_code)]

use std::time::Instant;

use crate::rival::ByLength;
use crate::selection::STREAMS_AT_ONCE;

/// A window that does not end is cut here, in messages.
const MOST_MESSAGES: u32 = 64;

/// What is known of windows to one peer.
#[derive(Debug, Default)]
pub(super) struct Rivals {
    /// Streams first is the usual order, for two processes mostly run where they share a cache.
    orders: ByLength,
    /// The window that is timed: since when, the messages that have arrived in it, and their
    /// bytes.
    timed: Option<(Instant, u32, u64)>,
}

impl Rivals {
    /// Whether the next message of a window goes as a stream, if one can be.
    pub fn are_streams_first(&self, bytes: u64) -> bool {
        !self.orders.of(bytes).takes_second()
    }

    /// A message is sent, with which so many are under way. A window goes on while some are.
    #[inline]
    pub fn begin(&mut self, messages: u32) {
        if messages == STREAMS_AT_ONCE && self.timed.is_none() {
            self.timed = Some((Instant::now(), 0, 0));
        }
    }

    /// A message has arrived, and so many are still under way.
    #[inline]
    pub fn end(&mut self, messages: u32, bytes: u64) {
        let Some((begun, arrived, all_bytes)) = &mut self.timed else { return };
        *arrived += 1;
        *all_bytes = all_bytes.saturating_add(bytes);
        if messages > 0 && *arrived < MOST_MESSAGES {
            return;
        }
        let (took, all_bytes) = (begun.elapsed(), *all_bytes);
        self.timed = (messages >= STREAMS_AT_ONCE).then(|| (Instant::now(), 0, 0));
        self.orders.of_mut(bytes).note(took, all_bytes);
    }
}

#[cfg(test)]
#[path = "rivals_tests.rs"]
mod tests;
