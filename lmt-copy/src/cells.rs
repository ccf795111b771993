//! Copies into and out of cells: memory that two cores fill and empty by turns, and that
//! stays in the caches. By vectors, or long ones by the string instruction, unless this machine
//! is slow at that (measured: `docs/performance.md`).
#![allow(unsafe_code)] // Follows the addresses that its callers vouch for.

use crate::string::{copy_string, is_string_fast};
use crate::take_over::{copy_by_vectors, copy_taking_over};
use crate::two_ways::{Bounds, TwoWays, classes_from};

/// What a cell holds of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InCell {
    /// All of it, or the end of it, in one piece: no other is copied meanwhile.
    Alone,
    /// One of several pieces, which the two ends copy at the same time.
    Among,
}

/// From there on pieces go by the string instruction. What is alone and was just written is in
/// the nearest cache, from where vectors bring a little over sooner: 8 KiB touched takes 1.05
/// to 1.10 of the time by it. (The longest pieces but for whole cells are of 16 KiB; one that
/// ends with its cell is less by as much as its message begins behind a line's begin.)
const LEAST_BYTES: usize = 15 << 10;
/// One of several pieces overlaps with another's way: 32 KiB, of which two are of 8, take 0.82
/// to 0.99 of the time. By themselves such copies take longer so, which counts for little: they
/// go as those of [`LEAST_BYTES`] do.
const LEAST_AMONG_BYTES: usize = 7 << 10;

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
pub unsafe fn fill_cell(target: *mut u8, source: *const u8, bytes: usize, piece: InCell) {
    // SAFETY: the caller's promise.
    let by_vectors = || unsafe { copy_by_vectors(target, source, bytes) };
    // SAFETY: the same.
    unsafe { copy(&FILLING, target, source, bytes, piece, by_vectors) };
}

/// As [`copy_taking_over`], out of a cell; or by the string instruction, as [`fill_cell`].
///
/// # Safety
/// As for [`crate::copy_nonoverlapping`].
#[inline]
pub unsafe fn empty_cell(target: *mut u8, source: *const u8, bytes: usize, piece: InCell) {
    // SAFETY: the caller's promise.
    let by_vectors = || unsafe { copy_taking_over(target, source, bytes) };
    // SAFETY: the same.
    unsafe { copy(&EMPTYING, target, source, bytes, piece, by_vectors) };
}

/// Copies by vectors, as `by_vectors` does, or by the string instruction.
///
/// # Safety
/// As for [`crate::copy_nonoverlapping`].
#[inline]
unsafe fn copy(
    ways: &Ways,
    target: *mut u8,
    source: *const u8,
    bytes: usize,
    piece: InCell,
    by_vectors: impl Fn(),
) {
    let least_bytes = if piece == InCell::Among { LEAST_AMONG_BYTES } else { LEAST_BYTES };
    if bytes < least_bytes || !is_string_fast(target, source) {
        return by_vectors();
    }
    let copy = |is_by_vectors| {
        if is_by_vectors {
            by_vectors();
        } else {
            // SAFETY: the caller's promise.
            unsafe { copy_string(target, source, bytes) };
        }
    };
    if bytes < LEAST_BYTES { copy(!ways.takes_other()) } else { ways.copy(bytes, copy) }
}
