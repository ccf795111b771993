//! The way of every send: one question, whether its message goes in cells or is announced, and
//! one function that writes cells.
//!
//! Blocking and nonblocking, one message and many go this way. What is done when it returns
//! has made no request.

use super::label::Label;
use super::link::Written;
use super::outgoing::{SendMode, SendOptions, gone};
use super::peer::{Connection, Outgoing, Peer};
use super::requests::{OperationError, PeerId, RequestId, Status, Waiting};
use super::traffic::{Arrived, Traffic, Unexpected, received};
use crate::buffer::{Buffer, copy_between};
use crate::config::Config;
use crate::error::PeerError;
use crate::inbox::InboxReceiver;
use crate::matching::Matcher;
use crate::rendezvous::{Candidates, PeerKey};
use crate::selection::{Hints, Message};
use crate::shared_buffer::is_shared;

impl Traffic {
    /// Begins a send to `to`; nothing, if it is done.
    #[inline(always)] // The path of a short message.
    pub fn send(
        &mut self,
        to: PeerId,
        label: &Label,
        buffer: &mut Buffer,
        options: SendOptions,
        credits: &InboxReceiver,
    ) -> Result<Option<RequestId>, OperationError> {
        let key = self.key_named(to)?;
        if self.peers[key as usize].group_version != self.selection.group_version() {
            self.renew_eager(key);
        }
        let bytes = buffer.total_bytes();
        let Self { peers, config, eager, .. } = self;
        let peer = &mut peers[key as usize];
        if !matches!(peer.connection, Connection::Up(_)) {
            return self.send_unconnected(key, *label, buffer.take(), options).map(Some);
        }
        if options.mode != SendMode::Standard || !peer.takes_cells(bytes, config, credits, key) {
            return self.send_announced(key, *label, buffer.take(), options.hints, credits).map(Some);
        }
        let mut sent_bytes = 0;
        if peer.ordered.is_empty() {
            match peer.write(config.cell_bytes, label, buffer, 0, credits, key) {
                Written::Whole => {
                    peer.eager.sent.count(bytes);
                    eager.sent.count(bytes);
                    return Ok(None);
                }
                Written::Part(now) => sent_bytes = now,
            }
        }
        // Of a message that has begun the peer waits for the rest.
        if sent_bytes == 0 {
            self.check_room(key)?;
        }
        let id = self.requests.begin(buffer.take(), Some(key), *label, Waiting::Queued);
        self.queue(key, Outgoing::Eager { request: id, sent_bytes, hints: options.hints });
        Ok(Some(id))
    }

    /// Sends a message that fits a cell, if it may go now.
    #[inline]
    pub fn inject(
        &mut self,
        to: PeerId,
        label: &Label,
        buffer: &Buffer,
        credits: &InboxReceiver,
    ) -> Option<Status> {
        let key = self.key_named(to).ok()?;
        let (bytes, own_cell_bytes) = (buffer.total_bytes(), self.config.cell_bytes);
        let Connection::Up(link) = &self.peers[key as usize].connection else { return None };
        if bytes > link.cell_bytes(own_cell_bytes) || !self.goes_in_cells(key, bytes, credits) {
            return None;
        }
        let peer = &mut self.peers[key as usize];
        if !peer.ordered.is_empty() {
            return None;
        }
        match peer.write(own_cell_bytes, label, buffer, 0, credits, key) {
            Written::Whole => {
                self.count_eager_sent(key, bytes);
                Some(Status { peer: to, tag: label.tag, bytes, immediate: label.immediate })
            }
            Written::Part(_) => None,
        }
    }

    /// Whether a message of so many bytes to a connected peer goes in cells.
    pub(super) fn goes_in_cells(&mut self, key: PeerKey, bytes: u64, credits: &InboxReceiver) -> bool {
        if self.peers[key as usize].group_version != self.selection.group_version() {
            self.renew_eager(key);
        }
        self.peers[key as usize].takes_cells(bytes, &self.config, credits, key)
    }

    /// Announces a message; its RTS is written where there is room for it.
    fn send_announced(
        &mut self,
        key: PeerKey,
        label: Label,
        buffer: Buffer,
        hints: Hints,
        credits: &InboxReceiver,
    ) -> Result<RequestId, OperationError> {
        self.check_room(key)?;
        let candidates = self.ways(key, &buffer, hints);
        let id = self.requests.begin_without_buffer(buffer.total_bytes(), key, label, Waiting::Queued);
        self.announce(key, id, buffer, &candidates);
        self.settle_by(Some(credits));
        if self.peers[key as usize].has_output() {
            self.flush(key, credits);
        }
        Ok(id)
    }

    /// The mechanisms to try for a message that is announced, the best first.
    pub(super) fn ways(&mut self, key: PeerKey, buffer: &Buffer, hints: Hints) -> Candidates {
        let message = Message {
            bytes: buffer.total_bytes(),
            contiguous: buffer.is_contiguous(),
            shared: self.transfers.shared_ends(key, is_shared(buffer)),
            hints,
            readers: self.transfers.other_readers(key),
        };
        let mechanisms = self.transfers.standings();
        *self.selection.candidates(key, mechanisms, &self.config, &message)
    }

    /// Hands a message to the rendezvous protocol, with the ways to try.
    pub(super) fn announce(&mut self, key: PeerKey, id: RequestId, buffer: Buffer, candidates: &Candidates) {
        let send_id = self.transfers.send(key, buffer, candidates, id.to_raw());
        self.requests.set_waiting(id, Waiting::Sending(send_id));
    }

    /// Queues a message for a peer that is still to be connected: which mechanisms there are is
    /// known then.
    #[cold]
    fn send_unconnected(
        &mut self,
        key: PeerKey,
        label: Label,
        buffer: Buffer,
        SendOptions { mode, hints }: SendOptions,
    ) -> Result<RequestId, OperationError> {
        let peer = &mut self.peers[key as usize];
        if peer.id == self.id {
            return Ok(self.send_to_self(key, label, buffer, mode));
        }
        if matches!(peer.connection, Connection::Gone(PeerError::Dead { .. })) {
            return Err(gone(peer));
        }
        self.check_room(key)?;
        let peer = &mut self.peers[key as usize];
        if matches!(peer.connection, Connection::None | Connection::Gone(_)) {
            peer.connection = Connection::Pending;
            self.to_connect.extend(peer.address.clone());
        }
        let id = self.requests.begin(buffer, Some(key), label, Waiting::Queued);
        self.queue(key, Outgoing::Eager { request: id, sent_bytes: 0, hints });
        if mode == SendMode::Synchronous {
            self.synchronous.insert(id);
        }
        Ok(id)
    }

    /// A message to oneself never leaves the process.
    fn send_to_self(&mut self, key: PeerKey, label: Label, buffer: Buffer, mode: SendMode) -> RequestId {
        let Label { tag, space, immediate } = label;
        let bytes = buffer.total_bytes();
        let done = Ok(Status { peer: self.name(key), tag, bytes, immediate });
        if let Some(receive) = self.receive_for(key, &label, bytes) {
            let copied = match self.requests.get_mut(receive).and_then(|r| r.buffer.as_mut()) {
                Some(target) => copy_between(&buffer, target),
                None => 0,
            };
            self.requests.complete(receive, received(self.name(key), &label, bytes, copied));
            return self.requests.done(done);
        }
        if mode == SendMode::Standard && bytes <= self.config.eager_max_bytes {
            let mut data = self.store.take(bytes as usize);
            buffer.read_at(0, &mut data);
            let connection = self.peers[key as usize].ended_connections;
            let content = Unexpected::Eager { data, charge_bytes: 0, connection };
            self.matchers.of(space).keep(key, tag, Arrived { immediate, content });
            return self.requests.done(done);
        }
        let id = self.requests.begin(buffer, Some(key), label, Waiting::Queued);
        let arrived = Arrived { immediate, content: Unexpected::Local(id) };
        let handle = self.matchers.of(space).keep(key, tag, arrived);
        self.requests.set_waiting(id, Waiting::Local(space, handle));
        id
    }

    /// Whether one more message may wait for this peer, here or announced: what
    /// is announced takes memory on both sides, however long nobody receives it.
    fn check_room(&self, key: PeerKey) -> Result<(), OperationError> {
        let peer = &self.peers[key as usize];
        let pending = self.transfers.sends_to(key).max(peer.ordered.len() as u32);
        if pending >= self.config.pending_max_messages {
            return Err(OperationError::WouldBlock { id: peer.id, pending });
        }
        Ok(())
    }

    /// A message has gone in cells.
    pub(super) fn count_eager_sent(&mut self, key: PeerKey, bytes: u64) {
        self.peers[key as usize].eager.sent.count(bytes);
        self.eager.sent.count(bytes);
    }
}

impl Peer {
    /// Whether a message of so many bytes goes to it in cells: up to `eager_max_bytes`; of more
    /// than `boxless_eager_max_bytes` only while there are cells that the two hand each other,
    /// and room at the peer, for all of it: it would wait for them.
    #[inline]
    fn takes_cells(&mut self, bytes: u64, config: &Config, credits: &InboxReceiver, key: PeerKey) -> bool {
        if bytes > self.eager_max_bytes {
            return false;
        }
        if bytes <= config.boxless_eager_max_bytes || !self.may_announce {
            return true;
        }
        let Connection::Up(link) = &mut self.connection else { return true };
        let charge_bytes = link.charge_of(bytes, link.cell_bytes(config.cell_bytes));
        !link.inbox.lacks_pair_cells(bytes) && link.may_keep(charge_bytes, credits, key)
    }
}
