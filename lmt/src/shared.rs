//! [`SharedEndpoint`]: an endpoint behind a lock.

use std::io::{IoSlice, IoSliceMut};
use std::sync::Arc;
use std::time::Duration;

use crossbeam_utils::Backoff;
use lmt_core::config::Config;
use lmt_core::endpoint::{
    EagerCounters, Engine, Message, OperationError, RequestId, SendMode, SendOptions, Status,
};
use lmt_core::identity::{Address, EndpointId};
use lmt_core::mechanism::{Counters, MechanismStatus};
use lmt_core::region::{RegionKey, RegionOptions};
use lmt_core::selection::{self, Explanation};

use crate::access::sealed::Sealed;
use crate::access::{Access, Token};
use crate::lock::EngineLock;
use crate::open::OperationLists;
use crate::region::SharedRegion;
use crate::scope::{Scope, with_scope};
use crate::{Endpoint, PeerId, Source, TagMatch, messages};

/// An endpoint that several threads use, one operation at a time. Waiting does
/// not hold the lock.
///
/// In a forked child every operation answers [`OperationError::Forked`], also
/// when another thread held the lock at the fork.
///
/// ```
/// use lmt::{Endpoint, SharedEndpoint, Source, TagMatch};
///
/// let shared = SharedEndpoint::new(Endpoint::new()?);
/// let myself = shared.insert_peer(&shared.address())?;
/// std::thread::scope(|threads| {
///     threads.spawn(|| shared.send(myself, 3, b"from a thread"));
///     let mut text = [0; 13];
///     shared.receive(Source::Any, TagMatch::exactly(3), &mut text).map(|s| s.bytes)
/// })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct SharedEndpoint {
    inner: Arc<Inner>,
}

struct Inner {
    lock: EngineLock,
    /// What never changes, and is told without the lock.
    address: Address,
    id: EndpointId,
    config: Config,
    mechanism_names: Vec<&'static str>,
    spares: OperationLists,
}

impl Drop for SharedEndpoint {
    fn drop(&mut self) {
        if self.inner.lock.is_locked_in_fork() {
            // The engine may be half changed, so this child never drops it.
            std::mem::forget(Arc::clone(&self.inner));
        }
    }
}

impl SharedEndpoint {
    /// Puts an endpoint behind a lock.
    pub fn new(endpoint: Endpoint) -> Self {
        let engine = endpoint.into_engine();
        let inner = Inner {
            address: engine.address().clone(),
            id: engine.id(),
            config: engine.config().clone(),
            mechanism_names: engine.mechanism_names(),
            spares: OperationLists::default(),
            lock: EngineLock::new(engine),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Where this endpoint is reached.
    pub fn address(&self) -> Address {
        self.inner.address.clone()
    }

    /// Who this endpoint is.
    pub fn id(&self) -> EndpointId {
        self.inner.id
    }

    /// Its configuration.
    pub fn config(&self) -> Config {
        self.inner.config.clone()
    }

    /// The names of the mechanisms of this endpoint.
    pub fn mechanism_names(&self) -> Vec<&'static str> {
        self.inner.mechanism_names.clone()
    }

    /// Names a peer by its address; see [`Endpoint::insert_peer`].
    ///
    /// # Errors
    /// As [`Endpoint::insert_peer`].
    pub fn insert_peer(&self, address: &Address) -> Result<PeerId, OperationError> {
        self.inner.lock.lock()?.insert_peer(address)
    }

    /// Forgets a peer; see [`Endpoint::remove_peer`].
    ///
    /// # Errors
    /// As [`Endpoint::remove_peer`].
    pub fn remove_peer(&self, peer: PeerId) -> Result<(), OperationError> {
        self.inner.lock.lock()?.remove_peer(peer)
    }

    /// The identity of a peer; none in a forked child.
    pub fn peer_id(&self, peer: PeerId) -> Option<EndpointId> {
        self.inner.lock.lock().ok()?.peer_id(peer)
    }

    /// What is known of each mechanism with a peer; see
    /// [`Endpoint::mechanism_status`]. Empty in a forked child.
    pub fn mechanism_status(&self, peer: PeerId) -> Vec<(&'static str, MechanismStatus)> {
        self.inner.lock.lock().map_or_else(|_| Vec::new(), |engine| engine.mechanism_status(peer))
    }

    /// What each mechanism has done with a peer; see [`Endpoint::counters`].
    /// Empty in a forked child.
    pub fn counters(&self, peer: PeerId) -> Vec<(&'static str, Counters)> {
        self.inner.lock.lock().map_or_else(|_| Vec::new(), |engine| engine.counters(peer))
    }

    /// What has gone to and come from a peer in inbox cells; nothing in a
    /// forked child.
    pub fn eager_counters(&self, peer: PeerId) -> EagerCounters {
        self.inner.lock.lock().map_or_else(|_| EagerCounters::default(), |engine| engine.eager_counters(peer))
    }

    /// Which way a message would take now, and why; see [`Endpoint::explain`].
    ///
    /// # Errors
    /// The peer is unknown, or this is a forked child.
    pub fn explain(&self, peer: PeerId, bytes: u64) -> Result<Explanation, OperationError> {
        self.explain_message(peer, &selection::Message::of_bytes(bytes))
    }

    /// As [`SharedEndpoint::explain`], for a message of which more is known.
    ///
    /// # Errors
    /// As [`SharedEndpoint::explain`].
    pub fn explain_message(
        &self,
        peer: PeerId,
        message: &selection::Message,
    ) -> Result<Explanation, OperationError> {
        self.inner.lock.lock()?.explain(peer, message)
    }

    /// Sends and waits; see [`Endpoint::send`].
    ///
    /// # Errors
    /// As [`Endpoint::send`].
    pub fn send(&self, to: PeerId, tag: u64, data: &[u8]) -> Result<Status, OperationError> {
        messages::send(self, to, tag, &[IoSlice::new(data)], SendMode::Standard)
    }

    /// Sends and waits until a receive has matched the message.
    ///
    /// # Errors
    /// As [`Endpoint::send`].
    pub fn send_synchronous(&self, to: PeerId, tag: u64, data: &[u8]) -> Result<Status, OperationError> {
        messages::send(self, to, tag, &[IoSlice::new(data)], SendMode::Synchronous)
    }

    /// Sends and waits until `data` may be used again, with more said: when the
    /// send is finished, and hints that help to choose the way.
    ///
    /// # Errors
    /// As [`Endpoint::send`].
    pub fn send_with(
        &self,
        to: PeerId,
        tag: u64,
        data: &[u8],
        options: impl Into<SendOptions>,
    ) -> Result<Status, OperationError> {
        messages::send(self, to, tag, &[IoSlice::new(data)], options)
    }

    /// Sends the segments as one message.
    ///
    /// # Errors
    /// As [`Endpoint::send`].
    pub fn send_segments(
        &self,
        to: PeerId,
        tag: u64,
        segments: &[IoSlice<'_>],
    ) -> Result<Status, OperationError> {
        messages::send(self, to, tag, segments, SendMode::Standard)
    }

    /// Receives and waits; see [`Endpoint::receive`].
    ///
    /// # Errors
    /// As [`Endpoint::receive`].
    pub fn receive(&self, source: Source, tags: TagMatch, into: &mut [u8]) -> Result<Status, OperationError> {
        messages::receive(self, source, tags, &mut [IoSliceMut::new(into)])
    }

    /// Receives a message into several segments, one after the other.
    ///
    /// # Errors
    /// As [`Endpoint::receive`].
    pub fn receive_segments(
        &self,
        source: Source,
        tags: TagMatch,
        segments: &mut [IoSliceMut<'_>],
    ) -> Result<Status, OperationError> {
        messages::receive(self, source, tags, segments)
    }

    /// Looks for a message without receiving it. Another thread may receive it
    /// first; [`SharedEndpoint::matched_probe`] keeps it for the caller.
    ///
    /// # Errors
    /// This is a forked child.
    pub fn probe(&self, source: Source, tags: TagMatch) -> Result<Option<Status>, OperationError> {
        let found = self.inner.lock.lock()?.probe(source, tags)?;
        Ok(self.or_yield(found))
    }

    /// Takes a message out of matching, to be received by
    /// [`SharedEndpoint::receive_matched`] only.
    ///
    /// # Errors
    /// This is a forked child.
    pub fn matched_probe(&self, source: Source, tags: TagMatch) -> Result<Option<Message>, OperationError> {
        let found = self.inner.lock.lock()?.matched_probe(source, tags)?;
        Ok(self.or_yield(found))
    }

    /// What was looked for; where it is not there, others are let run, without the lock.
    fn or_yield<T>(&self, found: Option<T>) -> Option<T> {
        if found.is_none() {
            self.yield_if_idle(Token::new());
        }
        found
    }

    /// Receives a message that was taken by [`SharedEndpoint::matched_probe`].
    ///
    /// # Errors
    /// As [`Endpoint::receive`].
    pub fn receive_matched(&self, message: Message, into: &mut [u8]) -> Result<Status, OperationError> {
        messages::receive_matched(self, message, &mut [IoSliceMut::new(into)])
    }

    /// Moves messages without waiting; returns whether anything moved. Lets others run as
    /// [`Endpoint::progress`] does.
    ///
    /// # Errors
    /// This is a forked child.
    pub fn progress(&self) -> Result<bool, OperationError> {
        let moved = self.inner.lock.lock()?.progress()?;
        self.yield_if_idle(Token::new());
        Ok(moved)
    }

    /// Allocates memory that peers map; see [`Endpoint::allocate_region`].
    ///
    /// # Errors
    /// As [`Endpoint::allocate_region`].
    pub fn allocate_region(
        &self,
        bytes: usize,
        options: impl Into<RegionOptions>,
    ) -> Result<SharedRegion<'_, Self>, OperationError> {
        SharedRegion::allocate(self, bytes, options.into())
    }

    /// Gets from a region and waits; see [`Endpoint::get`].
    ///
    /// # Errors
    /// As [`Endpoint::get`].
    pub fn get(&self, key: &RegionKey, offset: u64, into: &mut [u8]) -> Result<Status, OperationError> {
        messages::get(self, key, offset, into)
    }

    /// Puts into a region and waits; see [`Endpoint::put`].
    ///
    /// # Errors
    /// As [`Endpoint::put`].
    pub fn put(&self, key: &RegionKey, offset: u64, from: &[u8]) -> Result<Status, OperationError> {
        messages::put(self, key, offset, from)
    }

    /// Opens a scope; see [`Endpoint::scope`].
    pub fn scope<'env, F, T>(&'env self, body: F) -> T
    where
        F: for<'scope> FnOnce(&'scope Scope<'scope, 'env, Self>) -> T,
    {
        with_scope(self, body)
    }

    pub(crate) fn lock(&self) -> &EngineLock {
        &self.inner.lock
    }
}

impl Sealed for SharedEndpoint {}

impl Access for SharedEndpoint {
    fn with<R>(
        &self,
        _token: Token,
        f: impl FnOnce(&mut Engine) -> Result<R, OperationError>,
    ) -> Result<R, OperationError> {
        f(&mut *self.inner.lock.lock()?)
    }

    fn wait(&self, _token: Token, request: RequestId) -> Result<Status, OperationError> {
        let backoff = Backoff::new();
        loop {
            if let Some(result) = self.inner.lock.lock()?.test(request) {
                return result;
            }
            if backoff.is_completed() {
                self.inner.lock.sleep(Duration::from_millis(1))?;
            } else {
                backoff.snooze();
            }
        }
    }

    fn wait_any(
        &self,
        _token: Token,
        requests: impl Iterator<Item = RequestId> + Clone,
    ) -> Result<Option<usize>, OperationError> {
        while requests.clone().next().is_some() {
            let mut engine = self.inner.lock.lock()?;
            if let Some(at) = requests.clone().position(|r| engine.is_done(r)) {
                return Ok(Some(at));
            }
            if !engine.progress()? {
                drop(engine);
                self.inner.lock.sleep(Duration::from_millis(1))?;
            }
        }
        Ok(None)
    }

    fn spares(&self, _token: Token) -> &OperationLists {
        &self.inner.spares
    }
}
