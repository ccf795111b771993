//! The way of every send: one question, whether its message goes in cells or is announced, and
//! one function that writes cells.
//!
//! Blocking and nonblocking, one message and many go this way. What is done when it returns
//! has made no request.

use super::Engine;
use super::cells::{OVERHEAD_BYTES, envelope_of};
use super::link::Written;
use super::peer::{Connection, Link, Outgoing, Peer};
use super::state::Traffic;
use crate::memory::buffer::{Buffer, lend};
use crate::queue::{Envelope, InboxReceiver, Payload, Piece, SendError, Sent};
use crate::region::shared_buffer::is_shared;
use crate::rendezvous::Candidates;
use crate::requests::ids::{PeerId, RequestId};
use crate::requests::label::Label;
use crate::requests::options::{SendMode, SendOptions};
use crate::requests::outcome::{OperationError, Started, Status};
use crate::requests::table::Waiting;
use crate::selection::{Hints, Message};
use crate::vocabulary::config::Config;
use crate::vocabulary::identity::PeerKey;

impl Engine {
    /// Begins a send of a message with this tag, or this [`Label`]. It has ended when the
    /// buffer may be used again; see [`SendMode`] and [`SendOptions`]. Of one that is done
    /// already there is no request: `None`.
    ///
    /// # Errors
    /// The peer is unknown or dead, too much waits for it, or this is a forked
    /// child.
    #[inline]
    pub fn start_send(
        &mut self,
        to: PeerId,
        label: impl Into<Label>,
        buffer: Buffer,
        options: impl Into<SendOptions>,
    ) -> Result<Option<RequestId>, OperationError> {
        let mut buffer = buffer;
        self.begin_send(to, &label.into(), &mut buffer, options.into())
    }

    /// Takes the buffer only where it goes on using it: copying it, just after its parts were
    /// stored, stalls (store forwarding).
    #[inline(never)]
    fn begin_send(
        &mut self,
        to: PeerId,
        label: &Label,
        buffer: &mut Buffer,
        options: SendOptions,
    ) -> Result<Option<RequestId>, OperationError> {
        self.check_fork()?;
        let started = self.traffic.send(to, label, buffer, options, &self.inbox)?;
        if !self.traffic.to_connect.is_empty() {
            self.connect_wanted();
        }
        Ok(started)
    }

    #[cold]
    fn connect_wanted(&mut self) {
        for address in self.traffic.to_connect.drain(..) {
            self.connector.connect(&address);
        }
        self.calls_until_sockets = 0;
    }

    /// As [`Engine::start_send`], with a request whether it has ended or not.
    ///
    /// # Errors
    /// As [`Engine::start_send`].
    #[inline]
    pub fn send(
        &mut self,
        to: PeerId,
        label: impl Into<Label>,
        buffer: Buffer,
        options: impl Into<SendOptions>,
    ) -> Result<RequestId, OperationError> {
        let (label, bytes) = (label.into(), buffer.total_bytes());
        let request = self.start_send(to, label, buffer, options)?;
        let done = Status { peer: to, tag: label.tag, bytes, immediate: label.immediate };
        Ok(request.unwrap_or_else(|| self.traffic.requests.of(Started::Done(done))))
    }

    /// Sends bytes at once that may change when this returns: a message that fits a cell, if
    /// there is one, and room at the peer. False, and nothing is sent, where that is not so.
    #[inline]
    pub fn inject(&mut self, to: PeerId, label: impl Into<Label>, bytes: &[u8]) -> bool {
        let label = label.into();
        self.origin.is_this_process()
            && lend(bytes, |buffer| self.traffic.inject(to, &label, buffer, &self.inbox))
    }
}

impl Traffic {
    /// Begins a send to `to`; nothing, if it is done.
    #[inline(always)] // The path of a short message.
    pub fn send(
        &mut self,
        to: PeerId,
        label: &Label,
        buffer: &mut Buffer,
        options: SendOptions,
        own_inbox: &InboxReceiver,
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
        if options.mode != SendMode::Standard || !peer.takes_cells(bytes, config, own_inbox, key) {
            return self.send_announced(key, *label, buffer.take(), options.hints, own_inbox).map(Some);
        }
        let mut sent_bytes = 0;
        if peer.ordered.is_empty() {
            match peer.write(config.cell_bytes, label, buffer, 0, own_inbox, key) {
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

    /// Sends a message that fits a cell, if it may go now; whether it has gone.
    #[inline(always)] // The path of a short message.
    pub fn inject(&mut self, to: PeerId, label: &Label, buffer: &Buffer, own_inbox: &InboxReceiver) -> bool {
        let Ok(key) = self.key_named(to) else { return false };
        if self.peers[key as usize].group_version != self.selection.group_version() {
            self.renew_eager(key);
        }
        let bytes = buffer.total_bytes();
        let Self { peers, config, eager, .. } = self;
        let peer = &mut peers[key as usize];
        let Connection::Up(link) = &peer.connection else { return false };
        let goes = bytes <= link.cell_bytes(config.cell_bytes)
            && peer.takes_cells(bytes, config, own_inbox, key)
            && peer.ordered.is_empty()
            && matches!(peer.write(config.cell_bytes, label, buffer, 0, own_inbox, key), Written::Whole);
        if goes {
            peer.eager.sent.count(bytes);
            eager.sent.count(bytes);
        }
        goes
    }

    /// Whether a message of so many bytes to a connected peer goes in cells.
    pub(super) fn goes_in_cells(&mut self, key: PeerKey, bytes: u64, own_inbox: &InboxReceiver) -> bool {
        if self.peers[key as usize].group_version != self.selection.group_version() {
            self.renew_eager(key);
        }
        self.peers[key as usize].takes_cells(bytes, &self.config, own_inbox, key)
    }

    /// Asks anew up to where messages to a peer travel in cells.
    ///
    /// That may depend on how many processes there are. It is asked when the
    /// peer is connected and when something is sent to it after others came or
    /// went: asked for all peers whenever one comes, a group of N would ask N
    /// times N times.
    #[cold]
    pub fn renew_eager(&mut self, key: PeerKey) {
        let peer = &mut self.peers[key as usize];
        if matches!(peer.connection, Connection::AwaitingReport(_) | Connection::Up(_)) {
            let decisions = self.selection.decisions(key, self.transfers.mechanism_status(), &self.config);
            peer.eager_max_bytes = decisions.eager_max_bytes();
            let beyond = Message::of_bytes(self.config.inbox_eager_max_bytes.saturating_add(1));
            peer.may_announce = !decisions.candidates(&beyond).as_slice().is_empty();
        }
        peer.group_version = self.selection.group_version();
    }

    /// Announces a message; its RTS is written where there is room for it.
    fn send_announced(
        &mut self,
        key: PeerKey,
        label: Label,
        buffer: Buffer,
        hints: Hints,
        own_inbox: &InboxReceiver,
    ) -> Result<RequestId, OperationError> {
        self.check_room(key)?;
        let candidates = self.ways(key, &buffer, hints);
        let id = self.requests.begin_without_buffer(buffer.total_bytes(), key, label, Waiting::Queued);
        self.announce(key, id, buffer, &candidates);
        self.settle_by(Some(own_inbox));
        if self.peers[key as usize].has_output() {
            self.flush(key, own_inbox);
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
        let mechanisms = self.transfers.mechanism_status();
        *self.selection.candidates(key, mechanisms, &self.config, &message)
    }

    /// Hands a message to the rendezvous protocol, with the ways to try.
    pub(super) fn announce(&mut self, key: PeerKey, id: RequestId, buffer: Buffer, candidates: &Candidates) {
        let send_id = self.transfers.send(key, buffer, candidates, id.to_raw());
        self.requests.set_waiting(id, Waiting::Sending(send_id));
    }

    /// Whether one more message may wait for this peer, here or announced: what
    /// is announced takes memory on both sides, however long nobody receives it.
    pub(super) fn check_room(&self, key: PeerKey) -> Result<(), OperationError> {
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
    /// Writes a message in cells, from `sent_bytes` on: the one function that does.
    #[inline(always)] // The path of a short message.
    pub(super) fn write(
        &mut self,
        own_cell_bytes: u32,
        label: &Label,
        buffer: &Buffer,
        sent_bytes: u64,
        own_inbox: &InboxReceiver,
        key: PeerKey,
    ) -> Written {
        let Connection::Up(link) = &mut self.connection else { return Written::Part(sent_bytes) };
        let cell_bytes = link.cell_bytes(own_cell_bytes);
        if buffer.total_bytes() <= cell_bytes {
            return link.write_whole(label, buffer, own_inbox, key);
        }
        link.write_pieces(cell_bytes, label, buffer, sent_bytes, own_inbox, key)
    }

    /// Whether a message of so many bytes goes to it in cells: up to `eager_max_bytes`; of more
    /// than `inbox_eager_max_bytes` only while there are cells that the two hand each other,
    /// and room at the peer, for all of it: it would wait for them.
    #[inline]
    fn takes_cells(&mut self, bytes: u64, config: &Config, own_inbox: &InboxReceiver, key: PeerKey) -> bool {
        if bytes > self.eager_max_bytes {
            return false;
        }
        if bytes <= config.inbox_eager_max_bytes || !self.may_announce {
            return true;
        }
        let Connection::Up(link) = &mut self.connection else { return true };
        let charge_bytes = link.charge_of(bytes, link.cell_bytes(config.cell_bytes));
        !link.inbox.lacks_handoff_cells(bytes) && link.may_keep(charge_bytes, own_inbox, key)
    }
}

impl Link {
    /// Writes a message that fits a cell.
    #[inline(always)] // The path of a short message.
    fn write_whole(
        &mut self,
        label: &Label,
        buffer: &Buffer,
        own_inbox: &InboxReceiver,
        key: PeerKey,
    ) -> Written {
        let bytes = buffer.total_bytes();
        let charge_bytes = bytes + OVERHEAD_BYTES;
        if !((self.has_cell() && self.has_bytes(charge_bytes)) || self.may_take(charge_bytes, own_inbox, key))
        {
            return Written::Part(0);
        }
        let (envelope, piece) = envelope_of(label, 0, bytes, bytes);
        let payload = match buffer.one_slice(0..bytes) {
            Some(data) => Payload::Bytes(data),
            None => Payload::Part(buffer, 0..bytes),
        };
        match self.write_piece(envelope, payload, charge_bytes, piece) {
            Ok(()) => Written::Whole,
            Err(_) => Written::Part(0),
        }
    }

    /// Whether there is a cell and room for so many bytes, after a look at what the peer has
    /// given back.
    #[cold]
    fn may_take(&mut self, charge_bytes: u64, own_inbox: &InboxReceiver, key: PeerKey) -> bool {
        self.may_write(own_inbox, key) && self.may_keep(charge_bytes, own_inbox, key)
    }

    /// Writes a piece of a message, and wakes the peer if it sleeps; unless it ends the message
    /// the peer may sleep on.
    #[inline(always)] // The path of a short message.
    pub(super) fn write_piece(
        &mut self,
        envelope: Envelope,
        payload: Payload<'_>,
        charge_bytes: u64,
        piece: Piece,
    ) -> Result<(), SendError> {
        let sent = self.inbox.send_piece(envelope, payload, piece);
        self.note_sent(sent, charge_bytes)
    }

    /// Counts what was sent, and rings.
    #[inline(always)] // The path of a short message.
    pub(super) fn note_sent(
        &mut self,
        sent: Result<Sent, SendError>,
        charge_bytes: u64,
    ) -> Result<(), SendError> {
        let sent = match sent {
            Ok(sent) => sent,
            Err(error) => {
                // A sleeping receiver must be woken to make room.
                if let SendError::Full { wake: true } = error {
                    self.ring();
                }
                return Err(error);
            }
        };
        self.count_sent(&sent, charge_bytes);
        Ok(())
    }

    #[inline]
    fn count_sent(&mut self, sent: &Sent, charge_bytes: u64) {
        self.sent.drained_cells = self.sent.drained_cells.wrapping_add(1);
        self.sent.released_bytes = self.sent.released_bytes.wrapping_add(charge_bytes);
        if sent.wake {
            self.ring();
        }
    }
}
