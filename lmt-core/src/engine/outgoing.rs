//! Messages on their way out: into a cell at once where there is room, else
//! into the peer's queue, and from there in order.

use super::adapting::Route;
use super::cells::lacks;
use super::label::{Label, Marks};
use super::link::Ringing;
use super::many::Many;
use super::peer::{Connection, Link, Outgoing, Peer};
use super::requests::{OperationError, PeerId, Request, RequestId, State, Status, Waiting};
use super::traffic::{Arrived, OVERHEAD_BYTES, Traffic, Unexpected, kind, received};
use crate::buffer::{Buffer, copy_between};
use crate::identity::{Address, EndpointId};
use crate::inbox::{Envelope, InboxReceiver, Payload, Piece};
use crate::matching::Matcher;
use crate::rendezvous::{Candidates, Packet, PeerKey, Rts, SendId};
use crate::selection::{Hints, Message};
use crate::shared_buffer::is_shared;

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

/// What became of an attempt to write into a peer's inbox.
enum Written {
    Whole,
    /// So many bytes of it; there is no more room now.
    Part(u64),
}

impl Traffic {
    /// Begins a send to `to`.
    #[inline]
    pub fn send(
        &mut self,
        to: PeerId,
        label: Label,
        buffer: Buffer,
        options: SendOptions,
        credits: &InboxReceiver,
    ) -> Result<(RequestId, Option<Address>), OperationError> {
        // Wherever this ends, it is not for the message after.
        let decided = self.decided.take();
        let key = self.key_named(to)?;
        let SendOptions { mode, hints } = options;
        if self.peers[key as usize].group_version != self.selection.group_version() {
            self.renew_eager(key);
        }
        let peer = &mut self.peers[key as usize];
        if peer.id == self.id {
            return Ok((self.send_to_self(key, label, buffer, mode), None));
        }
        let wish = match &peer.connection {
            Connection::Gone(crate::error::PeerError::Dead { .. }) => return Err(gone(peer)),
            Connection::None | Connection::Gone(_) => {
                peer.connection = Connection::Pending;
                peer.address.clone()
            }
            _ => None,
        };
        let bytes = buffer.total_bytes();
        let boxless_bytes = self.config.boxless_eager_max_bytes;
        let own_cell_bytes = self.config.cell_bytes;
        let lacks_cells = |link: &mut Link| lacks(link, bytes, own_cell_bytes, credits, key);
        let is_short = mode == SendMode::Standard && peer.takes_cells(bytes, boxless_bytes, lacks_cells);
        let route = match is_short || !matches!(peer.connection, Connection::Up(_)) {
            true => None,
            false => {
                self.check_room(key)?;
                Some(self.route(key, &buffer, &options, decided, credits))
            }
        };
        if is_short || matches!(route, Some(Route::Cells)) {
            let peer = &mut self.peers[key as usize];
            let mut sent_bytes = 0;
            if peer.ordered.is_empty() {
                match Self::write_eager(peer, self.config.cell_bytes, &label, &buffer, 0, credits, key) {
                    Written::Whole => {
                        peer.eager.sent.count(bytes);
                        self.eager.sent.count(bytes);
                        let (tag, immediate) = (label.tag, label.immediate);
                        let done = Request::done(Ok(Status { peer: to, tag, bytes, immediate }));
                        return Ok((self.requests.insert(done), wish));
                    }
                    Written::Part(now) => sent_bytes = now,
                }
            }
            // Of a message that has begun the peer waits for the rest.
            if sent_bytes == 0 {
                self.check_room(key)?;
            }
            let id = self.requests.insert(Request::new(buffer, Some(key), label, Waiting::Queued));
            self.queue(key, Outgoing::Eager { request: id, sent_bytes, hints, by_choice: !is_short });
            return Ok((id, wish));
        }
        self.check_room(key)?;
        if let Some(Route::Announced(candidates)) = &route {
            let id = self.requests.insert(Request::announced(bytes, key, label));
            self.announce_by(key, id, buffer, candidates);
            self.settle_by(Some(credits));
            if self.peers[key as usize].has_output() {
                self.flush(key, credits);
            }
            return Ok((id, wish));
        }
        let id = self.requests.insert(Request::new(buffer, Some(key), label, Waiting::Queued));
        // Which mechanisms there are is known once the peer is connected.
        self.queue(key, Outgoing::Eager { request: id, sent_bytes: 0, hints, by_choice: false });
        if mode == SendMode::Synchronous {
            self.synchronous.insert(id);
        }
        Ok((id, wish))
    }

    /// Hands a message that has waited to the rendezvous protocol.
    fn announce(&mut self, key: PeerKey, id: RequestId, hints: Hints) {
        let Some(buffer) = self.requests.get(id).and_then(|request| request.buffer.as_ref()) else { return };
        let message = Message {
            bytes: buffer.total_bytes(),
            contiguous: buffer.is_contiguous(),
            shared: self.transfers.shared_ends(key, is_shared(buffer)),
            hints,
            readers: self.transfers.other_readers(key),
        };
        let mechanisms = self.transfers.standings();
        let candidates = *self.selection.candidates(key, mechanisms, &self.config, &message);
        if let Some(buffer) = self.requests.get_mut(id).and_then(|request| request.buffer.take()) {
            self.announce_by(key, id, buffer, &candidates);
        }
    }

    /// Hands a message to the rendezvous protocol, with the ways to try.
    fn announce_by(&mut self, key: PeerKey, id: RequestId, buffer: Buffer, candidates: &Candidates) {
        let send_id = self.transfers.send(key, buffer, candidates, id.to_raw());
        self.requests.set_waiting(id, Waiting::Sending(send_id));
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

    fn queue(&mut self, key: PeerKey, message: Outgoing) {
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
        if self.peers[key as usize].group_version != self.selection.group_version() {
            self.renew_eager(key);
        }
        let cell_bytes = self.config.cell_bytes;
        let name = self.name(key);
        let boxless_bytes = self.config.boxless_eager_max_bytes;
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
            Some(&Outgoing::Eager { request, sent_bytes, hints, by_choice }) => {
                if !matches!(peer.connection, Connection::Up(_)) {
                    return false;
                }
                let Some(entry) = self.requests.get(request) else {
                    peer.ordered.pop_front();
                    return true;
                };
                let bytes = entry.bytes;
                let lacks_cells = |link: &mut Link| lacks(link, bytes, cell_bytes, credits, key);
                if sent_bytes == 0
                    && (self.synchronous.remove(&request)
                        || (!by_choice && !peer.takes_cells(bytes, boxless_bytes, lacks_cells))
                        || self.is_overdrawn(key, request, credits))
                {
                    let peer = &mut self.peers[key as usize];
                    peer.ordered.pop_front();
                    self.announce_in_place(key, request, hints);
                    return true;
                }
                let Some(entry) = self.requests.get(request) else { return false };
                let Some(buffer) = &entry.buffer else { return false };
                let (label, peer) = (entry.label, &mut self.peers[key as usize]);
                match Self::write_eager(peer, cell_bytes, &label, buffer, sent_bytes, credits, key) {
                    Written::Whole => {
                        peer.ordered.pop_front();
                        peer.eager.sent.count(entry.bytes);
                        self.eager.sent.count(entry.bytes);
                        let (tag, immediate) = (label.tag, label.immediate);
                        let status = Status { peer: name, tag, bytes: entry.bytes, immediate };
                        self.requests.complete(request, Ok(status));
                        true
                    }
                    Written::Part(now) => {
                        peer.ordered[0] = Outgoing::Eager { request, sent_bytes: now, hints, by_choice };
                        now > sent_bytes
                    }
                }
            }
        }
    }

    /// Whether the peer keeps no more unexpected bytes of this process, so that
    /// a short message is to be announced like a long one. Held back instead,
    /// it could never meet a receive that was posted for it, if the messages
    /// before it are to be received later.
    fn is_overdrawn(&mut self, key: PeerKey, request: RequestId, credits: &InboxReceiver) -> bool {
        let Some(bytes) = self.requests.get(request).map(|r| r.bytes) else { return false };
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
        self.announce(key, request, hints);
        self.settle();
        let ordered = &mut self.peers[key as usize].ordered;
        // What was queued is its announcement: one step, however many wait.
        ordered.rotate_right(ordered.len().saturating_sub(behind));
    }

    /// Writes the cells of an eager message from `sent_bytes` on.
    fn write_eager(
        peer: &mut Peer,
        cell_bytes: u32,
        label: &Label,
        buffer: &Buffer,
        mut sent_bytes: u64,
        credits: &InboxReceiver,
        key: PeerKey,
    ) -> Written {
        let Connection::Up(link) = &mut peer.connection else { return Written::Part(sent_bytes) };
        let total = buffer.total_bytes();
        let cell_bytes = link.cell_bytes(cell_bytes);
        let cut = peer.reading.cut();
        // Once begun, a message goes on: the room for all of it was there.
        if sent_bytes == 0 && !link.may_keep(link.charge_of(total, cell_bytes), credits, key) {
            return Written::Part(0);
        }
        loop {
            if !link.may_write(credits, key) {
                return Written::Part(sent_bytes);
            }
            let rest = Payload::Part(buffer, sent_bytes..total);
            let bytes = link.inbox.piece_bytes(sent_bytes, total, cell_bytes, rest.first_address(), cut);
            let charge = bytes + OVERHEAD_BYTES;
            let (envelope, piece) = envelope_of(label, sent_bytes, bytes, total);
            let payload = Payload::Part(buffer, sent_bytes..sent_bytes + bytes);
            if link.write_piece(envelope, payload, charge, piece).is_err() {
                return Written::Part(sent_bytes);
            }
            sent_bytes += bytes;
            if sent_bytes == total {
                return Written::Whole;
            }
        }
    }

    /// A message to oneself never leaves the process.
    fn send_to_self(&mut self, key: PeerKey, label: Label, buffer: Buffer, mode: SendMode) -> RequestId {
        let Label { tag, space, immediate } = label;
        let bytes = buffer.total_bytes();
        let done = Request::done(Ok(Status { peer: self.name(key), tag, bytes, immediate }));
        if let Some(receive) = self.receive_for(key, &label, bytes) {
            let copied = match self.requests.get_mut(receive).and_then(|r| r.buffer.as_mut()) {
                Some(target) => copy_between(&buffer, target),
                None => 0,
            };
            self.requests.complete(receive, received(self.name(key), &label, bytes, copied));
            return self.requests.insert(done);
        }
        if mode == SendMode::Standard && bytes <= self.config.eager_max_bytes {
            let mut data = self.store.take(bytes as usize);
            buffer.read_at(0, &mut data);
            let connection = self.peers[key as usize].ended_connections;
            let content = Unexpected::Eager { data, charge_bytes: 0, connection };
            self.matchers.of(space).keep(key, tag, Arrived { immediate, content });
            return self.requests.insert(done);
        }
        let id = self.requests.insert(Request::new(buffer, Some(key), label, Waiting::Queued));
        let arrived = Arrived { immediate, content: Unexpected::Local(id) };
        let handle = self.matchers.of(space).keep(key, tag, arrived);
        self.requests.set_waiting(id, Waiting::Local(space, handle));
        id
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
