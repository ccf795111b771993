//! Copies into and out of cells: memory that two cores fill and empty by turns, and that
//! stays in the caches. By vectors, or long ones by the string instruction, whichever the
//! machine does faster at the moment (measured: `docs/performance.md`).
#![allow(unsafe_code)] // Follows the addresses that its callers vouch for.

use crate::string::{copy_string, is_string_fast};
use crate::take_over::{copy_by_vectors, copy_taking_over};
use crate::two_ways::{TwoWays, classes_from};

/// Shorter ones go by vectors.
const LEAST_BYTES: usize = 16 << 10;

type Ways = TwoWays<{ classes_from(LEAST_BYTES) }>;
/// Unlike vectors it leaves the lines with the other core, too, which costs who writes there
/// next: so a little faster is not enough.
const MOST_PERCENT: u32 = 92;
static FILLING: Ways = Ways::new(LEAST_BYTES, MOST_PERCENT);
static EMPTYING: Ways = Ways::new(LEAST_BYTES, MOST_PERCENT);

/// As [`copy_by_vectors`], into a cell; or by the string instruction, where copies have
/// shown that to be faster and the two begin at the same place of a line.
///
/// # Safety
/// As for [`crate::copy_nonoverlapping`].
#[inline]
pub unsafe fn fill_cell(target: *mut u8, source: *const u8, bytes: usize) {
    // SAFETY: the caller's promise.
    let by_vectors = || unsafe { copy_by_vectors(target, source, bytes) };
    // SAFETY: the same.
    unsafe { copy(&FILLING, target, source, bytes, by_vectors) };
}

/// As [`copy_taking_over`], out of a cell; or by the string instruction, as [`fill_cell`].
///
/// # Safety
/// As for [`crate::copy_nonoverlapping`].
#[inline]
pub unsafe fn empty_cell(target: *mut u8, source: *const u8, bytes: usize) {
    // SAFETY: the caller's promise.
    let by_vectors = || unsafe { copy_taking_over(target, source, bytes) };
    // SAFETY: the same.
    unsafe { copy(&EMPTYING, target, source, bytes, by_vectors) };
}

/// Copies by vectors, as `by_vectors` does, or by the string instruction.
///
/// # Safety
/// As for [`crate::copy_nonoverlapping`].
#[inline]
unsafe fn copy(ways: &Ways, target: *mut u8, source: *const u8, bytes: usize, by_vectors: impl Fn()) {
    if bytes < LEAST_BYTES || !is_string_fast(target, source) {
        return by_vectors();
    }
    ways.copy(bytes, |is_by_vectors| {
        if is_by_vectors {
            by_vectors();
        } else {
            // SAFETY: the caller's promise.
            unsafe { copy_string(target, source, bytes) };
        }
    });
}
