//! The cells that change their owner, as one of the two processes sees them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::cell_ownership::{LOWER_HALF, OwnedCells};
use super::memory::{FastBoxMemory, PAGE_BYTES};
use super::place::{HANDOFF_CELL_BYTES, HANDOFF_CELL_STRIDE_BYTES};

/// The cells of a pair, for the two ends of one connection in one process: the
/// box that it writes to and the one that it reads. For one thread at a time.
#[derive(Debug)]
pub(super) struct HandoffCells {
    pub(super) memory: Arc<FastBoxMemory>,
    cell_ownership: OwnedCells,
    /// Bit n: this process has made sure that cell n has memory.
    committed: AtomicU64,
    /// Bit n: that its first page has.
    begun: AtomicU64,
}

impl HandoffCells {
    /// In the box that this process made.
    pub(super) fn mine(memory: Arc<FastBoxMemory>) -> Self {
        Self::new(memory, LOWER_HALF)
    }

    /// In the box that the peer made, into which this process has written
    /// nothing so far, or something over an earlier attempt to connect: what is
    /// still its own is not known then, and it begins without.
    pub(super) fn theirs(memory: Arc<FastBoxMemory>, is_fresh: bool) -> Self {
        Self::new(memory, if is_fresh { !LOWER_HALF } else { 0 })
    }

    fn new(memory: Arc<FastBoxMemory>, own: u64) -> Self {
        Self {
            memory,
            cell_ownership: OwnedCells::new(own),
            committed: AtomicU64::new(0),
            begun: AtomicU64::new(0),
        }
    }

    /// Whether there is a cell to take, with memory behind its first `bytes` bytes. A short
    /// message asks for no more than it needs: eight pages take ten times as long to get as
    /// it takes, and where messages go one way, each has a cell that none has had before.
    #[inline]
    pub(super) fn has_cell(&self, bytes: usize) -> bool {
        match self.cell_ownership.next() {
            None => false,
            Some(cell) => self.is_committed(cell, bytes) || self.commit_own(cell, bytes),
        }
    }

    /// Whether there are as many as a message of `bytes` bytes takes.
    #[inline]
    pub(super) fn has_cells_for(&self, bytes: u64) -> bool {
        u64::from(self.cell_ownership.count()) * HANDOFF_CELL_BYTES as u64 >= bytes
    }

    /// Takes a cell to write the first `bytes` bytes of, and to hand over.
    #[inline]
    pub(super) fn take(&self, bytes: usize) -> Option<u8> {
        if self.has_cell(bytes) { self.cell_ownership.take() } else { None }
    }

    /// The peer has handed this cell over, and it is read.
    #[inline]
    pub(super) fn keep(&self, cell: u8) {
        self.cell_ownership.keep(cell);
    }

    #[inline]
    fn is_committed(&self, cell: u8, bytes: usize) -> bool {
        let memory = if bytes <= PAGE_BYTES { &self.begun } else { &self.committed };
        // Relaxed: one thread at a time, see `OwnedCells`.
        memory.load(Ordering::Relaxed) >> cell & 1 == 1
    }

    #[cold]
    fn commit_own(&self, cell: u8, bytes: usize) -> bool {
        let is_page = bytes <= PAGE_BYTES;
        // Relaxed, all of them: see `is_committed`.
        if let Err(error) = self
            .memory
            .commit_handoff_cell(cell, if is_page { PAGE_BYTES } else { HANDOFF_CELL_STRIDE_BYTES })
        {
            tracing::debug!(%error, "a pair goes on with the cells that it has");
            self.cell_ownership.keep_only(self.committed.load(Ordering::Relaxed));
            return self.cell_ownership.next().is_some();
        }
        self.begun.fetch_or(1 << cell, Ordering::Relaxed);
        if !is_page {
            self.committed.fetch_or(1 << cell, Ordering::Relaxed);
        }
        true
    }
}
