//! How a pool is laid out. Every ring of it: its slots, for either direction,
//! then its cells.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::slot::Slot;

/// Bytes of one cell: so many at least make the right to a cell worth its word,
/// and so few at most let the receiver follow closely.
pub(crate) const CELL_BYTES: u64 = 32 << 10;
/// A message stands in its cells as far behind a cache line's begin as in the
/// sender's buffer: so a cell has a line more.
const SPARE_BYTES: u64 = LINE_BYTES;
/// From one cell's begin to the next one's.
const STRIDE_BYTES: u64 = CELL_BYTES + SPARE_BYTES;
/// Bytes of a cache line.
pub(crate) const LINE_BYTES: u64 = 64;
/// Cells of a ring.
pub(crate) const MIN_CELLS: u64 = 8;
pub(crate) const MAX_CELLS: u64 = 255;
pub(crate) const MAX_RINGS: u64 = 4096;
/// Messages of one direction that can be in flight in a ring at once.
pub(crate) const SLOTS: u8 = 240;

const SLOT_BYTES: u64 = size_of::<Slot>() as u64;
/// Two directions' slots, rounded up to whole pages.
const SLOTS_BYTES: u64 = (2 * SLOTS as u64 * SLOT_BYTES).next_multiple_of(4096);

/// Which way messages go, seen from the pool's owner.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Way {
    FromOwner = 0,
    ToOwner = 1,
}

impl Way {
    pub(crate) const fn other(self) -> Self {
        match self {
            Self::FromOwner => Self::ToOwner,
            Self::ToOwner => Self::FromOwner,
        }
    }
}

/// The numbers that fix a pool's layout. Only [`Layout::checked`] makes one that
/// the methods may be called on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct Layout {
    /// Cells of one ring.
    pub(crate) cells: u32,
    /// Rings of the pool.
    pub(crate) rings: u32,
}

impl Layout {
    /// These numbers, if a pool can be laid out by them.
    pub(crate) fn checked(self) -> Option<Self> {
        let cells = MIN_CELLS..=MAX_CELLS;
        let rings = 1..=MAX_RINGS;
        (cells.contains(&self.cells.into()) && rings.contains(&self.rings.into())).then_some(self)
    }

    const fn ring_bytes(self) -> u64 {
        SLOTS_BYTES + (self.cells as u64 * STRIDE_BYTES).next_multiple_of(4096)
    }

    pub(crate) const fn pool_bytes(self) -> u64 {
        self.rings as u64 * self.ring_bytes()
    }

    /// Where the slots of ring `ring` begin, and how many bytes they take.
    pub(crate) const fn slots(self, ring: u32) -> (u64, u64) {
        (ring as u64 * self.ring_bytes(), SLOTS_BYTES)
    }

    /// Where the cells of ring `ring` are.
    pub(crate) const fn cells(self, ring: u32) -> std::ops::Range<u64> {
        self.slots(ring).0 + SLOTS_BYTES..self.slots(ring + 1).0
    }

    pub(crate) const fn slot_offset(self, ring: u32, way: Way, slot: u8) -> u64 {
        self.slots(ring).0 + (way as u64 * SLOTS as u64 + slot as u64) * SLOT_BYTES
    }

    pub(crate) const fn cell_offset(self, ring: u32, cell: u8) -> u64 {
        self.cells(ring).start + cell as u64 * STRIDE_BYTES
    }
}

#[cfg(test)]
#[path = "layout_tests.rs"]
mod tests;
