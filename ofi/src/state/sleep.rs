//! Sleeping until a queue or a counter has something, without missing what comes
//! between the last look and the sleep, and whichever thread takes it in.
//!
//! Who waits arms the object's [`Watch`] and has the engines of its endpoints ask
//! their senders for a doorbell (`Engine::prepare_to_sleep`), both under the
//! domain's lock. From then on a completion rings the watch; and whoever moves the
//! messages of such an engine, or begins an operation, sees to it in
//! [`Endpoint::mind_sleepers`] that the doorbell is asked for again, or that the
//! sleepers look.

use std::sync::Arc;
use std::time::Duration;

use lmt::Others;

use super::endpoint::Endpoint;
use super::watch::{WaitSet, Watch};
use super::{Domain, State, Surroundings};
use crate::abi::Errno;

/// How long who sleeps leaves answers and requests alone that wait for room, of
/// which nobody rings.
const RESTLESS: Duration = Duration::from_millis(1);

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
        let endpoints = self.around.endpoints(what);
        !endpoints.is_empty()
            && endpoints.iter().all(|number| self.endpoints.get(*number).is_none_or(Endpoint::should_yield))
    }

    /// What others did when who polls for this let them run.
    fn note_others(&mut self, what: WaitedFor, others: Others) {
        let Self { endpoints, around, .. } = self;
        for number in around.endpoints(what) {
            if let Some(endpoint) = endpoints.get_mut(*number) {
                endpoint.note_others(others);
            }
        }
    }
}

/// Lets others run, without the lock, which they may want.
#[cold]
pub fn let_others_run(domain: &Domain, what: WaitedFor) {
    let others = lmt::let_others_run();
    if others != Others::None {
        domain.lock().note_others(what, others);
    }
}

/// The same, once, if who polls for one of these is to.
pub fn let_others_run_if_idle(domain: &Domain, waited_for: impl IntoIterator<Item = WaitedFor>) {
    let idle = {
        let state = domain.lock();
        waited_for.into_iter().find(|what| state.should_yield(*what))
    };
    if let Some(what) = idle {
        let_others_run(domain, what);
    }
}

impl Surroundings {
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
        if let Some(set) = self.around.watch(what).ok_or(Errno::INVAL)?.set() {
            return Ok(Arc::clone(set));
        }
        let set = Arc::new(WaitSet::new()?);
        let Self { endpoints, around, .. } = self;
        for number in around.endpoints(what) {
            if let Some(endpoint) = endpoints.get_mut(*number) {
                set.add(endpoint.engine_mut().wait_descriptor())?;
            }
        }
        self.around.watch(what).ok_or(Errno::INVAL)?.wait_in(Arc::clone(&set));
        Ok(set)
    }

    /// Gets ready to sleep, for a caller that has just found nothing.
    ///
    /// # Errors
    /// As [`State::wait_set`].
    pub fn arm(&mut self, what: WaitedFor, is_user: bool) -> Result<Armed, Errno> {
        let set = self.wait_set(what)?;
        if let Some(watch) = self.around.watch(what) {
            watch.arm(is_user);
        }
        let mut limit = Duration::from_secs(3600);
        for number in self.around.endpoints(what).to_vec() {
            let Some(endpoint) = self.endpoints.get_mut(number) else { continue };
            match endpoint.fall_asleep(&mut self.around) {
                Some(its) => limit = limit.min(its),
                None => {
                    if let Some(watch) = self.around.watch(what) {
                        if is_user {
                            watch.user_looks();
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
        if is_user && let Some(watch) = self.around.watch(what) {
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
    fn fall_asleep(&mut self, around: &mut Surroundings) -> Option<Duration> {
        let is_quiet = self.engine.prepare_to_sleep().unwrap_or(false);
        // Getting ready may end operations; their completions ring.
        self.drain(around);
        let mut limit = self.engine.sleep_limit();
        if self.service.is_restless() {
            limit = limit.min(RESTLESS);
        }
        self.asleep = is_quiet.then_some(limit);
        self.asleep
    }

    /// Somebody slept, or sleeps still, until this endpoint has something, and the
    /// caller is about to move its messages.
    #[cold]
    pub(super) fn rouse(&mut self) {
        self.engine.woken();
    }

    /// The same after it: who sleeps still may go on only if senders ring again and
    /// nothing is due earlier than was known.
    #[cold]
    pub(super) fn mind_sleepers(&mut self, around: &mut Surroundings) {
        let Some(limit) = self.asleep.take() else { return };
        let watched: Vec<WaitedFor> = self.awaited().filter(|what| is_armed(around, *what)).collect();
        if watched.is_empty() || self.fall_asleep(around).is_some_and(|now| now >= limit) {
            return;
        }
        for what in watched {
            if let Some(watch) = around.watch(what) {
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

fn is_armed(around: &mut Surroundings, what: WaitedFor) -> bool {
    around.watch(what).is_some_and(|watch| watch.is_armed())
}
