//! Letting others run between polls that find nothing: of callers that wait in a loop of
//! their own, as an MPI's blocking calls do, and of an endpoint's wait.

use std::time::{Duration, Instant};

/// Empty polls in a row before others are let run, where nobody is known to want the core:
/// some tens of microseconds' worth, so that the system call costs some percent of the time
/// for which nothing was to be done.
pub(crate) const POLLS: u32 = 512;

/// The same where processes outnumber cores: as many as it takes to find that nothing is
/// there.
pub(crate) const OVERSUBSCRIBED_POLLS: u32 = 2;

/// The same where others compute. They take less than [`COMPUTES`]: else two processes that
/// wait would take each other for computing, and go on doing so.
const COMPUTING_POLLS: u32 = 2048;

/// Empty polls in a row before credits are returned, at most.
const RETURN_CREDITS_AFTER: u32 = 16;

/// Before so many empty polls in a row none is idle ([`Sharing::idle_polls`]): a wait for the
/// answer to a short message has fewer, and asking takes as long as one.
const IDLE_AFTER: u32 = 4;

/// A yield takes a fifth of this where nobody else is ready to run, and more than this where
/// the core has gone to another process and come back.
const YIELD_RAN_OTHERS: Duration = Duration::from_micros(1);

/// Who keeps the core for longer than this waits for nobody: it computes, and has the core
/// until its time slice is over, some milliseconds.
const COMPUTES: Duration = Duration::from_micros(300);

/// For so many waits others do what they did when they were last seen.
const WAITS: u32 = 200;

/// So often that number is doubled at most, where they compute.
const MAX_DOUBLINGS: u32 = 12;

/// What others did with the core when they were let run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum YieldOutcome {
    /// There were none.
    None,
    /// They gave it back soon: they wait for something, too, as the ranks of a job do.
    Wait,
    /// They kept it.
    Compute,
}

/// Lets whoever is ready run on this core (sched_yield(2)); what they did with it.
pub fn yield_core() -> YieldOutcome {
    let before = Instant::now();
    std::thread::yield_now();
    YieldOutcome::of(before.elapsed())
}

impl YieldOutcome {
    fn of(away: Duration) -> Self {
        match away {
            away if away > COMPUTES => Self::Compute,
            away if away > YIELD_RAN_OTHERS => Self::Wait,
            _ => Self::None,
        }
    }
}

/// Who else wants this endpoint's core, as was last seen, and how long the endpoint has waited.
/// That there are more peers than CPUs for them is known without looking.
#[derive(Debug)]
pub(crate) struct Sharing {
    others: YieldOutcome,
    /// Waits to come in which they are taken to do the same.
    waits: u32,
    /// So often in a row they were found to compute.
    computed: u32,
    /// Empty polls in a row.
    empty_polls: u32,
    /// After so many others are let run: settled when a wait begins, and when what it is made of
    /// changes, so that an empty poll only compares.
    yield_after: u32,
    /// After so many credits are returned: before others are let run, who may wait for them.
    return_credits_after: u32,
    /// At most so many empty polls before others are let run, as was said last.
    spins: u32,
    /// Whether processes outnumber CPUs, as was said last.
    is_oversubscribed: bool,
}

impl Sharing {
    pub const fn new() -> Self {
        Self {
            others: YieldOutcome::None,
            waits: 0,
            computed: 0,
            empty_polls: 0,
            yield_after: POLLS,
            return_credits_after: RETURN_CREDITS_AFTER,
            spins: POLLS,
            is_oversubscribed: false,
        }
    }

    /// A wait begins.
    #[inline]
    fn begin_wait(&mut self) {
        self.waits = self.waits.saturating_sub(1);
    }

    /// What others did lately.
    #[inline]
    pub fn others(&self) -> YieldOutcome {
        if self.waits > 0 { self.others } else { YieldOutcome::None }
    }

    /// Notes what others did. Who is found to compute again and again is let run more and more
    /// seldom: it costs a time slice each time. Who waits on this core is there at almost each
    /// yield; an interrupt, which takes as long, is not, and is forgotten after some yields.
    pub fn note(&mut self, others: YieldOutcome) {
        let computed = match others {
            YieldOutcome::None => {
                if self.others == YieldOutcome::Wait {
                    self.waits /= 2;
                    self.settle();
                }
                return;
            }
            YieldOutcome::Wait => 0,
            YieldOutcome::Compute => (self.computed + 1).min(MAX_DOUBLINGS),
        };
        (self.others, self.waits, self.computed) = (others, WAITS << computed, computed);
        self.settle();
    }

    #[inline(never)]
    fn settle(&mut self) {
        self.yield_after = self.polls_before_yield(self.spins, self.is_oversubscribed);
        self.return_credits_after = self.yield_after.clamp(1, RETURN_CREDITS_AFTER);
    }

    /// A poll has found something.
    #[inline]
    pub const fn end_wait(&mut self) {
        self.empty_polls = 0;
    }

    /// Counts an empty poll. Others are let run after at most `spins`, and sooner where processes
    /// outnumber CPUs, which may become so during a wait.
    #[inline]
    pub fn count_empty(&mut self, spins: u32, is_oversubscribed: bool) {
        if self.empty_polls == 0 || self.is_oversubscribed != is_oversubscribed {
            if self.empty_polls == 0 {
                self.begin_wait();
            }
            (self.spins, self.is_oversubscribed) = (spins, is_oversubscribed);
            self.settle();
        }
        self.empty_polls = self.empty_polls.saturating_add(1);
    }

    /// How many empty polls in a row there were.
    #[inline]
    pub const fn empty_polls(&self) -> u32 {
        self.empty_polls
    }

    /// Whether credits are to be returned now.
    #[inline]
    pub const fn is_time_to_return_credits(&self) -> bool {
        self.empty_polls == self.return_credits_after
    }

    /// So many empty polls to come in a row return no credits and let nobody run; none after fewer
    /// than [`IDLE_AFTER`].
    pub const fn idle_polls(&self) -> u32 {
        if self.empty_polls < IDLE_AFTER || self.yields_each_poll() {
            return 0;
        }
        let next = if self.empty_polls < self.return_credits_after {
            self.return_credits_after
        } else {
            (self.empty_polls / self.yield_after).saturating_add(1).saturating_mul(self.yield_after)
        };
        next.saturating_sub(self.empty_polls).saturating_sub(1)
    }

    /// So many of them were made without being counted.
    pub const fn count_idle(&mut self, polls: u32) {
        self.empty_polls = self.empty_polls.saturating_add(polls);
    }

    /// Whether others are let run after each further empty poll.
    #[inline]
    pub const fn yields_each_poll(&self) -> bool {
        self.yield_after <= OVERSUBSCRIBED_POLLS
    }

    /// Whether others are to be let run now.
    #[inline]
    pub const fn is_time_to_yield(&self) -> bool {
        is_time(self.empty_polls, self.yield_after)
    }

    /// Lets others run, and notes what they did.
    pub fn yield_core(&mut self) {
        self.note(yield_core());
    }

    /// Empty polls in a row before others are let run, of at most `spins`. Who computes is let
    /// run seldom: the core is not back before its time slice is over, whatever has come
    /// meanwhile.
    #[inline]
    pub fn polls_before_yield(&self, spins: u32, is_oversubscribed: bool) -> u32 {
        match self.others() {
            _ if is_oversubscribed => spins.min(OVERSUBSCRIBED_POLLS),
            YieldOutcome::None => spins.min(POLLS),
            YieldOutcome::Wait => spins.min(OVERSUBSCRIBED_POLLS),
            YieldOutcome::Compute => spins.min(COMPUTING_POLLS),
        }
    }
}

/// Whether it is time to let others run after so many empty polls in a row, where that is to
/// be after `polls`: then, and where others are known to wait, after each further one.
#[inline]
pub(crate) const fn is_time(empty_polls: u32, polls: u32) -> bool {
    empty_polls >= polls
        && empty_polls > 0
        && (polls <= OVERSUBSCRIBED_POLLS || empty_polls.is_multiple_of(polls))
}

#[cfg(test)]
#[path = "yielding_tests.rs"]
mod tests;
