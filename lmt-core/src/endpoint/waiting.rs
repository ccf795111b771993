//! Waiting: spin, yield, then sleep in the one epoll.

use std::borrow::Borrow;
use std::time::{Duration, Instant};

use super::Engine;
use crate::base::yielding;
use crate::base::yielding::{OVERSUBSCRIBED_POLLS, YieldOutcome};
use crate::requests::ids::RequestId;
use crate::requests::outcome::{OperationError, Outcome};

impl Engine {
    /// Whether a caller that polls in a loop of its own is to call [`super::yield_core`] before
    /// its next poll, best without a lock: its last ones found nothing, and whoever it waits
    /// for may have no core. What that returns goes to [`Engine::note_yield`].
    #[inline]
    pub fn should_yield(&self) -> bool {
        self.sharing.is_time_to_yield()
    }

    /// Whether [`Engine::should_yield`] says so after each further empty poll.
    pub fn yields_each_poll(&self) -> bool {
        self.sharing.yields_each_poll()
    }

    /// Lets others run if it is time for that.
    #[inline]
    pub fn yield_if_idle(&mut self) {
        if self.should_yield() {
            self.sharing.yield_core();
        }
    }

    /// What was looked for; where it is not there, others are let run if it is time for that.
    #[inline]
    pub fn or_yield<T>(&mut self, found: Option<T>) -> Option<T> {
        if found.is_none() {
            self.yield_if_idle();
        }
        found
    }

    /// Notes what others did with the core while this endpoint waited.
    #[cold]
    pub fn note_yield(&mut self, others: YieldOutcome) {
        self.sharing.note(others);
    }

    /// Empty polls in a row before others are let run.
    #[inline]
    pub(super) fn polls_before_yield(&self) -> u32 {
        let is_oversubscribed = self.traffic.transfers.is_oversubscribed();
        self.sharing.polls_before_yield(self.traffic.config.spins, is_oversubscribed)
    }
}

/// How far a wait has gone.
#[derive(Default)]
struct WaitBackoff {
    looks: u32,
}

/// So many looks for the rest of a message follow each other: some microseconds' worth.
const POLLS_A_BATCH: u32 = 256;

/// So often the processes of one core may yield in vain, all together, before each of
/// them sleeps. One that has what it waits for before then needs no wake-up, which
/// costs it some 20 us, and its peer a system call: all-to-all of 64 KiB among 4 and 8
/// ranks on 2 cores takes 0.89 and 0.99 of the time that it takes with 4 yields each, of
/// 16 KiB 0.95. Among 32 that yielded 100 times each it took 1.07.
const OVERSUBSCRIBED_YIELDS: u32 = 200;

/// Fewer tell nothing: the others may just have had their turn.
const MIN_YIELDS: u32 = 4;

/// How often a wait yields where so many processes have so many CPUs.
pub(super) fn oversubscribed_yields(processes: u32, cpus: u32) -> u32 {
    let of_a_core = processes.div_ceil(cpus.max(1)).max(1);
    (OVERSUBSCRIBED_YIELDS / of_a_core).max(MIN_YIELDS)
}

/// How often the endpoint has gone to sleep since something moved last. Who waits
/// for room in a peer's inbox waits as long as the peer computes: looking again
/// after the same short time each time would burn some percent of a core.
#[derive(Debug, Default)]
pub(super) struct SleepCount {
    /// The empty polls in a row at the last of them. It grows from one to the next, unless
    /// something has moved.
    idle: u32,
    number: u32,
}

impl SleepCount {
    /// So often a nap is as long as the one before; thus each is shorter than the
    /// time that has passed in vain.
    const SLEEPS_BEFORE_LONGER: u32 = 4;
    const LONGEST: Duration = Duration::from_millis(2);

    fn count(&mut self, idle: u32) {
        self.number = if idle > self.idle { self.number.saturating_add(1) } else { 0 };
        self.idle = idle;
    }

    /// How long to sleep, if the first naps are of `shortest`.
    fn longer(&self, shortest: Duration) -> Duration {
        let doublings = (self.number / Self::SLEEPS_BEFORE_LONGER).min(8);
        (shortest * (1 << doublings)).min(Self::LONGEST)
    }
}

impl Engine {
    /// Waits for an operation and takes its result. Without a deadline it
    /// waits as long as the peer lives.
    ///
    /// # Errors
    /// What the operation ended with.
    #[inline(always)] // The result of a short message is copied once.
    pub fn wait(&mut self, request: RequestId) -> Outcome {
        self.wait_until(request, None).unwrap_or(Err(OperationError::UnknownRequest))
    }

    /// Waits until `deadline`; `None` when it has passed first.
    #[inline(always)] // As `wait`.
    pub fn wait_until(&mut self, request: RequestId, deadline: Option<Instant>) -> Option<Outcome> {
        match self.wait_for_end(request, deadline) {
            Ok(()) => self.traffic.requests.take_result(request),
            Err(error) => Some(Err(error)),
        }
    }

    /// Waits until an operation has ended, or the deadline has passed.
    fn wait_for_end(&mut self, request: RequestId, deadline: Option<Instant>) -> Result<(), OperationError> {
        let mut backoff = WaitBackoff::default();
        while !self.traffic.requests.is_done(request) {
            // One cell at a time, so that the result of a short message is
            // taken before anything else is done.
            let moved = self.turn()?;
            if !self.traffic.requests.is_done(request) && !self.back_off(&mut backoff, moved, deadline)? {
                return Ok(());
            }
        }
        // Also a receive that found its message may have copied it at once.
        self.write_pending_answers();
        Ok(())
    }

    /// Writes the answers that peers wait for and whose inboxes were full: the
    /// caller may make no progress for long, or wait for them by other means.
    #[inline]
    pub(super) fn write_pending_answers(&mut self) {
        if self.traffic.has_pending_answer() {
            self.answer();
        }
    }

    #[cold]
    fn answer(&mut self) {
        let deadline = Instant::now() + Duration::from_millis(self.traffic.config.close_timeout_ms);
        let mut backoff = WaitBackoff::default();
        while self.traffic.has_pending_answer() {
            let Ok(moved) = self.turn() else { return };
            match self.back_off(&mut backoff, moved, Some(deadline)) {
                Ok(true) if Instant::now() < deadline => {}
                _ => return,
            }
        }
    }

    /// Waits until one of `requests` is finished; gives its place in the list,
    /// and leaves its result to be taken. `None` when the list is empty or the
    /// deadline has passed.
    ///
    /// # Errors
    /// This is a forked child.
    pub fn wait_any(
        &mut self,
        requests: impl IntoIterator<Item: Borrow<RequestId>, IntoIter: Clone>,
        deadline: Option<Instant>,
    ) -> Result<Option<usize>, OperationError> {
        let requests = requests.into_iter();
        let mut backoff = WaitBackoff::default();
        while requests.clone().next().is_some() {
            if let Some(at) = requests.clone().position(|r| self.traffic.requests.is_done(*r.borrow())) {
                self.write_pending_answers();
                return Ok(Some(at));
            }
            let moved = self.turn()?;
            let done = requests.clone().any(|r| self.traffic.requests.is_done(*r.borrow()));
            if !done && !self.back_off(&mut backoff, moved, deadline)? {
                return Ok(None);
            }
        }
        Ok(None)
    }

    /// Waits until something has moved or the deadline has passed. Returns
    /// whether something has.
    ///
    /// # Errors
    /// This is a forked child.
    pub fn wait_for_progress(&mut self, deadline: Option<Instant>) -> Result<bool, OperationError> {
        let mut backoff = WaitBackoff::default();
        // What an ended peer had sent is taken while the sockets are looked at, and that a message
        // has ended may be found on the way to sleep.
        let before = (self.traffic.events, self.traffic.ended);
        loop {
            let moved = self.turn()?;
            if moved || (self.traffic.events, self.traffic.ended) != before {
                return Ok(true);
            }
            if !self.back_off(&mut backoff, moved, deadline)? {
                return Ok(false);
            }
        }
    }

    /// One turn of a wait: like `progress`, but at most one message.
    #[inline]
    fn turn(&mut self) -> Result<bool, OperationError> {
        self.check_fork()?;
        self.traffic.in_pieces = false;
        let mut moved = self.poll_inbox();
        if self.traffic.in_pieces {
            self.poll_pieces();
        }
        moved |= self.advance();
        self.after(moved, Self::CLOCK_EVERY);
        Ok(moved)
    }

    /// Takes the rest of a message of several cells while its sender writes it.
    fn poll_pieces(&mut self) {
        for _ in 0..POLLS_A_BATCH {
            if !self.traffic.in_pieces {
                return;
            }
            if !self.poll_inbox() {
                std::hint::spin_loop();
            }
        }
    }

    /// Spins, yields or sleeps, by how long nothing has happened. Returns
    /// false when the deadline has passed.
    #[inline]
    fn back_off(
        &mut self,
        backoff: &mut WaitBackoff,
        moved: bool,
        deadline: Option<Instant>,
    ) -> Result<bool, OperationError> {
        if moved {
            *backoff = WaitBackoff::default();
            return Ok(true);
        }
        backoff.looks = backoff.looks.saturating_add(1);
        let (spins, yields) = self.spins_and_yields();
        if backoff.looks <= spins {
            if yielding::is_time(backoff.looks, self.polls_before_yield()) {
                self.sharing.yield_core();
            }
            std::hint::spin_loop();
            return Ok(true);
        }
        if deadline.is_some_and(|d| Instant::now() >= d) {
            return Ok(false);
        }
        if backoff.looks <= spins + yields {
            self.sharing.yield_core();
        } else {
            self.sleep_until_event(deadline)?;
        }
        Ok(true)
    }

    /// Where processes outnumber cores, spinning keeps the peer from running,
    /// or uses up the time slice that is wanted when the message is there.
    #[inline]
    pub(super) fn spins_and_yields(&self) -> (u32, u32) {
        let config = &self.traffic.config;
        match self.sharing.others() {
            YieldOutcome::None if !self.traffic.transfers.is_oversubscribed() => {
                (config.spins, config.yields)
            }
            // Each yield is a time slice of theirs.
            YieldOutcome::Compute if !self.traffic.transfers.is_oversubscribed() => {
                (config.spins, config.yields.min(MIN_YIELDS))
            }
            _ => (
                config.spins.min(OVERSUBSCRIBED_POLLS),
                config.yields.min(self.traffic.oversubscribed_yields),
            ),
        }
    }

    /// Gets ready to sleep in [`Engine::wait_descriptor`]: from now on senders
    /// ring. Returns false when there is something to do at once.
    ///
    /// # Errors
    /// This is a forked child.
    pub fn prepare_to_sleep(&mut self) -> Result<bool, OperationError> {
        self.check_fork()?;
        if self.has_discards() {
            // Their senders wait for an answer.
            self.discard();
            return Ok(false);
        }
        self.traffic.return_all_credits();
        if self.traffic.transfers.is_active() {
            // Who sleeps is woken by packets only.
            let has_ended = self.traffic.transfers.rest();
            self.traffic.settle();
            if has_ended {
                // Nobody rings for that.
                return Ok(false);
            }
        }
        self.naps.count(self.sharing.empty_polls());
        if self.inbox.prepare_sleep() {
            return Ok(true);
        }
        Ok(false)
    }

    /// How long a sleep may last at most: work that nobody will ring for.
    pub fn sleep_limit(&self) -> Duration {
        let traffic = &self.traffic;
        // The other half of a pipeline, and room in a peer's inbox, come without
        // a doorbell.
        let look_again = Duration::from_micros(if traffic.transfers.is_oversubscribed() { 200 } else { 500 });
        let limit = if traffic.transfers.is_active() || traffic.regions_need_polling() {
            look_again
        } else if traffic.is_writing() {
            self.naps.longer(look_again)
        } else {
            Duration::from_secs(1)
        };
        match self.connector.next_deadline() {
            Some(at) => limit.min(at.saturating_duration_since(Instant::now())),
            None => limit,
        }
    }

    /// Rings this endpoint's own doorbell if there is work in flight: for a
    /// thread that leaves while another sleeps in the wait descriptor.
    pub fn hand_over(&mut self) {
        if self.check_fork().is_err() {
            return;
        }
        let work = self.traffic.is_writing()
            || self.traffic.transfers.is_active()
            || self.calls_until_sockets == 0
            || !self.inbox.prepare_sleep();
        if work {
            self.ring_self();
        }
    }

    /// Wakes whoever sleeps in the wait descriptor of this endpoint.
    pub fn ring_self(&self) {
        self.traffic.doorbell.ring();
    }

    /// Sleeps until something happens or there is a reason to look.
    pub(super) fn sleep_until_event(&mut self, deadline: Option<Instant>) -> Result<(), OperationError> {
        if self.prepare_to_sleep()? {
            let mut limit = self.sleep_limit();
            if let Some(deadline) = deadline {
                limit = limit.min(deadline.saturating_duration_since(Instant::now()));
            }
            self.connector.wait(Some(limit));
        }
        self.woken();
        Ok(())
    }

    /// After a sleep in [`Engine::wait_descriptor`]: senders need not ring any
    /// more, and what the sockets have is looked at.
    pub fn woken(&mut self) {
        if self.check_fork().is_ok() {
            self.inbox.cancel_sleep();
            self.poll_sockets();
        }
    }
}

#[cfg(test)]
#[path = "waiting_tests.rs"]
mod tests;
