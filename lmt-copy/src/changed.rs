//! Copies of what mostly stands at its target already: only what differs is written, so
//! that lines that say the same stay in the caches of all that have read them.
#![allow(unsafe_code)] // Follows the addresses that its callers vouch for.

use std::ffi::{c_int, c_void};

use crate::take_over::copy_by_vectors;

/// Compared at once, and copied if anything differs within.
const BLOCK_BYTES: usize = 2 << 10;

#[cfg(not(miri))]
unsafe extern "C" {
    fn memcmp(one: *const c_void, other: *const c_void, bytes: usize) -> c_int;
}

/// # Safety
/// As for the C library's `memcmp`.
#[cfg(miri)]
unsafe extern "C" fn memcmp(one: *const c_void, other: *const c_void, bytes: usize) -> c_int {
    let differs = |at| {
        // SAFETY: the caller's promise, for a byte below `bytes`.
        unsafe { one.cast::<u8>().add(at).read() != other.cast::<u8>().add(at).read() }
    };
    c_int::from((0..bytes).any(differs))
}

/// Makes `bytes` bytes of `target` those of `source`, and writes only what differs there, in
/// blocks; how many bytes it has written. Before it writes the first it asks `may_write`, and
/// if that says no it has written none and returns `None`.
///
/// ```
/// let (source, mut target) = ([7u8; 5000], [7u8; 5000]);
/// target[4999] = 0;
/// // SAFETY: both have as many bytes, and are two.
/// let changed = unsafe { lmt_copy::copy_changed(target.as_mut_ptr(), source.as_ptr(), 5000, || true) };
/// assert_eq!((target, changed), (source, Some(5000 - 4096)));
/// ```
///
/// # Safety
/// As for [`crate::copy_nonoverlapping`]; the target is valid for reads, too. It is written only
/// after `may_write` has said yes.
#[inline]
pub unsafe fn copy_changed(
    target: *mut u8,
    source: *const u8,
    bytes: usize,
    may_write: impl FnOnce() -> bool,
) -> Option<usize> {
    // SAFETY: the caller's promise, for what is before `end`.
    let first = unsafe { first_difference(target, source, 0, bytes) };
    if first == bytes {
        return Some(0);
    }
    // SAFETY: the caller's promise, for what is behind `first`, which is below `bytes`.
    may_write().then(|| unsafe { copy_from_difference(target, source, first, bytes) })
}

/// Where the first block from `at` on begins that differs; `bytes` if none does.
///
/// # Safety
/// Both are valid for reads of `bytes` bytes, of which `at` is no more.
#[inline]
unsafe fn first_difference(target: *const u8, source: *const u8, mut at: usize, bytes: usize) -> usize {
    while at < bytes {
        let block = BLOCK_BYTES.min(bytes - at);
        let (to, from) = (target.wrapping_add(at), source.wrapping_add(at));
        // SAFETY: the caller's promise: the block ends at `bytes` at most.
        if unsafe { memcmp(to.cast(), from.cast(), block) } != 0 {
            return at;
        }
        at += block;
    }
    bytes
}

/// Copies what differs, from `at` on, where a block that does so begins; how much that was.
///
/// # Safety
/// As for [`copy_changed`], with `at` below `bytes`.
unsafe fn copy_from_difference(target: *mut u8, source: *const u8, mut at: usize, bytes: usize) -> usize {
    // Where much differs in a row ever longer parts are taken to, and only what comes behind
    // each of them is compared.
    let (mut written, mut part) = (0, BLOCK_BYTES);
    while at < bytes {
        let length = part.min(bytes - at);
        // SAFETY: the caller's promise: the part ends at `bytes` at most.
        unsafe { copy_by_vectors(target.wrapping_add(at), source.wrapping_add(at), length) };
        (at, written) = (at + length, written + length);
        // SAFETY: the same, and `at` is no more than `bytes`.
        let next = unsafe { first_difference(target, source, at, bytes) };
        part = if next > at { BLOCK_BYTES } else { part.saturating_mul(2) };
        at = next;
    }
    written
}

#[cfg(test)]
#[path = "changed_tests.rs"]
mod tests;
