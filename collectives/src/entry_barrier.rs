//! How all ranks of a group meet at the begin of a call.
//!
//! In the first round a rank waits for those just before it, in later ones for those
//! that have met as many and stand a stride of them before it. What those have found
//! does not say what they call themselves, so it compares that too: then it knows that
//! all of a stride call what it calls, and all between it and them.
#![forbid(unsafe_code)]

use crate::words::{Lines, Words};

/// A rank's meeting of a call.
#[derive(Debug)]
pub(crate) struct EntryBarrier {
    call: u32,
    /// What this rank's call is.
    signature: u64,
    round: u32,
    /// Those of this round that are not there yet.
    missing: Vec<u32>,
    differs: bool,
}

impl EntryBarrier {
    /// Begins the first round; this rank shows its call and publishes a point of it.
    pub fn new<L: Lines>(words: &Words<L>, call: u32, signature: u64) -> Self {
        Self { call, signature, round: 0, missing: words.partners_in(0).collect(), differs: false }
    }

    /// Whether all of this round have come.
    pub fn is_round_complete<L: Lines>(&mut self, words: &Words<L>) -> bool {
        let Self { call, signature, round, ref mut missing, ref mut differs } = *self;
        missing.retain(|&rank| {
            let met = match round {
                0 => words.point_of(rank, call).map(|_| false),
                _ => words.arrival_of(rank, call, round),
            };
            *differs |= met.is_some_and(|differs| differs || words.signature_of(rank, call) != signature);
            met.is_none()
        });
        missing.is_empty()
    }

    /// Goes on to the next round; false if there is none, and all have met.
    pub fn begin_next_round<L: Lines>(&mut self, words: &Words<L>) -> bool {
        self.round += 1;
        if self.round >= words.layout().rounds() {
            return false;
        }
        self.missing.extend(words.partners_in(self.round));
        words.publish_arrival(self.call, self.round, self.differs);
        true
    }

    /// Once all have met: whether not all call the same.
    pub const fn differs(&self) -> bool {
        self.differs
    }
}

#[cfg(all(test, not(loom)))]
#[path = "entry_barrier_tests.rs"]
mod tests;
