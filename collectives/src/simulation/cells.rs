//! The cells of a simulated call.

use super::race::Log;
use crate::layout::{CELL_BYTES, CELLS};

/// The cells of a call.
pub struct Cells {
    pub(super) bytes: Vec<u8>,
    pub(super) log: Log,
}

impl Cells {
    pub fn new(bytes: Vec<u8>) -> Self {
        Self { bytes, log: Log::default() }
    }

    /// How long all of them are.
    pub const BYTES: u64 = CELLS as u64 * CELL_BYTES;
}
