//! How a message is cut into the pieces that a ring's flag announces.

use std::ops::Range;

/// The first piece: short, so that the receiver begins soon.
pub(super) const FIRST_BYTES: usize = 1024;

/// The pieces of a message of `bytes` bytes: 1, 1, 2, 4, ... KiB, up to
/// `most_bytes` (a power of two), then all of that size. A piece never crosses
/// a multiple of `most_bytes`, so that none is cut by the ring's end. A message
/// without bytes has one piece too, since it has to be announced like any other.
pub(super) fn pieces(bytes: usize, most_bytes: usize) -> impl Iterator<Item = Range<usize>> {
    let mut next = Some(0);
    std::iter::from_fn(move || {
        let start = next?;
        let end = bytes.min(start + start.clamp(FIRST_BYTES, most_bytes));
        next = (end < bytes).then_some(end);
        Some(start..end)
    })
}

/// Where equal chunks of `chunk_bytes` bytes begin; a message without bytes has
/// one too.
pub(super) fn chunk_starts(bytes: usize, chunk_bytes: usize) -> impl Iterator<Item = usize> {
    (0..bytes.max(1)).step_by(chunk_bytes)
}

/// A part of a message, up to the boundary of a page.
pub(super) fn front(bytes: usize, percent: u8) -> usize {
    bytes * usize::from(percent) / 100 / 4096 * 4096
}

/// What the two ends of a message have claimed of its chunks, in one word: the
/// receiver's from the front in the lower half, the sender's from the back in
/// the upper.
#[derive(Clone, Copy, Debug)]
pub(super) struct Claims(pub u64);

impl Claims {
    /// The chunk that the receiver claims next, if any of `chunks` is left,
    /// and the word with that claim.
    pub fn claim_front(self, chunks: u64) -> Option<(u64, u64)> {
        self.left(chunks).then(|| (self.front(), self.0 + 1))
    }

    /// As [`Self::claim_front`], for the sender.
    pub fn claim_back(self, chunks: u64) -> Option<(u64, u64)> {
        self.left(chunks).then(|| (chunks - 1 - self.back(), self.0 + (1 << 32)))
    }

    fn left(self, chunks: u64) -> bool {
        self.front() + self.back() < chunks
    }

    fn front(self) -> u64 {
        self.0 & u64::from(u32::MAX)
    }

    fn back(self) -> u64 {
        self.0 >> 32
    }
}

#[cfg(test)]
#[path = "pieces_tests.rs"]
mod tests;
