//! The box's algorithm: one writer, one reader, a ring of lines and a ring of
//! cells.
//!
//! Every message takes the next line, and one that needs a cell of the ring the next
//! cell, too. So both ends know which cell belongs to a line: a peer says only whether
//! there is one.
//!
//! A line's first word holds the line's number plus one and publishes it: no
//! earlier message in the same place has that number, and neither has zeroed
//! memory. The reader gives lines and cells back by two counters, in batches;
//! the writer looks at them when it has run out.

use crate::base::sync::{AtomicU64, Ordering};
use crate::queue::ring::{LINE_WORDS, Line};
use crate::queue::words::last_word;

const KIND_BITS: u32 = 8;

/// How many lines and how many cells one end has done with: cumulative, and
/// written by that end only.
#[repr(C, align(64))]
pub(crate) struct Progress {
    pub(crate) lines: AtomicU64,
    pub(crate) cells: AtomicU64,
}

/// Borrowed shared words of one box.
#[derive(Clone, Copy)]
pub(crate) struct Words<'a> {
    /// A power of two of them.
    pub(crate) lines: &'a [Line],
    /// What the reader has given back.
    pub(crate) consumed: &'a Progress,
    /// What the writer has published: read by nobody but the same process, when
    /// it connects anew and goes on where it was.
    pub(crate) sent: &'a Progress,
}

impl<'a> Words<'a> {
    /// The line of this number, which is taken modulo the ring.
    #[inline]
    pub(super) fn line(&self, number: u64) -> &'a [AtomicU64; LINE_WORDS] {
        &self.lines[number as usize & (self.lines.len() - 1)].words
    }
}

/// The publish word of line `number`.
#[inline]
const fn publish_word(number: u64, kind: u8) -> u64 {
    number.wrapping_add(1) << KIND_BITS | kind as u64
}

/// There is no free line or cell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct FastBoxFull;

/// What the writer knows; all of it private.
#[derive(Debug)]
pub(crate) struct Writer {
    next_line: u64,
    next_cell: u64,
    /// Lines below this may be written.
    line_limit: u64,
    /// Cells below this may be written.
    cell_limit: u64,
    /// A power of two.
    cells: u64,
}

impl Writer {
    /// For a box of `cells` cells, where an earlier writer of this process, if
    /// there was one, has stopped.
    pub(crate) fn new(words: &Words<'_>, cells: usize) -> Self {
        // Relaxed: this process's own stores.
        let next_line = words.sent.lines.load(Ordering::Relaxed);
        let next_cell = words.sent.cells.load(Ordering::Relaxed);
        // Nothing is free until `refresh` has found it so.
        Self { next_line, next_cell, line_limit: next_line, cell_limit: next_cell, cells: cells as u64 }
    }

    /// Whether nothing was ever published.
    #[cfg_attr(loom, allow(dead_code))] // Its user needs real shared memory.
    pub(crate) fn is_fresh(&self) -> bool {
        self.next_line == 0
    }

    /// The cell that the next message may fill, if it needs one; none of the
    /// reader's reads of it is still to come.
    #[inline]
    pub(crate) fn reserve(&mut self, words: &Words<'_>, with_cell: bool) -> Result<u64, FastBoxFull> {
        if self.has_room(with_cell) || self.refresh(words, with_cell) {
            return Ok(self.next_cell & (self.cells - 1));
        }
        Err(FastBoxFull)
    }

    /// Whether the next line is known to be free.
    #[inline]
    #[cfg_attr(loom, allow(dead_code))] // Its user needs real shared memory.
    pub(crate) const fn has_line(&self) -> bool {
        self.next_line != self.line_limit
    }

    #[inline]
    fn has_room(&self, with_cell: bool) -> bool {
        self.has_line() && (!with_cell || self.next_cell != self.cell_limit)
    }

    /// The number of the line that the next message takes.
    #[inline]
    #[cfg_attr(loom, allow(dead_code))] // Its user needs real shared memory.
    pub(crate) const fn line_number(&self) -> u64 {
        self.next_line
    }

    /// Looks at what the reader has given back.
    #[cold]
    fn refresh(&mut self, words: &Words<'_>, with_cell: bool) -> bool {
        // Acquire pairs with the Release stores in `Reader::give_back`: its
        // reads of what is written over now are over.
        let lines = words.consumed.lines.load(Ordering::Acquire);
        let cells = words.consumed.cells.load(Ordering::Acquire);
        let slots = words.lines.len() as u64;
        // A reader that gives back what was never sent, or takes back what it
        // gave, is not believed.
        if self.next_line.wrapping_sub(lines) <= slots {
            self.line_limit = lines.wrapping_add(slots);
        }
        if self.next_cell.wrapping_sub(cells) <= self.cells {
            self.cell_limit = cells.wrapping_add(self.cells);
        }
        self.has_room(with_cell)
    }

    /// Writes the line's words from 1 on and publishes it, and the cell that
    /// was filled before. Only after [`Writer::reserve`] for the same.
    #[inline]
    pub(crate) fn publish(&mut self, words: &Words<'_>, content: &[u64], kind: u8, with_cell: bool) {
        for (target, word) in words.line(self.next_line)[1..].iter().zip(content) {
            // Relaxed: ordered before the Release store of word 0.
            target.store(*word, Ordering::Relaxed);
        }
        self.end_line(words, kind);
        if with_cell {
            self.next_cell = self.next_cell.wrapping_add(1);
            // Relaxed: for this process only.
            words.sent.cells.store(self.next_cell, Ordering::Relaxed);
        }
    }

    /// The same with a line's first words and bytes that lie behind them, as many as it has room
    /// for, straight from where they are.
    #[inline(always)] // The path of a short message.
    pub(crate) fn publish_bytes(&mut self, words: &Words<'_>, first: [u64; 2], bytes: &[u8], kind: u8) {
        let line = words.line(self.next_line);
        debug_assert!(bytes.len() <= 8 * (LINE_WORDS - 1 - first.len()), "it fits a line");
        // Relaxed: as in `publish`.
        line[1].store(first[0], Ordering::Relaxed);
        line[2].store(first[1], Ordering::Relaxed);
        let mut left = bytes;
        for target in &line[1 + first.len()..] {
            let Some((chunk, behind)) = left.split_first_chunk() else {
                if !left.is_empty() {
                    target.store(last_word(left), Ordering::Relaxed);
                }
                break;
            };
            target.store(u64::from_le_bytes(*chunk), Ordering::Relaxed);
            left = behind;
        }
        self.end_line(words, kind);
    }

    /// Publishes the line that was written.
    #[inline(always)] // The path of a short message.
    fn end_line(&mut self, words: &Words<'_>, kind: u8) {
        // Release pairs with the Acquire in `Reader::find`.
        words.line(self.next_line)[0].store(publish_word(self.next_line, kind), Ordering::Release);
        self.next_line = self.next_line.wrapping_add(1);
        // Relaxed: for this process only.
        words.sent.lines.store(self.next_line, Ordering::Relaxed);
    }
}

/// What the reader knows; all of it private.
#[derive(Debug)]
pub(crate) struct Reader {
    next_line: u64,
    next_cell: u64,
    /// What the writer was told last.
    told_lines: u64,
    told_cells: u64,
    /// A power of two.
    cells: u64,
}

impl Reader {
    /// For a box of `cells` cells, all zero.
    pub(crate) fn new(cells: usize) -> Self {
        Self { next_line: 0, next_cell: 0, told_lines: 0, told_cells: 0, cells: cells as u64 }
    }

    /// The kind of the next message, if it is there.
    #[inline(always)] // Empty polls are most of a wait.
    pub(crate) fn find(&self, words: &Words<'_>) -> Option<u8> {
        // Acquire pairs with the Release store in `Writer::end_line`: the rest
        // of the line and the cell are then the message's.
        let word = words.line(self.next_line)[0].load(Ordering::Acquire);
        (word ^ publish_word(self.next_line, 0) < 1 << KIND_BITS).then_some(word as u8)
    }

    /// The next message's line, once found.
    #[inline]
    pub(crate) fn line<'a>(&self, words: &Words<'a>) -> &'a [AtomicU64; LINE_WORDS] {
        words.line(self.next_line)
    }

    /// The number of the next message's line.
    #[inline]
    #[cfg_attr(loom, allow(dead_code))] // Its user needs real shared memory.
    pub(crate) const fn line_number(&self) -> u64 {
        self.next_line
    }

    /// The next message's cell, if it has one.
    #[inline]
    pub(crate) fn cell(&self) -> u64 {
        self.next_cell & (self.cells - 1)
    }

    /// Ends the message that was found.
    #[inline(always)] // The path of a short message.
    pub(crate) fn consume(&mut self, words: &Words<'_>, with_cell: bool) {
        self.next_line = self.next_line.wrapping_add(1);
        self.next_cell = self.next_cell.wrapping_add(u64::from(with_cell));
        // A quarter each: the writer has the rest to go on with meanwhile, and
        // the counters' line moves a few times a round.
        let lines = self.next_line.wrapping_sub(self.told_lines);
        let cells = self.next_cell.wrapping_sub(self.told_cells);
        let are_many = with_cell && cells >= self.cells.div_ceil(4);
        if lines >= (words.lines.len() as u64).div_ceil(4) || are_many {
            self.give_back(words);
        }
    }

    #[cold]
    fn give_back(&mut self, words: &Words<'_>) {
        // Release pairs with the Acquire in `Writer::refresh`: the reads of the
        // lines and cells given back are over by then.
        words.consumed.lines.store(self.next_line, Ordering::Release);
        words.consumed.cells.store(self.next_cell, Ordering::Release);
        (self.told_lines, self.told_cells) = (self.next_line, self.next_cell);
    }
}
