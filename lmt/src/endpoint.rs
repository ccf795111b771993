//! [`Endpoint`]: the safe interface, for one thread at a time. Its methods that move messages
//! stand in `messages`, those for scopes and regions in `scope` and `region`.

use std::cell::{Cell, RefCell};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lmt_core::config::Config;
use lmt_core::endpoint::{
    EagerCounters, Engine, Message, OperationError, PeerId, PolledReceive, RequestId, Source, Status,
    TagMatch,
};
use lmt_core::identity::{Address, EndpointId};
use lmt_core::mechanism::{Counters, MechanismStatus};
use lmt_core::selection::{self, Explanation};
use lmt_selector::configuration::Configuration;

use crate::access::sealed::Sealed;
use crate::access::{Access, Token};
use crate::open::OperationLists;

/// One end of communication: what a process (or a thread) sends and receives
/// with. It can be moved to another thread, and is used by one at a time; for
/// several at once see [`crate::SharedEndpoint`].
///
/// ```compile_fail,E0277
/// fn by_several_threads<T: Sync>(_: &T) {}
/// by_several_threads(&lmt::Endpoint::new().unwrap()); // not Sync
/// ```
///
/// ```
/// use lmt::{Endpoint, Source, TagMatch};
///
/// let endpoint = Endpoint::new()?;
/// let myself = endpoint.insert_peer(&endpoint.address())?;
/// endpoint.send(myself, 7, b"hello")?;
/// let mut text = [0; 5];
/// let status = endpoint.receive(Source::Any, TagMatch::exactly(7), &mut text)?;
/// assert_eq!((status.bytes, &text), (5, b"hello"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Endpoint {
    engine: RefCell<Engine>,
    /// Whether senders were asked to ring and not yet told that they need not.
    sleeping: Cell<bool>,
    spares: OperationLists,
    /// What it was made of, unless the embedder has made its engine.
    configuration: Option<Arc<Configuration>>,
}

impl Endpoint {
    /// The safe interface over an engine that the embedder has set up, for
    /// instance with mechanisms of its own.
    pub fn from_engine(engine: Engine) -> Self {
        Self {
            engine: RefCell::new(engine),
            sleeping: Cell::new(false),
            spares: OperationLists::default(),
            configuration: None,
        }
    }

    pub(crate) fn configured(engine: Engine, configuration: Arc<Configuration>) -> Self {
        Self { configuration: Some(configuration), ..Self::from_engine(engine) }
    }

    /// The engine, for embedders that own their buffers.
    pub fn into_engine(self) -> Engine {
        self.engine.into_inner()
    }

    /// Calls `f` with the engine, for embedders that make their own
    /// [`crate::buffer::Buffer`]s. The endpoint itself must not be used in `f`
    /// (that panics).
    ///
    /// # Safety
    /// While a scope is open or a region lives that borrows from this endpoint,
    /// `f` must leave the engine where it is: no other one may be put in its
    /// place ([`std::mem::swap`] and the like). A scope waits for its operations
    /// in the engine that it finds here, and ends the loan of their buffers after;
    /// a region is taken back there.
    #[allow(unsafe_code)] // Declares the contract; nothing unsafe is done here.
    pub unsafe fn with_engine<R>(&self, f: impl FnOnce(&mut Engine) -> R) -> R {
        f(&mut self.engine.borrow_mut())
    }

    /// Where this endpoint is reached.
    pub fn address(&self) -> Address {
        self.engine.borrow().address().clone()
    }

    /// Who this endpoint is.
    pub fn id(&self) -> EndpointId {
        self.engine.borrow().id()
    }

    /// Its configuration.
    pub fn config(&self) -> Config {
        self.engine.borrow().config().clone()
    }

    /// All that it was configured by when it was made: files, environment and calls,
    /// each part with where it comes from. Nothing for an engine of the embedder's
    /// ([`Endpoint::from_engine`]).
    pub fn configuration(&self) -> Option<&Configuration> {
        self.configuration.as_deref()
    }

    /// Names a peer by its address; does no I/O. The connection is made with
    /// the first operation that names the peer. A peer that had died is tried
    /// again once it is named again.
    ///
    /// # Errors
    /// As many peers are known as the configuration allows, or this is a
    /// forked child.
    pub fn insert_peer(&self, address: &Address) -> Result<PeerId, OperationError> {
        self.engine.borrow_mut().insert_peer(address)
    }

    /// Makes now what is made once for all peers: some hundred microseconds' worth of system
    /// calls and a few descriptors, for which the first connection waits otherwise. For
    /// programs that are sure to connect, while they start.
    ///
    /// ```
    /// let endpoint = lmt::Endpoint::new()?;
    /// endpoint.expect_peers();
    /// # Ok::<(), lmt::CreateError>(())
    /// ```
    pub fn expect_peers(&self) {
        self.engine.borrow_mut().expect_peers();
    }

    /// Forgets a peer, dead or alive: operations that name it end with an
    /// error, a connection with a goodbye, and `peer` names nobody any more.
    /// Peers count towards `max_peers` until they are removed, so who meets
    /// ever new ones removes those that have gone. See [`Engine::remove_peer`].
    ///
    /// ```
    /// let (endpoint, other) = (lmt::Endpoint::new()?, lmt::Endpoint::new()?);
    /// let peer = endpoint.insert_peer(&other.address())?;
    /// endpoint.remove_peer(peer)?;
    /// assert_eq!(endpoint.send(peer, 1, b""), Err(lmt::OperationError::UnknownPeer));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The peer was removed before, or this is a forked child.
    pub fn remove_peer(&self, peer: PeerId) -> Result<(), OperationError> {
        self.engine.borrow_mut().remove_peer(peer)
    }

    /// The identity of a peer.
    pub fn peer_id(&self, peer: PeerId) -> Option<EndpointId> {
        self.engine.borrow().peer_id(peer)
    }

    /// What is known of each mechanism with a peer, and why one is not
    /// available; empty before the first operation has connected it.
    pub fn mechanism_status(&self, peer: PeerId) -> Vec<(&'static str, MechanismStatus)> {
        self.engine.borrow().mechanism_status(peer)
    }

    /// What each mechanism has done with a peer; empty before the first
    /// operation has connected it.
    pub fn counters(&self, peer: PeerId) -> Vec<(&'static str, Counters)> {
        self.engine.borrow().counters(peer)
    }

    /// What has gone to and come from a peer in inbox cells.
    pub fn eager_counters(&self, peer: PeerId) -> EagerCounters {
        self.engine.borrow().eager_counters(peer)
    }

    /// Which way a contiguous message of so many bytes to this peer would take
    /// now, which rule says so, where that rule comes from, and why each other
    /// mechanism is not taken. What works with a peer is known once the first
    /// operation has connected it.
    ///
    /// ```
    /// let endpoint = lmt::Endpoint::new()?;
    /// let myself = endpoint.insert_peer(&endpoint.address())?;
    /// println!("{}", endpoint.explain(myself, 1 << 20)?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`OperationError::UnknownPeer`].
    pub fn explain(&self, peer: PeerId, bytes: u64) -> Result<Explanation, OperationError> {
        self.explain_message(peer, &selection::Message::of_bytes(bytes))
    }

    /// As [`Endpoint::explain`], for a message of which more is known.
    ///
    /// # Errors
    /// [`OperationError::UnknownPeer`].
    pub fn explain_message(
        &self,
        peer: PeerId,
        message: &selection::Message,
    ) -> Result<Explanation, OperationError> {
        self.engine.borrow().explain(peer, message)
    }

    /// The names of the mechanisms of this endpoint.
    pub fn mechanism_names(&self) -> Vec<&'static str> {
        self.engine.borrow().mechanism_names()
    }

    /// Looks for a message without receiving it. Lets others run as [`Endpoint::progress`] does.
    ///
    /// # Errors
    /// This is a forked child.
    pub fn probe(&self, source: Source, tags: TagMatch) -> Result<Option<Status>, OperationError> {
        let mut engine = self.engine.borrow_mut();
        let found = engine.probe(source, tags)?;
        Ok(engine.or_yield(found))
    }

    /// Takes a message out of matching, to be received by
    /// [`Endpoint::receive_matched`] only.
    ///
    /// # Errors
    /// This is a forked child.
    pub fn matched_probe(&self, source: Source, tags: TagMatch) -> Result<Option<Message>, OperationError> {
        let mut engine = self.engine.borrow_mut();
        let found = engine.matched_probe(source, tags)?;
        Ok(engine.or_yield(found))
    }

    /// Moves messages without waiting; returns whether anything moved. Where call after
    /// call finds nothing, others are let run (sched_yield(2)): whoever this process waits
    /// for may have no core.
    ///
    /// # Errors
    /// This is a forked child.
    pub fn progress(&self) -> Result<bool, OperationError> {
        let mut engine = self.engine.borrow_mut();
        if self.sleeping.take() {
            engine.woken();
        }
        let moved = engine.progress()?;
        engine.yield_if_idle();
        Ok(moved)
    }

    /// Waits until something has moved, at most for `time_limit`; returns
    /// whether something has. A limit beyond what the clock counts is none.
    ///
    /// # Errors
    /// This is a forked child.
    pub fn wait_for_progress(&self, time_limit: Option<Duration>) -> Result<bool, OperationError> {
        let deadline = time_limit.and_then(|limit| Instant::now().checked_add(limit));
        self.engine.borrow_mut().wait_for_progress(deadline)
    }

    /// A descriptor for event loops, readable when there may be something to
    /// do: poll it after [`Endpoint::prepare_to_sleep`] said true, for at most
    /// [`Endpoint::sleep_limit`], and make progress after.
    ///
    /// # Errors
    /// The process has no descriptor left.
    pub fn wait_descriptor(&self) -> std::io::Result<OwnedFd> {
        self.engine.borrow().wait_descriptor().try_clone_to_owned()
    }

    /// Gets ready for sleeping in the wait descriptor; false when there is
    /// something to do at once.
    ///
    /// # Errors
    /// This is a forked child.
    pub fn prepare_to_sleep(&self) -> Result<bool, OperationError> {
        let ready = self.engine.borrow_mut().prepare_to_sleep()?;
        self.sleeping.set(ready);
        Ok(ready)
    }

    /// How long a sleep may last at most.
    pub fn sleep_limit(&self) -> Duration {
        self.engine.borrow().sleep_limit()
    }

    /// Sends what still waits, for at most `close_timeout_ms`, and says goodbye
    /// to the peers. Dropping the endpoint does the same.
    ///
    /// # Errors
    /// This is a forked child.
    pub fn close(self) -> Result<(), OperationError> {
        self.engine.borrow_mut().close()
    }
}

impl Sealed for Endpoint {}

impl Access for Endpoint {
    #[inline(always)] // The path of a short message.
    fn with<R>(
        &self,
        _token: Token,
        f: impl FnOnce(&mut Engine) -> Result<R, OperationError>,
    ) -> Result<R, OperationError> {
        f(&mut self.engine.borrow_mut())
    }

    #[inline(always)] // The path of a short message.
    fn poll_before_posting(
        &self,
        _token: Token,
        awaited: &mut PolledReceive,
    ) -> Result<bool, OperationError> {
        self.engine.borrow_mut().poll_before_posting(awaited)
    }

    #[inline(always)] // The result of a short message is copied once.
    fn wait(&self, _token: Token, request: RequestId) -> Result<Status, OperationError> {
        self.engine.borrow_mut().wait(request)
    }

    fn wait_any(
        &self,
        _token: Token,
        requests: impl Iterator<Item = RequestId> + Clone,
    ) -> Result<Option<usize>, OperationError> {
        self.engine.borrow_mut().wait_any(requests, None)
    }

    fn spares(&self, _token: Token) -> &OperationLists {
        &self.spares
    }
}
