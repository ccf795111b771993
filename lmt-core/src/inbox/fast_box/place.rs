//! Where the bytes of a message in a box are, as its line says.

use super::holdings::PAIR_CELLS;
use crate::inbox::layout::HEADER_WORDS;
use crate::inbox::ring::LINE_WORDS;

/// Bytes of a cell that changes its owner. A message of the greatest usual length
/// (`eager_max_bytes`) takes eight, or nine where it begins far behind a line's begin.
pub(crate) const PAIR_CELL_BYTES: usize = 32 << 10;

/// Bytes of a message's last piece that its line takes where the cell ends before them: of one
/// that begins a little behind a page's begin, as what malloc returns does.
pub(crate) const TAIL_BYTES: usize = (LINE_WORDS - TAIL_WORD) * 8;
/// The line's first word for them, behind the one that names the part.
pub(crate) const TAIL_WORD: usize = HEADER_WORDS + 1;

/// A part of a pair's cell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Part {
    /// Below [`PAIR_CELLS`].
    pub(crate) cell: u8,
    /// Where it begins, within the cell. What does not fit there stands in the line.
    pub(crate) offset: u32,
    /// The writer has done with the cell: it is the reader's.
    pub(crate) is_last: bool,
}

const PRESENT: u64 = 1 << 63;
const LAST: u64 = 1 << 62;
/// The word of a line whose bytes are in its annex, which is no part of a cell.
pub(crate) const IN_ANNEX: u64 = 1 << 61;
const CELL_SHIFT: u32 = 32;

impl Part {
    /// The word in a line; never 0, which stands for a cell of the ring.
    #[inline]
    pub(crate) const fn to_word(self) -> u64 {
        let last = if self.is_last { LAST } else { 0 };
        PRESENT | last | (self.cell as u64) << CELL_SHIFT | self.offset as u64
    }

    /// What a line's word says of `bytes` bytes, if it can be.
    #[inline]
    pub(crate) fn from_word(word: u64, bytes: usize) -> Option<Self> {
        let (cell, offset) = (word >> CELL_SHIFT & 0xff, word as u32);
        let part = Self { cell: cell as u8, offset, is_last: word & LAST != 0 };
        let fits = offset as usize <= PAIR_CELL_BYTES && bytes <= part.room() + TAIL_BYTES;
        (word & PRESENT != 0 && cell < u64::from(PAIR_CELLS) && fits).then_some(part)
    }

    /// So many bytes are in the cell from its begin on, to the cell's end.
    #[inline]
    pub(crate) const fn room(self) -> usize {
        PAIR_CELL_BYTES.saturating_sub(self.offset as usize)
    }
}

#[cfg(test)]
#[path = "place_tests.rs"]
mod tests;
