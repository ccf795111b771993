//! Copies of what another core has just written: by vectors or as the process copies
//! otherwise, whichever the machine does faster at the moment.
//!
//! A C library copies from some length on by a string instruction. Where two cores share
//! a cache that takes 0.87 of the time of vectors, on other machines (or on the same one,
//! once its host has moved the cores) twice of it: 64 KiB have been seen to take 1.4 and
//! 1.6 us, and 5.0 and 2.7 us. Nobody says beforehand which it is, so now and then a copy
//! is timed.
#![allow(unsafe_code)] // Follows the addresses that its callers vouch for.

use crate::copy::copy_nonoverlapping;
use crate::take_over::copy_by_vectors;
use crate::two_ways::{Bounds, TwoWays, classes_from};

/// Shorter ones go by vectors: to begin a string instruction takes longer than that.
const LEAST_BYTES: usize = 8 << 10;

/// Whichever is the faster one.
const BOUNDS: Bounds = Bounds { taken_at_percent: 100, kept_to_percent: 100 };
static WAYS: TwoWays<{ classes_from(LEAST_BYTES) }> = TwoWays::new(LEAST_BYTES, BOUNDS);

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
    WAYS.copy(bytes, copy);
}

#[cfg(test)]
#[path = "from_peer_tests.rs"]
mod tests;
