//! What a domain holds, without any C: endpoints, queues, counters and address
//! vectors, by number. One lock guards all of it ([`Domain`]); for `FI_THREAD_DOMAIN`
//! it is none.

pub mod arrivals;
mod caller;
pub mod completion;
pub mod counter;
pub mod endpoint;
pub mod events;
pub mod exposed;
mod finish;
mod home;
mod idle;
mod in_order;
pub mod lock;
mod many;
mod multi_buffer;
mod multi_order;
pub mod ops;
pub mod owner;
mod peeks;
pub mod peers;
pub mod probing;
pub mod queue;
mod reach;
pub mod region;
pub mod remote;
pub mod service;
pub mod sleep;
pub mod spaces;
pub mod table;
mod unanswered;
pub mod vector;
pub mod watch;

pub use completion::CompletionTarget;

use caller::Caller;
use counter::Counter;
use endpoint::Endpoint;
use exposed::Exposed;
use home::DomainEngine;
use idle::Idle;
use lock::{Guard, Lock};
use peeks::Peeks;
use queue::Queue;
use region::Region;
use sleep::WaitedFor;
use table::Table;
use vector::AddressVector;

use crate::touch::FaultSafeCopy;

/// A domain's objects behind their lock.
#[derive(Debug)]
pub struct Domain(Lock<State>);

impl Domain {
    /// Objects behind this lock.
    pub const fn new(lock: Lock<State>) -> Self {
        Self(lock)
    }

    /// The objects, once nobody else has them; idle polls end with it.
    #[inline]
    pub fn lock(&self) -> Guard<'_, State> {
        let mut state = self.0.lock();
        state.end_idle();
        state
    }

    /// Whether a poll of this queue is an idle one, which is done with. None is where threads share
    /// the domain.
    #[inline(always)] // Empty polls are most of a wait.
    pub fn polls_idly(&self, queue: usize) -> bool {
        self.is_of_one_thread() && self.0.lock().polls_idly(queue)
    }

    /// Whether its user calls from one thread at a time.
    #[inline]
    pub const fn is_of_one_thread(&self) -> bool {
        self.0.is_free()
    }
}

/// The objects. Their numbers are given out by [`Table`].
#[derive(Debug, Default)]
pub struct State {
    /// Endpoints.
    pub endpoints: Table<Endpoint>,
    /// What an endpoint reaches beside itself.
    pub shared_state: SharedState,
    /// Registered memory.
    pub regions: Table<Region>,
    /// How many receive contexts of owners are open.
    pub receive_contexts: usize,
    /// How often owners were asked about what has arrived.
    pub round: u64,
    /// Vectors with new addresses, of which owners were not told yet.
    with_new_sources: Vec<usize>,
    /// How many poll sets are open.
    pub poll_sets: usize,
    home: DomainEngine,
    /// Which polls may be idle.
    idle: Idle,
    /// Who polls.
    caller: Caller,
    /// Yields that peeks have left to the next poll.
    peeks: Peeks,
}

/// What endpoints share.
#[derive(Debug, Default)]
pub struct SharedState {
    /// Completion queues.
    pub queues: Table<Queue>,
    /// Counters.
    pub counters: Table<Counter>,
    /// Address vectors.
    pub vectors: Table<AddressVector>,
    /// Registered memory that peers may use.
    pub exposed: Exposed,
    /// How it is touched.
    pub touch: FaultSafeCopy,
}

impl State {
    /// Whether nothing is left in it.
    pub fn is_empty(&self) -> bool {
        let SharedState { queues, counters, vectors, .. } = &self.shared_state;
        self.poll_sets == 0
            && self.endpoints.is_empty()
            && self.regions.is_empty()
            && self.receive_contexts == 0
            && queues.is_empty()
            && counters.is_empty()
            && vectors.is_empty()
    }

    /// Moves the messages of one endpoint and queues what has ended. Returns whether the caller
    /// is to let others run.
    #[inline(always)] // Empty polls are most of a wait.
    pub fn progress(&mut self, endpoint: usize) -> bool {
        self.caller.polls();
        match self.endpoints.get_mut(endpoint) {
            Some(endpoint) => {
                endpoint.progress(&mut self.shared_state);
                endpoint.should_yield()
            }
            None => true,
        }
    }

    /// The same for all endpoints that a queue serves.
    #[inline(always)] // As `progress`.
    pub fn progress_queue(&mut self, queue: usize) -> bool {
        match self.shared_state.queues.get(queue).map(|queue| &queue.endpoints[..]) {
            None | Some([]) => false,
            Some(&[endpoint]) => self.progress(endpoint),
            Some(_) => self.progress_several(queue),
        }
    }

    #[inline(never)]
    fn progress_several(&mut self, queue: usize) -> bool {
        let (mut at, mut should_yield) = (0, true);
        while let Some(&endpoint) =
            self.shared_state.queues.get(queue).and_then(|queue| queue.endpoints.get(at))
        {
            should_yield &= self.progress(endpoint);
            at += 1;
        }
        should_yield
    }

    /// The same for all endpoints that a counter counts.
    pub fn progress_counter(&mut self, counter: usize) -> bool {
        let (mut at, mut should_yield) = (0, true);
        while let Some(&endpoint) =
            self.shared_state.counters.get(counter).and_then(|counter| counter.endpoints.get(at))
        {
            should_yield &= self.progress(endpoint);
            at += 1;
        }
        should_yield && at > 0
    }

    /// A peek in this queue has ended: whether its caller is to let others run now.
    #[inline]
    pub fn yields_after_peek(&mut self, queue: usize, found: bool) -> bool {
        let is_owed = self.peeks.take_owed_yield();
        !found && (is_owed || self.should_yield(WaitedFor::Queue(queue)) && self.peeks.yields_now())
    }

    /// Whether who polls is to let others run for an earlier peek.
    #[inline]
    pub fn take_owed_yield(&mut self) -> bool {
        self.peeks.take_owed_yield()
    }

    /// Takes an endpoint away, and its number out of what it was bound to.
    pub fn remove_endpoint(&mut self, number: usize) -> Option<Endpoint> {
        let endpoint = self.endpoints.remove(number)?;
        self.release_domain_engine(number);
        let SharedState { queues, counters, vectors, .. } = &mut self.shared_state;
        queues.iter_mut().for_each(|queue| queue.endpoints.retain(|one| *one != number));
        counters.iter_mut().for_each(|counter| counter.endpoints.retain(|one| *one != number));
        vectors.iter_mut().for_each(|vector| vector.endpoints.retain(|one| *one != number));
        Some(endpoint)
    }
}
