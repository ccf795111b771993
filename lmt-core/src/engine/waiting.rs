//! Waiting: spin, yield, then sleep in the one epoll.

use std::borrow::Borrow;
use std::time::{Duration, Instant};

use super::Engine;
use super::polling::{self, CROWDED_POLLS, Others};
use super::requests::{OperationError, Outcome, RequestId};

/// How far a wait has gone.
#[derive(Default)]
struct Patience {
    looks: u32,
}

/// So many looks for the rest of a message follow each other: some microseconds' worth.
const LOOKS_A_BATCH: u32 = 256;

/// So often the processes of one core may yield in vain, all together, before each of
/// them sleeps. One that has what it waits for before then needs no wake-up, which
/// costs it some 20 us, and its peer a system call: all-to-all of 64 KiB among 4 and 8
/// ranks on 2 cores takes 0.89 and 0.99 of the time that it takes with 4 yields each, of
/// 16 KiB 0.95. Among 32 that yielded 100 times each it took 1.07.
const CROWDED_YIELDS: u32 = 200;
/// Fewer tell nothing: the others may just have had their turn.
const LEAST_YIELDS: u32 = 4;

/// How often a wait yields where so many processes have so many CPUs.
pub(super) fn crowded_yields(processes: u32, cpus: u32) -> u32 {
    let of_a_core = processes.div_ceil(cpus.max(1)).max(1);
    (CROWDED_YIELDS / of_a_core).max(LEAST_YIELDS)
}

/// How often the endpoint has gone to sleep since something moved last. Who waits
/// for room in a peer's inbox waits as long as the peer computes: looking again
/// after the same short time each time would burn some percent of a core.
#[derive(Debug, Default)]
pub(super) struct Naps {
    /// [`Engine::idle`] at the last of them. It grows from one to the next, unless
    /// something has moved.
    idle: u32,
    number: u32,
}

impl Naps {
    /// So often a nap is as long as the one before; thus each is shorter than the
    /// time that has passed in vain.
    const ALIKE: u32 = 4;
    const LONGEST: Duration = Duration::from_millis(2);

    fn count(&mut self, idle: u32) {
        self.number = if idle > self.idle { self.number.saturating_add(1) } else { 0 };
        self.idle = idle;
    }

    /// How long to sleep, if the first naps are of `shortest`.
    fn longer(&self, shortest: Duration) -> Duration {
        let doublings = (self.number / Self::ALIKE).min(8);
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
        let mut patience = Patience::default();
        while !self.traffic.requests.is_done(request) {
            // One cell at a time, so that the result of a short message is
            // taken before anything else is done.
            let moved = self.turn()?;
            if !self.traffic.requests.is_done(request) && !self.be_patient(&mut patience, moved, deadline)? {
                return Ok(());
            }
        }
        // Also a receive that found its message may have copied it at once.
        self.answer_if_owed();
        Ok(())
    }

    /// Writes the answers that peers wait for and whose inboxes were full: the
    /// caller may make no progress for long, or wait for them by other means.
    #[inline]
    pub(super) fn answer_if_owed(&mut self) {
        if self.traffic.owes_an_answer() {
            self.answer();
        }
    }

    #[cold]
    fn answer(&mut self) {
        let deadline = Instant::now() + Duration::from_millis(self.traffic.config.close_timeout_ms);
        let mut patience = Patience::default();
        while self.traffic.owes_an_answer() {
            let Ok(moved) = self.turn() else { return };
            match self.be_patient(&mut patience, moved, Some(deadline)) {
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
        let mut patience = Patience::default();
        while requests.clone().next().is_some() {
            if let Some(at) = requests.clone().position(|r| self.traffic.requests.is_done(*r.borrow())) {
                self.answer_if_owed();
                return Ok(Some(at));
            }
            let moved = self.turn()?;
            let done = requests.clone().any(|r| self.traffic.requests.is_done(*r.borrow()));
            if !done && !self.be_patient(&mut patience, moved, deadline)? {
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
        let mut patience = Patience::default();
        // What an ended peer had sent is taken while the sockets are looked at, and that a message
        // has ended may be found on the way to sleep.
        let before = (self.traffic.events, self.traffic.ended);
        loop {
            let moved = self.turn()?;
            if moved || (self.traffic.events, self.traffic.ended) != before {
                return Ok(true);
            }
            if !self.be_patient(&mut patience, moved, deadline)? {
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
        for _ in 0..LOOKS_A_BATCH {
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
    fn be_patient(
        &mut self,
        patience: &mut Patience,
        moved: bool,
        deadline: Option<Instant>,
    ) -> Result<bool, OperationError> {
        if moved {
            *patience = Patience::default();
            return Ok(true);
        }
        patience.looks = patience.looks.saturating_add(1);
        let (spins, yields) = self.spins_and_yields();
        if patience.looks <= spins {
            if polling::is_time(patience.looks, self.polls_before_yield()) {
                self.sharing.let_others_run();
            }
            std::hint::spin_loop();
            return Ok(true);
        }
        if deadline.is_some_and(|d| Instant::now() >= d) {
            return Ok(false);
        }
        if patience.looks <= spins + yields {
            self.sharing.let_others_run();
        } else {
            self.doze(deadline)?;
        }
        Ok(true)
    }

    /// Where processes outnumber cores, spinning keeps the peer from running,
    /// or uses up the time slice that is wanted when the message is there.
    #[inline]
    pub(super) fn spins_and_yields(&self) -> (u32, u32) {
        let config = &self.traffic.config;
        match self.sharing.others() {
            Others::None if !self.traffic.transfers.is_crowded() => (config.spins, config.yields),
            // Each yield is a time slice of theirs.
            Others::Compute if !self.traffic.transfers.is_crowded() => {
                (config.spins, config.yields.min(LEAST_YIELDS))
            }
            _ => (config.spins.min(CROWDED_POLLS), config.yields.min(self.traffic.crowded_yields)),
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
        self.traffic.pay_all();
        if self.traffic.transfers.is_active() {
            // Who sleeps is woken by packets only.
            let has_ended = self.traffic.transfers.rest();
            self.traffic.settle();
            if has_ended {
                // Nobody rings for that.
                return Ok(false);
            }
        }
        self.naps.count(self.idle);
        if self.inbox.prepare_sleep() {
            return Ok(true);
        }
        Ok(false)
    }

    /// How long a sleep may last at most: work that nobody will ring for.
    pub fn sleep_limit(&self) -> Duration {
        let traffic = &self.traffic;
        // The other half of a pipeline, and room in a peer's inbox, come without
        // a bell.
        let look_again = Duration::from_micros(if traffic.transfers.is_crowded() { 200 } else { 500 });
        let limit = if traffic.transfers.is_active() || traffic.regions_restless() {
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

    /// Rings this endpoint's own doorbell if there is work under way: for a
    /// thread that leaves while another sleeps in the wait descriptor.
    pub fn hand_over(&mut self) {
        if self.check_fork().is_err() {
            return;
        }
        let work = self.traffic.is_writing()
            || self.traffic.transfers.is_active()
            || self.until_sockets == 0
            || !self.inbox.prepare_sleep();
        if work {
            self.ring_self();
        }
    }

    /// Wakes whoever sleeps in the wait descriptor of this endpoint.
    pub fn ring_self(&self) {
        super::doorbell::ring(&self.traffic.doorbell);
    }

    /// Sleeps until something happens or there is a reason to look.
    pub(super) fn doze(&mut self, deadline: Option<Instant>) -> Result<(), OperationError> {
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
            self.look_at_sockets();
        }
    }
}

#[cfg(test)]
#[path = "waiting_tests.rs"]
mod tests;
