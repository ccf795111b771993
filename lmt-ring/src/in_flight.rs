//! The cells of a message on its way, as its sender counts them.

use crate::slot::CELLS_IN_FLIGHT;

/// The cells of one message that are filled and not known to be emptied.
#[derive(Debug)]
pub(crate) struct InFlight {
    /// Cells that were filled, in all.
    pub(crate) named: u64,
    /// Of those, cells that are known to be emptied.
    pub(crate) collected: u64,
    /// The number of the k-th in place k modulo their number.
    pub(crate) cells: [u8; CELLS_IN_FLIGHT as usize],
}

impl InFlight {
    pub(crate) const fn new() -> Self {
        Self { named: 0, collected: 0, cells: [0; CELLS_IN_FLIGHT as usize] }
    }

    pub(crate) fn cell(&self, k: u64) -> u8 {
        self.cells[(k % CELLS_IN_FLIGHT) as usize]
    }
}
