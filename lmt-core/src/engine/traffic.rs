//! Messages on their way in: from a cell or a packet to the receive that
//! matches.

use std::collections::{HashMap, HashSet, VecDeque};
use std::os::fd::OwnedFd;
use std::sync::Arc;

use super::awaited::{Awaited, Found};
use super::label::{Label, Marks};
use super::many::receive_for;
use super::matchers::Matchers;
use super::peer::{Assembly, Connection, EagerCounters, Peer, Target};
use super::regions::OneSided;
use super::requests::{OperationError, Outcome, PeerId, RequestId, Requests, State, Status, Waiting};
use super::store::{Kept, Store};
use crate::bell::Bell;
use crate::buffer::{Buffer, copy_between};
use crate::config::Config;
use crate::cpu_set::CpuSet;
use crate::identity::{Address, EndpointId};
use crate::inbox::{Delivery, Header, InboxReceiver, Next};
use crate::matching::{Matcher, UnexpectedHandle};
use crate::process::PeerProcess;
use crate::region::{RegionKey, RegionTable};
use crate::rendezvous::{Incoming, PacketWords, PeerKey, Rts, SendId};
use crate::selection::{Message as Question, Selection};
use crate::transfers::Transfers;

/// What a cell holds.
pub(crate) mod kind {
    /// A whole message; the aux word is its immediate number.
    pub const EAGER: u8 = 1;
    /// The first part of a message; the aux word is its length in bytes.
    pub const FIRST: u8 = 2;
    /// A further part; the aux word is the message's immediate number.
    pub const MORE: u8 = 3;
    /// An RTS, to be matched by the tag; the aux word is the message's immediate
    /// number.
    pub const RTS: u8 = 4;
    /// Another packet of the rendezvous protocol.
    pub const CONTROL: u8 = 5;
    /// A key of an allocated region, whose memory the sender wants to map.
    pub const MAP_REGION: u8 = 6;
}

/// What a message takes of the room for unexpected ones beside its bytes: about
/// what its entries in the tables take.
pub(crate) const OVERHEAD_BYTES: u64 = 256;

/// A message that no receive was waiting for.
#[derive(Debug)]
pub(crate) enum Unexpected {
    /// All its bytes, what the sender was charged for them, and which of the
    /// peer's connections they came over.
    Eager { data: Kept, charge_bytes: u64, connection: u32 },
    /// It is still arriving, in the peer's assembly.
    /// Whether its immediate number is in a piece to come.
    Arriving { total_bytes: u64, awaits_immediate: bool },
    /// Its announcement.
    Rts(Rts),
    /// One from this endpoint to itself, whose bytes the send still holds.
    Local(RequestId),
}

impl Unexpected {
    /// The message's length; for a local one, that of the sender's buffer.
    pub fn total_bytes(&self, requests: &Requests) -> u64 {
        match self {
            Self::Eager { data, .. } => data.len() as u64,
            Self::Arriving { total_bytes, .. } => *total_bytes,
            Self::Rts(rts) => rts.total_bytes,
            Self::Local(id) => {
                requests.get(*id).and_then(|r| r.buffer.as_ref()).map_or(0, |b| b.total_bytes())
            }
        }
    }
}

/// An unexpected message, and its immediate number.
#[derive(Debug)]
pub(crate) struct Arrived {
    pub immediate: Option<u32>,
    pub content: Unexpected,
}

/// The parts of [`Unexpected::Eager`].
pub(super) struct Eager {
    pub data: Kept,
    pub charge_bytes: u64,
    pub connection: u32,
}

/// All of an endpoint but its inbox and its sockets.
pub(crate) struct Traffic {
    pub id: EndpointId,
    pub config: Config,
    pub peers: Vec<Peer>,
    pub by_id: HashMap<EndpointId, PeerKey>,
    /// Which receive gets which message, in each space.
    pub matchers: Matchers,
    pub requests: Requests,
    /// Memory for what is unexpected.
    pub store: Store,
    pub transfers: Transfers,
    /// Peers for which something waits to be written.
    pub busy: Vec<PeerKey>,
    /// Peers that were not told yet what was drained of theirs.
    pub owing: Vec<PeerKey>,
    /// Peers that may sleep and were written to before a copy, each once.
    pub bells: Vec<PeerKey>,
    /// Whether a copy comes next, so that packets go before it and bells behind it.
    pub bells_later: bool,
    /// Where the connector is to connect to.
    pub to_connect: Vec<Address>,
    /// Numbers that a new peer may have.
    pub free: Vec<PeerKey>,
    /// Numbers of removed peers that a new peer may not have yet.
    pub resting: Vec<Resting>,
    /// Short synchronous sends that wait for their peer's connection.
    pub synchronous: HashSet<RequestId>,
    /// Cells taken and connections ended so far: whether something has happened.
    pub events: u64,
    /// How many transfers have ended, whoever found it.
    pub ended: u64,
    /// The cell taken last was a piece of a message whose next piece is about to
    /// come.
    pub in_pieces: bool,
    /// This endpoint's declared memory.
    pub regions: RegionTable,
    /// Gets and puts under way; the front one is next.
    pub one_sided: VecDeque<OneSided>,
    /// Regions that peers want to map, one for each of them.
    pub wanted: HashMap<PeerKey, RegionKey>,
    /// Whether peers that the embedder has not named are heard.
    pub hears_strangers: bool,
    pub inbox_fd: OwnedFd,
    pub doorbell: Bell,
    pub cpus: CpuSet,
    /// How often a wait yields while processes outnumber CPUs.
    pub crowded_yields: u32,
    /// Which way messages take.
    pub selection: Selection,
    /// What has gone to and come from all peers in cells.
    pub eager: EagerCounters,
}

/// The number of a removed peer.
#[derive(Debug)]
pub(crate) struct Resting {
    pub key: PeerKey,
    pub id: EndpointId,
    /// The process that may still write under the number while it lives.
    pub may_write: Option<Arc<PeerProcess>>,
}

impl Traffic {
    /// Whether nothing is under way that a call of progress could move.
    #[inline]
    pub fn is_quiet(&self) -> bool {
        self.busy.is_empty()
            && self.transfers.is_quiet()
            && self.bells.is_empty()
            && self.one_sided.is_empty()
            && self.wanted.is_empty()
    }

    /// The name by which the embedder knows a peer.
    #[inline]
    pub fn name(&self, key: PeerKey) -> PeerId {
        PeerId::new(key, self.peers.get(key as usize).map_or(0, |peer| peer.generation))
    }

    /// The number of a peer that the embedder names.
    #[inline]
    pub fn key_named(&self, name: PeerId) -> Result<PeerKey, OperationError> {
        match self.peers.get(name.index() as usize) {
            Some(peer) if peer.bound && peer.generation == name.generation() => Ok(name.index()),
            _ => Err(OperationError::UnknownPeer),
        }
    }

    /// Takes the next cell out of the inbox; what no posted receive accepts may be for the one that
    /// is `awaited`.
    #[inline(always)] // The path of a short message.
    pub(super) fn deliver(
        &mut self,
        inbox: &mut InboxReceiver,
        next: Next,
        awaited: Option<&mut Awaited>,
    ) -> Found {
        self.events = self.events.wrapping_add(1);
        let Header { sender, kind, aux, tag, bytes } = next.header;
        let key = PeerKey::from(sender);
        let (kind, marks) = Marks::read(kind);
        let label = Label { tag, space: marks.space, immediate: marks.has_immediate.then_some(aux) };
        let Self { peers, matchers, requests, owing, eager, .. } = self;
        let Some(peer) = peers.get_mut(key as usize) else {
            inbox.finish(next);
            return Found::Something;
        };
        let (Connection::Up(link) | Connection::Met(link)) = &mut peer.connection else {
            inbox.finish(next);
            return Found::Something;
        };
        link.inbox.expect_to_send(bytes);
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
            owing.push(key);
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
                Found::Awaited
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
        awaited: Option<&mut Awaited>,
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

    /// Whether a peer may send while its report is still to be read here.
    #[inline]
    pub fn is_met(&self, sender: u16) -> bool {
        let peer = self.peers.get(usize::from(sender));
        peer.is_some_and(|peer| matches!(peer.connection, Connection::Met(_)))
    }

    /// Gives back room in the unexpected queue to the peer that used it.
    fn release(&mut self, key: PeerKey, charge_bytes: u64) {
        let Some(link) = self.peers.get_mut(key as usize).and_then(Peer::link) else { return };
        link.release(charge_bytes);
        if link.return_credits_or_note() {
            self.owing.push(key);
        }
    }

    /// Wakes the peers that sleep, of those that were written to before a copy.
    pub fn ring_owed(&mut self) {
        while let Some(key) = self.bells.pop() {
            if let Some(link) = self.peers.get_mut(key as usize).and_then(Peer::link) {
                link.ring_if_asleep();
            }
        }
    }

    /// Tells every peer what was drained of theirs.
    pub fn pay_all(&mut self) {
        while let Some(key) = self.owing.pop() {
            if let Some(link) = self.peers.get_mut(key as usize).and_then(Peer::link) {
                link.in_owing = false;
                if link.owes() {
                    link.pay();
                }
            }
        }
    }

    /// The request of the receive for a message that has begun to come.
    fn request_for(
        &mut self,
        key: PeerKey,
        label: &Label,
        bytes: u64,
        awaited: Option<&mut Awaited>,
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

    /// Asks anew up to where messages to a peer travel in cells.
    ///
    /// That may depend on how many processes there are. It is asked when the
    /// peer is connected and when something is sent to it after others came or
    /// went: asked for all peers whenever one comes, a group of N would ask N
    /// times N times.
    #[cold]
    pub fn renew_eager(&mut self, key: PeerKey) {
        let peer = &mut self.peers[key as usize];
        if matches!(peer.connection, Connection::Met(_) | Connection::Up(_)) {
            let decisions = self.selection.decisions(key, self.transfers.standings(), &self.config);
            peer.eager_max_bytes = decisions.eager_max_bytes();
            let beyond = Question::of_bytes(self.config.boxless_eager_max_bytes.saturating_add(1));
            peer.may_announce = !decisions.candidates(&beyond).as_slice().is_empty();
        }
        peer.group_version = self.selection.group_version();
    }

    /// Keeps a message for a receive that is still to come.
    fn unexpected(&mut self, key: PeerKey, label: Label, message: Unexpected) {
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
    pub fn unpark(&mut self, key: PeerKey) {
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
    fn first(&mut self, key: PeerKey, label: Label, delivery: &Delivery<'_>, awaited: Option<&mut Awaited>) {
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
    pub fn hand_over(&mut self, peer: PeerId, label: &Label, data: Kept, request: RequestId) {
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
    fn note_match(&mut self, key: PeerKey, label: Label, request: RequestId) {
        if let Some(entry) = self.requests.get_mut(request) {
            entry.label = label;
            entry.peer = Some(key);
            entry.state = State::Waiting(Waiting::Matched);
        }
    }

    /// A receive was found for an announced message.
    fn accept(&mut self, key: PeerKey, label: Label, rts: &Rts, request: RequestId) {
        self.release(key, OVERHEAD_BYTES);
        let Some(buffer) = self.requests.get_mut(request).and_then(|r| r.buffer.take()) else { return };
        self.note_match(key, label, request);
        self.transfers.matched(key, rts, buffer, request.to_raw());
    }

    /// A message to oneself: one copy, from the send's memory to the receive's.
    fn join_local(&mut self, label: &Label, send: RequestId, receive: RequestId) {
        let key = self.by_id.get(&self.id).copied().unwrap_or_default();
        let source = self.requests.get_mut(send).and_then(|r| r.buffer.take());
        let Some(source) = source else { return };
        let total = source.total_bytes();
        let copied = match self.requests.get_mut(receive).and_then(|r| r.buffer.as_mut()) {
            Some(target) => copy_between(&source, target),
            None => 0,
        };
        let status =
            Status { peer: self.name(key), tag: label.tag, bytes: total, immediate: label.immediate };
        self.requests.complete(send, Ok(status));
        self.requests.complete(receive, received(self.name(key), label, total, copied));
    }

    /// A packet of the rendezvous protocol, in a cell.
    fn packet(&mut self, key: PeerKey, label: Label, delivery: &Delivery<'_>, awaited: Option<&mut Awaited>) {
        let mut words = PacketWords::empty();
        words.fill(|words| delivery.copy_to_words(words));
        let packet = match words.decode() {
            Ok(packet) => packet,
            Err(error) => {
                tracing::warn!(%error, "a peer sent a packet that cannot be read; it is ignored");
                return;
            }
        };
        tracing::trace!(peer = %self.peers[key as usize].id, ?packet, "got a packet");
        match self.transfers.packet(key, &packet) {
            Ok(Incoming::Rts(rts)) => self.announced(key, label, rts, awaited),
            Ok(Incoming::Withdraw { send_id }) => self.withdraw(key, send_id),
            Ok(Incoming::Handled) => {}
            Err(error) => tracing::debug!(%error, "a packet of the rendezvous protocol was ignored"),
        }
    }

    fn announced(&mut self, key: PeerKey, label: Label, rts: &Rts, awaited: Option<&mut Awaited>) {
        let bound = self.peers[key as usize].bound;
        match bound.then(|| self.request_for(key, &label, rts.total_bytes, awaited)).flatten() {
            Some(request) => self.accept(key, label, rts, request),
            None => {
                self.unexpected(key, label, Unexpected::Rts(*rts));
            }
        }
    }

    /// The sender takes an announced message back, if nothing matched it yet.
    fn withdraw(&mut self, key: PeerKey, send_id: SendId) {
        let is_it = |m: &Unexpected| matches!(m, Unexpected::Rts(rts) if rts.send_id == send_id);
        let parked = &mut self.peers[key as usize].parked;
        let found = match parked.iter().position(|(_, m)| is_it(m)) {
            Some(at) => parked.remove(at).is_some(),
            None => self.matchers.take_unexpected(key, &mut |m| is_it(&m.content)).is_some(),
        };
        if found {
            self.release(key, OVERHEAD_BYTES);
        }
        self.transfers.withdrawn(key, send_id, found);
    }
}

/// The result of a receive of which `copied` bytes were written.
#[inline(always)] // The path of a short message.
pub(crate) fn received(peer: PeerId, label: &Label, total: u64, copied: u64) -> Outcome {
    let status = Status { peer, tag: label.tag, bytes: total, immediate: label.immediate };
    if copied < total { Err(truncated(status, copied)) } else { Ok(status) }
}

/// The error of a receive that was too short for its message.
#[cold]
pub(super) fn truncated(message: Status, received_bytes: u64) -> OperationError {
    let Status { peer, tag, bytes: message_bytes, immediate } = message;
    OperationError::Truncated { peer, tag, message_bytes, received_bytes, immediate }
}
