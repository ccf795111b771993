//! Copies of what another core has just written: by vectors or as the process copies
//! otherwise, whichever the machine does faster at the moment.
//!
//! A C library copies from some length on by a string instruction. Where two cores share
//! a cache that takes 0.87 of the time of vectors, on other machines (or on the same one,
//! once its host has moved the cores) twice of it: 64 KiB have been seen to take 1.4 and
//! 1.6 us, and 5.0 and 2.7 us. Nobody says beforehand which it is, so now and then a copy
//! is timed.
#![allow(unsafe_code)] // Follows the addresses that its callers vouch for.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crate::copy::copy_nonoverlapping;
use crate::take_over::copy_by_vectors;

/// As [`copy_nonoverlapping`], of what another core has just written.
///
/// # Safety
/// As for [`copy_nonoverlapping`].
#[inline]
pub unsafe fn copy_from_peer(target: *mut u8, source: *const u8, bytes: usize) {
    let copy = |by_vectors: bool| {
        if by_vectors {
            // SAFETY: the caller's promise.
            unsafe { copy_by_vectors(target, source, bytes) };
        } else {
            // SAFETY: the caller's promise.
            unsafe { copy_nonoverlapping(target, source, bytes) };
        }
    };
    match class_of(bytes) {
        Some(class) => CLASSES[class].copy(bytes, copy),
        None => copy(bytes < LEAST_BYTES),
    }
}

/// Shorter ones go by vectors: to begin a string instruction takes longer than that.
const LEAST_BYTES: usize = 8 << 10;
/// Longer ones are not taken to be in a cache, and go as the process copies.
const MOST_BYTES: usize = 1 << 20;
/// The powers of two from one to the other.
const COUNT: usize = (MOST_BYTES / LEAST_BYTES).ilog2() as usize + 1;

static CLASSES: [Class; COUNT] = [const { Class::new() }; COUNT];

fn class_of(bytes: usize) -> Option<usize> {
    (LEAST_BYTES..=MOST_BYTES).contains(&bytes).then(|| (bytes / LEAST_BYTES).ilog2() as usize)
}

/// Each of the first copies of a class is timed, then one of so many: no power of two,
/// so that it is not always the same piece of a message.
const TIMED_EVERY: u32 = 31;
const FIRST: u32 = 8;

/// What is known of copies of about one length. Threads that copy at once may each lose
/// what another has noted, which matters little.
#[derive(Debug)]
struct Class {
    /// How many copies there were.
    turn: AtomicU32,
    /// How many nanoseconds 1 MiB took, otherwise and by vectors; 0 before any did.
    mib_ns: [AtomicU32; 2],
}

impl Class {
    const fn new() -> Self {
        Self { turn: AtomicU32::new(0), mib_ns: [AtomicU32::new(0), AtomicU32::new(0)] }
    }

    /// Has one copied, which is told whether to do so by vectors.
    fn copy(&self, bytes: usize, copy: impl FnOnce(bool)) {
        let (by_vectors, is_timed) = self.next();
        if !is_timed {
            return copy(by_vectors);
        }
        let begin = Instant::now();
        copy(by_vectors);
        self.took(by_vectors, bytes, begin.elapsed());
    }

    /// Whether the next copy goes by vectors, and whether it is timed.
    fn next(&self) -> (bool, bool) {
        // Relaxed, here and below: figures that stand for themselves.
        let turn = self.turn.load(Ordering::Relaxed);
        self.turn.store(turn.wrapping_add(1), Ordering::Relaxed);
        match timed(turn) {
            Some(by_vectors) => (by_vectors, true),
            None => (self.prefers_vectors(), false),
        }
    }

    fn prefers_vectors(&self) -> bool {
        let [otherwise, vectors] = self.mib_ns.each_ref().map(|time| time.load(Ordering::Relaxed));
        vectors <= otherwise
    }

    /// Notes a time. Slow ones may have been interrupted, or have met new pages: they count
    /// for little. One that is much faster is believed at once: the one before was such.
    fn took(&self, by_vectors: bool, bytes: usize, time: Duration) {
        let nanoseconds = time.as_nanos().saturating_mul(1 << 20) / bytes as u128;
        let kept = &self.mib_ns[usize::from(by_vectors)];
        let before = kept.load(Ordering::Relaxed);
        // No copy takes no time, whatever a clock says.
        let seen = u32::try_from(nanoseconds).unwrap_or(u32::MAX).max(LEAST_MIB_NS);
        let now = match before {
            0 => seen,
            _ if seen < before / 2 => seen,
            _ if seen < before => before - (before - seen).div_ceil(2),
            _ => before.saturating_add(seen.min(before.saturating_mul(2)).abs_diff(before).div_ceil(8)),
        };
        kept.store(now, Ordering::Relaxed);
    }
}

/// Nothing copies faster than a TiB in a second.
const LEAST_MIB_NS: u32 = 1000;

/// Whether the copy of this turn is timed, and then whether it goes by vectors. Which way
/// follows the turns in no period, so that both ways meet the same pieces of messages,
/// however many those have.
const fn timed(turn: u32) -> Option<bool> {
    match turn {
        0..FIRST => Some(turn.count_ones().is_multiple_of(2)),
        _ if turn.is_multiple_of(TIMED_EVERY) => Some(is_in_upper_half(turn / TIMED_EVERY)),
        _ => None,
    }
}

/// Whether the fraction of n² times the golden ratio is 1/2 or more: of the n in steps of
/// any length about every other one (Weyl).
const fn is_in_upper_half(n: u32) -> bool {
    n.wrapping_mul(n).wrapping_mul(0x9E37_79B9) >> 31 == 1
}

#[cfg(test)]
#[path = "from_peer_tests.rs"]
mod tests;
