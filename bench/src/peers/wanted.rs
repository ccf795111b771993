//! What is to be measured, and in which modes.

use crate::memory::Memory;
use crate::patterns::Pattern;

/// How the buffers are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mode {
    /// Written before sending, read after receiving; else never modified.
    pub in_use: bool,
    /// Rotated through more than the cache.
    pub off_cache: bool,
}

/// All modes, the usual one first.
pub const MODES: [Mode; 4] = [
    Mode { in_use: true, off_cache: false },
    Mode { in_use: false, off_cache: false },
    Mode { in_use: true, off_cache: true },
    Mode { in_use: false, off_cache: true },
];

/// One pattern in one mode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The pattern.
    pub pattern: Pattern,
    /// The mode.
    pub mode: Mode,
    /// Where our buffers come from.
    pub buffers: Memory,
    /// Processes in the group.
    pub ranks: u32,
    /// The sizes; the pattern's own if none are named.
    pub sizes: Option<Vec<u64>>,
}
