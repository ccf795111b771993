//! Whether what comes is copied to its place past the caches, since its lines are in none.
//!
//! A store past the caches does not read the line that it overwrites, which is a third of
//! what a copy to memory costs; but one to a line that is in a cache throws it out, and who
//! reads it next fetches it from memory. So it is done where the target's lines are in no
//! cache anyway, and nobody has time to read them before the next message
//! ([`lmt_core::mechanism::Plan::left_alone`]) or the message is so long that most of it
//! would be out of the caches by then.
//!
//! Now and then a few of a target's lines are read to see how far away they are. Once they
//! are written past the caches they are out of them for that reason, so some messages go
//! through the caches again from time to time, to see whether their lines stay there.

/// Shorter messages go through the caches.
const LEAST_BYTES: u64 = 64 << 10;
/// From here on also what is read at once goes past them.
const ALWAYS_BYTES: u64 = 1 << 20;
/// From one power of two to the next; the last is of all that are longer.
const CLASSES: usize = 9;

/// So many messages are not looked at after one whose target was in a cache.
const UNLOOKED: u16 = 7;
/// So many in a row that were in none are no accident.
const COLD_IN_A_ROW: u8 = 2;
/// So many messages go past the caches before some go through them again; twice as many
/// after each time that these were cold, too.
const FIRST_PAUSE: u16 = 32;
const MOST_PAUSE: u16 = 2048;
/// The part of a pause that then goes through them, and the most.
const TRIAL_PART: u16 = 16;
const MOST_TRIAL: u16 = 16;

/// What is known of one peer's messages.
#[derive(Debug, Default)]
pub(crate) struct Targets([Target; CLASSES]);

#[derive(Clone, Copy, Debug)]
enum Target {
    /// They go through the caches.
    Cached { unlooked: u16, cold_in_a_row: u8 },
    /// They go past them, so many still.
    Past { left: u16, pause: u16 },
    /// They go through them again, so many still.
    Trial { left: u16, pause: u16 },
}

impl Default for Target {
    fn default() -> Self {
        Self::Cached { unlooked: 0, cold_in_a_row: 0 }
    }
}

impl Targets {
    /// Whether a message of so many bytes goes past the caches; `left_alone` as its plan
    /// says. `is_cold` looks whether its target is in none, where that is asked.
    pub(crate) fn go_past(
        &mut self,
        bytes: u64,
        left_alone: bool,
        is_cold: impl FnOnce() -> Option<bool>,
    ) -> bool {
        if bytes < LEAST_BYTES || !(left_alone || bytes >= ALWAYS_BYTES) {
            return false;
        }
        let class = (bytes / LEAST_BYTES).ilog2() as usize;
        self.0[class.min(CLASSES - 1)].next(is_cold)
    }
}

impl Target {
    fn next(&mut self, is_cold: impl FnOnce() -> Option<bool>) -> bool {
        let next = match *self {
            Self::Cached { unlooked: 1.., .. } => None,
            Self::Past { .. } => None,
            Self::Cached { .. } | Self::Trial { .. } => Some(is_cold() == Some(true)),
        };
        *self = match (*self, next) {
            (Self::Cached { unlooked, cold_in_a_row }, None) => {
                Self::Cached { unlooked: unlooked.saturating_sub(1), cold_in_a_row }
            }
            (Self::Cached { cold_in_a_row, .. }, Some(true)) if cold_in_a_row + 1 >= COLD_IN_A_ROW => {
                Self::Past { left: FIRST_PAUSE, pause: FIRST_PAUSE }
            }
            (Self::Cached { cold_in_a_row, .. }, Some(true)) => {
                Self::Cached { unlooked: 0, cold_in_a_row: cold_in_a_row + 1 }
            }
            (Self::Cached { .. } | Self::Trial { .. }, Some(false)) => {
                Self::Cached { unlooked: UNLOOKED, cold_in_a_row: 0 }
            }
            (Self::Past { left: 0, pause }, _) => {
                Self::Trial { left: (pause / TRIAL_PART).min(MOST_TRIAL), pause }
            }
            (Self::Past { left, pause }, _) => Self::Past { left: left - 1, pause },
            (Self::Trial { left: 0, pause }, _) => {
                let pause = (pause * 2).min(MOST_PAUSE);
                Self::Past { left: pause, pause }
            }
            (Self::Trial { left, pause }, _) => Self::Trial { left: left - 1, pause },
        };
        matches!(self, Self::Past { .. })
    }
}

#[cfg(test)]
#[path = "targets_tests.rs"]
mod tests;
