//! The copies through the ring and between shared buffers.
//!
//! By routines that are named here, since the bare methods are to show what the machine
//! allows, whatever routine the library uses.
#![allow(unsafe_code)]

use lmt_copy::Routine;

/// How a copy stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stores {
    /// Into the cache.
    Cached,
    /// Past the cache (non-temporal), where the processor has such stores.
    Streaming,
    /// As the string instruction does, from [`STRING_BYTES`] on; into the cache
    /// below; by the C library where there is none.
    String,
}

/// From here on the string instruction is worth its beginning.
const STRING_BYTES: usize = 16 << 10;

/// Copies `bytes` bytes.
///
/// # Safety
/// `from` is readable and `into` writable for `bytes` bytes, the two do not
/// overlap, and nobody else writes either or reads `into` meanwhile.
pub(super) unsafe fn copy(into: *mut u8, from: *const u8, bytes: usize, stores: Stores) {
    let routine = match stores {
        Stores::String if bytes >= STRING_BYTES => Routine::RepMovsb,
        Stores::Cached | Stores::String => Routine::Avx2,
        Stores::Streaming => Routine::NonTemporal,
    };
    let routine = if routine.is_available() { routine } else { Routine::Libc };
    // SAFETY: the caller's promise.
    unsafe { routine.run(into, from, bytes) };
}

#[cfg(test)]
#[path = "copy_tests.rs"]
mod tests;
