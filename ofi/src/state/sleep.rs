//! Sleeping until a queue or a counter has something, without missing what comes
//! between the last look and the sleep, and whichever thread takes it in.
//!
//! Who waits arms the object's [`Watch`] and has the engines of its endpoints ask
//! their senders for a doorbell (`Engine::prepare_to_sleep`), both under the
//! domain's lock. From then on a completion rings the watch; and whoever moves the
//! messages of such an engine, or begins an operation, sees to it in
//! [`Endpoint::recheck_sleepers`] that the doorbell is asked for again, or that the
//! sleepers look.

use std::sync::Arc;
use std::time::Duration;

use lmt::YieldOutcome;

use super::endpoint::Endpoint;
use super::watch::{WaitSet, Watch};
use super::{Domain, SharedState, State};
use crate::abi::Errno;

/// How long who sleeps leaves answers and requests alone that wait for room, of
/// which nobody rings.
const RETRY_INTERVAL: Duration = Duration::from_millis(1);

/// What is waited for, by its number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WaitedFor {
    /// A completion queue.
    Queue(usize),
    /// A counter.
    Counter(usize),
}

/// What arming came to.
pub enum Armed {
    /// There may be something already.
    Look,
    /// It is safe to block for so long.
    Sleep(Arc<WaitSet>, Duration),
}

impl State {
    /// Whether who polls for this is to let others run before the next poll: nothing
    /// moves in any of its endpoints.
    #[inline]
    pub fn should_yield(&self, what: WaitedFor) -> bool {
        let endpoints = self.shared_state.endpoints(what);
        !endpoints.is_empty()
            && endpoints.iter().all(|number| self.endpoints.get(*number).is_none_or(Endpoint::should_yield))
    }

    /// Whether who polls for this lets others run by itself. Asked each time that
    /// [`State::should_yield`] says so.
    fn caller_yields(&mut self, what: WaitedFor) -> bool {
        let endpoints = self.shared_state.endpoints(what);
        let each_poll = |number: &usize| self.endpoints.get(*number).is_none_or(Endpoint::yields_each_poll);
        let each_poll = endpoints.iter().all(each_poll);
        self.caller.yields_itself(each_poll)
    }

    /// What others did when who polls for this let them run.
    fn note_yield(&mut self, what: WaitedFor, others: YieldOutcome) {
        let Self { endpoints, shared_state, .. } = self;
        for number in shared_state.endpoints(what) {
            if let Some(endpoint) = endpoints.get_mut(*number) {
                endpoint.note_yield(others);
            }
        }
    }
}

/// Lets others run, unless the caller does: without the lock, which they may want.
#[cold]
pub fn yield_core(domain: &Domain, what: WaitedFor) {
    let mut state = domain.lock();
    if state.caller_yields(what) {
        if !state.caller.is_looked_at() {
            // It runs those who wait, so they are seen no more here.
            state.note_yield(what, YieldOutcome::Wait);
        }
        return;
    }
    drop(state);
    let others = lmt::yield_core();
    domain.lock().note_yield(what, others);
}

/// The same, once, if who polls for one of these is to.
pub fn yield_if_idle(domain: &Domain, waited_for: impl IntoIterator<Item = WaitedFor>) {
    let idle = {
        let state = domain.lock();
        waited_for.into_iter().find(|what| state.should_yield(*what))
    };
    if let Some(what) = idle {
        yield_core(domain, what);
    }
}

impl SharedState {
    /// The watch of an object.
    pub fn watch(&mut self, what: WaitedFor) -> Option<&mut Watch> {
        match what {
            WaitedFor::Queue(number) => self.queues.get_mut(number).map(|queue| &mut queue.watch),
            WaitedFor::Counter(number) => self.counters.get_mut(number).map(|counter| &mut counter.watch),
        }
    }

    fn endpoints(&self, what: WaitedFor) -> &[usize] {
        match what {
            WaitedFor::Queue(number) => self.queues.get(number).map(|queue| &queue.endpoints[..]),
            WaitedFor::Counter(number) => self.counters.get(number).map(|counter| &counter.endpoints[..]),
        }
        .unwrap_or_default()
    }
}

impl State {
    /// What an object is waited for in; made if there is none yet.
    ///
    /// # Errors
    /// There is no such object, or no descriptor is left.
    pub fn wait_set(&mut self, what: WaitedFor) -> Result<Arc<WaitSet>, Errno> {
        if let Some(set) = self.shared_state.watch(what).ok_or(Errno::INVAL)?.set() {
            return Ok(Arc::clone(set));
        }
        let set = Arc::new(WaitSet::new()?);
        let Self { endpoints, shared_state, .. } = self;
        for number in shared_state.endpoints(what) {
            if let Some(endpoint) = endpoints.get_mut(*number) {
                set.add(endpoint.engine_mut().wait_descriptor())?;
            }
        }
        self.shared_state.watch(what).ok_or(Errno::INVAL)?.wait_in(Arc::clone(&set));
        Ok(set)
    }

    /// Gets ready to sleep, for a caller that has just found nothing.
    ///
    /// # Errors
    /// As [`State::wait_set`].
    pub fn arm(&mut self, what: WaitedFor, is_user: bool) -> Result<Armed, Errno> {
        let set = self.wait_set(what)?;
        if let Some(watch) = self.shared_state.watch(what) {
            watch.arm(is_user);
        }
        let mut limit = Duration::from_secs(3600);
        for number in self.shared_state.endpoints(what).to_vec() {
            let Some(endpoint) = self.endpoints.get_mut(number) else { continue };
            match endpoint.fall_asleep(&mut self.shared_state) {
                Some(its) => limit = limit.min(its),
                None => {
                    if let Some(watch) = self.shared_state.watch(what) {
                        if is_user {
                            watch.user_polls();
                        } else {
                            // Another thread may sleep, for which nobody rings now.
                            watch.wake();
                            watch.ring();
                        }
                    }
                    return Ok(Armed::Look);
                }
            }
        }
        if is_user && let Some(watch) = self.shared_state.watch(what) {
            watch.limit(limit);
        }
        Ok(Armed::Sleep(set, limit))
    }
}

impl Endpoint {
    /// Has it wake who waits for an object to which it is being bound, unless it is
    /// among its endpoints already.
    ///
    /// # Errors
    /// No memory is left.
    pub fn wakes(&self, watch: &Watch, endpoints: &[usize], number: usize) -> Result<(), Errno> {
        match watch.set() {
            Some(set) if !endpoints.contains(&number) => set.add(self.engine.wait_descriptor()),
            _ => Ok(()),
        }
    }

    /// Has senders ring, and says how long a sleep may last; nothing if there is
    /// something to do.
    fn fall_asleep(&mut self, shared_state: &mut SharedState) -> Option<Duration> {
        let is_quiescent = self.engine.prepare_to_sleep().unwrap_or(false);
        // Getting ready may end operations; their completions ring.
        self.drain(shared_state);
        let mut limit = self.engine.sleep_limit();
        if self.service.needs_polling() {
            limit = limit.min(RETRY_INTERVAL);
        }
        self.asleep = is_quiescent.then_some(limit);
        self.asleep
    }

    /// Somebody slept, or sleeps still, until this endpoint has something, and the
    /// caller is about to move its messages.
    #[cold]
    pub(super) fn wake_sleepers(&mut self) {
        self.engine.woken();
    }

    /// The same after it: who sleeps still may go on only if senders ring again and
    /// nothing is due earlier than was known.
    #[cold]
    pub(super) fn recheck_sleepers(&mut self, shared_state: &mut SharedState) {
        let Some(limit) = self.asleep.take() else { return };
        let watched: Vec<WaitedFor> = self.awaited().filter(|what| is_armed(shared_state, *what)).collect();
        if watched.is_empty() || self.fall_asleep(shared_state).is_some_and(|now| now >= limit) {
            return;
        }
        for what in watched {
            if let Some(watch) = shared_state.watch(what) {
                watch.ring();
            }
        }
    }

    /// Where its ends are told.
    fn awaited(&self) -> impl Iterator<Item = WaitedFor> {
        let queues = [self.send_queue, self.receive_queue].into_iter().flatten();
        let queues = queues.map(|binding| WaitedFor::Queue(binding.queue));
        queues.chain(self.counted.all().map(WaitedFor::Counter))
    }
}

fn is_armed(shared_state: &mut SharedState, what: WaitedFor) -> bool {
    shared_state.watch(what).is_some_and(|watch| watch.is_armed())
}
