//! Operations under way, and what became of them.

use std::cmp::Ordering;
use std::fmt;

use super::label::{Label, Space};
use super::many::{Many, Placement};
use crate::buffer::Buffer;
use crate::error::PeerError;
use crate::identity::EndpointId;
use crate::matching::PostedHandle;
use crate::queue::Queue;
use crate::region::RegionError;
use crate::rendezvous::{PeerKey, SendId, TransferError};
use crate::slab::Slab;

/// A peer of one endpoint: the binding that the embedder made for an address.
/// After [`super::Engine::remove_peer`] it names nobody, also when another peer
/// has got its number.
// The number below, above it how often that was given to another peer before. One word: two that
// are stored one by one and loaded together stall (store forwarding).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct PeerId(u64);

impl fmt::Debug for PeerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (index, generation) = (self.index(), self.generation());
        f.debug_struct("PeerId").field("index", &index).field("generation", &generation).finish()
    }
}

impl Ord for PeerId {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.index(), self.generation()).cmp(&(other.index(), other.generation()))
    }
}

impl PartialOrd for PeerId {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PeerId {
    /// The peer with this number, which was another's so often before.
    #[inline]
    pub(crate) const fn new(key: PeerKey, generation: u32) -> Self {
        Self((generation as u64) << 32 | key as u64)
    }

    /// The first peer with this number.
    pub(crate) const fn first(key: PeerKey) -> Self {
        Self::new(key, 0)
    }

    /// How often the number was given to another peer before.
    #[inline]
    pub(crate) const fn generation(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// The number under which this endpoint knows the peer: small, dense, and
    /// of no meaning to others.
    pub const fn index(self) -> u32 {
        self.0 as u32
    }

    /// The name as one number, for embedders that keep it in a handle.
    pub const fn to_raw(self) -> u64 {
        self.0
    }

    /// Reads [`Self::to_raw`]. A number that names no peer is harmless: operations
    /// with it answer [`OperationError::UnknownPeer`].
    pub const fn from_raw(raw: u64) -> Self {
        Self(raw)
    }
}

/// An operation that was begun.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct RequestId(u64);

impl RequestId {
    /// The id as a number, for embedders that keep it in a handle.
    pub const fn to_raw(self) -> u64 {
        self.0
    }

    /// Reads [`Self::to_raw`]. A number that names no request is harmless:
    /// operations on it answer [`OperationError::UnknownRequest`].
    pub const fn from_raw(raw: u64) -> Self {
        Self(raw)
    }
}

/// What an operation has done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Status {
    /// The other side of the message.
    pub peer: PeerId,
    /// The message's tag.
    pub tag: u64,
    /// Its length in bytes.
    pub bytes: u64,
    /// What its sender added ([`Label::immediate`]).
    pub immediate: Option<u32>,
}

/// An operation that has ended, as [`super::Engine::report`] asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Completion {
    /// What the embedder named it by.
    pub token: u64,
    /// What became of it.
    pub result: Reported,
}

/// What became of an operation whose end is reported. Errors are long and rare, and what
/// goes from hand to hand had better be short.
pub type Reported = Result<Status, Box<OperationError>>;

/// What became of an operation.
pub type Outcome = Result<Status, OperationError>;

/// What an operation has come to when it was begun.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use = "an operation that goes on is to be waited for"]
pub enum Started {
    /// It is done; there is no request to wait for.
    Done(Status),
    /// It goes on, or has failed: [`super::Engine::wait`] and its like take its result.
    Pending(RequestId),
}

/// Why an operation did not do what was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OperationError {
    /// The message was longer than the receive's buffer.
    #[error(
        "the message of {message_bytes} bytes was cut to the {received_bytes} bytes of the receive's buffer; post a buffer as long as the longest message, or probe first"
    )]
    Truncated {
        /// Who sent it.
        peer: PeerId,
        /// Its tag.
        tag: u64,
        /// Its full length in bytes.
        message_bytes: u64,
        /// What was written to the buffer, in bytes.
        received_bytes: u64,
        /// What its sender added.
        immediate: Option<u32>,
    },
    /// The operation was cancelled before it was matched.
    #[error("the operation was cancelled before it was matched")]
    Cancelled,
    /// The peer is dead, unreachable, or refused the connection.
    #[error(transparent)]
    Peer(#[from] PeerError),
    /// This process was forked off the one that owns the endpoint.
    #[error(
        "this endpoint belongs to the process that this one was forked from; create an endpoint of its own after fork"
    )]
    Forked,
    /// As much as the configuration allows waits for this peer already, or is
    /// announced to it and not done.
    #[error(
        "{pending} messages to peer {id} wait already, or are announced and not done (pending_max_messages); make progress or wait for requests, then send again"
    )]
    WouldBlock {
        /// Which peer.
        id: EndpointId,
        /// How many wait.
        pending: u32,
    },
    /// Memory of this process is in the peer's hands.
    #[error(
        "{operations} operations with peer {id} are under way, whose memory it may be using; wait for them or cancel them, then remove the peer"
    )]
    PeerBusy {
        /// Which peer.
        id: EndpointId,
        /// How many.
        operations: usize,
    },
    /// No such request, or its result was taken already.
    #[error("there is no such request; its result may have been taken already")]
    UnknownRequest,
    /// As many peers are known as the configuration allows.
    #[error("{max_peers} peers are known already (max_peers); raise it, or remove peers that have gone")]
    TooManyPeers {
        /// How many that is.
        max_peers: u32,
    },
    /// No such peer of this endpoint.
    #[error("there is no such peer at this endpoint; insert its address first")]
    UnknownPeer,
    /// The region is not what the operation needs.
    #[error(transparent)]
    Region(#[from] RegionError),
    /// The buffer lent to the operation does not suit it.
    #[error("a receive or a get needs a buffer lent for writing; this one is lent for reading")]
    ReadOnlyBuffer,
    /// The message was taken by a matched probe of another endpoint.
    #[error("this message was taken from another endpoint; receive it there")]
    ForeignMessage,
    /// The system refused something that the endpoint needs.
    #[error("{0}")]
    System(String),
}

impl OperationError {
    /// A transfer's error, with the peer named.
    pub(crate) fn of_transfer(error: TransferError, id: EndpointId) -> Self {
        match error {
            TransferError::Cancelled => Self::Cancelled,
            TransferError::PeerDead => PeerError::Dead { id }.into(),
            other => PeerError::NoMechanism { id, reason: other.to_string() }.into(),
        }
    }
}

/// What an unfinished operation is waiting for.
#[derive(Debug)]
pub(crate) enum Waiting {
    /// A message that waits for a place in the peer's inbox.
    Queued,
    /// A message that is announced, and perhaps on its way.
    Sending(SendId),
    /// A message to oneself that is not received yet.
    Local(Space, crate::matching::UnexpectedHandle),
    /// A receive that is not matched yet.
    Posted(Space, PostedHandle),
    /// A receive of one message after the other.
    Many(Many),
    /// A receive whose message is arriving.
    Matched,
    /// A get or a put.
    OneSided,
}

#[derive(Debug)]
pub(crate) enum State {
    Waiting(Waiting),
    Done(Outcome),
}

#[derive(Debug)]
pub(crate) struct Request {
    pub buffer: Option<Buffer>,
    /// The peer that the operation names; none for a receive from anybody.
    pub peer: Option<PeerKey>,
    /// Of a send, or of the message that a receive has got.
    pub label: Label,
    /// The bytes lent to it, which is a send's length.
    pub bytes: u64,
    pub state: State,
    /// What its end is reported by, if it is.
    pub token: Option<u64>,
}

impl Request {
    /// One of which nothing is known yet.
    const BLANK: Self = Self {
        buffer: None,
        peer: None,
        label: Label { tag: 0, space: Space::FIRST, immediate: None },
        bytes: 0,
        state: State::Waiting(Waiting::Queued),
        token: None,
    };
}

/// The table of requests: constant time, and no allocation once it has grown.
pub(crate) struct Requests {
    slab: Slab<Request>,
    /// Those that have ended and are reported, oldest first.
    completions: Queue<Completion>,
    /// Messages that have got their places in receives of many, oldest first.
    pub placements: Queue<Placement>,
}

impl Default for Requests {
    fn default() -> Self {
        Self { slab: Slab::new(), completions: Queue::new(), placements: Queue::new() }
    }
}

impl Requests {
    /// A request for an operation with this buffer. It is made where it stays, part by part: made
    /// elsewhere and copied, its parts would be loaded together, and stall (store forwarding).
    #[inline(always)] // The path of a short message.
    pub fn begin(
        &mut self,
        buffer: Buffer,
        peer: Option<PeerKey>,
        label: Label,
        waiting: Waiting,
    ) -> RequestId {
        let (id, request) = self.slab.insert_mut(Request::BLANK);
        request.bytes = buffer.total_bytes();
        request.buffer = Some(buffer);
        request.peer = peer;
        request.label = label;
        request.state = State::Waiting(waiting);
        RequestId(id)
    }

    /// One for an operation of so many bytes whose buffer is elsewhere.
    #[inline]
    pub fn begin_without_buffer(
        &mut self,
        bytes: u64,
        peer: PeerKey,
        label: Label,
        waiting: Waiting,
    ) -> RequestId {
        let request =
            Request { peer: Some(peer), label, bytes, state: State::Waiting(waiting), ..Request::BLANK };
        RequestId(self.slab.insert(request))
    }

    /// One for an operation that is done, with its result.
    pub fn done(&mut self, result: Outcome) -> RequestId {
        RequestId(self.slab.insert(Request { state: State::Done(result), ..Request::BLANK }))
    }

    /// The name that the next request gets.
    #[inline]
    pub fn next_id(&self) -> RequestId {
        RequestId(self.slab.next_id())
    }

    /// The request of an operation; one that is done gets one that says so.
    #[inline]
    pub fn of(&mut self, started: Started) -> RequestId {
        match started {
            Started::Done(status) => self.done(Ok(status)),
            Started::Pending(id) => id,
        }
    }

    pub fn get(&self, id: RequestId) -> Option<&Request> {
        self.slab.get(id.0)
    }

    #[inline]
    pub fn get_mut(&mut self, id: RequestId) -> Option<&mut Request> {
        self.slab.get_mut(id.0)
    }

    pub fn remove(&mut self, id: RequestId) -> Option<Request> {
        self.slab.remove(id.0)
    }

    /// Ends an operation; its memory is no longer in use from here on.
    pub fn complete(&mut self, id: RequestId, result: Outcome) {
        if let Some(request) = self.slab.get_mut(id.0) {
            request.buffer = None;
            match request.token {
                None => request.state = State::Done(result),
                Some(token) => {
                    self.slab.discard(id.0);
                    let result = result.map_err(Box::new);
                    self.completions.push_back(Completion { token, result });
                }
            }
        }
    }

    /// The same for a receive that has got all of a message. The result is made where it stays, as
    /// in [`Requests::begin`].
    #[inline(always)] // The path of a short message.
    pub fn complete_whole(&mut self, id: RequestId, peer: PeerId, label: &Label, bytes: u64) {
        let Label { tag, immediate, .. } = *label;
        let Some(request) = self.slab.get_mut(id.0) else { return };
        match request.token {
            None => {
                request.buffer = None;
                request.state = State::Done(Ok(Status { peer, tag, bytes, immediate }));
            }
            Some(token) => {
                self.slab.discard(id.0);
                let result = Ok(Status { peer, tag, bytes, immediate });
                self.completions.push_back(Completion { token, result });
            }
        }
    }

    /// From now on the end of an operation is reported. The result, if it has
    /// ended already.
    #[inline]
    pub fn report(&mut self, id: RequestId, token: u64) -> Option<Reported> {
        if let Some(request @ Request { state: State::Waiting(_), .. }) = self.get_mut(id) {
            request.token = Some(token);
            return None;
        }
        self.take_result(id).map(|result| result.map_err(Box::new))
    }

    /// Whether something is to be reported.
    #[inline]
    pub fn has_completions(&self) -> bool {
        !self.completions.is_empty() || !self.placements.is_empty()
    }

    /// The oldest report.
    #[inline]
    pub fn next_completion(&mut self) -> Option<Completion> {
        self.completions.pop_front()
    }

    pub fn set_waiting(&mut self, id: RequestId, waiting: Waiting) {
        if let Some(request) = self.get_mut(id) {
            request.state = State::Waiting(waiting);
        }
    }

    #[inline]
    pub fn is_done(&self, id: RequestId) -> bool {
        self.get(id).is_none_or(|r| matches!(r.state, State::Done(_)))
    }

    /// Takes the result of a finished operation.
    #[inline(always)] // The path of a short message.
    pub fn take_result(&mut self, id: RequestId) -> Option<Outcome> {
        let result = match self.slab.get_mut(id.0) {
            None => return Some(Err(OperationError::UnknownRequest)),
            Some(Request { state: State::Waiting(_), .. }) => return None,
            Some(Request { state: State::Done(Ok(status)), .. }) => Ok(*status),
            Some(Request { state: State::Done(Err(error)), .. }) => {
                Err(std::mem::replace(error, OperationError::UnknownRequest))
            }
        };
        self.slab.discard(id.0);
        Some(result)
    }

    /// The receives, and the sends to oneself, that nothing has matched.
    pub fn unmatched(&self) -> Vec<RequestId> {
        let unmatched = |r: &Request| {
            matches!(r.state, State::Waiting(Waiting::Posted(..) | Waiting::Many(_) | Waiting::Local(..)))
        };
        self.ids().filter(|id| self.get(*id).is_some_and(unmatched)).collect()
    }

    fn ids(&self) -> impl Iterator<Item = RequestId> {
        (0..self.slab.slots()).filter_map(|index| self.slab.id_at(index)).map(RequestId)
    }

    /// How many operations with this peer, or with anybody, have memory of this
    /// process lent to a mechanism, on either side.
    pub fn lent(&self, peer: Option<PeerKey>) -> usize {
        let lent = |r: &Request| {
            (peer.is_none() || r.peer == peer)
                && matches!(
                    r.state,
                    State::Waiting(Waiting::Sending(_) | Waiting::Matched | Waiting::OneSided)
                )
        };
        self.ids().filter(|id| self.get(*id).is_some_and(lent)).count()
    }

    /// The unfinished operations that name this peer.
    pub fn naming(&self, peer: PeerKey) -> Vec<RequestId> {
        let waiting = |r: &Request| r.peer == Some(peer) && matches!(r.state, State::Waiting(_));
        self.ids().filter(|id| self.get(*id).is_some_and(waiting)).collect()
    }
}
