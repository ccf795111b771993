//! The table of operations in flight, and what became of them.

use super::ids::{PeerId, RequestId};
use super::label::{Label, Space};
use super::multi_receive::{MultiReceive, Placement};
use super::outcome::{Completion, OperationError, Outcome, ReportToken, Reported, Started, Status};
use crate::base::short_queue::Queue;
use crate::base::slab::Slab;
use crate::matching::PostedHandle;
use crate::memory::buffer::Buffer;
use crate::rendezvous::SendId;
use crate::vocabulary::identity::PeerKey;

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
    MultiReceive(MultiReceive),
    /// A receive whose message is arriving.
    Matched,
    /// A get or a put.
    OneSided,
}

#[derive(Debug)]
pub(crate) enum State {
    Waiting(Waiting),
    Done(Reported),
    /// Taken back, as many may be at once: without memory for an error.
    Cancelled,
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
    pub token: Option<ReportToken>,
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
    /// A request for an operation with this buffer.
    #[inline(always)] // The path of a short message.
    pub fn begin(
        &mut self,
        buffer: Buffer,
        peer: Option<PeerKey>,
        label: Label,
        waiting: Waiting,
    ) -> RequestId {
        let (id, request) = self.begin_mut(buffer, peer, label);
        request.state = State::Waiting(waiting);
        id
    }

    /// The same, and the request, to be told what it waits for. It is made where it stays, part by
    /// part: made elsewhere and copied, its parts would be loaded together, and stall (store
    /// forwarding).
    #[inline(always)] // As `begin`.
    pub fn begin_mut(
        &mut self,
        buffer: Buffer,
        peer: Option<PeerKey>,
        label: Label,
    ) -> (RequestId, &mut Request) {
        let (id, request) = self.slab.insert_mut(Request::BLANK);
        request.bytes = buffer.total_bytes();
        request.buffer = Some(buffer);
        request.peer = peer;
        request.label = label;
        (RequestId(id), request)
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
        let state = State::Done(result.map_err(Box::new));
        RequestId(self.slab.insert(Request { state, ..Request::BLANK }))
    }

    /// The request of an operation; one that is done gets one that says so.
    #[inline]
    pub fn of(&mut self, started: Started) -> RequestId {
        match started {
            Started::Done(status) => self.done(Ok(status)),
            Started::Pending(id) => id,
        }
    }

    #[inline]
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
                None if result == Err(OperationError::Cancelled) => request.state = State::Cancelled,
                None => request.state = State::Done(result.map_err(Box::new)),
                Some(token) => {
                    self.slab.discard(id.0);
                    self.completions.push_back(Completion { token, result: result.map_err(Box::new) });
                }
            }
        }
    }

    /// The same for a receive that has got all of a message. The result is made where it stays, as
    /// others are not: copied, its parts would be loaded together, and stall (store forwarding).
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
    pub fn report(&mut self, id: RequestId, token: ReportToken) -> Option<Reported> {
        if let Some(request @ Request { state: State::Waiting(_), .. }) = self.get_mut(id) {
            request.token = Some(token);
            return None;
        }
        self.take_result(id).map(|result| result.map_err(Box::new))
    }

    /// The first unfinished operation whose end is reported by a name for which `wanted` is true;
    /// looks at each.
    pub fn reported_by(&self, wanted: impl Fn(&ReportToken) -> bool) -> Option<RequestId> {
        let is_it = |id: &RequestId| self.get(*id).and_then(|r| r.token.as_ref()).is_some_and(&wanted);
        self.ids().find(is_it)
    }

    /// Whether something is to be reported.
    #[inline]
    pub fn has_completions(&self) -> bool {
        !self.completions.is_empty() || !self.placements.is_empty()
    }

    /// The oldest report.
    #[inline(always)] // The path of a short message.
    pub fn next_completion(&mut self) -> Option<Completion> {
        let Completion { token: [first, second, third], result } = self.completions.front()?;
        match result {
            // Word by word: its parts have just been stored, and as a whole they would be loaded
            // together, and stall (store forwarding).
            Ok(Status { peer, tag, bytes, immediate }) => {
                let result = Ok(Status { peer: *peer, tag: *tag, bytes: *bytes, immediate: *immediate });
                let completion = Completion { token: [*first, *second, *third], result };
                drop(self.completions.pop_front());
                Some(completion)
            }
            Err(_) => self.completions.pop_front(),
        }
    }

    pub fn set_waiting(&mut self, id: RequestId, waiting: Waiting) {
        if let Some(request) = self.get_mut(id) {
            request.state = State::Waiting(waiting);
        }
    }

    #[inline]
    pub fn is_done(&self, id: RequestId) -> bool {
        self.get(id).is_none_or(|r| matches!(r.state, State::Done(_) | State::Cancelled))
    }

    /// Takes the result of a finished operation.
    #[inline(always)] // The path of a short message.
    pub fn take_result(&mut self, id: RequestId) -> Option<Outcome> {
        let result = match self.slab.get_mut(id.0) {
            None => return Some(Err(OperationError::UnknownRequest)),
            Some(Request { state: State::Waiting(_), .. }) => return None,
            Some(Request { state: State::Done(Ok(status)), .. }) => Ok(*status),
            Some(Request { state: State::Cancelled, .. }) => Err(OperationError::Cancelled),
            Some(Request { state: State::Done(Err(error)), .. }) => {
                Err(std::mem::replace(&mut **error, OperationError::UnknownRequest))
            }
        };
        self.slab.discard(id.0);
        Some(result)
    }

    /// The receives, and the sends to oneself, that nothing has matched.
    pub fn unmatched(&self) -> Vec<RequestId> {
        let unmatched = |r: &Request| {
            matches!(
                r.state,
                State::Waiting(Waiting::Posted(..) | Waiting::MultiReceive(_) | Waiting::Local(..))
            )
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
