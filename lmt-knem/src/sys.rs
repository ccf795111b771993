//! Lending memory to the driver: what it copies from and into.
#![allow(unsafe_code)] // Buffer::new, for memory that is lent already or one's own.

use std::ops::Range;
use std::sync::atomic::AtomicU8;

use lmt_core::buffer::{Access, Buffer, Segment};

/// Lends the part `range` of `data` once more.
///
/// The result must not outlive what `data` is lent for: a mechanism drops it
/// in `finish`, which comes before the message's buffer is given back.
pub(crate) fn lend_part(data: &Buffer, range: Range<u64>) -> Option<Buffer> {
    let (many, only): (Vec<Segment>, Segment);
    let pieces: &[Segment] = if data.is_contiguous() {
        // Without allocating, for most messages.
        only = data.pieces(range).next().unwrap_or_default();
        std::slice::from_ref(&only)
    } else {
        many = data.pieces(range).collect();
        &many
    };
    // SAFETY: each piece lies within a segment of `data` (`pieces` cuts nothing
    // else), which its lender has promised to keep valid until the operation is
    // complete, for the same access; the mechanism that calls this drops the
    // result before that. Meanwhile it copies nothing of `data` that a peer may
    // copy, too: of a message that both ends copy each claims its parts.
    unsafe { Buffer::new(pieces, data.access()) }.ok()
}

/// Memory of this process for a peer to try itself on: a nonce to be read, and
/// bytes to be written.
#[derive(Debug)]
pub(crate) struct ProbeMemory {
    /// In the heap, so that it stays where it is; atomics, as peers write.
    bytes: Box<[AtomicU8; Self::BYTES]>,
}

impl ProbeMemory {
    pub const NONCE_BYTES: usize = 16;
    /// Places of as many bytes for peers to write: many may probe at once, and
    /// with one place for all, what one wrote is often another's when it is read
    /// back.
    const PLACES: u64 = 64;
    pub const BYTES: usize = (1 + Self::PLACES as usize) * Self::NONCE_BYTES;

    /// Where to write, chosen by a random number.
    pub const fn place(random: u64) -> u64 {
        (1 + random % Self::PLACES) * Self::NONCE_BYTES as u64
    }

    pub fn new(nonce: [u8; Self::NONCE_BYTES]) -> Self {
        let byte = |at: usize| AtomicU8::new(nonce.get(at).copied().unwrap_or(0));
        Self { bytes: Box::new(std::array::from_fn(byte)) }
    }

    /// The memory, to be declared. It must be dropped before `self`.
    pub fn lend(&self) -> Option<Buffer> {
        let segment = Segment { address: self.bytes.as_ptr().expose_provenance(), bytes: Self::BYTES };
        // SAFETY: atomics in the heap, which stay there until `self` is gone;
        // nobody here reads or writes them after `new`.
        unsafe { Buffer::new(&[segment], Access::Write) }.ok()
    }
}
