//! The receiver's side of a message: empties its cells.

use lmt_core::buffer::Buffer;
use lmt_core::cursor::Cursor;
use lmt_core::mechanism::{Fault, Interval, Step};

use crate::faults::{garbage, short_buffer, withdrawn};
use crate::layout::{CELL_BYTES, SLOTS};
use crate::ring::PairRing;
use crate::slot::{ABANDONED, CELLS_IN_FLIGHT};
use crate::sys::CopyOut;

/// So often a step looks for the next piece of a message that has begun: a piece takes about as long as a step takes
/// to come again.
const LOOKS: u32 = 64;

/// A message on its way out of a ring.
#[derive(Debug)]
pub(crate) struct Receiving {
    slot: u8,
    tag: u64,
    total_bytes: u64,
    copied_bytes: u64,
    emptied: u64,
    /// From this cell on they are kept: those that the sender had at hand.
    kept_from: u64,
    /// The sender may fill more than is received.
    is_cut: bool,
    /// What the ring had of its own when the message came.
    fresh_before: u64,
    /// How far behind each cell's begin the bytes begin.
    shift_bytes: u64,
    way: CopyOut,
    start: u64,
    at: Option<Cursor>,
    is_open: bool,
}

impl Receiving {
    /// Attaches to the message `tag` in `slot`, to copy it out in this way.
    pub(crate) fn start(
        ring: &PairRing,
        slot: u8,
        tag: u64,
        interval: Interval,
        way: CopyOut,
    ) -> Result<Self, Fault> {
        let line = ring.receiving_slot(slot).ok_or_else(garbage)?;
        if !line.attach(tag) {
            return Err(withdrawn());
        }
        let total_bytes = interval.bytes();
        let cells = total_bytes.div_ceil(CELL_BYTES);
        let kept_from = cells.saturating_sub(line.cells_at_begin());
        Ok(Self {
            slot,
            tag,
            total_bytes,
            copied_bytes: 0,
            emptied: 0,
            kept_from,
            is_cut: !line.ends_at(total_bytes),
            fresh_before: ring.fresh_cells(),
            shift_bytes: line.shift_bytes(),
            way,
            start: interval.start,
            at: None,
            is_open: true,
        })
    }

    /// The slot in which the message `tag` stands now, if it does.
    pub(crate) fn find(ring: &PairRing, tag: u64) -> Option<u8> {
        (0..SLOTS).find(|slot| ring.receiving_slot(*slot).is_some_and(|slot| slot.has(tag)))
    }

    /// Copies what stands there, by about `max_bytes`.
    pub(crate) fn step(
        &mut self,
        ring: &mut PairRing,
        data: &mut Buffer,
        max_bytes: u64,
    ) -> Result<Step, Fault> {
        let (before, mut looks) = (self.copied_bytes, 0);
        while self.copied_bytes < self.total_bytes && self.copied_bytes - before < max_bytes.max(1) {
            let produced = ring.receiving_slot(self.slot).ok_or_else(garbage)?.produced();
            if produced == ABANDONED {
                return Err(withdrawn());
            }
            if produced < self.copied_bytes || produced > self.max_produced() {
                return Err(garbage());
            }
            if produced == self.copied_bytes {
                looks += 1;
                // Of many messages that are in flight most have not begun.
                if self.copied_bytes == 0 || looks > LOOKS {
                    break;
                }
                continue;
            }
            self.copy(ring, data, produced)?;
            looks = 0;
        }
        Ok(Step { bytes: self.copied_bytes - before, done: self.is_whole() })
    }

    /// More cannot stand there.
    fn max_produced(&self) -> u64 {
        (self.emptied + CELLS_IN_FLIGHT) * CELL_BYTES
    }

    /// Copies what of the present cell stands there, and empties it at its end.
    #[inline]
    fn copy(&mut self, ring: &mut PairRing, data: &mut Buffer, produced: u64) -> Result<(), Fault> {
        let k = self.copied_bytes / CELL_BYTES;
        let within = self.copied_bytes % CELL_BYTES;
        let end = produced.min((k + 1) * CELL_BYTES).min(self.total_bytes);
        let cell = ring.receiving_slot(self.slot).ok_or_else(garbage)?.cell(k);
        if u64::from(cell) >= ring.cells() {
            return Err(garbage());
        }
        let offset = ring.cell_offset(cell) + self.shift_bytes + within;
        self.copy_out(ring, data, offset, end)?;
        // A cell that the sender may go on to fill is not for others, nor for this side's own
        // messages: it is the sender's again when this message is closed.
        if end == (k + 1) * CELL_BYTES || (end == self.total_bytes && !self.is_cut) {
            self.empty(ring, k, cell)?;
        }
        Ok(())
    }

    /// Copies out what is missing up to `end`.
    #[inline]
    fn copy_out(&mut self, ring: &PairRing, data: &mut Buffer, offset: u64, end: u64) -> Result<(), Fault> {
        let at = match &mut self.at {
            Some(at) => at,
            at @ None => at.insert(Cursor::at(data.segments(), self.start)),
        };
        if !ring.mapping.copy_out(offset, data, at, end - self.copied_bytes, self.way) {
            return Err(short_buffer());
        }
        self.copied_bytes = end;
        Ok(())
    }

    /// A cell is read: it stays here when the sender had one for it anyway,
    /// unless this side holds three quarters of all.
    fn empty(&mut self, ring: &mut PairRing, k: u64, cell: u8) -> Result<(), Fault> {
        let stays = k >= self.kept_from && ring.take_over(cell, self.fresh_before);
        ring.receiving_slot(self.slot).ok_or_else(garbage)?.empty(k, !stays);
        self.emptied = k + 1;
        Ok(())
    }

    /// Whether all of it is here.
    pub(crate) fn is_whole(&self) -> bool {
        self.copied_bytes == self.total_bytes
    }

    /// Goes, with all or without; whether the sender will see it.
    pub(crate) fn close(&mut self, ring: &PairRing) -> bool {
        if !std::mem::take(&mut self.is_open) {
            return false;
        }
        let is_whole = self.is_whole();
        ring.receiving_slot(self.slot).is_some_and(|slot| slot.close(self.tag, is_whole))
    }
}
