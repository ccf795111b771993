//! One side's view of the ring that it shares with a peer: the cells that are
//! its own, and the slots in which it sends.

use std::collections::VecDeque;
use std::sync::Arc;

use lmt_core::error::MemoryError;

use crate::cookie::TAGS;
use crate::in_flight::InFlight;
use crate::layout::{CELL_BYTES, LINE_BYTES, Layout, SLOTS, Way};
use crate::pool::Lease;
use crate::slot::{Slot, State};
use crate::sys::Mapping;

/// So many cells a ring counts for messages that are not sure of a receiver.
const UNSURE_OF_CELLS: u64 = 48;

/// A message that has ended here, whose receiver is still to close.
#[derive(Debug)]
struct Ending {
    slot: u8,
    tag: u64,
    in_flight: InFlight,
}

/// A ring, as one of the two processes sees it.
#[derive(Debug)]
pub(crate) struct PairRing {
    pub(crate) mapping: Arc<Mapping>,
    layout: Layout,
    pub(crate) ring: u32,
    /// The way of this side's messages.
    way: Way,
    /// The cells that this side may write, never more than the ring has: first those
    /// that came back, the last one first; then those that it has emptied, the next
    /// to be used last.
    own: VecDeque<u8>,
    /// How many of them came back.
    returned_cells: u64,
    /// Cells that this side has or gets back unless the peer keeps them: its own,
    /// and those of its messages that it does not know to be emptied.
    held_cells: u64,
    /// Cells in messages for which no receiver has come.
    unmatched_cells: u64,
    /// For each cell, whether this side has made sure that it has memory.
    committed: [u64; 4],
    /// The slots in which nothing is sent, the lowest on top.
    free_slots: Vec<u8>,
    /// Those whose receivers are still to close.
    ending: Vec<Ending>,
    last_tag: u64,
    /// This side has sent a message, and keeps cells for the next.
    has_sent: bool,
    /// So has the peer.
    peer_has_sent: bool,
    /// Keeps the ring this peer's.
    _lease: Option<Lease>,
}

impl PairRing {
    /// A ring of this endpoint's pool, which begins with the lower half.
    pub(crate) fn mine(mapping: Arc<Mapping>, layout: Layout, lease: Lease) -> Self {
        let half = layout.cells / 2;
        let ring = lease.ring;
        Self::new(mapping, layout, ring, Way::FromOwner, 0..half, Some(lease))
    }

    /// A ring of the peer's pool.
    pub(crate) fn theirs(mapping: Arc<Mapping>, layout: Layout, ring: u32) -> Self {
        let half = layout.cells / 2;
        Self::new(mapping, layout, ring, Way::ToOwner, half..layout.cells, None)
    }

    fn new(
        mapping: Arc<Mapping>,
        layout: Layout,
        ring: u32,
        way: Way,
        cells: std::ops::Range<u32>,
        lease: Option<Lease>,
    ) -> Self {
        let mut own = VecDeque::with_capacity(layout.cells as usize);
        // A message takes them in the order in which they stand side by side.
        own.extend(cells.rev().map(|cell| cell as u8));
        Self {
            mapping,
            layout,
            ring,
            way,
            held_cells: own.len() as u64,
            unmatched_cells: 0,
            own,
            returned_cells: 0,
            committed: [0; 4],
            free_slots: (0..SLOTS).rev().collect(),
            ending: Vec::with_capacity(usize::from(SLOTS)),
            last_tag: first_tag(),
            has_sent: false,
            peer_has_sent: false,
            _lease: lease,
        }
    }

    /// The slot in which this side sends.
    #[inline]
    pub(crate) fn sending_slot(&self, slot: u8) -> Option<&Slot> {
        self.mapping.slot(self.layout.slot_offset(self.ring, self.way, slot))
    }

    /// The slot in which the peer sends.
    #[inline]
    pub(crate) fn receiving_slot(&self, slot: u8) -> Option<&Slot> {
        self.mapping.slot(self.layout.slot_offset(self.ring, self.way.other(), slot))
    }

    #[inline]
    pub(crate) fn cell_offset(&self, cell: u8) -> u64 {
        self.layout.cell_offset(self.ring, cell)
    }

    pub(crate) fn cells(&self) -> u64 {
        self.layout.cells.into()
    }

    pub(crate) fn own_cells(&self) -> u64 {
        self.own.len() as u64
    }

    /// Whether a message is longer than a quarter of the ring: more than a core's
    /// own cache holds of it and of the buffer, as the ring is by default. A shorter one
    /// first takes the cells that came back last, since they are in a cache.
    pub(crate) fn is_long(&self, bytes: u64) -> bool {
        bytes > self.cells() * CELL_BYTES / 4
    }

    /// The cells that the peer was not the last to read.
    pub(crate) fn fresh_cells(&self) -> u64 {
        self.own_cells() - self.returned_cells
    }

    /// Whether a message may take a cell. One that is not sure of a receiver must
    /// not hold what the others need: these always find a sixteenth of the ring
    /// and one cell, of the quarter that the peer leaves to this side
    /// ([`Self::take_over`]). Nor must many of them, whose receivers are slow, take
    /// much memory: so a long ring counts as one of [`UNSURE_OF_CELLS`].
    fn has_cell(&self, is_sure: bool) -> bool {
        if is_sure {
            return !self.own.is_empty();
        }
        let cells = self.cells().min(UNSURE_OF_CELLS);
        let reserve = cells / 16 + 1;
        self.own_cells() > reserve && self.unmatched_cells + reserve < cells / 4
    }

    /// The same, after a look at what has come back if there is none.
    #[inline]
    fn may_take(&mut self, is_sure: bool) -> bool {
        self.has_cell(is_sure) || {
            self.reap();
            self.has_cell(is_sure)
        }
    }

    /// Takes one of the own cells, with memory behind it; `None` when there is none to
    /// take.
    ///
    /// A long message takes first what this side has emptied, then what came back
    /// longest ago. A short one takes what came back last: so a stream of them that
    /// goes one way uses few cells.
    #[inline]
    pub(crate) fn take(&mut self, is_sure: bool, is_long: bool) -> Result<Option<u8>, MemoryError> {
        if !self.may_take(is_sure) {
            return Ok(None);
        }
        let came_back = self.returned_cells > 0 && (!is_long || self.fresh_cells() == 0);
        let taken = match (came_back, is_long) {
            (true, false) => self.own.pop_front(),
            (true, true) => self.own.remove(self.returned_cells as usize - 1),
            (false, _) => self.own.pop_back(),
        };
        let Some(cell) = taken else { return Ok(None) };
        self.returned_cells -= u64::from(came_back);
        self.commit(cell, came_back)?;
        self.unmatched_cells += u64::from(!is_sure);
        Ok(Some(cell))
    }

    /// Makes sure that a cell that was taken has memory; without, it is given back.
    #[inline]
    fn commit(&mut self, cell: u8, came_back: bool) -> Result<(), MemoryError> {
        let offset = self.cell_offset(cell);
        let (word, bit) = (&mut self.committed[usize::from(cell) / 64], 1 << (cell % 64));
        if *word & bit == 0 {
            if let Err(short) = self.mapping.commit(offset, CELL_BYTES + LINE_BYTES) {
                if came_back {
                    self.reclaim_cell(cell);
                } else {
                    self.own.push_back(cell);
                }
                return Err(short);
            }
            *word |= bit;
        }
        Ok(())
    }

    /// One of this side's cells comes back. What a peer says can make more than
    /// there are: those are dropped.
    #[inline]
    pub(crate) fn keep(&mut self, cell: u8) {
        if self.own_cells() < self.cells() {
            self.own.push_back(cell);
        }
    }

    /// One of this side's cells comes back from the peer, which has just read it.
    #[inline]
    pub(crate) fn reclaim_cell(&mut self, cell: u8) {
        if self.own_cells() < self.cells() {
            self.own.push_front(cell);
            self.returned_cells += 1;
        }
    }

    /// Whether this side keeps no further cell.
    pub(crate) fn is_full(&self) -> bool {
        self.held_cells >= self.cells() * 3 / 4
    }

    /// A cell that the peer has filled is this side's from now on, unless this
    /// side holds three quarters of all, so that the peer always has some, or
    /// gets them back; or has sent nothing so far: of a stream that goes one way all cells
    /// come back, and few need memory. Returns whether it is.
    ///
    /// It is used before the `before` first of [`Self::fresh_cells`] and after the
    /// others: with their number at the begin of a message its cells are used again
    /// in the order in which they were read, and so side by side as its sender took them.
    /// Where the two cores share no cache each cell that does not follow the one before costs
    /// some 200 ns: taken the last one first, every other message came backwards, and 512 KiB to
    /// 2 MiB took 1.06 to 1.17 times as long.
    #[inline]
    pub(crate) fn take_over(&mut self, cell: u8, before: u64) -> bool {
        if !self.peer_has_sent {
            self.peer_has_sent = true;
            self.put_in_order();
        }
        if self.is_full() || !self.has_sent {
            return false;
        }
        self.held_cells += 1;
        if self.own_cells() < self.cells() {
            let at = self.returned_cells + before.min(self.fresh_cells());
            self.own.insert(at as usize, cell);
        }
        true
    }

    /// Has this side's cells taken in the order in which they stand: what came back of a stream
    /// that went one way came the last one first, and from now on the two keep them.
    #[cold]
    fn put_in_order(&mut self) {
        self.own.make_contiguous().sort_unstable_by(|one, other| other.cmp(one));
        self.returned_cells = 0;
    }

    /// A receiver has come for a message that had taken so many cells before, or
    /// the message has ended.
    #[inline]
    pub(crate) fn confirm_matched(&mut self, cells: u64) {
        self.unmatched_cells -= cells;
    }

    /// The peer has kept one of this side's cells.
    #[inline]
    pub(crate) fn lose(&mut self) {
        self.held_cells = self.held_cells.saturating_sub(1);
    }

    /// The next message's tag.
    pub(crate) fn next_tag(&mut self) -> u64 {
        self.has_sent = true;
        self.last_tag = (self.last_tag + 1) % TAGS;
        self.last_tag
    }

    /// A slot to send in, which leaves `reserve` of them free.
    pub(crate) fn take_slot(&mut self, reserve: usize) -> Option<u8> {
        if self.free_slots.len() <= reserve {
            self.reap();
        }
        if self.free_slots.len() <= reserve {
            return None;
        }
        self.free_slots.pop()
    }

    /// Looks how many cells of a message are emptied, and takes those that come back.
    /// `None` when what stands in the slot cannot be.
    #[inline]
    pub(crate) fn collect(&mut self, message: &mut InFlight, slot: u8, tag: u64) -> Option<State> {
        let (emptied, state) = self.sending_slot(slot)?.emptied(tag);
        if emptied < message.collected || emptied > message.named {
            return None;
        }
        while message.collected < emptied {
            if self.sending_slot(slot)?.is_returned(message.collected) {
                self.reclaim_cell(message.cell(message.collected));
            } else {
                self.lose();
            }
            message.collected += 1;
        }
        Some(state)
    }

    /// Takes back all cells of a message that were not emptied, when nobody empties
    /// them any more.
    pub(crate) fn take_back(&mut self, message: &InFlight) {
        for k in (message.collected..message.named).rev() {
            self.keep(message.cell(k));
        }
    }

    /// A transfer has ended here.
    pub(crate) fn end(&mut self, slot: u8, tag: u64, in_flight: InFlight) {
        self.ending.push(Ending { slot, tag, in_flight });
        self.reap();
    }

    /// Takes back what the receivers of ended transfers have closed.
    pub(crate) fn reap(&mut self) {
        for at in (0..self.ending.len()).rev() {
            let mut ending = self.ending.swap_remove(at);
            match self.collect(&mut ending.in_flight, ending.slot, ending.tag) {
                Some(State::Whole | State::Early | State::Withdrawn) => {
                    self.take_back(&ending.in_flight);
                    self.free_slots.push(ending.slot);
                }
                Some(State::Open | State::Attached | State::Other) => self.ending.push(ending),
                // What cannot be stands there: the slot is used no more.
                None => {}
            }
        }
    }
}

/// Where the tags of a pair begin: who still looks into a slot that another pair
/// has now is not to find its own message's. The kernel has no random bytes only
/// before it has any; then tags begin at 0.
fn first_tag() -> u64 {
    let mut bytes = [0; 8];
    let _none_yet = lmt_core::random::fill(&mut bytes);
    u64::from_le_bytes(bytes) % TAGS
}

#[cfg(test)]
#[path = "ring_tests.rs"]
mod tests;
