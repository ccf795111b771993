//! Copying out of memory that others have written and this core writes next.
#![allow(unsafe_code)] // Follows the addresses that its caller vouches for.

use crate::copy::copy_nonoverlapping;

const LINE_BYTES: usize = 64;
/// Copies are done in blocks of this size: below it a C library copies by
/// vectors, not by string instructions, whose beginning costs as much as this
/// block; and so far ahead lines are asked for.
const BLOCK_BYTES: usize = 1024;

/// As [`copy_nonoverlapping`], and takes the source's cache lines over for
/// writing, where the processor can be asked to (prefetchw): of memory that
/// another core has just written and this one writes next, each line then
/// crosses once.
///
/// # Safety
/// As for [`copy_nonoverlapping`].
#[inline]
pub unsafe fn copy_taking_over(target: *mut u8, source: *const u8, bytes: usize) {
    take_over(source, bytes.min(BLOCK_BYTES));
    let mut done = 0;
    while done < bytes {
        let block = (bytes - done).min(BLOCK_BYTES);
        let next = done + block;
        let (from, to) = (source.wrapping_add(done), target.wrapping_add(done));
        take_over(source.wrapping_add(next), (bytes - next).min(BLOCK_BYTES));
        // SAFETY: the caller's promise, for a part of it: `next`, the end of this
        // block, is at most `bytes`.
        unsafe { copy_nonoverlapping(to, from, block) };
        done = next;
    }
}

/// Asks for the lines of `bytes` bytes from `place` on. (AMD64 manual volume 3,
/// PREFETCHW: a hint, which reads nothing that the program sees and faults at no
/// address; processors without it do nothing.)
#[inline]
fn take_over(place: *const u8, bytes: usize) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    for line in (0..bytes).step_by(LINE_BYTES) {
        use std::arch::x86_64::{_MM_HINT_ET0, _mm_prefetch};
        // SAFETY: a hint, see above.
        unsafe { _mm_prefetch::<_MM_HINT_ET0>(place.wrapping_add(line).cast()) };
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = (place, bytes, LINE_BYTES);
}

#[cfg(test)]
#[path = "take_over_tests.rs"]
mod tests;
