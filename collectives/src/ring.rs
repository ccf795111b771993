//! Where in the memory of a rank's slots that of each call lies: one after the other,
//! round and round. Only the rank itself asks; others read it off its card.
#![forbid(unsafe_code)]

use std::collections::VecDeque;
use std::ops::Range;

use crate::layout::LINE_BYTES;

/// The memory of one rank's slots.
#[derive(Debug)]
pub(crate) struct Ring {
    bytes: u64,
    /// Where the next slot begins, if there is room up to the end.
    next: u64,
    /// Of calls that some rank may not have ended, oldest first.
    claimed: VecDeque<(u32, Range<u64>)>,
}

impl Ring {
    pub fn new(bytes: u64) -> Self {
        Self { bytes, next: 0, claimed: VecDeque::new() }
    }

    /// Where the slot of a call of so many bytes begins; nothing while it would lie on
    /// one of a call that not all have ended. All calls before `ended_by_all` are ended;
    /// if those are all with slots, and `again`, it begins where the first one did.
    pub fn claim(&mut self, call: u32, bytes: u64, ended_by_all: u32, again: bool) -> Option<u64> {
        let is_over = |call: u32| ended_by_all.wrapping_sub(call).cast_signed() > 0;
        while self.claimed.front().is_some_and(|(call, _)| is_over(*call)) {
            self.claimed.pop_front();
        }
        if bytes == 0 {
            return Some(0);
        }
        let bytes = bytes.div_ceil(LINE_BYTES) * LINE_BYTES;
        let again = again && self.claimed.is_empty();
        let begin = if self.next + bytes <= self.bytes && !again { self.next } else { 0 };
        let slot = begin..begin + bytes;
        if slot.end > self.bytes || self.claimed.iter().any(|(_, other)| meet(other, &slot)) {
            return None;
        }
        self.next = slot.end;
        self.claimed.push_back((call, slot));
        Some(begin)
    }
}

fn meet(one: &Range<u64>, other: &Range<u64>) -> bool {
    one.start < other.end && other.start < one.end
}

#[cfg(test)]
#[path = "ring_tests.rs"]
mod tests;
