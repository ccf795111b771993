//! Copies into and out of memory that two cores fill and empty by turns, and that
//! stays in the caches.
#![allow(unsafe_code)] // Follows the addresses that its callers vouch for.

use crate::copy::copy_nonoverlapping;
use crate::short::SHORT_MOST_BYTES;

const LINE_BYTES: usize = 64;
/// So far ahead of the copy lines are asked for.
const AHEAD_BYTES: usize = 4096;

/// As [`copy_nonoverlapping`], but by moves of 32 bytes where the CPU has them
/// (AVX2), whatever the process copies by: for what is in the caches. There a C
/// library may choose a string instruction, which takes longer to begin than to
/// copy.
///
/// # Safety
/// As for [`copy_nonoverlapping`].
#[inline]
pub unsafe fn copy_by_vectors(target: *mut u8, source: *const u8, bytes: usize) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if bytes > SHORT_MOST_BYTES && std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the caller's promise; the CPU has the instructions, and there
        // are more than 128 bytes.
        unsafe { crate::x86::avx2(target, source, bytes) };
        return;
    }
    // SAFETY: the caller's promise.
    unsafe { copy_nonoverlapping(target, source, bytes) };
}

/// As [`copy_by_vectors`], and takes the source's cache lines over for writing,
/// where the processor can be asked to (prefetchw): of memory that another core
/// has just written and this one writes next, each line then crosses once.
///
/// # Safety
/// As for [`copy_nonoverlapping`].
#[inline]
pub unsafe fn copy_taking_over(target: *mut u8, source: *const u8, bytes: usize) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if bytes >= LONG_BYTES && std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the caller's promise; the CPU has the instructions, which the kernel
        // supports if they are detected.
        unsafe { long(target, source, bytes) };
        return;
    }
    take_over(source, bytes.min(AHEAD_BYTES));
    let mut done = 0;
    while done < bytes {
        let block = (bytes - done).min(AHEAD_BYTES);
        let next = done + block;
        let (from, to) = (source.wrapping_add(done), target.wrapping_add(done));
        take_over(source.wrapping_add(next), (bytes - next).min(AHEAD_BYTES));
        // SAFETY: the caller's promise, for a part of it: `next`, the end of this
        // block, is at most `bytes`.
        unsafe { copy_by_vectors(to, from, block) };
        done = next;
    }
}

/// From here on lines are asked for one by one, beside the copy: asked for by the thousand
/// bytes they wait for each other. (A tenth of the time of 64 KiB.)
#[cfg(all(target_arch = "x86_64", not(miri)))]
const LONG_BYTES: usize = 8 << 10;

/// What has [`LONG_BYTES`] or more.
///
/// # Safety
/// As for [`copy_nonoverlapping`], of so many bytes; the CPU has AVX2.
#[cfg(all(target_arch = "x86_64", not(miri)))]
unsafe fn long(target: *mut u8, source: *const u8, bytes: usize) {
    use crate::x86::{ASKED_AHEAD_BYTES, avx2, avx2_asking_ahead, avx512, avx512_taking_over};
    const { assert!(LONG_BYTES >= ASKED_AHEAD_BYTES + 256) };
    // Up to the line with which the copy begins, which is the first aligned one.
    take_over(source, ASKED_AHEAD_BYTES + LINE_BYTES);
    // No lines beyond the end are asked for: another core uses those.
    let asking = bytes - ASKED_AHEAD_BYTES;
    let (end, rest) = (target.wrapping_add(asking), source.wrapping_add(asking));
    if std::arch::is_x86_feature_detected!("avx512f") {
        // SAFETY: the caller's promise for a part of it, which is of more than 256 bytes.
        unsafe { avx512_taking_over(target, source, asking) };
        // SAFETY: the same for the rest.
        unsafe { avx512(end, rest, ASKED_AHEAD_BYTES) };
    } else {
        // SAFETY: the caller's promise for a part of it, which is of more than 128 bytes.
        unsafe { avx2_asking_ahead(target, source, asking) };
        // SAFETY: the same for the rest.
        unsafe { avx2(end, rest, ASKED_AHEAD_BYTES) };
    }
}

/// Asks the processor for the cache lines of `bytes` bytes from `place` on, for writing, and
/// goes on: of memory that another core has written or reads, and that this one is about to
/// change. (AMD64 manual volume 3, PREFETCHW: a hint, which reads nothing that the program
/// sees and faults at no address. Some of Intel's before Nehalem may lack it, so no processor without
/// SSE4.2 is asked. The compiler's hint would ask for reading wherever the program is built for
/// processors that may lack it.)
#[inline]
pub fn take_over(place: *const u8, bytes: usize) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if std::arch::is_x86_feature_detected!("sse4.2") {
        for line in (0..bytes).step_by(LINE_BYTES) {
            let line = place.wrapping_add(line);
            // SAFETY: a processor with SSE4.2 has the instruction; a hint faults at no address and
            // changes nothing.
            unsafe {
                std::arch::asm!("prefetchw [{}]", in(reg) line, options(nostack, preserves_flags, readonly));
            };
        }
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = (place, bytes, LINE_BYTES);
}

/// As [`take_over`], for reading. (PREFETCHT0 in the same manual.)
#[inline]
pub fn ask_for(place: *const u8, bytes: usize) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    for line in (0..bytes).step_by(LINE_BYTES) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a hint faults at no address and changes nothing, see `take_over`.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(place.wrapping_add(line).cast()) };
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = (place, bytes);
}

#[cfg(test)]
#[path = "take_over_tests.rs"]
mod tests;
