//! Where the bytes of a message in a box are, as its line says.

use super::holdings::PAIR_CELLS;

/// Bytes of a cell that changes its owner. A message of the greatest usual length
/// (`eager_max_bytes`) takes eight.
pub(crate) const PAIR_CELL_BYTES: usize = 32 << 10;
/// Its bytes stand at the place of a page where the sender's buffer has them, so that copies
/// into it, and out of it into a buffer that stands alike, go from whole lines to whole lines:
/// so many bytes lie between two cells' begins.
pub(super) const PAIR_CELL_STRIDE_BYTES: usize = PAIR_CELL_BYTES + MOST_SHIFT_BYTES;
/// A page.
pub(super) const MOST_SHIFT_BYTES: usize = 4096;

/// A part of a pair's cell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Part {
    /// Below [`PAIR_CELLS`].
    pub(crate) cell: u8,
    /// Where it begins, of what the cell holds; it ends within that.
    pub(crate) offset: u32,
    /// So many bytes behind the cell's begin is the first that it holds; below
    /// [`MOST_SHIFT_BYTES`].
    pub(crate) shift: u16,
    /// The writer has done with the cell: it is the reader's.
    pub(crate) is_last: bool,
}

const PRESENT: u64 = 1 << 63;
const LAST: u64 = 1 << 62;
/// The word of a line whose bytes are in its annex, which is no part of a cell.
pub(crate) const IN_ANNEX: u64 = 1 << 61;
const CELL_SHIFT: u32 = 32;
const SHIFT_SHIFT: u32 = 40;

impl Part {
    /// The word in a line; never 0, which stands for a cell of the ring.
    #[inline]
    pub(crate) const fn to_word(self) -> u64 {
        let last = if self.is_last { LAST } else { 0 };
        let cell = (self.cell as u64) << CELL_SHIFT | (self.shift as u64) << SHIFT_SHIFT;
        PRESENT | last | cell | self.offset as u64
    }

    /// What a line's word says of `bytes` bytes, if it can be.
    #[inline]
    pub(crate) fn from_word(word: u64, bytes: usize) -> Option<Self> {
        let (cell, offset) = (word >> CELL_SHIFT & 0xff, word as u32);
        let shift = word >> SHIFT_SHIFT & 0xffff;
        let fits = bytes <= PAIR_CELL_BYTES && offset as usize <= PAIR_CELL_BYTES - bytes;
        let is_part = word & PRESENT != 0 && cell < u64::from(PAIR_CELLS) && fits;
        let is_part = is_part && shift < MOST_SHIFT_BYTES as u64;
        is_part.then_some(Self { cell: cell as u8, offset, shift: shift as u16, is_last: word & LAST != 0 })
    }
}

#[cfg(test)]
#[path = "place_tests.rs"]
mod tests;
