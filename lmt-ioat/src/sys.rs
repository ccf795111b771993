//! Touching the memory that a list lends.
#![allow(unsafe_code)] // Follows the addresses of lent memory.

use lmt_core::buffer::{Access, Buffer, Segment};

use crate::few::Few;
use crate::places::Mapped;

/// Copies of at least so many bytes are written past the cache (with
/// non-temporal stores). Measured on a Sapphire Rapids virtual machine with
/// 2 MiB of L2: from 1 MiB on, copying so and reading the target afterwards is
/// faster than copying through the cache and reading it (1 MiB: 159 against
/// 168 us, 4 MiB: 645 against 858 us), and half as much of the application's
/// data is gone from a shared L2; at 256 KiB it is slower (44 against 28 us),
/// since the target was still in the cache.
pub(crate) const STREAMING_MIN_BYTES: u64 = 1 << 20;

/// Copies the first `bytes` bytes of `from` to `to`, as many as both have;
/// returns how many. With `streaming` they go past the cache, if this CPU can.
/// All of them are visible to whoever sees a later Release of this thread.
pub(crate) fn copy_mapped(from: Mapped, to: Mapped, bytes: u64, streaming: bool) -> u64 {
    if to.access() != Access::Write {
        return 0;
    }
    let (from, to) = (from.shortened(bytes), to.shortened(bytes));
    let count = from.bytes().min(to.bytes());
    let source = std::ptr::with_exposed_provenance::<u8>(from.address());
    let target = std::ptr::with_exposed_provenance_mut::<u8>(to.address());
    #[cfg(target_arch = "x86_64")]
    if streaming && std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: `Mapped::new`'s callers promised both pieces, of at least
        // `count` bytes, valid as long as this list is not ended, the target
        // for writing by engines alone; the CPU has AVX2.
        unsafe { stream(source, target, count) };
        return count as u64;
    }
    let _cached = streaming;
    // SAFETY: as above; they may overlap for `copy`.
    unsafe { std::ptr::copy(source, target, count) };
    count as u64
}

/// Copies with 32-byte non-temporal stores, four of them a round: two whole
/// cache lines, which the write-combining buffers take as such.
///
/// # Safety
/// `source` must be valid for reads and `target` for writes of `bytes` bytes;
/// nobody else writes either, or what is copied does not matter.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn stream(source: *const u8, target: *mut u8, bytes: usize) {
    use std::arch::x86_64::{__m256i, _mm_sfence, _mm256_loadu_si256, _mm256_stream_si256};
    const LINE: usize = 64;
    const STORE: usize = size_of::<__m256i>();
    const ROUND: usize = 4 * STORE;
    let head = target.align_offset(LINE).min(bytes);
    // SAFETY: `head` is at most `bytes`, for which the caller vouches.
    unsafe { std::ptr::copy(source, target, head) };
    let mut at = head;
    while bytes - at >= ROUND {
        let mut values = [std::mem::MaybeUninit::<__m256i>::uninit(); 4];
        for (index, value) in values.iter_mut().enumerate() {
            let from = source.wrapping_add(at + index * STORE).cast();
            // SAFETY: `at + ROUND` is at most `bytes`, so the 32 bytes lie
            // within what the caller vouches for; the load may be unaligned.
            value.write(unsafe { _mm256_loadu_si256(from) });
        }
        for (index, value) in values.iter().enumerate() {
            // SAFETY: the loop above wrote every value.
            let value = unsafe { value.assume_init_read() };
            let to = target.wrapping_add(at + index * STORE).cast();
            // SAFETY: within the target as above, and aligned to 32 bytes:
            // the target plus `head` is a multiple of 64, as is ROUND.
            unsafe { _mm256_stream_si256(to, value) };
        }
        at += ROUND;
    }
    // SAFETY: what is left of the caller's bytes.
    unsafe { std::ptr::copy(source.wrapping_add(at), target.wrapping_add(at), bytes - at) };
    // Non-temporal stores are ordered by nothing else, not even by a Release.
    _mm_sfence();
}

/// The pieces as a buffer for system calls. It must not outlive the list that
/// lends them.
pub(crate) fn as_buffer(pieces: &[Mapped], access: Access) -> Buffer {
    let mut segments: Few<Segment> = Few::None;
    for piece in pieces {
        match segments.as_mut_slice().last_mut() {
            // One segment is what system calls are fastest with.
            Some(last) if last.address + last.bytes == piece.address() => last.bytes += piece.bytes(),
            _ => segments.push(Segment { address: piece.address(), bytes: piece.bytes() }),
        }
    }
    if access == Access::Write && pieces.iter().any(|piece| piece.access() != Access::Write) {
        return Buffer::empty(access);
    }
    // SAFETY: `Mapped::new`'s callers promised just this for each piece for as
    // long as a list holds it, and the buffer is kept beside the list.
    let lent = unsafe { Buffer::new(&segments, access) };
    // `Mapped::new`'s callers promised pieces of the address space.
    lent.unwrap_or_else(|_| Buffer::empty(access))
}

/// Has the kernel map the pages of `piece` for writing, all at once, which is
/// cheaper than a fault for each; where it cannot (before Linux 5.14, or no
/// memory), the copy will find out.
pub(crate) fn populate(piece: Segment) {
    const PAGE_BYTES: usize = 4096;
    let first = piece.address & !(PAGE_BYTES - 1);
    let bytes = piece.address + piece.bytes - first;
    // SAFETY: MADV_POPULATE_WRITE changes no byte of any page; pages that are
    // not mapped it refuses.
    let _refused = unsafe {
        libc::madvise(std::ptr::with_exposed_provenance_mut(first), bytes, libc::MADV_POPULATE_WRITE)
    };
}

#[cfg(test)]
#[path = "sys_tests.rs"]
mod tests;
