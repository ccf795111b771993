//! Messages on their way in: from a cell or a packet to the receive that
//! matches.

use super::blocking_receive::{Found, PolledReceive};
use super::cells::{KindByte, OVERHEAD_BYTES, kind};
use super::multi_receive::receive_for;
use super::peer::{Assembly, Connection, Peer, Target};
use super::state::Traffic;
use super::unexpected::{Arrived, Eager, Unexpected};
use super::unexpected_store::PooledBytes;
use crate::matching::{Matcher, UnexpectedHandle};
use crate::memory::buffer::Buffer;
use crate::queue::{Delivery, Header, InboxReceiver, Next};
use crate::requests::ids::{PeerId, RequestId};
use crate::requests::label::Label;
use crate::requests::outcome::{Outcome, received};
use crate::requests::table::{State, Waiting};
use crate::vocabulary::identity::PeerKey;

impl Traffic {
    /// Takes the next cell out of the inbox; what no posted receive accepts may be for the one that
    /// is `awaited`.
    #[inline(always)] // The path of a short message.
    pub(super) fn deliver(
        &mut self,
        inbox: &mut InboxReceiver,
        next: Next,
        awaited: Option<&mut PolledReceive>,
    ) -> Found {
        self.events = self.events.wrapping_add(1);
        self.in_pieces = false;
        let Header { sender, kind, aux, tag, bytes } = next.header;
        let key = PeerKey::from(sender);
        let (kind, marks) = KindByte::read(kind);
        let label = Label { tag, space: marks.space, immediate: marks.has_immediate.then_some(aux) };
        let Self { peers, matchers, requests, return_credits_to, eager, .. } = self;
        let Some(peer) = peers.get_mut(key as usize) else {
            inbox.finish(next);
            return Found::Something;
        };
        let (Connection::Up(link) | Connection::AwaitingReport(link)) = &mut peer.connection else {
            inbox.finish(next);
            return Found::Something;
        };
        link.inbox.prefetch_for_send(bytes);
        link.drained.drained_cells = link.drained.drained_cells.wrapping_add(1);
        let (bytes, name) = (bytes as u64, PeerId::new(key, peer.generation));
        let is_message = kind == kind::EAGER && peer.bound;
        let receive = if is_message { receive_for(matchers, requests, name, &label, bytes) } else { None };
        let is_awaited = is_message
            && receive.is_none()
            && awaited.as_deref().is_some_and(|awaited| awaited.takes(key, &label));
        if receive.is_some() || is_awaited {
            peer.eager.received.count(bytes);
            eager.received.count(bytes);
            link.release(bytes + OVERHEAD_BYTES);
        }
        if link.return_credits_or_note() {
            return_credits_to.push(key);
        }
        match (receive, awaited) {
            (Some(request), _) => {
                let copied = match requests.get_mut(request).and_then(|r| r.buffer.as_mut()) {
                    Some(buffer) => inbox.copy_to_buffer(next, buffer, 0) as u64,
                    None => 0,
                };
                if copied == bytes {
                    requests.complete_whole(request, name, &label, bytes);
                } else {
                    requests.complete(request, received(name, &label, bytes, copied));
                }
                inbox.finish(next);
                Found::Something
            }
            (None, Some(awaited)) if is_awaited => {
                awaited.take(name, &label, inbox, next);
                inbox.finish(next);
                Found::PolledReceive
            }
            (None, awaited) => {
                self.sort(key, (kind, label), &inbox.deliver(next), awaited);
                Found::Something
            }
        }
    }

    /// What a cell holds that no receive has got goes where it belongs.
    fn sort(
        &mut self,
        key: PeerKey,
        (kind, label): (u8, Label),
        delivery: &Delivery<'_>,
        awaited: Option<&mut PolledReceive>,
    ) {
        let charge_bytes = delivery.bytes() as u64 + OVERHEAD_BYTES;
        match kind {
            kind::EAGER => self.keep_eager(key, label, delivery),
            kind::FIRST => self.first(key, label, delivery, awaited),
            kind::MORE => self.more(key, label.immediate, delivery, charge_bytes),
            kind::RTS | kind::CONTROL => self.packet(key, label, delivery, awaited),
            kind::MAP_REGION => self.asked_to_share(key, delivery),
            _ => {
                let kind = delivery.kind();
                tracing::warn!(kind, "a peer wrote a cell of unknown kind; it is ignored");
            }
        }
    }

    /// Keeps a whole message for a receive that is still to come.
    fn keep_eager(&mut self, key: PeerKey, label: Label, delivery: &Delivery<'_>) {
        let charge_bytes = delivery.bytes() as u64 + OVERHEAD_BYTES;
        let mut data = self.store.take(delivery.bytes());
        delivery.copy_to(&mut data);
        let connection = self.peers[key as usize].ended_connections;
        self.unexpected(key, label, Unexpected::Eager { data, charge_bytes, connection });
    }

    /// Gives back room in the unexpected queue to the peer that used it.
    pub(super) fn release(&mut self, key: PeerKey, charge_bytes: u64) {
        let Some(link) = self.peers.get_mut(key as usize).and_then(Peer::link) else { return };
        link.release(charge_bytes);
        if link.return_credits_or_note() {
            self.return_credits_to.push(key);
        }
    }

    /// The request of the receive for a message that has begun to come.
    pub(super) fn request_for(
        &mut self,
        key: PeerKey,
        label: &Label,
        bytes: u64,
        awaited: Option<&mut PolledReceive>,
    ) -> Option<RequestId> {
        self.receive_for(key, label, bytes).or_else(|| {
            let awaited = awaited.filter(|awaited| awaited.takes(key, label))?;
            Some(awaited.begin(&mut self.requests))
        })
    }

    /// Counts a message that was received out of cells.
    #[inline]
    pub(super) fn count_eager_arrival(&mut self, key: PeerKey, bytes: u64) {
        self.eager.received.count(bytes);
        if let Some(peer) = self.peers.get_mut(key as usize) {
            peer.eager.received.count(bytes);
        }
    }

    /// Keeps a message for a receive that is still to come.
    pub(super) fn unexpected(&mut self, key: PeerKey, label: Label, message: Unexpected) {
        let peer = &mut self.peers[key as usize];
        if peer.bound {
            self.keep(key, label, message);
        } else {
            peer.parked.push_back((label, message));
        }
    }

    fn keep(&mut self, key: PeerKey, label: Label, content: Unexpected) {
        let arriving = matches!(content, Unexpected::Arriving { .. });
        let arrived = Arrived { immediate: label.immediate, content };
        let handle = self.matchers.of(label.space).keep(key, label.tag, arrived);
        if arriving
            && let Some(Assembly { target: Target::Heap { place, .. }, .. }) =
                &mut self.peers[key as usize].assembly
        {
            *place = Some(handle);
        }
    }

    /// The embedder has named a peer whose messages came earlier.
    pub fn deliver_parked(&mut self, key: PeerKey) {
        let parked = std::mem::take(&mut self.peers[key as usize].parked);
        for (label, message) in parked {
            let bytes = message.total_bytes(&self.requests);
            match self.receive_for(key, &label, bytes) {
                Some(request) => self.join(key, label, message, request),
                None => self.keep(key, label, message),
            }
        }
    }

    /// The first part of a message of several cells.
    fn first(
        &mut self,
        key: PeerKey,
        label: Label,
        delivery: &Delivery<'_>,
        awaited: Option<&mut PolledReceive>,
    ) {
        let charge_bytes = delivery.bytes() as u64 + OVERHEAD_BYTES;
        let total_bytes = u64::from(delivery.aux());
        // What stands where the number would be is the length.
        let awaits_immediate = label.immediate.is_some();
        let label = Label { immediate: None, ..label };
        if total_bytes > self.config.eager_max_bytes.max(1 << 20) || total_bytes < delivery.bytes() as u64 {
            tracing::warn!(total_bytes, "a peer announced an eager message of impossible length");
            self.release(key, charge_bytes);
            return;
        }
        let bound = self.peers[key as usize].bound;
        let target = match bound.then(|| self.request_for(key, &label, total_bytes, awaited)).flatten() {
            Some(request) => {
                self.note_match(key, label, request);
                Target::Request(request)
            }
            None => Target::Heap { data: self.store.take(total_bytes as usize), request: None, place: None },
        };
        let is_unexpected = matches!(target, Target::Heap { .. });
        let assembly = Assembly { label, total_bytes, arrived_bytes: 0, charge_bytes: 0, target };
        self.peers[key as usize].assembly = Some(assembly);
        if is_unexpected {
            self.unexpected(key, label, Unexpected::Arriving { total_bytes, awaits_immediate });
        }
        self.more(key, None, delivery, charge_bytes);
    }

    /// A further part, which goes where the first went.
    fn more(&mut self, key: PeerKey, immediate: Option<u32>, delivery: &Delivery<'_>, charge_bytes: u64) {
        let Some(assembly) = &mut self.peers[key as usize].assembly else { return };
        self.in_pieces = true;
        assembly.label.immediate = immediate;
        assembly.charge_bytes += charge_bytes;
        let offset = assembly.arrived_bytes;
        if delivery.bytes() as u64 > assembly.total_bytes - offset {
            tracing::warn!("a peer sent more of an eager message than it had announced");
            return;
        }
        match &mut assembly.target {
            Target::Request(request) => {
                if let Some(buffer) = self.requests.get_mut(*request).and_then(|r| r.buffer.as_mut()) {
                    delivery.copy_to_buffer(buffer, offset);
                }
            }
            Target::Heap { data, .. } => {
                delivery.copy_to(&mut data[offset as usize..]);
            }
        }
        assembly.arrived_bytes += delivery.bytes() as u64;
        if assembly.arrived_bytes == assembly.total_bytes {
            self.assembled(key);
        }
    }

    /// The last part of a message of several cells is here.
    fn assembled(&mut self, key: PeerKey) {
        self.in_pieces = false;
        let Some(assembly) = self.peers[key as usize].assembly.take() else { return };
        let (label, total, charge_bytes) = (assembly.label, assembly.total_bytes, assembly.charge_bytes);
        match assembly.target {
            Target::Request(request) => {
                let room = self.buffer_bytes(request);
                self.release(key, charge_bytes);
                self.count_eager_arrival(key, total);
                self.requests.complete(request, received(self.name(key), &label, total, room.min(total)));
            }
            Target::Heap { data, request: Some(request), .. } => {
                self.release(key, charge_bytes);
                self.count_eager_arrival(key, total);
                self.hand_over(self.name(key), &label, data, request);
            }
            Target::Heap { data, request: None, place } => {
                let connection = self.peers[key as usize].ended_connections;
                let whole = Unexpected::Eager { data, charge_bytes, connection };
                self.replace_arriving(key, label, place, whole);
            }
        }
    }

    /// Puts a message that is complete now in its own place in the queue.
    fn replace_arriving(
        &mut self,
        key: PeerKey,
        label: Label,
        place: Option<UnexpectedHandle>,
        whole: Unexpected,
    ) {
        let arriving = |m: &Unexpected| matches!(m, Unexpected::Arriving { .. });
        if let Some(handle) = place {
            if let Some(message) = self.matchers.of(label.space).unexpected_mut(handle) {
                *message = Arrived { immediate: label.immediate, content: whole };
            }
            return;
        }
        // Behind it are only announcements that came between its parts.
        let parked = &mut self.peers[key as usize].parked;
        if let Some(message) = parked.iter_mut().rev().find(|(_, m)| arriving(m)) {
            *message = (label, whole);
        }
    }

    fn buffer_bytes(&self, request: RequestId) -> u64 {
        self.requests.get(request).and_then(|r| r.buffer.as_ref()).map_or(0, |b| b.total_bytes())
    }

    /// Copies bytes that were kept for a receive into its buffer.
    pub(super) fn copy_in(
        &mut self,
        key: PeerKey,
        label: &Label,
        message: Eager,
        buffer: &mut Buffer,
    ) -> Outcome {
        let Eager { data, charge_bytes, connection } = message;
        // What an earlier connection was charged, the present one must not be
        // given back: its sender would take it for a debt without end.
        if self.peers[key as usize].ended_connections == connection {
            self.release(key, charge_bytes);
        }
        let bytes = data.len() as u64;
        self.count_eager_arrival(key, bytes);
        let copied = buffer.write_at(0, &data) as u64;
        self.store.give_back(data);
        received(self.name(key), label, bytes, copied)
    }

    /// Ends a receive with a message's bytes.
    pub fn hand_over(&mut self, peer: PeerId, label: &Label, data: PooledBytes, request: RequestId) {
        let copied = match self.requests.get_mut(request).and_then(|r| r.buffer.as_mut()) {
            Some(buffer) => buffer.write_at(0, &data) as u64,
            None => 0,
        };
        self.requests.complete(request, received(peer, label, data.len() as u64, copied));
        self.store.give_back(data);
    }

    /// Brings a message and the receive that it matches together.
    pub fn join(&mut self, key: PeerKey, label: Label, message: Unexpected, request: RequestId) {
        match message {
            Unexpected::Eager { data, charge_bytes, connection } => {
                let Some(mut buffer) = self.requests.get_mut(request).and_then(|r| r.buffer.take()) else {
                    return;
                };
                let eager = Eager { data, charge_bytes, connection };
                let result = self.copy_in(key, &label, eager, &mut buffer);
                self.requests.complete(request, result);
            }
            Unexpected::Arriving { .. } => {
                self.note_match(key, label, request);
                if let Some(Assembly { target: Target::Heap { request: slot, .. }, .. }) =
                    &mut self.peers[key as usize].assembly
                {
                    *slot = Some(request);
                }
            }
            Unexpected::Rts(rts) => self.accept(key, label, &rts, request),
            Unexpected::Local(send) => self.join_local(&label, send, request),
        }
    }

    /// A receive has its message, which is still arriving: from now on it
    /// depends on this peer.
    pub(super) fn note_match(&mut self, key: PeerKey, label: Label, request: RequestId) {
        if let Some(entry) = self.requests.get_mut(request) {
            entry.label = label;
            entry.peer = Some(key);
            entry.state = State::Waiting(Waiting::Matched);
        }
    }
}
