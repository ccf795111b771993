//! Copies that do what no loop does: by the string instruction, which does not
//! read the target's lines before it overwrites them, and past the caches.
#![allow(unsafe_code)] // Follows the addresses that its callers vouch for.

use std::sync::OnceLock;

use crate::copier::Alignment;
use crate::routine::Routine;

/// Whether [`copy_string`] between these two places is as fast as copies are: this
/// CPU has fast string instructions, and the two begin at the same place of a
/// cache line.
///
/// ```
/// let bytes = [0u8; 128];
/// let place = bytes.as_ptr();
/// assert!(!lmt_copy::is_string_fast(place, place.wrapping_add(1)));
/// ```
#[inline]
pub fn is_string_fast(target: *const u8, source: *const u8) -> bool {
    Alignment::of(target.addr(), source.addr()) == Alignment::Same && has_fast_strings()
}

/// Copies `bytes` bytes by the string instruction, or by the C library where this
/// machine has none: for pieces of some 16 KiB and more of a long message.
///
/// A store of a whole line by it needs no read of what the line held, whether
/// that is in memory or in another core's cache, and lines that are in no cache
/// go to memory past them; what is in a cache it copies nearly as fast as a loop
/// does (measured: `docs/mechanisms/ring.md`).
///
/// # Safety
/// As for [`crate::copy_toward`].
#[inline]
pub unsafe fn copy_string(target: *mut u8, source: *const u8, bytes: usize) {
    let routine = if has_fast_strings() { Routine::RepMovsb } else { Routine::Libc };
    // SAFETY: the caller's promise; the string instruction, which is there where
    // strings are fast, copies any length, and so does the C library.
    unsafe { routine.run_long(target, source, bytes) };
}

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

/// Whether the CPU says that its string instructions are enhanced: CPUID leaf 7,
/// EBX bit 9 (Intel SDM volume 2, CPUID).
#[inline]
fn has_fast_strings() -> bool {
    static FOUND: OnceLock<bool> = OnceLock::new();
    *FOUND.get_or_init(|| {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        let has = std::arch::x86_64::__cpuid(0).eax >= 7
            && std::arch::x86_64::__cpuid_count(7, 0).ebx & 1 << 9 != 0;
        #[cfg(not(all(target_arch = "x86_64", not(miri))))]
        let has = false;
        has && Routine::RepMovsb.is_available()
    })
}

#[cfg(test)]
#[path = "string_tests.rs"]
mod tests;
