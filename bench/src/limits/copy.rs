//! The copies through the ring and between shared buffers.
//!
//! The bare methods have loops of their own: they are to show what the machine
//! allows, whatever routine the library uses. On x86-64 with AVX2 these are
//! 128 bytes at a time; elsewhere the C library's memcpy.
#![allow(unsafe_code)]

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
    if stores == Stores::String && bytes >= STRING_BYTES {
        let is_there = lmt_copy::Routine::RepMovsb.is_available();
        let routine = if is_there { lmt_copy::Routine::RepMovsb } else { lmt_copy::Routine::Libc };
        // One instruction, whoever issues it.
        // SAFETY: the caller's promise.
        unsafe { routine.run(into, from, bytes) };
        return;
    }
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        match stores {
            // SAFETY: AVX2 was found above; the rest is the caller's promise.
            Stores::Cached | Stores::String => unsafe { x86::cached(into, from, bytes) },
            // SAFETY: as above.
            Stores::Streaming => unsafe { x86::streaming(into, from, bytes) },
        }
        return;
    }
    let _ = stores;
    // SAFETY: the caller's promise.
    unsafe { into.copy_from_nonoverlapping(from, bytes) };
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{
        __m256i, _mm_sfence, _mm256_loadu_si256, _mm256_storeu_si256, _mm256_stream_si256,
    };

    /// Bytes of one vector.
    const VECTOR_BYTES: usize = 32;
    /// Bytes of one turn of the loop.
    const TURN_BYTES: usize = 4 * VECTOR_BYTES;

    /// # Safety
    /// As [`super::copy`], and the processor has AVX2.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn cached(into: *mut u8, from: *const u8, bytes: usize) {
        let store = |place, vector| {
            // SAFETY: `turns` gives places for a whole vector inside `into`'s
            // bytes; this store wants no alignment.
            unsafe { _mm256_storeu_si256(place, vector) };
        };
        // SAFETY: the caller's promise.
        unsafe { turns(into, from, bytes, store) };
    }

    /// # Safety
    /// As [`super::copy`], and the processor has AVX2.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn streaming(into: *mut u8, from: *const u8, bytes: usize) {
        // Streaming stores want multiples of a vector's length.
        let head = into.align_offset(VECTOR_BYTES).min(bytes);
        // SAFETY: `head` is at most `bytes`.
        unsafe { into.copy_from_nonoverlapping(from, head) };
        let store = |place, vector| {
            // SAFETY: `turns` gives places for a whole vector inside `into`'s
            // bytes, at multiples of a vector from where it begins: at a
            // multiple of 32, since `head` ends there if anything follows it.
            unsafe { _mm256_stream_si256(place, vector) };
        };
        // SAFETY: what is left of the caller's bytes.
        unsafe { turns(into.wrapping_add(head), from.wrapping_add(head), bytes - head, store) };
        // Streaming stores are not ordered by the flag's Release store.
        _mm_sfence();
    }

    /// Whole turns with `store`, and the rest by memcpy. `store` gets places
    /// for a vector each, at multiples of its length from `into` on.
    ///
    /// # Safety
    /// As [`super::copy`], and the processor has AVX2.
    #[target_feature(enable = "avx2")]
    #[inline]
    unsafe fn turns(into: *mut u8, from: *const u8, bytes: usize, store: impl Fn(*mut __m256i, __m256i)) {
        let whole = bytes - bytes % TURN_BYTES;
        for start in (0..whole).step_by(TURN_BYTES) {
            for at in (start..start + TURN_BYTES).step_by(VECTOR_BYTES) {
                // SAFETY: at + VECTOR_BYTES is at most `whole`, which is at most
                // `bytes`; this load wants no alignment.
                let vector = unsafe { _mm256_loadu_si256(from.wrapping_add(at).cast()) };
                store(into.wrapping_add(at).cast(), vector);
            }
        }
        let (into, from) = (into.wrapping_add(whole), from.wrapping_add(whole));
        // SAFETY: what is left of the `bytes` bytes.
        unsafe { into.copy_from_nonoverlapping(from, bytes - whole) };
    }
}

#[cfg(test)]
#[path = "copy_tests.rs"]
mod tests;
