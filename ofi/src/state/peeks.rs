//! When others are let run for peeks (`FI_PEEK`) that found nothing. A caller that polls after each
//! peek, as Open MPI does, has them run there: so each second time it is left to the next poll, or
//! peek.

use super::caller::this_thread;

/// What is left to the next poll.
#[derive(Debug, Default)]
pub struct Peeks {
    /// The thread that is to let others run for an earlier peek ([`this_thread`]); 0 if none is.
    owed_by: usize,
}

impl Peeks {
    /// Whether this thread is to let others run for an earlier peek; it is asked once.
    #[inline]
    pub fn take_owed_yield(&mut self) -> bool {
        self.owed_by != 0 && self.take_of_this_thread()
    }

    /// Whether any thread is to let others run for an earlier peek.
    pub const fn is_yield_owed(&self) -> bool {
        self.owed_by != 0
    }

    /// Apart, so that an empty poll does not ask for the thread's address.
    #[cold]
    #[inline(never)]
    fn take_of_this_thread(&mut self) -> bool {
        let is_owed = self.owed_by == this_thread();
        if is_owed {
            self.owed_by = 0;
        }
        is_owed
    }

    /// A peek of this thread found nothing, and others are to be let run. Whether now: another
    /// thread may have left its own to its next poll.
    #[cold]
    pub fn yields_now(&mut self) -> bool {
        let is_of_another = self.owed_by != 0;
        if !is_of_another {
            self.owed_by = this_thread();
        }
        is_of_another
    }
}

#[cfg(test)]
#[path = "peeks_tests.rs"]
mod tests;
