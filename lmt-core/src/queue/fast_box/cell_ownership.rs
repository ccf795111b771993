//! Which cells of a pair belong to one of its two processes.
//!
//! A pair's cells change their owner with the messages in them: the receiver
//! keeps a cell when it has read it, and writes its own messages into it. So a
//! cache line crosses between the two caches once for a message that goes and one
//! that comes back. A ring with a direction moves it over, and the right to write
//! it back again.
//!
//! Nothing of this is shared. Each process keeps a set of its own; the two sets
//! never have a cell in common, for one begins with the lower half of the cells
//! and the other with the upper, a cell leaves the writer's set before its number
//! is published, and enters the reader's when what was published is read. A peer
//! that names a cell which is not its own can garble messages of its own only:
//! what this process has already, it does not get again.

use crate::base::sync::{AtomicU64, Ordering};

/// Cells of a pair, at most a bit each in one word.
pub(crate) const HANDOFF_CELLS: u32 = 64;

/// The lower half of the cells, with which the owner of their memory begins.
#[cfg_attr(loom, allow(dead_code))] // Its user needs real shared memory.
pub(crate) const LOWER_HALF: u64 = (1 << (HANDOFF_CELLS / 2)) - 1;

/// One process's cells. Used by one thread at a time: the atomic makes it
/// something that the two ends of a connection can share without a lock.
#[derive(Debug)]
pub(crate) struct OwnedCells {
    /// Bit n: cell n is this process's to write.
    own: AtomicU64,
}

impl OwnedCells {
    pub(crate) fn new(own: u64) -> Self {
        Self { own: AtomicU64::new(own) }
    }

    /// The cell that [`OwnedCells::take`] gives next. The lowest: so the cell that
    /// came last is the one that goes next where messages take turns, and few
    /// cells are used where few are in flight.
    #[inline]
    #[cfg_attr(loom, allow(dead_code))] // Its user needs real shared memory.
    pub(crate) fn next(&self) -> Option<u8> {
        // Relaxed, here and below: one thread at a time, and what orders two
        // threads orders their uses of the endpoint.
        let own = self.own.load(Ordering::Relaxed);
        (own != 0).then_some(own.trailing_zeros() as u8)
    }

    /// How many cells there are to take.
    #[inline]
    #[cfg_attr(loom, allow(dead_code))] // Its user needs real shared memory.
    pub(crate) fn count(&self) -> u32 {
        self.own.load(Ordering::Relaxed).count_ones()
    }

    /// Takes the lowest cell out, to be written and handed over.
    #[inline]
    pub(crate) fn take(&self) -> Option<u8> {
        let own = self.own.load(Ordering::Relaxed);
        self.own.store(own & own.wrapping_sub(1), Ordering::Relaxed);
        (own != 0).then_some(own.trailing_zeros() as u8)
    }

    /// A cell that the peer has handed over is this process's now; one that it
    /// has already stays what it is.
    #[inline]
    pub(crate) fn keep(&self, cell: u8) {
        let own = self.own.load(Ordering::Relaxed);
        self.own.store(own | 1 << (u32::from(cell) % HANDOFF_CELLS), Ordering::Relaxed);
    }

    /// Gives up all cells but these, for good: there is no memory behind the
    /// others.
    #[cfg_attr(loom, allow(dead_code))] // Its user needs real shared memory.
    pub(crate) fn keep_only(&self, cells: u64) {
        let own = self.own.load(Ordering::Relaxed);
        self.own.store(own & cells, Ordering::Relaxed);
    }
}
