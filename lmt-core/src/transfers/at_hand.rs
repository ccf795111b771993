//! Whether short messages to a peer are announced instead of going in cells.
//!
//! A receiver that waits for a message and has the lines of its sender's buffer in its own
//! caches, since nobody has written there since the last one, copies it in less time than
//! the message takes through cells, which cross from core to core each time. Where the
//! sender has written it, its lines cross anyhow, and cells are two times as fast. Nobody
//! tells which it is; but the receiver sees how long its copy takes, and says so when it is
//! done.
#![forbid(unsafe_code)]

/// So many slow copies in a row are no accident.
const SLOW_COPIES: u8 = 2;
/// So many messages go in cells before the next two are announced to see how that is; twice
/// as many after each time that it is slow again. Where it is, it costs a few thousandths of the time.
const FIRST_CELLS: u16 = 8;
const MOST_CELLS: u16 = 1024;

/// What ends at 16 KiB is the first class, then each power of two is one.
const FIRST_CLASS: u32 = 13;
const CLASSES: usize = 4;

/// What is known of messages to one peer.
#[derive(Debug, Default)]
pub(super) struct AtHand {
    classes: [Class; CLASSES],
}

#[derive(Debug, Default)]
struct Class {
    slow_copies: u8,
    /// The next one is announced after others went in cells: its lines are where these were
    /// written from, whatever comes after it.
    takes_back: bool,
    /// Messages that are still to go in cells.
    left: u16,
    /// How many were to go so last.
    cells: u16,
}

fn class_of(bytes: u64) -> usize {
    let class = bytes.saturating_sub(1).max(1).ilog2().saturating_sub(FIRST_CLASS);
    (class as usize).min(CLASSES - 1)
}

impl AtHand {
    fn class(&mut self, bytes: u64) -> &mut Class {
        &mut self.classes[class_of(bytes)]
    }

    /// Whether the next message of so many bytes is announced.
    pub fn is_likely(&self, bytes: u64) -> bool {
        self.classes[class_of(bytes)].left == 0
    }

    /// One has gone in cells.
    pub fn pass(&mut self, bytes: u64) {
        let class = self.class(bytes);
        if class.left > 0 {
            class.left -= 1;
            class.takes_back = true;
        }
    }

    /// The receiver has such a message; whether it was at hand.
    pub fn learn(&mut self, bytes: u64, at_hand: bool) {
        let class = self.class(bytes);
        if at_hand {
            *class = Class::default();
        } else if class.left == 0 && !std::mem::take(&mut class.takes_back) {
            class.slow_copies = class.slow_copies.saturating_add(1);
            if class.slow_copies >= SLOW_COPIES {
                class.cells = (class.cells * 2).clamp(FIRST_CELLS, MOST_CELLS);
                class.left = class.cells;
            }
        }
    }

    /// Whether such messages are announced, as far as is known.
    pub fn is_so(&self, bytes: u64) -> bool {
        self.classes[class_of(bytes)].slow_copies < SLOW_COPIES
    }
}

#[cfg(test)]
#[path = "at_hand_tests.rs"]
mod tests;
