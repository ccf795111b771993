//! Whether an application leaves its buffers alone between messages.
//!
//! Which way is the fastest depends on whether what is sent was just written and what came
//! is read: lines that both processes use cross from core to core each time, and what is
//! read next had better be in a cache. Nobody tells the library. But to write or to read
//! so many bytes takes time, and how much there was between the end of one long message
//! and the begin of the next the library sees. Where there was none, the application has
//! used neither buffer; where there was some, it may have.
#![forbid(unsafe_code)]

use std::time::{Duration, Instant};

/// Shorter messages are not looked at.
const ABOVE_BYTES: u64 = 32 << 10;
/// No core reads or writes more in a nanosecond, in whichever of its caches the bytes are.
const MOST_BYTES_PER_NS: u64 = 128;
/// So many pauses in a row that are too short to use a buffer: a ping-pong has one between
/// a send and the receive of its answer, whatever it does with the answer.
const IN_A_ROW: u8 = 6;
/// Longer messages are all timed, which is nothing beside what they take.
const LONG_BYTES: u64 = 1 << 20;
/// So many pauses in a row between those alone: one more than between the two sends and the two
/// receives of an exchange with two neighbours. A program may not have many of them, and what was
/// found before a long pause is worth little behind it.
const LONG_IN_A_ROW: u8 = 4;
/// So many messages more are not timed when that was found: to ask the clock takes a
/// hundredth of the time of the shortest.
const UNTIMED: u8 = 58;
/// None when it was refuted, so many when it is so again, and twice as many each time after that,
/// up to [`UNTIMED`]: it may have been something else that took the time.
const FIRST_UNTIMED: u8 = 4;

/// What is known of one endpoint's application.
#[derive(Debug, Default)]
pub(crate) struct Pauses {
    /// What was found last.
    are_short: bool,
    /// Pauses of this series so far, all of them short.
    in_a_row: u8,
    /// The last of them, all between messages above [`LONG_BYTES`].
    long_in_a_row: u8,
    /// Whether one pause since that was found was long. It may have been a barrier's or an
    /// interrupt's; a second one before the next series is complete refutes it.
    is_doubtful: bool,
    /// Bytes of the messages that ended since the last long pause.
    bytes: u64,
    /// Messages that are not timed after the next refutation; 0 is [`FIRST_UNTIMED`].
    next_untimed: u8,
    /// Messages whose end is not looked at.
    untimed: u8,
    /// When the last message ended, and its bytes.
    ended: Option<(Instant, u64)>,
}

impl Pauses {
    /// Whether the last messages followed each other so quickly that the application
    /// cannot have used their buffers in between. Not so until it was seen.
    #[inline]
    pub const fn are_short(&self) -> bool {
        self.are_short
    }

    /// A message is over, sent or received.
    #[inline]
    pub fn end(&mut self, bytes: u64) {
        if bytes <= ABOVE_BYTES {
            return;
        }
        self.bytes = self.bytes.saturating_add(bytes);
        if self.untimed > 0 && bytes <= LONG_BYTES {
            self.untimed -= 1;
            return;
        }
        self.ended = Some((Instant::now(), bytes));
    }

    /// The last message ended within a call of the application: what is between that and the
    /// next one is no pause.
    pub const fn forget(&mut self) {
        self.ended = None;
    }

    /// A message begins: it is sent, or a receive for it is posted.
    #[inline]
    pub fn begin(&mut self, bytes: u64) {
        if bytes > ABOVE_BYTES
            && let Some((ended, ended_bytes)) = self.ended.take()
        {
            self.look(ended.elapsed(), ended_bytes.min(bytes));
        }
    }

    /// A pause between two messages, of which the shorter has so many bytes.
    fn look(&mut self, pause: Duration, bytes: u64) {
        let time_for = |bytes: u64| Duration::from_nanos(bytes / MOST_BYTES_PER_NS);
        if pause < time_for(bytes) {
            self.in_a_row += 1;
            self.long_in_a_row = if bytes > LONG_BYTES { self.long_in_a_row + 1 } else { 0 };
            if self.in_a_row == IN_A_ROW || self.long_in_a_row == LONG_IN_A_ROW {
                *self = Self { are_short: true, untimed: UNTIMED, bytes: self.bytes, ..Self::default() };
            }
            return;
        }
        // In a long one all that came and went since the last may have been used.
        let is_for_all = pause >= time_for(std::mem::take(&mut self.bytes));
        (self.in_a_row, self.long_in_a_row) = (0, 0);
        if self.are_short && !self.is_doubtful && !is_for_all {
            self.is_doubtful = true;
            return;
        }
        let next = self.next_untimed.max(FIRST_UNTIMED);
        // What was so before the pause is likely to be so again behind it.
        let (untimed, next_untimed) =
            if self.are_short { (0, next) } else { (next, (next * 2).min(UNTIMED)) };
        *self = Self { untimed, next_untimed, ..Self::default() };
    }
}

#[cfg(test)]
#[path = "pauses_tests.rs"]
mod tests;
