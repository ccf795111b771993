//! Where the bytes of a message in a box are, as its line says.

use super::cell_ownership::HANDOFF_CELLS;
use crate::queue::ring::Line;

/// Bytes of a cell that changes its owner, and of the longest piece of a message there: short
/// enough for the receiver to begin soon, long enough to be told seldom.
pub(crate) const HANDOFF_CELL_BYTES: usize = 16 << 10;

/// From one such cell to the next: a piece that fills one may begin anywhere in a line.
pub(crate) const HANDOFF_CELL_STRIDE_BYTES: usize = HANDOFF_CELL_BYTES + size_of::<Line>();

/// Bytes in a pair's cell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Part {
    /// Below [`HANDOFF_CELLS`].
    pub(crate) cell: u8,
    /// Where they begin, within the cell.
    pub(crate) offset: u32,
}

const PRESENT: u64 = 1 << 63;

/// The word of a line whose bytes are in its line buffer, which is no part of a cell.
pub(crate) const IN_LINE_BUFFER: u64 = 1 << 61;

const CELL_SHIFT: u32 = 32;

impl Part {
    /// The word in a line; never 0, which stands for a cell of the ring.
    #[inline]
    pub(crate) const fn to_word(self) -> u64 {
        PRESENT | (self.cell as u64) << CELL_SHIFT | self.offset as u64
    }

    /// What a line's word says of `bytes` bytes, if it can be.
    #[inline]
    pub(crate) fn from_word(word: u64, bytes: usize) -> Option<Self> {
        let (cell, offset) = (word >> CELL_SHIFT & 0xff, word as u32);
        let part = Self { cell: cell as u8, offset };
        let fits = (offset as usize).checked_add(bytes).is_some_and(|end| end <= HANDOFF_CELL_STRIDE_BYTES);
        (word & PRESENT != 0 && cell < u64::from(HANDOFF_CELLS) && fits).then_some(part)
    }
}

#[cfg(test)]
#[path = "place_tests.rs"]
mod tests;
