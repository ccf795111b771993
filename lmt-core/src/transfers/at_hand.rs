//! Whether short messages to a peer are announced instead of going in cells.
//!
//! A receiver that waits for a message and has the lines of its sender's buffer in its own
//! caches, since nobody has written there since the last one, copies it in less time than
//! the message takes through cells, which cross from core to core each time. Where the
//! sender has written it, its lines cross anyhow, and cells are two times as fast. Nobody
//! tells which it is; but the receiver sees how long its copy takes, and says so when it is
//! done.
#![forbid(unsafe_code)]

use crate::trials::Trials;

/// So many messages go in cells at most before the next two are announced to see how that
/// is: that costs a few thousandths of the time.
const MOST_CELLS: u16 = 1024;

/// What ends at 16 KiB is the first class, then each power of two is one.
const FIRST_CLASS: u32 = 13;
const CLASSES: usize = 4;

/// What is known of messages to one peer.
#[derive(Debug, Default)]
pub(super) struct AtHand {
    classes: [Trials; CLASSES],
}

fn class_of(bytes: u64) -> usize {
    let class = bytes.saturating_sub(1).max(1).ilog2().saturating_sub(FIRST_CLASS);
    (class as usize).min(CLASSES - 1)
}

impl AtHand {
    /// Whether the next message of so many bytes is announced.
    pub fn is_likely(&self, bytes: u64) -> bool {
        self.class(bytes).is_due()
    }

    /// Whether such messages are announced, as far as is known.
    pub fn is_so(&self, bytes: u64) -> bool {
        self.class(bytes).is_good()
    }

    /// One has gone in cells.
    pub fn pass(&mut self, bytes: u64) {
        self.classes[class_of(bytes)].pass();
    }

    /// The receiver has such a message; whether it was at hand.
    pub fn learn(&mut self, bytes: u64, at_hand: bool) {
        let class = &mut self.classes[class_of(bytes)];
        if at_hand {
            class.succeed();
        } else if !class.take_back() {
            class.fail(2, MOST_CELLS);
        }
    }

    fn class(&self, bytes: u64) -> &Trials {
        &self.classes[class_of(bytes)]
    }
}

#[cfg(test)]
#[path = "at_hand_tests.rs"]
mod tests;
