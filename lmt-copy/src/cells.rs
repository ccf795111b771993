//! Copies into and out of cells: memory that two cores fill and empty by turns, and that
//! stays in the caches. By vectors, or long ones by the string instruction, unless this machine
//! is slow at that (measured: `docs/performance.md`).
#![allow(unsafe_code)] // Follows the addresses that its callers vouch for.

use crate::string::{copy_string, is_string_fast};
use crate::take_over::{copy_by_vectors, copy_taking_over};
use crate::two_ways::{Bounds, TwoWays, classes_from};

/// Shorter ones go by vectors.
const LEAST_BYTES: usize = 16 << 10;

type Ways = TwoWays<{ classes_from(LEAST_BYTES) }>;
/// What a copy by the string instruction spares the other end nobody times here, and two ends
/// of which one copies by it and one by vectors are slower than two that do alike: so it is
/// left only where it is slow beyond doubt, as on machines that read another core's lines one
/// by one for it, and taken again once it is about as fast.
const BOUNDS: Bounds = Bounds { taken_at_percent: 105, kept_to_percent: 130 };
static FILLING: Ways = Ways::new(LEAST_BYTES, BOUNDS);
static EMPTYING: Ways = Ways::new(LEAST_BYTES, BOUNDS);

/// As [`copy_by_vectors`], into a cell; or by the string instruction, where the two begin at
/// the same place of a line and copies have not shown that to be slow.
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
