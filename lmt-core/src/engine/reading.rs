//! Whether a peer waits for what is written to it, which is then to go in short pieces: so it
//! copies one while the next is written. Where it is busy it begins later anyway, and each
//! piece costs both sides something.

use crate::inbox::Cut;

/// Shorter messages tell nothing, and go in one piece.
pub(super) const ABOVE_BYTES: u64 = 4 << 10;

/// So many messages are there before they are looked for more often than not: then the two
/// send at the same time, in windows or one by one.
const LATE: u8 = 2;
const MOST_LATE: u8 = 4;

/// What is known of one peer. This process's own lateness stands for the peer's: a server that
/// computes while its clients wait is taken for one of two that send at the same time.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reading {
    /// Whether processes outnumber CPUs, so that it mostly does not run.
    pub is_crowded: bool,
    /// How many of its long messages were there already when they were looked for, less twice
    /// those that were waited for.
    late: u8,
}

impl Reading {
    /// In what a long message goes to the peer: in whole cells where it writes itself, as it
    /// did the last times, or does not run.
    #[inline]
    pub const fn cut(&self) -> Cut {
        if self.is_crowded || self.late >= LATE { Cut::Cells } else { Cut::Growing }
    }

    /// A message longer than [`ABOVE_BYTES`] has begun to come from it; whether this process had
    /// looked for it in vain.
    pub fn came(&mut self, was_awaited: bool) {
        self.late = if was_awaited { self.late.saturating_sub(2) } else { (self.late + 1).min(MOST_LATE) };
    }

    /// The connection has ended.
    pub const fn forget(&mut self) {
        self.late = 0;
    }
}

#[cfg(test)]
#[path = "reading_tests.rs"]
mod tests;
