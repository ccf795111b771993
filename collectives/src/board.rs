//! The board: shared memory of a group, in which ranks see how far the others are
//! (`words`) and put small pieces of data.
#![allow(unsafe_code)] // Views shared memory as atomics.

use std::sync::Arc;

use lmt_core::buffer::Buffer;
use lmt_core::region::{Direction, copy_shared, put_shared, take_shared_past_caches};
use lmt_core::shared_memory::SharedMemory;

use crate::layout::{LINE_BYTES, Layout};
use crate::pace::Pace;
use crate::words::{Line, Lines, Words};

/// The board, as one rank uses it.
pub(crate) type Board = Words<Mapping>;

/// The memory of a board.
#[derive(Debug)]
pub(crate) struct Mapping {
    memory: Arc<SharedMemory>,
    /// How this rank's posts go.
    pace: Pace,
}

/// What is posted at a time, and timed now and then.
const PIECE_BYTES: u64 = 32 << 10;

/// What a forked child sees of any board, since it has none: there it alone writes.
static NOWHERE: Line = Line::new();

impl Lines for Mapping {
    fn line(&self, line: u64) -> &Line {
        if !self.memory.is_usable_here() {
            return &NOWHERE;
        }
        let start = line * LINE_BYTES;
        assert!(start + LINE_BYTES <= self.memory.len() as u64, "a line of the board");
        let at = self.memory.base().as_ptr().wrapping_add(start as usize);
        // SAFETY: the line lies in the mapping, as was just checked, which is aligned to
        // pages, lives as long as `self` and is in this process, no forked child. It is
        // all atomics, for which any bytes are valid and which other processes may change.
        unsafe { &*at.cast::<Line>() }
    }
}

impl Board {
    /// The board in this memory, which must be as long as the layout says.
    pub fn new(memory: Arc<SharedMemory>, layout: Layout, rank: u32) -> Option<Self> {
        let fits = memory.len() as u64 >= layout.total_bytes() && memory.is_usable_here();
        let lines = Mapping { memory, pace: Pace::default() };
        (fits && rank < layout.size).then_some(Self { lines, layout, rank })
    }

    /// Copies bytes of `from` into this rank's slot that begins at `slot`, from `at` on;
    /// what does not fit is left out. Returns how many.
    pub fn post(&self, slot: u64, at: u64, from: &Buffer) -> u64 {
        let (begin, bytes) = self.stretch(self.rank, slot, at, from.total_bytes());
        let Mapping { memory, pace } = &self.lines;
        // Bytes gathered from here and there take their time anyway.
        if from.segments().len() > 1 {
            return put_shared(memory, begin, from, 0, bytes, false);
        }
        let mut done = 0;
        while done < bytes {
            let piece_bytes = PIECE_BYTES.min(bytes - done);
            let copied = pace.copy(piece_bytes, |goes_past| {
                put_shared(memory, begin + done, from, done, piece_bytes, goes_past)
            });
            done += copied;
            if copied < piece_bytes {
                break;
            }
        }
        done
    }

    /// Fills `into` from a rank's slot of a call, past the caches if so wished; returns how
    /// many bytes there were.
    pub fn take(&self, rank: u32, call: u32, at: u64, into: &mut Buffer, past_caches: bool) -> u64 {
        let (begin, bytes) = self.stretch(rank, self.slot_of(rank, call), at, into.total_bytes());
        if past_caches {
            return take_shared_past_caches(&self.lines.memory, begin, into, bytes);
        }
        copy_shared(&self.lines.memory, Direction::Get, begin, into, 0, bytes)
    }

    /// Copies bytes of `from` into a cell of a call; what does not fit is left out.
    /// Returns how many.
    pub fn hand(&self, call: u32, cell: u32, from: &Buffer) -> u64 {
        let bytes = from.total_bytes().min(self.layout.cell_bytes());
        put_shared(&self.lines.memory, self.layout.cell(call, cell), from, 0, bytes, false)
    }

    /// Fills `into` from a cell; returns how many bytes there were.
    pub fn accept(&self, call: u32, cell: u32, into: &mut Buffer) -> u64 {
        let bytes = into.total_bytes().min(self.layout.cell_bytes());
        copy_shared(&self.lines.memory, Direction::Get, self.layout.cell(call, cell), into, 0, bytes)
    }

    /// Where in the memory so many bytes from `at` on in a rank's slot are that begins at
    /// `slot`, and how many of them there are.
    fn stretch(&self, rank: u32, slot: u64, at: u64, bytes: u64) -> (u64, u64) {
        // Wherever another rank says that its slot begins, it ends within its memory.
        let begin = slot.min(self.layout.ring_bytes());
        let slot_bytes = self.layout.slot_bytes.min(self.layout.ring_bytes() - begin);
        let at = at.min(slot_bytes);
        (self.layout.ring(rank) + begin + at, bytes.min(slot_bytes - at))
    }
}

#[cfg(test)]
#[path = "board_tests.rs"]
mod tests;
