//! Whether cells that the peer gives back are slow to fill.
//!
//! Their lines are in the peer's cache. Where the two cores share a cache, that
//! does not matter; where they do not, to write such a line again took six to
//! eight times as long as one that this side has read last
//! (docs/mechanisms/ring.md). Which of the two it is can change while a program
//! runs, so it is measured: of messages that need such cells, the time of each
//! long piece.

use std::time::Duration;

/// A piece is slow when it takes so many times what the message's pieces in fresh
/// cells take in the mean: more than what reading it from memory rather than from
/// a cache makes of it, less than what was measured.
const SLOW_TIMES: u32 = 4;
/// Of a message with fewer such pieces, this tells: 16 KiB in so long are 3.3 GB/s,
/// below what single copies reach, and were 6.4 us where cells were slow.
const SLOW_PIECE: Duration = Duration::from_micros(5);
const LEAST_FRESH_PIECES: u32 = 4;
/// So many slow pieces in a row are no accident, as one interrupted is.
const SLOW_PIECES: u32 = 4;

/// What one message knows of its pieces.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    in_fresh_cells: Duration,
    fresh_pieces: u32,
    slow_pieces: u32,
}

impl Watch {
    /// Notes how long so many pieces of 16 KiB took together, in a cell that `came_back` from the
    /// peer or in a fresh one.
    pub(crate) fn note(&mut self, pieces: u32, took: Duration, came_back: bool) {
        if !came_back {
            self.in_fresh_cells = self.in_fresh_cells.saturating_add(took);
            self.fresh_pieces += pieces;
        } else if took > self.most() * pieces {
            self.slow_pieces += pieces;
        } else {
            self.slow_pieces = 0;
        }
    }

    /// The longest time that is not slow.
    fn most(&self) -> Duration {
        if self.fresh_pieces < LEAST_FRESH_PIECES {
            return SLOW_PIECE;
        }
        self.in_fresh_cells / self.fresh_pieces * SLOW_TIMES
    }

    /// Other cells come next: the slow ones are over.
    pub(crate) fn begin_again(&mut self) {
        self.slow_pieces = 0;
    }

    /// Whether what is left should take another way.
    pub(crate) fn is_slow(&self) -> bool {
        self.slow_pieces >= SLOW_PIECES
    }
}

#[cfg(test)]
#[path = "pace_tests.rs"]
mod tests;
