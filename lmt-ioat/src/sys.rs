//! Touching the memory that a list lends.
#![allow(unsafe_code)] // Follows the addresses of lent memory.

use lmt_copy::Distance;
use lmt_core::buffer::{Access, Buffer, Segment};

use crate::few::Few;
use crate::places::Mapped;

/// Nobody reads the target of a copy of at least so many bytes soon: it takes as
/// long as the computation that it hides behind, and half of a cache. Whether
/// that is reason enough to write past the cache, the copy routine knows of this
/// machine; where nothing was measured, it is not.
pub(crate) const AWAY_MIN_BYTES: u64 = 1 << 20;

/// Copies the first `bytes` bytes of `from` to `to`, as many as both have;
/// returns how many. All of them are visible to whoever sees a later Release of
/// this thread.
pub(crate) fn copy_mapped(from: Mapped, to: Mapped, bytes: u64, distance: Distance) -> u64 {
    if to.access() != Access::Write {
        return 0;
    }
    let (from, to) = (from.shortened(bytes), to.shortened(bytes));
    let count = from.bytes().min(to.bytes());
    let source = std::ptr::with_exposed_provenance::<u8>(from.address());
    let target = std::ptr::with_exposed_provenance_mut::<u8>(to.address());
    // SAFETY: `Mapped::new`'s callers promised both pieces, of at least `count`
    // bytes, valid as long as this list is not ended, the target for writing by
    // engines alone. A list may let its copies overlap.
    unsafe { lmt_copy::copy_overlapping(target, source, count, distance) };
    count as u64
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
