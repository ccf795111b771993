//! The board: shared memory of a group, in which ranks see how far the others are
//! (`words`) and put small pieces of data.
#![allow(unsafe_code)] // Views shared memory as atomics.

use std::sync::Arc;

use lmt_core::buffer::Buffer;
use lmt_core::region::{Direction, copy_shared};
use lmt_core::shared_memory::SharedMemory;

use crate::layout::{LINE_BYTES, Layout};
use crate::words::{Line, Lines, Words};

/// The board, as one rank uses it.
pub(crate) type Board = Words<Mapping>;

/// The memory of a board.
#[derive(Debug)]
pub(crate) struct Mapping(Arc<SharedMemory>);

/// What a forked child sees of any board, since it has none: there it alone writes.
static NOWHERE: Line = Line::new();

impl Lines for Mapping {
    fn line(&self, line: u64) -> &Line {
        if !self.0.is_usable_here() {
            return &NOWHERE;
        }
        let start = line * LINE_BYTES;
        assert!(start + LINE_BYTES <= self.0.len() as u64, "a line of the board");
        let at = self.0.base().as_ptr().wrapping_add(start as usize);
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
        (fits && rank < layout.size).then_some(Self { lines: Mapping(memory), layout, rank })
    }

    /// Copies bytes of `from` into this rank's slot of a call; what does not fit is left
    /// out. Returns how many.
    pub fn post(&self, call: u32, at: u64, from: &mut Buffer) -> u64 {
        self.copy(Direction::Put, self.rank, call, at, from)
    }

    /// Fills `into` from a rank's slot of a call; returns how many bytes there were.
    pub fn take(&self, rank: u32, call: u32, at: u64, into: &mut Buffer) -> u64 {
        self.copy(Direction::Get, rank, call, at, into)
    }

    fn copy(&self, direction: Direction, rank: u32, call: u32, at: u64, local: &mut Buffer) -> u64 {
        // Wherever another rank says that its slot begins, it ends within its memory.
        let begin = self.slot_of(rank, call).min(self.layout.ring_bytes());
        let slot_bytes = self.layout.slot_bytes.min(self.layout.ring_bytes() - begin);
        let at = at.min(slot_bytes);
        let bytes = local.total_bytes().min(slot_bytes - at);
        copy_shared(&self.lines.0, direction, self.layout.ring(rank) + begin + at, local, 0, bytes)
    }
}

#[cfg(test)]
#[path = "board_tests.rs"]
mod tests;
