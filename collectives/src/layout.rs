//! Where what is on the board. Pure arithmetic, in lines of 64 bytes.
#![forbid(unsafe_code)]

/// What the board begins with; another layout has another.
pub(crate) const MAGIC: u64 = u64::from_le_bytes(*b"lmtgrp\x03\0");

/// How many calls a rank may have in flight: cards of later ones take the places of
/// earlier ones, once all ranks have ended those.
pub(crate) const DEPTH: u32 = if cfg!(loom) { 1 } else { 4 };

/// Ranks of a round of meeting: each looks at so many less one. On few ranks a
/// meeting is one look at all; on many it takes as many rounds as the power of this.
pub(crate) const RADIX: u32 = if cfg!(loom) { 2 } else { 8 };

/// The bytes of a cache line.
pub(crate) const LINE_BYTES: u64 = 64;
const HEAD_LINES: u64 = 3;
const CARD_LINES: u64 = 2;
const ENTRIES_A_LINE: u64 = 4;

/// The longest slots that a rank has at a time. Slots of calls follow each other
/// through all of this memory (`ring`): what a rank writes next was last read so long
/// ago that the readers' caches have let go of it. A line that one of them still holds
/// costs its writer as much as a transfer.
const SLOTS: u64 = 2;

/// A cell of two ranks. Both of a call and what is copied stay in a core's own cache.
pub(crate) const CELL_BYTES: u64 = 64 << 10;
/// So many has each call that may be in flight, in groups of as many ranks.
pub(crate) const CELLS: u32 = 2;

/// The shape of a board.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Layout {
    /// How many ranks.
    pub size: u32,
    /// How much each may post in a call, whole lines.
    pub slot_bytes: u64,
}

impl Layout {
    pub fn new(size: u32, slot_bytes: u64) -> Self {
        Self { size, slot_bytes: slot_bytes.div_ceil(LINE_BYTES).max(1) * LINE_BYTES }
    }

    fn table_lines(&self) -> u64 {
        u64::from(self.size).div_ceil(ENTRIES_A_LINE)
    }

    /// Lines of one rank: its own, then its cards, then its tables, then its slots.
    fn rank_lines(&self) -> u64 {
        1 + u64::from(DEPTH) * (CARD_LINES + self.table_lines()) + self.ring_bytes() / LINE_BYTES
    }

    /// How much memory a rank's slots share.
    pub fn ring_bytes(&self) -> u64 {
        SLOTS * self.slot_bytes
    }

    /// A rank's own line.
    pub fn rank_line(&self, rank: u32) -> u64 {
        HEAD_LINES + u64::from(rank) * self.rank_lines()
    }

    /// The first line of a rank's card of a call.
    pub fn card(&self, rank: u32, call: u32) -> u64 {
        self.rank_line(rank) + 1 + u64::from(call % DEPTH) * CARD_LINES
    }

    /// The line, and the first of two words in it, of an entry of a rank's table.
    pub fn table_entry(&self, rank: u32, call: u32, of: u32) -> (u64, usize) {
        let tables = self.rank_line(rank) + 1 + u64::from(DEPTH) * CARD_LINES;
        let table = tables + u64::from(call % DEPTH) * self.table_lines();
        let of = u64::from(of);
        (table + of / ENTRIES_A_LINE, (of % ENTRIES_A_LINE) as usize * 2)
    }

    /// Where the memory of a rank's slots begins, in bytes.
    pub fn ring(&self, rank: u32) -> u64 {
        (self.rank_line(rank) + 1 + u64::from(DEPTH) * (CARD_LINES + self.table_lines())) * LINE_BYTES
    }

    /// How long each cell is: only two ranks have cells.
    pub fn cell_bytes(&self) -> u64 {
        // No model has any: its memory is lines of words.
        if self.size == CELLS && !cfg!(loom) { CELL_BYTES } else { 0 }
    }

    /// Where a cell of a call begins, in bytes. In the next call that has the same cells
    /// each is in the other's place.
    pub fn cell(&self, call: u32, cell: u32) -> u64 {
        let place = cell.wrapping_add(call / DEPTH) % CELLS;
        let cells = self.rank_line(self.size) * LINE_BYTES;
        cells + u64::from(call % DEPTH * CELLS + place) * self.cell_bytes()
    }

    pub fn total_bytes(&self) -> u64 {
        self.rank_line(self.size) * LINE_BYTES + u64::from(DEPTH * CELLS) * self.cell_bytes()
    }

    /// Rounds of a meeting.
    pub fn rounds(&self) -> u32 {
        let (mut rounds, mut reached) = (0, 1u64);
        while reached < self.size.into() {
            reached *= u64::from(RADIX);
            rounds += 1;
        }
        rounds
    }

    /// The ranks that `rank` looks at in a round.
    pub fn partners_in(&self, rank: u32, round: u32) -> impl Iterator<Item = u32> + use<> {
        let (size, rank) = (u64::from(self.size), u64::from(rank));
        let stride = u64::from(RADIX).pow(round);
        let steps = (1..u64::from(RADIX)).map(move |step| step * stride);
        // Further round there are those that were met already.
        steps.take_while(move |&back| back < size).map(move |back| ((rank + size - back) % size) as u32)
    }
}

#[cfg(all(test, not(loom)))]
#[path = "layout_tests.rs"]
mod tests;
