//! Receives and probes: what a receive accepts, and messages that are looked
//! at, or taken out, before they are received.

use std::sync::{Arc, Mutex, PoisonError};

use super::Engine;
use super::peer::Connection;
use super::state::Traffic;
use super::unexpected::{Arrived, Eager, Unexpected as Content};
use crate::matching::{Matcher, Pattern, Unexpected};
use crate::memory::buffer::{Access, Buffer};
use crate::requests::ids::RequestId;
use crate::requests::label::{Label, Source, Space, TagMatch, Wanted};
use crate::requests::outcome::{OperationError, Outcome, ReportToken, Reported, Started, Status};
use crate::requests::table::{State, Waiting};
use crate::vocabulary::identity::{EndpointId, PeerKey};

/// A message taken out of matching by [`Engine::matched_probe`] or
/// [`Engine::take_arrival`]: only a receive that names it gets it. Dropped, it is
/// discarded: its sender's operation ends as if the message had been received.
#[derive(Debug)]
#[must_use = "a message that was taken and is not received is discarded"]
pub struct Message {
    status: Status,
    /// There until it is received or discarded.
    taken: Option<Taken>,
    /// Which endpoint it was taken from: its numbers mean nothing to others.
    endpoint: EndpointId,
    discards: Discards,
}

/// What was taken out of matching.
#[derive(Debug)]
pub(super) struct Taken {
    content: Content,
    space: Space,
    /// Over which of the peer's connections it came.
    connection: u32,
}

/// Where dropped messages wait for their endpoint's next look.
pub(super) type Discards = Arc<Mutex<Vec<(Status, Taken)>>>;

impl Drop for Message {
    fn drop(&mut self) {
        if let Some(taken) = self.taken.take() {
            // A panic elsewhere leaves the list as good as it was.
            let mut list = self.discards.lock().unwrap_or_else(PoisonError::into_inner);
            list.push((self.status, taken));
        }
    }
}

impl Message {
    /// Who sent it, its tag and its length in bytes.
    pub const fn status(&self) -> Status {
        self.status
    }
}

impl Engine {
    /// Begins a receive of the first message from `source` whose tag matches;
    /// of a space other than the first if `wanted` says so ([`Wanted`]). Of one that has ended
    /// already, since its message was here, there is no request.
    ///
    /// # Errors
    /// The peer is unknown or dead, the buffer is not lent for writing, or
    /// this is a forked child.
    #[inline]
    pub fn start_receive(
        &mut self,
        source: Source,
        wanted: impl Into<Wanted>,
        buffer: Buffer,
    ) -> Result<Started, OperationError> {
        let Wanted { space, tags } = wanted.into();
        self.check_receive(&buffer)?;
        let pattern = self.pattern(source, tags)?;
        match self.find(pattern, space) {
            Some(found) => self.receive_found(pattern, space, found, buffer),
            None => self.post(pattern, space, buffer, None).map(Started::Pending),
        }
    }

    /// As [`Engine::start_receive`] and [`Engine::report`] in one. The result of one that has ended
    /// already, of which nothing is told.
    ///
    /// # Errors
    /// As [`Engine::start_receive`].
    #[inline(always)] // The path of a short message.
    pub fn start_reported_receive(
        &mut self,
        source: Source,
        wanted: Wanted,
        buffer: Buffer,
        token: ReportToken,
    ) -> Result<Option<Reported>, OperationError> {
        let Wanted { space, tags } = wanted;
        self.check_receive(&buffer)?;
        let pattern = self.pattern(source, tags)?;
        match self.find(pattern, space) {
            Some(found) => match self.receive_found(pattern, space, found, buffer)? {
                Started::Done(status) => Ok(Some(Ok(status))),
                Started::Pending(id) => Ok(self.report(id, token)),
            },
            None => self.post(pattern, space, buffer, Some(token)).map(|_| None),
        }
    }

    /// Whether one may receive here, into such a buffer.
    #[inline]
    pub(super) fn check_receive(&self, buffer: &Buffer) -> Result<(), OperationError> {
        self.check_fork()?;
        if buffer.access() != Access::Write {
            return Err(OperationError::ReadOnlyBuffer);
        }
        Ok(())
    }

    /// Takes out the oldest message that waits for such a receive.
    #[inline(always)] // The path of a short message.
    fn find(&mut self, pattern: Pattern, space: Space) -> Option<Unexpected<Arrived>> {
        let matcher = self.traffic.matchers.of(space);
        if matcher.unexpected() > 0 { matcher.take(pattern) } else { None }
    }

    /// Posts a receive for which no message waits.
    #[inline(always)] // The path of a short message.
    fn post(
        &mut self,
        pattern: Pattern,
        space: Space,
        buffer: Buffer,
        token: Option<ReportToken>,
    ) -> Result<RequestId, OperationError> {
        if let Some(key) = pattern.source {
            self.reach(key)?;
        }
        let Traffic { matchers, requests, .. } = &mut self.traffic;
        let label = Label { tag: pattern.tag, space, immediate: None };
        let (id, request) = requests.begin_mut(buffer, pattern.source, label);
        request.token = token;
        let handle = matchers.of(space).queue(pattern, id);
        request.state = State::Waiting(Waiting::Posted(space, handle));
        Ok(id)
    }

    /// Receives a message that was there.
    #[inline(never)] // Its own large frame.
    fn receive_found(
        &mut self,
        pattern: Pattern,
        space: Space,
        found: Unexpected<Arrived>,
        mut buffer: Buffer,
    ) -> Result<Started, OperationError> {
        let Unexpected { source, tag, payload: Arrived { immediate, content } } = found;
        let label = Label { tag, space, immediate };
        if let Content::Eager { data, charge_bytes, connection } = content {
            let eager = Eager { data, charge_bytes, connection };
            let result = self.traffic.copy_in(source, &label, eager, &mut buffer);
            return self.started(result);
        }
        let id = self.traffic.requests.begin(buffer, pattern.source, label, Waiting::Matched);
        self.traffic.join(source, label, content, id);
        self.traffic.settle();
        Ok(Started::Pending(id))
    }

    /// What an operation with this result has come to: one that has failed has a request, whose
    /// result tells why.
    #[inline]
    pub(super) fn started(&mut self, result: Outcome) -> Result<Started, OperationError> {
        match result {
            Ok(status) => Ok(Started::Done(status)),
            failed => Ok(Started::Pending(self.traffic.requests.done(failed))),
        }
    }

    /// As [`Engine::start_receive`], with a request whether it has ended or not.
    ///
    /// # Errors
    /// As [`Engine::start_receive`].
    #[inline]
    pub fn receive(
        &mut self,
        source: Source,
        wanted: impl Into<Wanted>,
        buffer: Buffer,
    ) -> Result<RequestId, OperationError> {
        let started = self.start_receive(source, wanted, buffer)?;
        Ok(self.traffic.requests.of(started))
    }

    /// Connects to a peer from which a message is awaited, so that its death
    /// is noticed.
    #[inline]
    pub(super) fn reach(&mut self, key: u32) -> Result<(), OperationError> {
        let peer = self.traffic.peers.get(key as usize);
        if peer.is_some_and(|peer| peer.bound && matches!(peer.connection, Connection::Up(_))) {
            return Ok(());
        }
        self.begin_to_reach(key)
    }

    #[cold]
    fn begin_to_reach(&mut self, key: u32) -> Result<(), OperationError> {
        let own = self.traffic.id;
        let peers = &mut self.traffic.peers;
        let peer = peers.get_mut(key as usize).filter(|p| p.bound).ok_or(OperationError::UnknownPeer)?;
        match &peer.connection {
            Connection::Gone(crate::vocabulary::error::PeerError::Dead { .. }) => {
                return Err(super::peer::gone(peer));
            }
            Connection::None | Connection::Gone(_) if peer.id != own => {
                peer.connection = Connection::Pending;
                if let Some(address) = &peer.address {
                    self.connector.connect(address);
                    self.calls_until_sockets = 0;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Looks for a message that a receive would match, without receiving it.
    /// Makes progress once.
    ///
    /// # Errors
    /// The peer is unknown, or this is a forked child.
    pub fn probe(
        &mut self,
        source: Source,
        wanted: impl Into<Wanted>,
    ) -> Result<Option<Status>, OperationError> {
        self.progress_all()?;
        let Wanted { space, tags } = wanted.into();
        let pattern = self.pattern(source, tags)?;
        let Traffic { matchers, requests, .. } = &mut self.traffic;
        let Some((_, found)) = matchers.of(space).peek(pattern) else { return Ok(None) };
        let Unexpected { source, tag, payload: Arrived { immediate, content } } = found;
        // Its number comes with its next piece, which is on its way.
        if matches!(content, Content::Arriving { awaits_immediate: true, .. }) {
            return Ok(None);
        }
        let (bytes, immediate) = (content.total_bytes(requests), *immediate);
        Ok(Some(Status { peer: self.traffic.name(source), tag, bytes, immediate }))
    }

    /// Takes a message out of matching, to be received by
    /// [`Engine::receive_matched`] and by nothing else. Makes progress once.
    ///
    /// # Errors
    /// The peer is unknown, or this is a forked child.
    pub fn matched_probe(
        &mut self,
        source: Source,
        wanted: impl Into<Wanted>,
    ) -> Result<Option<Message>, OperationError> {
        self.progress_all()?;
        let Wanted { space, tags } = wanted.into();
        let pattern = self.pattern(source, tags)?;
        let matcher = self.traffic.matchers.of(space);
        match matcher.peek(pattern) {
            // A message of several cells is taken once it is whole.
            None => return Ok(None),
            Some((_, found)) if matches!(found.payload.content, Content::Arriving { .. }) => return Ok(None),
            Some(_) => {}
        }
        let found = matcher.take(pattern);
        Ok(found.map(|found| self.taken(space, found)))
    }

    /// Takes the oldest message of a space that is here whole, or announced, out of
    /// matching: for embedders that match messages themselves and post no receives
    /// in that space. One source's messages are taken in the order in which they
    /// were sent. Makes no progress; [`Engine::progress`] does.
    pub fn take_arrival(&mut self, space: Space) -> Option<Message> {
        let matcher = self.traffic.matchers.of(space);
        if matcher.unexpected() == 0 {
            return None;
        }
        // Behind a message whose bytes are still coming in there may be others of
        // its sender, which must not overtake it.
        let mut coming_in = Vec::new();
        let handle = matcher.find_first(&mut |source, message| {
            if matches!(message.content, Content::Arriving { .. }) {
                coming_in.push(source);
            }
            !coming_in.contains(&source)
        })?;
        let found = matcher.remove_unexpected(handle)?;
        Some(self.taken(space, found))
    }

    /// A message that is no longer in matching.
    fn taken(&self, space: Space, found: Unexpected<Arrived>) -> Message {
        let traffic = &self.traffic;
        let Unexpected { source, tag, payload: Arrived { immediate, content } } = found;
        let bytes = content.total_bytes(&traffic.requests);
        let status = Status { peer: traffic.name(source), tag, bytes, immediate };
        let connection = traffic.peers[source as usize].ended_connections;
        let taken = Some(Taken { content, connection, space });
        Message { status, taken, endpoint: traffic.id, discards: Arc::clone(&self.discards) }
    }

    /// Receives a message that [`Engine::matched_probe`] or [`Engine::take_arrival`] took.
    ///
    /// # Errors
    /// The buffer is not lent for writing, the message was taken from another
    /// endpoint, or this is a forked child.
    pub fn receive_matched(
        &mut self,
        mut message: Message,
        buffer: Buffer,
    ) -> Result<RequestId, OperationError> {
        self.check_fork()?;
        if buffer.access() != Access::Write {
            return Err(OperationError::ReadOnlyBuffer);
        }
        if message.endpoint != self.traffic.id {
            return Err(OperationError::ForeignMessage);
        }
        match message.taken.take() {
            Some(taken) => Ok(self.receive_taken(message.status, taken, buffer)),
            None => Err(OperationError::ForeignMessage),
        }
    }

    /// Whether messages were dropped.
    pub(super) fn has_discards(&self) -> bool {
        !self.discards.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Gives up what dropped messages held.
    #[cold]
    pub(super) fn discard(&mut self) {
        let list = std::mem::take(&mut *self.discards.lock().unwrap_or_else(PoisonError::into_inner));
        for (status, taken) in list {
            let id = self.receive_taken(status, taken, Buffer::empty(Access::Write));
            self.detached.push(id);
        }
        let requests = &mut self.traffic.requests;
        self.detached.retain(|id| requests.take_result(*id).is_none());
    }

    /// Receives what was taken out of matching.
    fn receive_taken(&mut self, status: Status, taken: Taken, buffer: Buffer) -> RequestId {
        let Status { peer, tag, immediate, .. } = status;
        let label = Label { tag, space: taken.space, immediate };
        let id = self.traffic.requests.begin(buffer, Some(peer.index()), label, Waiting::Matched);
        let traffic = &mut self.traffic;
        let from = &traffic.peers[peer.index() as usize];
        let named = from.generation == peer.generation();
        match taken.content {
            // What is here can be received whatever became of its sender.
            Content::Eager { data, .. } if !named => traffic.hand_over(peer, &label, data, id),
            Content::Rts(_) if !named => traffic.requests.complete(id, Err(OperationError::UnknownPeer)),
            // The connection over which it was announced has ended.
            Content::Rts(_) if from.ended_connections != taken.connection => {
                let error = super::peer::gone(from);
                traffic.requests.complete(id, Err(error));
            }
            content => traffic.join(peer.index(), label, content, id),
        }
        traffic.settle();
        id
    }

    /// What a receive or a probe accepts.
    #[inline]
    pub(super) fn pattern(&self, source: Source, tags: TagMatch) -> Result<Pattern, OperationError> {
        Ok(Pattern { source: self.key_of(source)?, tag: tags.tag, ignore: tags.ignore })
    }

    /// From whom it does.
    #[inline(always)] // The path of a short message.
    pub(super) fn key_of(&self, source: Source) -> Result<Option<PeerKey>, OperationError> {
        match source {
            Source::Any => Ok(None),
            Source::Peer(peer) => self.traffic.key_named(peer).map(Some),
        }
    }
}
