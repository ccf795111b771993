//! Whether who polls lets others run between its polls by itself, as Open MPI does where
//! processes outnumber cores. Were they let run here as well, each of its polls would cost
//! everybody two turns. So now and then they are not let run here, and it is looked at whether
//! the thread has lost its core all the same when it polls again. It is looked at again and again:
//! Open MPI's blocking sends poll in a loop that lets nobody run.

use nix::sys::resource::{UsageWho, getrusage};

/// So many times in a row others are not let run here once the caller was seen to do it; then it
/// is looked at whether its thread lost its core in these. A blocking send spins up to twice as
/// often before others run: the first times may be those of the wait before it.
const LEFT_ALONE: u32 = 256;

/// So often its thread loses its core in these, at the least, if it lets others run: not each of
/// its yields runs somebody.
const LOST: i64 = 4;

/// So often in a row it is to be seen: a core is lost for other reasons too, but seldom.
const SEEN: u32 = 2;

/// So many times others are let run here before it is looked at again.
const BETWEEN_LOOKS: u32 = 8;

/// What is known of the caller.
#[derive(Debug, Default)]
pub struct Caller {
    /// The thread that all this is of ([`this_thread`]); 0 before there is one.
    thread: usize,
    /// So many times to come it is left alone.
    left_alone: u32,
    /// How often the thread had lost its core when it began to be left alone.
    switches_before: i64,
    /// So many times to come others are let run here.
    until_look: u32,
    /// So often in a row it was seen to let others run.
    seen: u32,
    /// How often the thread had lost its core when it was left alone to be looked at, until it
    /// polls again.
    switches: Option<i64>,
}

impl Caller {
    /// Whether the caller is left to let others run by itself. Asked each time they are to be
    /// let run; where that is not after `each_poll`, two turns do little harm.
    pub fn yields_itself(&mut self, each_poll: bool) -> bool {
        let thread = this_thread();
        if self.thread != thread {
            *self = Self { thread, until_look: BETWEEN_LOOKS, ..Self::default() };
        }
        each_poll && self.is_left_alone(context_switches)
    }

    fn is_left_alone(&mut self, switches_now: impl Fn() -> Option<i64>) -> bool {
        // It only peeks, and has not polled since it was left alone to be looked at.
        self.look(&switches_now);
        if let Some(left) = self.left_alone.checked_sub(1) {
            self.left_alone = left;
            return left > 0 || self.is_left_alone_again(switches_now);
        }
        if let Some(left) = self.until_look.checked_sub(1) {
            self.until_look = left;
            return false;
        }
        self.switches = switches_now();
        self.switches.is_some()
    }

    /// It was left alone [`LEFT_ALONE`] times: whether its thread lost its core meanwhile.
    #[cold]
    fn is_left_alone_again(&mut self, switches_now: impl FnOnce() -> Option<i64>) -> bool {
        let Some(now) = switches_now() else { return false };
        let has_let_run = now - self.switches_before >= LOST;
        if has_let_run {
            (self.left_alone, self.switches_before) = (LEFT_ALONE, now);
        }
        has_let_run
    }

    /// The caller polls.
    #[inline]
    pub fn polls(&mut self) {
        if self.switches.is_some() {
            self.look_at_this_thread();
        }
    }

    /// Apart, or each poll would ask for the thread's address before it is known whether it is
    /// of use.
    #[cold]
    #[inline(never)]
    fn look_at_this_thread(&mut self) {
        // What another thread has lost says nothing of this one.
        if self.thread == this_thread() {
            self.look(context_switches);
        }
    }

    /// Whether it is left alone only to be looked at.
    pub const fn is_looked_at(&self) -> bool {
        self.switches.is_some()
    }

    fn look(&mut self, switches_now: impl FnOnce() -> Option<i64>) {
        let Some(before) = self.switches.take() else { return };
        let now = switches_now().unwrap_or(before);
        if now == before {
            (self.seen, self.until_look) = (0, BETWEEN_LOOKS);
            return;
        }
        self.seen += 1;
        if self.seen >= SEEN {
            (self.seen, self.left_alone, self.switches_before) = (0, LEFT_ALONE, now);
        }
    }
}

/// A number that no other thread has as long as this one lives: where it has something of its own.
/// Asked each time that others are to be let run, for which `std::thread::current` is too slow.
pub(super) fn this_thread() -> usize {
    thread_local! {
        static OWN: u8 = const { 0 };
    }
    OWN.with(|own| std::ptr::from_ref(own).addr())
}

/// How often this thread has lost its core, to whatever (getrusage(2), `RUSAGE_THREAD`).
fn context_switches() -> Option<i64> {
    let usage = getrusage(UsageWho::RUSAGE_THREAD).ok()?;
    Some(usage.voluntary_context_switches() + usage.involuntary_context_switches())
}

#[cfg(test)]
#[path = "caller_tests.rs"]
mod tests;
