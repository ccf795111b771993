//! Messages on their way out that wait: the queue of each peer, in the order in which the
//! application sent them, and the packets of the rendezvous protocol.

use super::label::{Label, Marks};
use super::link::{Ringing, Written};
use super::many::Many;
use super::peer::{Connection, Outgoing, Peer};
use super::requests::{OperationError, RequestId, State, Status, Waiting};
use super::traffic::{OVERHEAD_BYTES, Traffic, kind};
use crate::identity::EndpointId;
use crate::inbox::{Envelope, InboxReceiver, Piece};
use crate::matching::Matcher;
use crate::rendezvous::{Packet, PeerKey, Rts, SendId};
use crate::selection::{Hints, Message};

/// When a send is complete.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum SendMode {
    /// When its buffer may be used again: at once, or when the receiver has looked for
    /// messages, or when it is matched, by the way that the message takes. Two processes
    /// that both send before they receive may wait for each other beyond
    /// `boxless_eager_max_bytes`, though the message is short enough for cells: these may
    /// have run out.
    #[default]
    Standard,
    /// When the message is matched by a receive, too.
    Synchronous,
}

/// How a message is to be sent: when the send is complete, and what the caller
/// tells of the message. A [`SendMode`] alone will do.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SendOptions {
    /// When the send is complete.
    pub mode: SendMode,
    /// What helps to choose the way.
    pub hints: Hints,
}

impl From<SendMode> for SendOptions {
    fn from(mode: SendMode) -> Self {
        Self { mode, ..Self::default() }
    }
}

impl From<Hints> for SendOptions {
    fn from(hints: Hints) -> Self {
        Self { hints, ..Self::default() }
    }
}

impl Traffic {
    /// Queues a message behind those that wait for the peer.
    pub(super) fn queue(&mut self, key: PeerKey, message: Outgoing) {
        self.peers[key as usize].ordered.push_back(message);
        self.mark_busy(key);
    }

    /// Enters a peer, once, into the list of those that are written to.
    pub fn mark_busy(&mut self, key: PeerKey) {
        if !std::mem::replace(&mut self.peers[key as usize].in_busy, true) {
            self.busy.push(key);
        }
    }

    /// Writes or queues the next packet of the rendezvous protocol, if there is one: an
    /// RTS in order with the application's messages, all others ahead of them. Without
    /// `credits` an RTS is queued.
    pub fn send_packet(&mut self, credits: Option<&InboxReceiver>) -> bool {
        // It stays where it is until it is written: it is long, and its parts have just
        // been stored.
        let Some((key, packet)) = self.transfers.front_packet() else { return false };
        let key = *key;
        match packet {
            Packet::Rts(Rts { send_id, .. }) => {
                let send_id = *send_id;
                self.send_rts(key, send_id, credits);
            }
            Packet::Cancel { send_id } => {
                let send_id = *send_id;
                self.send_cancel(key, send_id);
            }
            _ => self.send_control(key),
        }
        true
    }

    /// Sends the next packet, which is an RTS.
    fn send_rts(&mut self, key: PeerKey, send_id: SendId, credits: Option<&InboxReceiver>) {
        let entry = self.transfers.token_of(send_id);
        let request = entry.and_then(|t| self.requests.get(RequestId::from_raw(t)));
        let label = request.map_or_else(Label::default, |r| r.label);
        let Some((_, packet)) = self.transfers.front_packet() else { return };
        let peer = &mut self.peers[key as usize];
        let is_next = peer.control.is_empty() && peer.ordered.is_empty();
        if !(is_next && credits.is_some_and(|all| write_rts(key, peer, packet, &label, all))) {
            let packet = *packet;
            self.queue(key, Outgoing::Rts { packet, label, send_id });
        }
        self.transfers.drop_packet();
    }

    /// Sends the next packet, which takes a message back.
    fn send_cancel(&mut self, key: PeerKey, send_id: SendId) {
        if !self.unqueue_rts(key, send_id) {
            return self.send_control(key);
        }
        self.transfers.drop_packet();
        // The RTS never left: the peer cannot have matched it.
        let reply = Packet::CancelReply { send_id, cancelled: true };
        if let Err(error) = self.transfers.packet(key, &reply) {
            tracing::error!(%error, "cancelling an unsent message failed");
        }
    }

    /// Sends the next packet, which is no RTS: at once where there is room, for the peer
    /// waits for it.
    fn send_control(&mut self, key: PeerKey) {
        let Some((_, packet)) = self.transfers.front_packet() else { return };
        let Peer { id, connection, control, .. } = &mut self.peers[key as usize];
        let rings = if self.bells_later { Ringing::Later } else { Ringing::Now };
        if !(control.is_empty() && write_control(*id, connection, packet, rings)) {
            control.push_back(*packet);
            self.mark_busy(key);
        } else if self.bells_later && !self.bells.contains(&key) {
            self.bells.push(key);
        }
        self.transfers.drop_packet();
    }

    /// Takes an RTS back that still waits in this process.
    fn unqueue_rts(&mut self, key: PeerKey, wanted: SendId) -> bool {
        let queue = &mut self.peers[key as usize].ordered;
        let is_it = |m: &Outgoing| matches!(m, Outgoing::Rts { send_id, .. } if *send_id == wanted);
        let at = queue.iter().position(is_it);
        at.and_then(|at| queue.remove(at)).is_some()
    }

    /// Whether a packet that a connected peer waits for is still to be written.
    pub fn owes_an_answer(&self) -> bool {
        self.busy.iter().any(|key| {
            let peer = &self.peers[*key as usize];
            matches!(peer.connection, Connection::Up(_)) && !peer.control.is_empty()
        })
    }

    /// Whether something waits for room in an inbox that this process writes to.
    pub fn is_writing(&self) -> bool {
        self.busy.iter().any(|key| matches!(self.peers[*key as usize].connection, Connection::Up(_)))
    }

    /// Writes what waits for every peer, as far as there is room.
    pub fn flush_all(&mut self, credits: &InboxReceiver) -> bool {
        let mut moved = false;
        let mut at = 0;
        while at < self.busy.len() {
            let key = self.busy[at];
            moved |= self.flush(key, credits);
            if self.peers[key as usize].has_output() {
                at += 1;
            } else {
                self.peers[key as usize].in_busy = false;
                self.busy.swap_remove(at);
            }
        }
        moved
    }

    /// Writes what waits for one peer. Returns whether anything was written.
    pub fn flush(&mut self, key: PeerKey, credits: &InboxReceiver) -> bool {
        let mut moved = false;
        while self.flush_control(key) {
            moved = true;
        }
        if self.peers[key as usize].control.is_empty() {
            while self.flush_ordered(key, credits) {
                moved = true;
            }
        }
        moved
    }

    fn flush_control(&mut self, key: PeerKey) -> bool {
        let Peer { id, connection, control, .. } = &mut self.peers[key as usize];
        let is_written =
            control.front().is_some_and(|packet| write_control(*id, connection, packet, Ringing::Now));
        if is_written {
            control.pop_front();
        }
        is_written
    }

    fn flush_ordered(&mut self, key: PeerKey, credits: &InboxReceiver) -> bool {
        let peer = &mut self.peers[key as usize];
        match peer.ordered.front() {
            None => false,
            Some(&Outgoing::Rts { packet, label, .. }) => {
                let is_written = write_rts(key, peer, &packet, &label, credits);
                if is_written {
                    peer.ordered.pop_front();
                }
                is_written
            }
            Some(&Outgoing::Eager { request, sent_bytes, hints }) => {
                matches!(peer.connection, Connection::Up(_))
                    && self.flush_eager(key, (request, sent_bytes, hints), credits)
            }
        }
    }

    /// Writes what there is room for of the message at the head of a connected peer's queue, or
    /// announces it.
    fn flush_eager(
        &mut self,
        key: PeerKey,
        (request, sent_bytes, hints): (RequestId, u64, Hints),
        credits: &InboxReceiver,
    ) -> bool {
        let Some(bytes) = self.requests.get(request).map(|entry| entry.bytes) else {
            self.peers[key as usize].ordered.pop_front();
            return true;
        };
        if sent_bytes == 0
            && (self.synchronous.remove(&request)
                || !self.goes_in_cells(key, bytes, credits)
                || self.is_overdrawn(key, bytes, credits))
        {
            self.peers[key as usize].ordered.pop_front();
            self.announce_in_place(key, request, hints);
            return true;
        }
        let (name, cell_bytes) = (self.name(key), self.config.cell_bytes);
        let Some(entry) = self.requests.get(request) else { return false };
        let (Some(buffer), label) = (&entry.buffer, entry.label) else { return false };
        let peer = &mut self.peers[key as usize];
        match peer.write(cell_bytes, &label, buffer, sent_bytes, credits, key) {
            Written::Whole => {
                peer.ordered.pop_front();
                self.count_eager_sent(key, bytes);
                let (tag, immediate) = (label.tag, label.immediate);
                self.requests.complete(request, Ok(Status { peer: name, tag, bytes, immediate }));
                true
            }
            Written::Part(now) => {
                peer.ordered[0] = Outgoing::Eager { request, sent_bytes: now, hints };
                now > sent_bytes
            }
        }
    }

    /// Whether the peer keeps no more unexpected bytes of this process, so that
    /// a short message is to be announced like a long one. Held back instead,
    /// it could never meet a receive that was posted for it, if the messages
    /// before it are to be received later.
    fn is_overdrawn(&mut self, key: PeerKey, bytes: u64, credits: &InboxReceiver) -> bool {
        let own_cell_bytes = self.config.cell_bytes;
        let Some(link) = self.peers[key as usize].link() else { return false };
        let charge_bytes = link.charge_of(bytes, link.cell_bytes(own_cell_bytes));
        if link.may_keep(charge_bytes, credits, key) {
            return false;
        }
        let message = Message::of_bytes(bytes);
        let mechanisms = self.transfers.standings();
        !self.selection.candidates(key, mechanisms, &self.config, &message).as_slice().is_empty()
    }

    /// Announces a message that waited for the connection, at the head of its
    /// queue, where it was.
    fn announce_in_place(&mut self, key: PeerKey, request: RequestId, hints: Hints) {
        let behind = self.peers[key as usize].ordered.len();
        if let Some(buffer) = self.requests.get_mut(request).and_then(|request| request.buffer.take()) {
            let candidates = self.ways(key, &buffer, hints);
            self.announce(key, request, buffer, &candidates);
        }
        self.settle();
        let ordered = &mut self.peers[key as usize].ordered;
        // What was queued is its announcement: one step, however many wait.
        ordered.rotate_right(ordered.len().saturating_sub(behind));
    }

    /// Takes an operation back if nothing has matched it yet. Returns whether
    /// it is certain already that it was; if not, its result will tell.
    pub fn cancel(&mut self, id: RequestId) -> bool {
        let Some(request) = self.requests.get(id) else { return false };
        let State::Waiting(waiting) = &request.state else { return false };
        let key = request.peer;
        let cancelled = match *waiting {
            Waiting::Posted(space, handle) => self.matchers.of(space).cancel_posted(handle).is_some(),
            Waiting::Many(Many { space, posted, .. }) => {
                posted.is_some_and(|handle| self.matchers.of(space).cancel_posted(handle).is_some())
            }
            Waiting::Local(space, handle) => self.matchers.of(space).remove_unexpected(handle).is_some(),
            Waiting::Queued => key.is_some_and(|key| self.unqueue_eager(key, id)),
            Waiting::Sending(send_id) => {
                self.transfers.cancel(send_id);
                self.settle();
                return self.requests.is_done(id);
            }
            // Its buffer is in use only during a turn.
            Waiting::OneSided => true,
            Waiting::Matched => false,
        };
        if cancelled {
            self.synchronous.remove(&id);
            self.requests.complete(id, Err(OperationError::Cancelled));
        }
        cancelled
    }

    /// Takes a queued message back of which nothing has left yet.
    fn unqueue_eager(&mut self, key: PeerKey, wanted: RequestId) -> bool {
        let queue = &mut self.peers[key as usize].ordered;
        let is_it =
            |m: &Outgoing| matches!(m, Outgoing::Eager { request, sent_bytes: 0, .. } if *request == wanted);
        let at = queue.iter().position(is_it);
        at.and_then(|at| queue.remove(at)).is_some()
    }
}

/// How the piece of `bytes` bytes that comes after `sent_bytes` goes, of a
/// message of `total_bytes` bytes.
#[inline]
pub(super) fn envelope_of(label: &Label, sent_bytes: u64, bytes: u64, total_bytes: u64) -> (Envelope, Piece) {
    let immediate = label.immediate.unwrap_or_default();
    let (kind, aux, piece) = match (sent_bytes, sent_bytes + bytes == total_bytes) {
        (0, true) => (kind::EAGER, immediate, Piece::Whole),
        (0, false) => (kind::FIRST, total_bytes as u32, Piece::First),
        (_, false) => (kind::MORE, immediate, Piece::Next),
        (_, true) => (kind::MORE, immediate, Piece::Last),
    };
    (envelope_with(label, kind, aux), piece)
}

/// A cell's envelope, with the marks of its message.
#[inline]
fn envelope_with(label: &Label, kind: u8, aux: u32) -> Envelope {
    Envelope { kind: Marks::of(label).on(kind), aux, tag: label.tag }
}

/// The error of a peer whose connection has ended.
pub(crate) fn gone(peer: &Peer) -> OperationError {
    match &peer.connection {
        Connection::Gone(error) => error.clone().into(),
        _ => crate::error::PeerError::Dead { id: peer.id }.into(),
    }
}

/// Writes a packet that needs no room in the peer's queues, if there is a cell for it.
fn write_control(id: EndpointId, connection: &mut Connection, packet: &Packet, bell: Ringing) -> bool {
    let Connection::Up(link) = connection else { return false };
    let envelope = Envelope { kind: kind::CONTROL, aux: 0, tag: 0 };
    let is_written = link.write_packet(envelope, packet, 0, bell);
    if is_written {
        tracing::trace!(peer = %id, ?packet, "sent a packet");
    }
    is_written
}

/// Writes an RTS, which takes a cell and no room among the unexpected bytes: were it held
/// back for those, a receive that waits for this very message would never see it.
fn write_rts(key: PeerKey, peer: &mut Peer, packet: &Packet, label: &Label, credits: &InboxReceiver) -> bool {
    let Connection::Up(link) = &mut peer.connection else { return false };
    let envelope = envelope_with(label, kind::RTS, label.immediate.unwrap_or_default());
    let is_written =
        link.may_write(credits, key) && link.write_packet(envelope, packet, OVERHEAD_BYTES, Ringing::Now);
    if is_written {
        tracing::trace!(peer = %peer.id, ?packet, ?label, "announced a message");
    }
    is_written
}
