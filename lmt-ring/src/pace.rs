//! Whether cells that the peer gives back are slow to fill.
//!
//! Their lines are in the peer's cache. Where the two cores share a cache, that
//! does not matter; where they do not, to write such a line again took six to
//! eight times as long as one that this side has read last
//! (docs/mechanisms/ring.md). Which of the two it is can change while a program
//! runs, so it is measured: of messages that need such cells, the time of each
//! long piece.

use std::time::Duration;

/// A piece is slow when it takes so many times what one in a cell of this side's
/// own takes: above what reading the message from memory rather than from a cache
/// makes of it, below what was measured.
const SLOW_TIMES: u32 = 4;
/// So many slow pieces in a row are no accident, as one interrupted is.
const SLOW_PIECES: u32 = 4;

/// What a ring knows of its pieces.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    /// The least that a piece in a cell of this side's own took of late.
    own: Option<Duration>,
}

/// What one message knows of its pieces.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    has_own: bool,
    slow: u32,
}

impl Watch {
    /// A piece in a cell of this side's own took so long. The first of a message
    /// replaces what was known before.
    pub(crate) fn own(&mut self, pace: &mut Pace, took: Duration) {
        let before = pace.own.filter(|_| self.has_own);
        self.has_own = true;
        pace.own = Some(before.map_or(took, |before| before.min(took)));
    }

    /// A piece in a cell that the peer gave back took so long.
    pub(crate) fn returned(&mut self, pace: &Pace, took: Duration) {
        let is_slow = pace.own.is_some_and(|own| took > own * SLOW_TIMES);
        self.slow = if is_slow { self.slow + 1 } else { 0 };
    }

    /// Whether what is left should take another way.
    pub(crate) fn is_slow(&self) -> bool {
        self.slow >= SLOW_PIECES
    }
}

#[cfg(test)]
#[path = "pace_tests.rs"]
mod tests;
