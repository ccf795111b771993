//! What the simulated ranks have in common: their slots, and the cells of a call.

use std::ops::Range;

use crate::layout::{CELL_BYTES, CELLS};
use crate::program::Span;

use super::race::Access;
use super::world::{Failure, Moved, World};

impl World {
    pub(super) fn touch_slot(
        &mut self,
        number: usize,
        step: u32,
        owner: usize,
        range: Range<u64>,
        writes: bool,
    ) -> Result<(), Failure> {
        let claimed = self.ranks[owner].program.slot_bytes;
        let has = (self.ranks[owner].slot.len() as u64).min(claimed);
        if range.end > has {
            return Err(format!("{range:?} is outside of rank {owner}'s slot of {has} bytes"));
        }
        let clock = self.ranks[number].clock.clone();
        let access = Access { rank: number as u32, step, range: range.clone(), writes };
        self.ranks[owner]
            .slot_log
            .add(access, &clock)
            .map_err(|other| meets(&format!("{range:?} of rank {owner}'s slot"), &other))
    }

    /// Checks and notes the use of so many bytes of a cell.
    pub(super) fn touch_cell(
        &mut self,
        number: usize,
        step: u32,
        cell: u32,
        bytes: u64,
        writes: bool,
    ) -> Result<(), Failure> {
        if self.ranks.len() != 2 {
            return Err("only two ranks have cells".to_owned());
        }
        if bytes > CELL_BYTES {
            return Err(format!("{bytes} bytes do not fit into a cell of {CELL_BYTES}"));
        }
        let begin = begin_of(cell);
        let clock = self.ranks[number].clock.clone();
        let access = Access { rank: number as u32, step, range: begin..begin + bytes, writes };
        let log = &mut self.cells.log;
        log.add(access, &clock).map_err(|other| meets(&format!("cell {cell}"), &other))
    }

    pub(super) fn post(&mut self, number: usize, from: Span, at: u64) -> Moved {
        let bytes = self.read(number, from.place, from.offset, from.bytes);
        self.ranks[number].slot[at as usize..at as usize + bytes.len()].copy_from_slice(&bytes);
        Moved::All
    }

    pub(super) fn take(&mut self, number: usize, rank: u32, at: u64, into: Span) -> Moved {
        let (at, end) = (at as usize, (at + into.bytes) as usize);
        let bytes = self.ranks[rank as usize].slot[at..end].to_vec();
        self.write(number, into.place, into.offset, &bytes);
        Moved::All
    }

    pub(super) fn hand(&mut self, number: usize, from: Span, cell: u32) -> Moved {
        let bytes = self.read(number, from.place, from.offset, from.bytes);
        let begin = begin_of(cell) as usize;
        self.cells.bytes[begin..begin + bytes.len()].copy_from_slice(&bytes);
        Moved::All
    }

    pub(super) fn accept(&mut self, number: usize, cell: u32, into: Span) -> Moved {
        let begin = begin_of(cell) as usize;
        let bytes = self.cells.bytes[begin..begin + into.bytes as usize].to_vec();
        self.write(number, into.place, into.offset, &bytes);
        Moved::All
    }
}

fn begin_of(cell: u32) -> u64 {
    u64::from(cell % CELLS) * CELL_BYTES
}

fn meets(what: &str, other: &Access) -> Failure {
    format!(
        "it uses {what}, and cannot know that rank {}'s step {}, which uses {:?}, has ended",
        other.rank, other.step, other.range
    )
}
