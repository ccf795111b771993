//! Who touched which bytes when, and whether two of them could have met.
//!
//! A rank's clock holds, for each rank, how many of its steps it knows to have
//! ended. Two accesses to the same bytes, one of them writing, must be ordered by
//! what the later rank knew when its step began; if they are not, some run
//! would have them in the other order, whatever this one did.

use std::ops::Range;

/// For each rank, how many of its steps are known to have ended.
pub type Clock = Vec<u32>;

/// What is known to either.
pub fn join(clock: &mut Clock, other: &Clock) {
    for (mine, theirs) in clock.iter_mut().zip(other) {
        *mine = (*mine).max(*theirs);
    }
}

/// One action's use of some bytes.
#[derive(Clone, Debug)]
pub struct Access {
    pub rank: u32,
    /// In which of that rank's steps.
    pub step: u32,
    pub range: Range<u64>,
    pub writes: bool,
}

/// All uses of one place of one rank.
#[derive(Default)]
pub struct Log {
    accesses: Vec<Access>,
}

impl Log {
    /// Adds one whose rank knows `clock`, and says which earlier one it races with.
    pub fn add(&mut self, new: Access, clock: &Clock) -> Result<(), Access> {
        if new.range.is_empty() {
            return Ok(());
        }
        let meets = |old: &&Access| {
            old.range.start < new.range.end
                && new.range.start < old.range.end
                && (old.writes || new.writes)
                && old.step >= clock[old.rank as usize]
        };
        match self.accesses.iter().find(meets) {
            Some(old) => Err(old.clone()),
            None => {
                self.accesses.push(new);
                Ok(())
            }
        }
    }

    /// One that who knows `clock` does not know to have ended.
    pub fn in_flight(&self, clock: &Clock) -> Option<&Access> {
        self.accesses.iter().find(|access| access.step >= clock[access.rank as usize])
    }
}
