//! Asks for cache lines before they are used.
#![allow(unsafe_code)] // Instructions that follow addresses.

#[cfg(all(target_arch = "x86_64", not(miri)))]
const LINE_BYTES: usize = 64;

/// Asks the processor for the cache lines of `bytes` bytes from `place` on, for writing, and
/// goes on: of memory that another core has written or reads, and that this one is about to
/// change. (AMD64 manual volume 3, PREFETCHW: a hint, which reads nothing that the program
/// sees and faults at no address. Some of Intel's before Nehalem may lack it, so no processor without
/// SSE4.2 is asked. The compiler's hint would ask for reading wherever the program is built for
/// processors that may lack it.)
#[inline]
pub fn prefetch_for_write(place: *const u8, bytes: usize) {
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
    let _ = (place, bytes);
}

/// As [`prefetch_for_write`], for reading. (PREFETCHT0 in the same manual.)
#[inline]
pub fn prefetch(place: *const u8, bytes: usize) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    for line in (0..bytes).step_by(LINE_BYTES) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a hint faults at no address and changes nothing, see `prefetch_for_write`.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(place.wrapping_add(line).cast()) };
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = (place, bytes);
}

#[cfg(test)]
#[path = "prefetch_for_write_tests.rs"]
mod tests;
