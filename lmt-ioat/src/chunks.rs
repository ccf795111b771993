//! How a long copy is cut: pieces that start at one page and double up to 1024
//! pages (open-mx-intranode, section III and figure 10). The first piece is
//! there early, so that the other stages of a transfer begin early; the large
//! ones, half a millisecond of copying, keep the cost of each piece small.

use lmt_core::mechanism::Interval;
use lmt_core::prefault::GrowingChunks;

/// A page, in bytes.
pub const PAGE_BYTES: u64 = 4096;

/// The chunks of a copy of so many bytes, as intervals from 0 on.
///
/// ```
/// use lmt_ioat::chunks::Chunks;
/// let sizes: Vec<u64> = Chunks::of(20_000).map(|chunk| chunk.bytes()).collect();
/// assert_eq!(sizes, [4096, 8192, 7712]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunks {
    at: u64,
    end: u64,
    sizes: GrowingChunks,
}

impl Chunks {
    /// The chunks of `total_bytes` bytes.
    pub fn of(total_bytes: u64) -> Self {
        Self { at: 0, end: total_bytes, sizes: GrowingChunks::default() }
    }

    /// Whether there is none left.
    pub const fn is_empty(&self) -> bool {
        self.at == self.end
    }
}

impl Iterator for Chunks {
    type Item = Interval;

    fn next(&mut self) -> Option<Interval> {
        if self.at == self.end {
            return None;
        }
        let bytes = self.sizes.next()?.min(self.end - self.at);
        let chunk = Interval { start: self.at, end: self.at + bytes };
        self.at = chunk.end;
        Some(chunk)
    }
}

#[cfg(test)]
#[path = "chunks_tests.rs"]
mod tests;
