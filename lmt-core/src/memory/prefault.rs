//! Receive buffers are faulted in while the peer gets ready to write them
//! (open-mx-intranode, section III-B: pinning that is overlapped).
//!
//! Whoever copies into fresh memory has the kernel make and clear a page for
//! every 4 KiB. The receiver of a Put has nothing to do meanwhile, so it does
//! its part of that: from the back, since the sender writes from the front and
//! would otherwise be just where this side is, which was measured to be slower
//! than no help at all. Chunks are small at first, then grow.
#![allow(unsafe_code)] // One madvise(2) and one mincore(2).

use super::buffer::{Access, Buffer, Segment};
use crate::vocabulary::transfer::Interval;

const PAGE_BYTES: u64 = 4096;

/// The first chunk, and the largest (open-mx-intranode, section IV-C).
const FIRST_CHUNK_BYTES: u64 = PAGE_BYTES;

const LARGEST_CHUNK_BYTES: u64 = 1024 * PAGE_BYTES;

/// A chunk is at most this part of what is left: the message may be complete
/// in the middle of one, and that is seen only after it.
const LARGEST_SHARE: u64 = 64;

/// Measured: 12 % less time at 4 MiB and 27 % at 16 MiB, but up to 10 % more at
/// 2 MiB and below, where the two disturb each other (docs/performance.md).
const MIN_BYTES: u64 = 1024 * PAGE_BYTES;

/// Chunks that begin at one page and grow to 1024.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GrowingChunks {
    next_bytes: u64,
}

impl Default for GrowingChunks {
    fn default() -> Self {
        Self { next_bytes: FIRST_CHUNK_BYTES }
    }
}

impl Iterator for GrowingChunks {
    type Item = u64;

    /// The next chunk's bytes; there is always one.
    ///
    /// ```
    /// let pages: Vec<u64> = lmt_core::prefault::GrowingChunks::default().map(|b| b / 4096).take(12).collect();
    /// assert_eq!(pages, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 1024]);
    /// ```
    fn next(&mut self) -> Option<u64> {
        let bytes = self.next_bytes;
        self.next_bytes = (bytes * 2).min(LARGEST_CHUNK_BYTES);
        Some(bytes)
    }
}

/// How far a buffer has been faulted in.
#[derive(Debug)]
pub struct Prefault {
    at: u64,
    end: u64,
    chunks: GrowingChunks,
}

impl Prefault {
    /// To fault in this part of a buffer; `None` where that is not worth it:
    /// it is short, or its last page is there already, as in every buffer that
    /// was used before.
    pub fn worth_it(buffer: &Buffer, part: Interval) -> Option<Self> {
        if part.bytes() < MIN_BYTES || buffer.access() != Access::Write {
            return None;
        }
        let last = buffer.pieces(part.end - 1..part.end).next()?;
        (!is_resident(last)).then_some(Self {
            at: part.start,
            end: part.end,
            chunks: GrowingChunks::default(),
        })
    }

    /// Faults in the next chunk. Returns whether there is more to do; where
    /// the kernel refuses, there is not.
    pub fn step(&mut self, buffer: &Buffer) -> bool {
        let share = (self.end - self.at) / LARGEST_SHARE;
        let grown = self.chunks.next().unwrap_or(LARGEST_CHUNK_BYTES);
        let chunk_bytes = grown.min(share.max(PAGE_BYTES));
        let from = self.at.max(self.end.saturating_sub(chunk_bytes));
        let all = buffer.pieces(from..self.end).all(populate);
        self.end = from;
        all && self.at < self.end
    }
}

/// The pages that hold a piece of memory.
fn pages(piece: Segment) -> Segment {
    let start = piece.address & !(PAGE_BYTES as usize - 1);
    Segment { address: start, bytes: piece.address + piece.bytes - start }
}

/// Whether the one page that holds this piece is there. What cannot be known
/// counts as there.
fn is_resident(piece: Segment) -> bool {
    let mut there = 1u8;
    let page = std::ptr::with_exposed_provenance_mut(pages(piece).address);
    // SAFETY: mincore only looks at page tables, at whatever address, and
    // writes one byte for the one page asked for, into `there`.
    let outcome = unsafe { nix::libc::mincore(page, 1, &raw mut there) };
    outcome != 0 || there & 1 != 0
}

/// Makes the pages of a piece that is lent for writing (madvise(2),
/// MADV_POPULATE_WRITE, Linux 5.14). Returns whether the kernel did.
fn populate(piece: Segment) -> bool {
    let pages = pages(piece);
    let start = std::ptr::with_exposed_provenance_mut(pages.address);
    // SAFETY: populating changes no byte of any page; it does what a write of
    // each page's own content would do, and answers with an error where there
    // is no memory that may be written.
    let outcome = unsafe { nix::libc::madvise(start, pages.bytes, nix::libc::MADV_POPULATE_WRITE) };
    outcome == 0
}

#[cfg(test)]
#[path = "prefault_tests.rs"]
mod tests;
