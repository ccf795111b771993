//! The sender's side of a message: fills its cells.

use lmt_core::buffer::Buffer;
use lmt_core::cursor::Cursor;
use lmt_core::mechanism::{Fault, Interval, Step};

use crate::faults::{garbage, short_buffer, short_of_memory};
use crate::in_flight::InFlight;
use crate::layout::{CELL_BYTES, LINE_BYTES};
use crate::ring::PairRing;
use crate::slot::{CELLS_IN_FLIGHT, State};

/// The first piece of a message that the receiver is told of; each further one is as long as
/// all before it together, up to the last, so that the receiver begins soon and is told
/// seldom. Where the two cores share no cache each piece costs both some 200 ns: long messages
/// have fewer (512 KiB to 4 MiB in windows both ways 0.94 to 0.96 of the time, exchanged 0.95 to
/// 0.98, one by one 0.98 to 1.01).
const fn first_piece_bytes(total_bytes: u64) -> u64 {
    if total_bytes < 256 << 10 { 1 << 10 } else { 8 << 10 }
}

const LAST_PIECE_BYTES: u64 = 16 << 10;

/// The longest piece. Whole cells take 0.93 to 0.97 of the time of 128 to 512 KiB that come out of
/// memory, by two Intel cores that share no cache nearer than the last, 0.97 to 1.0 on cache and
/// 1.0 to 1.02 where both use buffers that come out of memory.
const fn last_piece_bytes(total_bytes: u64) -> u64 {
    if total_bytes < 128 << 10 { LAST_PIECE_BYTES } else { CELL_BYTES }
}

/// Slots for messages that are sure of a receiver: those that are not must not
/// hold what these need.
const RESERVED_SLOTS: usize = 16;

/// Where the bytes of `data` from `start` on are.
fn first_address(data: &Buffer, start: u64) -> usize {
    data.pieces(start..start.saturating_add(1)).next().map_or(0, |piece| piece.address)
}

/// A message on its way into a ring.
#[derive(Debug)]
pub(crate) struct Sending {
    /// `None` until the message is sure of a receiver and one is free.
    slot: Option<u8>,
    pub(crate) tag: u64,
    total_bytes: u64,
    produced_bytes: u64,
    in_flight: InFlight,
    /// Cells that it took before a receiver came.
    unmatched_cells: u64,
    start: u64,
    /// How far behind each cell's begin the bytes begin.
    shift_bytes: u64,
    at: Option<Cursor>,
}

impl Sending {
    /// A message that a receiver is to ask for first. It stands in a slot all the
    /// same if enough are free, since its receiver has to search for it otherwise.
    pub(crate) fn asked(ring: &mut PairRing, data: &Buffer, start: u64) -> Self {
        Self::at_once(ring, data, start).unwrap_or_else(|| Self::without_slot(ring))
    }

    /// The same for one that stands in none yet.
    pub(crate) fn without_slot(ring: &mut PairRing) -> Self {
        Self {
            slot: None,
            tag: ring.next_tag(),
            total_bytes: 0,
            produced_bytes: 0,
            in_flight: InFlight::new(),
            unmatched_cells: 0,
            start: 0,
            shift_bytes: 0,
            at: None,
        }
    }

    /// A message that stands in a slot at once; `None` when too few are free.
    /// Its bytes are those of `data` from `start` on.
    pub(crate) fn at_once(ring: &mut PairRing, data: &Buffer, start: u64) -> Option<Self> {
        let slot = ring.take_slot(RESERVED_SLOTS)?;
        let mut sending = Self::without_slot(ring);
        sending.start = start;
        sending.open(ring, slot, data);
        Some(sending)
    }

    /// The bytes get the place within a line that they have in `data`: copies
    /// between places alike take half of the time of others on some CPUs.
    fn open(&mut self, ring: &PairRing, slot: u8, data: &Buffer) {
        if let Some(line) = ring.sending_slot(slot) {
            self.shift_bytes = first_address(data, self.start) as u64 % LINE_BYTES;
            // Its receiver keeps no more than are told here.
            let total_bytes = data.total_bytes().saturating_sub(self.start);
            line.open(self.tag, ring.own_cells(), self.shift_bytes, total_bytes);
            self.slot = Some(slot);
        }
    }

    pub(crate) fn slot(&self) -> Option<u8> {
        self.slot
    }

    pub(crate) fn start(&mut self, interval: Interval) {
        (self.start, self.total_bytes) = (interval.start, interval.bytes());
    }

    /// Fills cells, by about `max_bytes`. The bytes of the step are those that
    /// stand in cells now; it is done when the receiver has them all.
    pub(crate) fn step(&mut self, ring: &mut PairRing, data: &Buffer, max_bytes: u64) -> Result<Step, Fault> {
        let before = self.produced_bytes;
        let Some(slot) = self.slot else {
            if let Some(slot) = ring.take_slot(0) {
                self.open(ring, slot, data);
            }
            return Ok(Step { bytes: 0, done: false });
        };
        let state = ring.collect(&mut self.in_flight, slot, self.tag).ok_or_else(garbage)?;
        let is_sure = match state {
            State::Attached => true,
            State::Open => false,
            State::Whole => return Ok(Step { bytes: 0, done: true }),
            // The receiver says what it misses.
            State::Early => return Ok(Step { bytes: 0, done: false }),
            State::Withdrawn | State::Other => return Err(garbage()),
        };
        if is_sure {
            ring.confirm_matched(std::mem::take(&mut self.unmatched_cells));
        }
        while self.produced_bytes < self.total_bytes && self.produced_bytes - before < max_bytes.max(1) {
            if !self.fill(ring, slot, data, is_sure)? {
                break;
            }
        }
        Ok(Step { bytes: self.produced_bytes - before, done: false })
    }

    /// Fills and publishes the next piece; false when there is no cell for it.
    #[inline]
    fn fill(&mut self, ring: &mut PairRing, slot: u8, data: &Buffer, is_sure: bool) -> Result<bool, Fault> {
        let within = self.produced_bytes % CELL_BYTES;
        if within == 0 && !self.next_cell(ring, slot, is_sure)? {
            return Ok(false);
        }
        let cell = self.in_flight.cell(self.in_flight.named - 1);
        let bytes = self.next_piece_bytes().min(CELL_BYTES - within);
        let offset = ring.cell_offset(cell) + self.shift_bytes + within;
        let at = self.at.get_or_insert_with(|| Cursor::at(data.segments(), self.start));
        if !ring.mapping.copy_in(offset, data, at, bytes) {
            return Err(short_buffer());
        }
        self.publish(ring, slot, bytes)
    }

    /// So many bytes at most the next piece has.
    #[inline]
    fn next_piece_bytes(&self) -> u64 {
        self.produced_bytes
            .clamp(first_piece_bytes(self.total_bytes), last_piece_bytes(self.total_bytes))
            .min(self.total_bytes - self.produced_bytes)
    }

    /// Tells the receiver of a piece.
    #[inline]
    fn publish(&mut self, ring: &PairRing, slot: u8, bytes: u64) -> Result<bool, Fault> {
        self.produced_bytes += bytes;
        ring.sending_slot(slot).ok_or_else(garbage)?.publish(self.produced_bytes);
        Ok(true)
    }

    fn next_cell(&mut self, ring: &mut PairRing, slot: u8, is_sure: bool) -> Result<bool, Fault> {
        if self.in_flight.named - self.in_flight.collected >= CELLS_IN_FLIGHT {
            return Ok(false);
        }
        let taken = ring.take(is_sure, ring.is_long(self.total_bytes));
        let Some(cell) = taken.map_err(short_of_memory)? else { return Ok(false) };
        self.unmatched_cells += u64::from(!is_sure);
        self.in_flight.cells[(self.in_flight.named % CELLS_IN_FLIGHT) as usize] = cell;
        ring.sending_slot(slot).ok_or_else(garbage)?.name_cell(self.in_flight.named, cell);
        self.in_flight.named += 1;
        Ok(true)
    }

    /// Whether all stands in cells, so that nothing is left to do but to hear
    /// of the end.
    fn is_given(&self) -> bool {
        self.produced_bytes == self.total_bytes
    }

    /// Looks no more; whether the receiver has it all already.
    pub(crate) fn leave(&self, ring: &PairRing) -> bool {
        let slot = self.slot.and_then(|slot| ring.sending_slot(slot));
        slot.is_some_and(|slot| slot.leave(self.tag))
    }

    /// Ends it, complete or not.
    pub(crate) fn finish(self, ring: &mut PairRing) {
        ring.confirm_matched(self.unmatched_cells);
        let is_given = self.total_bytes > 0 && self.is_given();
        let Some(slot) = self.slot else {
            // Nobody has seen it.
            return ring.take_back(&self.in_flight);
        };
        let Some(line) = ring.sending_slot(slot) else { return };
        line.withdraw(self.tag, is_given);
        ring.end(slot, self.tag, self.in_flight);
    }
}
