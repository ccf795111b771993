//! Copies past the caches.
#![allow(unsafe_code)] // Follows the addresses that its callers vouch for.

use crate::routine::Routine;

/// Copies `bytes` bytes past the caches, where the CPU has such stores (AVX2), by
/// the C library otherwise: for a target that is longer than a cache holds, or in
/// none. Its lines are neither read before nor kept after, and those that a cache
/// has are thrown out; what else is in the caches stays there.
///
/// # Safety
/// As for [`crate::copy_toward`].
#[inline]
pub unsafe fn copy_streaming(target: *mut u8, source: *const u8, bytes: usize) {
    let is_there = Routine::NonTemporal.is_available();
    let routine = if is_there { Routine::NonTemporal } else { Routine::Libc };
    // SAFETY: the caller's promise.
    unsafe { routine.run(target, source, bytes) };
}

#[cfg(test)]
#[path = "streaming_tests.rs"]
mod tests;
