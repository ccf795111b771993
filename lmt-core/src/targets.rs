//! Whether a message is copied to its place past the caches, since its lines are in none:
//! for mechanisms that copy with this process's own stores.
//!
//! A store past the caches does not read the line that it overwrites, which is a third of
//! what a copy to memory costs; but one to a line that is in a cache throws it out, and who
//! reads it next fetches it from memory. So it is done where the target's lines are in no
//! cache anyway, and who reads them next loses less by that than the copy
//! wins, as each mechanism has measured.
//!
//! Now and then a few of a target's lines are read to see how far away they are. Once they
//! are written past the caches they are out of them for that reason, so some messages go
//! through the caches again from time to time, to see whether their lines stay there.

/// Shorter messages go through the caches.
const LEAST_BYTES: u64 = 64 << 10;
/// From one power of two to the next; the last is of all that are longer.
const CLASSES: usize = 9;

/// So many messages are not looked at after one whose target was in a cache.
const UNLOOKED: u16 = 7;
/// So many looks in a row that say the same are no accident: one may be interrupted, and
/// of what does not fit a cache some lines are in it all the same.
const IN_A_ROW: u8 = 2;
/// So many messages go past the caches before some go through them again; twice as many
/// after each time that these were cold, too.
const FIRST_PAUSE: u16 = 32;
const MOST_PAUSE: u16 = 2048;
/// The part of a pause that then goes through them, and the most: more than a usual window,
/// whose targets come again only with the next one.
const TRIAL_PART: u16 = 10;
const MOST_TRIAL: u16 = 80;

/// What is known of one peer's messages.
#[derive(Debug, Default)]
pub struct Targets([Target; CLASSES]);

#[derive(Clone, Copy, Debug)]
enum Target {
    /// They go through the caches.
    Cached { unlooked: u16, cold_in_a_row: u8 },
    /// They go past them, so many still.
    Past { left: u16, pause: u16 },
    /// They go through them again, so many still.
    Trial { left: u16, pause: u16, warm_in_a_row: u8 },
}

impl Default for Target {
    fn default() -> Self {
        Self::Cached { unlooked: 0, cold_in_a_row: 0 }
    }
}

impl Targets {
    /// Whether a message of so many bytes goes past the caches, which it `may`: it is left
    /// alone, or long enough. `is_cold` looks whether its target is in none, where that is
    /// asked.
    pub fn go_past(&mut self, bytes: u64, may: bool, is_cold: impl FnMut() -> Option<bool>) -> bool {
        if bytes < LEAST_BYTES || !may {
            return false;
        }
        let class = (bytes / LEAST_BYTES).ilog2() as usize;
        self.0[class.min(CLASSES - 1)].next(is_cold)
    }
}

impl Target {
    /// The next message; whether it goes past the caches.
    fn next(&mut self, mut is_cold: impl FnMut() -> Option<bool>) -> bool {
        let mut is_cold = || is_cold() == Some(true);
        *self = match *self {
            Self::Cached { unlooked: unlooked @ 1.., cold_in_a_row } => {
                Self::Cached { unlooked: unlooked - 1, cold_in_a_row }
            }
            Self::Cached { cold_in_a_row, .. } if is_cold() => Self::cold(cold_in_a_row + 1),
            Self::Cached { .. } => Self::Cached { unlooked: UNLOOKED, cold_in_a_row: 0 },
            Self::Past { left: left @ 1.., pause } => Self::Past { left: left - 1, pause },
            Self::Past { pause, .. } => {
                let left = (pause / TRIAL_PART).min(MOST_TRIAL);
                Self::Trial { left, pause, warm_in_a_row: 0 }
            }
            Self::Trial { left, pause, warm_in_a_row } => {
                let warm_in_a_row = if is_cold() { 0 } else { warm_in_a_row + 1 };
                Self::tried(left, pause, warm_in_a_row)
            }
        };
        matches!(self, Self::Past { .. })
    }

    /// So many looks in a row have found a target in no cache.
    const fn cold(cold_in_a_row: u8) -> Self {
        if cold_in_a_row < IN_A_ROW {
            return Self::Cached { unlooked: 0, cold_in_a_row };
        }
        Self::Past { left: FIRST_PAUSE, pause: FIRST_PAUSE }
    }

    /// So many looks in a row have found a target in a cache again, in a trial of which so
    /// many messages are left.
    fn tried(left: u16, pause: u16, warm_in_a_row: u8) -> Self {
        if warm_in_a_row == IN_A_ROW {
            return Self::Cached { unlooked: UNLOOKED, cold_in_a_row: 0 };
        }
        if left > 0 {
            return Self::Trial { left: left - 1, pause, warm_in_a_row };
        }
        let pause = (pause * 2).min(MOST_PAUSE);
        Self::Past { left: pause, pause }
    }
}

#[cfg(test)]
#[path = "targets_tests.rs"]
mod tests;
