//! Letting others run between polls that find nothing: of callers that wait in a loop of
//! their own, as an MPI's blocking calls do, and of [`Engine::wait`].

use std::time::{Duration, Instant};

use super::Engine;

/// Empty polls in a row before others are let run, where nobody is known to want the core:
/// some tens of microseconds' worth, so that the system call costs some percent of the time
/// for which nothing was to be done.
pub(super) const POLLS: u32 = 512;
/// The same where processes outnumber cores: as many as it takes to find that nothing is
/// there.
pub(super) const CROWDED_POLLS: u32 = 2;
/// The same where others compute. They take less than [`COMPUTES`]: else two processes that
/// wait would take each other for computing, and go on doing so.
const COMPUTING_POLLS: u32 = 2048;
/// A yield takes a fifth of this where nobody else is ready to run, and more than this where
/// the core has gone to another process and come back.
const OTHERS_RAN: Duration = Duration::from_micros(1);
/// Who keeps the core for longer than this waits for nobody: it computes, and has the core
/// until its time slice is over, some milliseconds.
const COMPUTES: Duration = Duration::from_micros(300);
/// For so many waits others do what they did when they were last seen.
const WAITS: u32 = 200;
/// So often that number is doubled at most, where they compute.
const MOST_DOUBLINGS: u32 = 12;

/// What others did with the core when they were let run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Others {
    /// There were none.
    None,
    /// They gave it back soon: they wait for something, too, as the ranks of a job do.
    Wait,
    /// They kept it.
    Compute,
}

/// Lets whoever is ready run on this core (sched_yield(2)); what they did with it.
pub fn let_others_run() -> Others {
    let before = Instant::now();
    std::thread::yield_now();
    Others::of(before.elapsed())
}

impl Others {
    fn of(away: Duration) -> Self {
        match away {
            away if away > COMPUTES => Self::Compute,
            away if away > OTHERS_RAN => Self::Wait,
            _ => Self::None,
        }
    }
}

/// Who else wants this endpoint's core, as was last seen. That there are more peers than CPUs
/// for them is known without looking.
#[derive(Debug)]
pub(crate) struct Sharing {
    others: Others,
    /// Waits to come in which they are taken to do the same.
    waits: u32,
    /// So often in a row they were found to compute.
    computed: u32,
}

impl Sharing {
    pub const fn new() -> Self {
        Self { others: Others::None, waits: 0, computed: 0 }
    }

    /// A wait begins.
    #[inline]
    pub fn begin_wait(&mut self) {
        self.waits = self.waits.saturating_sub(1);
    }

    /// What others did lately.
    #[inline]
    pub fn others(&self) -> Others {
        if self.waits > 0 { self.others } else { Others::None }
    }

    /// Notes what others did. Who is found to compute again and again is let run more and more
    /// seldom: it costs a time slice each time.
    pub fn note(&mut self, others: Others) {
        let computed = match others {
            Others::None => return,
            Others::Wait => 0,
            Others::Compute => (self.computed + 1).min(MOST_DOUBLINGS),
        };
        *self = Self { others, waits: WAITS << computed, computed };
    }

    /// Counts an empty poll behind `idle` others in a row; how many there are now.
    #[inline]
    pub fn count_empty(&mut self, idle: u32) -> u32 {
        if idle == 0 {
            self.begin_wait();
        }
        idle.saturating_add(1)
    }

    /// Lets others run, and notes what they did.
    pub fn let_others_run(&mut self) {
        self.note(let_others_run());
    }

    /// Empty polls in a row before others are let run, of at most `spins`. Who computes is let
    /// run seldom: the core is not back before its time slice is over, whatever has come
    /// meanwhile.
    #[inline]
    pub fn polls_before_yield(&self, spins: u32, is_crowded: bool) -> u32 {
        match self.others() {
            _ if is_crowded => spins.min(CROWDED_POLLS),
            Others::None => spins.min(POLLS),
            Others::Wait => spins.min(CROWDED_POLLS),
            Others::Compute => spins.min(COMPUTING_POLLS),
        }
    }
}

/// Whether it is time to let others run after so many empty polls in a row, where that is to
/// be after `polls`: then, and where others are known to wait, after each further one.
#[inline]
pub(crate) const fn is_time(empty_polls: u32, polls: u32) -> bool {
    empty_polls >= polls && empty_polls > 0 && (polls <= CROWDED_POLLS || empty_polls.is_multiple_of(polls))
}

impl Engine {
    /// Whether a caller that polls in a loop of its own is to call [`let_others_run`] before
    /// its next poll, best without a lock: its last ones found nothing, and whoever it waits
    /// for may have no core. What that returns goes to [`Engine::note_others`].
    #[inline]
    pub fn should_yield(&self) -> bool {
        is_time(self.idle, self.polls_before_yield())
    }

    /// Lets others run if it is time for that.
    #[inline]
    pub fn let_others_run_if_idle(&mut self) {
        if self.should_yield() {
            self.sharing.let_others_run();
        }
    }

    /// What was looked for; where it is not there, others are let run if it is time for that.
    #[inline]
    pub fn or_let_others_run<T>(&mut self, found: Option<T>) -> Option<T> {
        if found.is_none() {
            self.let_others_run_if_idle();
        }
        found
    }

    /// Notes what others did with the core while this endpoint waited.
    #[cold]
    pub fn note_others(&mut self, others: Others) {
        self.sharing.note(others);
    }

    /// Empty polls in a row before others are let run.
    #[inline]
    pub(super) fn polls_before_yield(&self) -> u32 {
        let is_crowded = self.traffic.transfers.is_crowded();
        self.sharing.polls_before_yield(self.traffic.config.spins, is_crowded)
    }
}

#[cfg(test)]
#[path = "polling_tests.rs"]
mod tests;
