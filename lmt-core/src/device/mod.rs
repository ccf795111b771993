//! The device-layer interface: large messages for device layers that have their
//! own packets and their own matching.
//!
//! An MPI device layer has an inbox, a matching engine and packets of its own,
//! and wants only the large messages moved (nemesis-lmt, section 2: the LMT
//! interface). It gives [`PacketTransport::send_packet`], hands what arrives to
//! [`DeviceLayer::on_packet`], and calls [`DeviceLayer::matched`] when its matching has found
//! the receive for an announced message. No inbox and no matching of ours is
//! involved: this module must not know them. The
//! processes still connect through a socket of ours, since pids and
//! descriptors must come from the kernel; that happens inside
//! [`DeviceLayer::progress`].

mod handshake;
mod port;
mod state;

use std::collections::{HashMap, VecDeque};
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use crate::base::cpu_set::CpuSet;
use crate::base::fork_guard::Origin;
use crate::base::yielding::Sharing;
use crate::connect::Connector;
use crate::mechanism::{Counters, MechanismStatus, Mechanisms};
use crate::memory::buffer::{Access, Buffer};
use crate::rendezvous::{Incoming, Packet};
use crate::requests::creation::{CreateError, check_config, install_copier};
use crate::requests::ids::{PeerId, RequestId};
use crate::requests::label::Label;
use crate::requests::outcome::{OperationError, Status};
use crate::requests::table::{Requests, Waiting};
use crate::selection::{ByOrder, Explanation, Hints, Message, Policy, Selection};
use crate::transfer::Transfers;
use crate::vocabulary::config::Config;
use crate::vocabulary::error::PeerError;
use crate::vocabulary::identity::{Address, EndpointId, PeerKey};
pub use port::{
    Announcement, Arrival, BadPacket, ENVELOPE_MAX_BYTES, PACKET_MAX_BYTES, PacketTransport, TransportFull,
    Withdrawal,
};
use port::{Envelope, Source, pack};

/// A packet that waits for the port.
struct PendingPacket {
    packet: Packet,
    envelope: Envelope,
}

/// A send that waits for the connection.
struct PendingSend {
    request: RequestId,
    envelope: Envelope,
    hints: Hints,
}

#[derive(PartialEq)]
enum Link {
    None,
    Pending,
    Up,
    Gone(PeerError),
}

struct Peer {
    id: EndpointId,
    address: Option<Address>,
    link: Link,
    /// Where it may run, as far as it has said so.
    cpus: CpuSet,
    /// How many connections, or attempts at one, have ended: tells the packets
    /// of one process at this address from those of the next.
    ended_connections: u32,
    early: VecDeque<PendingSend>,
    packets: VecDeque<PendingPacket>,
}

impl Peer {
    /// How many sends and packets wait.
    fn unsent(&self) -> usize {
        self.early.len() + self.packets.len()
    }
}

struct Inner {
    config: Config,
    peers: Vec<Peer>,
    by_id: HashMap<EndpointId, PeerKey>,
    transfers: Transfers,
    requests: Requests,
    envelopes: HashMap<RequestId, Envelope>,
    /// A transfer has ended by a death that the connection has not told of.
    death_seen: bool,
    /// Where this process may run.
    cpus: CpuSet,
    /// Which way messages take.
    selection: Selection,
}

/// The layer of large messages, without an inbox.
pub struct DeviceLayer {
    origin: Origin,
    connector: Connector,
    inner: Inner,
    calls_until_sockets: u32,
    sockets_polled_at: Instant,
    /// Whether others want the core.
    sharing: Sharing,
    /// To be called when the device layer is closed.
    at_end: Option<AtEnd>,
}

/// What is called when a device layer ends, with its [`DeviceLayer::totals`].
type AtEnd = Box<dyn FnOnce(&[(&'static str, Counters)]) + Send>;

/// After so many calls of [`DeviceLayer::progress`] the sockets are looked at.
const SOCKET_EVERY: u32 = 256;

/// After so many calls the clock is looked at, for those who call seldom: a
/// device layer may call only when its own timer fires ...
const CLOCK_EVERY: u32 = 4;

/// ... and after so long the sockets, however few calls there were.
const SOCKET_POLL_INTERVAL: Duration = Duration::from_millis(5);

impl DeviceLayer {
    /// Opens the device layer under this identity, with these mechanisms.
    ///
    /// # Errors
    /// [`CreateError`]: a configuration that cannot work, or a system that
    /// refuses the socket.
    pub fn new(id: EndpointId, config: Config, mechanisms: Mechanisms) -> Result<Self, CreateError> {
        Self::with_policy(id, config, mechanisms, Box::new(ByOrder::default().without_eager()))
    }

    /// As [`DeviceLayer::new`], with a policy that decides which way messages take.
    ///
    /// # Errors
    /// As [`DeviceLayer::new`].
    pub fn with_policy(
        id: EndpointId,
        config: Config,
        mut mechanisms: Mechanisms,
        policy: Box<dyn Policy>,
    ) -> Result<Self, CreateError> {
        check_config(&config, &mechanisms)?;
        install_copier(&config);
        if let Some(names) = &config.mechanisms {
            mechanisms.restrict(names);
        }
        let connector = Connector::new(id, &config)?;
        let cpus = CpuSet::of_this_thread();
        let transfers = Transfers::new(mechanisms);
        let inner = Inner {
            config,
            peers: Vec::new(),
            by_id: HashMap::new(),
            transfers,
            requests: Requests::default(),
            envelopes: HashMap::new(),
            death_seen: false,
            selection: Selection::new(policy, cpus),
            cpus,
        };
        Ok(Self {
            origin: Origin::here(),
            connector,
            inner,
            calls_until_sockets: 0,
            sockets_polled_at: Instant::now(),
            sharing: Sharing::new(),
            at_end: None,
        })
    }

    fn check_fork(&self) -> Result<(), OperationError> {
        if self.origin.is_this_process() { Ok(()) } else { Err(OperationError::Forked) }
    }

    fn id(&self) -> EndpointId {
        self.connector.address().id()
    }

    /// Where peers find this device layer.
    pub fn address(&self) -> &Address {
        self.connector.address()
    }

    /// Names a peer and begins to connect to it; the connection is made by
    /// [`DeviceLayer::progress`].
    ///
    /// # Errors
    /// This is a forked child, or [`OperationError::TooManyPeers`].
    pub fn insert_peer(&mut self, address: &Address) -> Result<PeerId, OperationError> {
        self.check_fork()?;
        let max_peers = self.inner.config.max_peers;
        let key = self.inner.key_of(address.id()).ok_or(OperationError::TooManyPeers { max_peers })?;
        let peer = &mut self.inner.peers[key as usize];
        peer.address = Some(address.clone());
        if matches!(peer.link, Link::None | Link::Gone(_)) {
            peer.link = Link::Pending;
            self.connector.connect(address);
            self.calls_until_sockets = 0;
        }
        Ok(PeerId::first(key))
    }

    /// Whether this is a peer of this device layer.
    pub fn knows(&self, peer: PeerId) -> bool {
        self.inner.peers.len() > peer.index() as usize
    }

    /// Whether the connection with a peer is made.
    pub fn is_connected(&self, peer: PeerId) -> bool {
        self.inner.peers.get(peer.index() as usize).is_some_and(|p| p.link == Link::Up)
    }

    /// Why there is no connection with a peer any more, if there was one or
    /// one was tried: it is dead, unreachable or refused.
    pub fn peer_error(&self, peer: PeerId) -> Option<&PeerError> {
        match &self.inner.peers.get(peer.index() as usize)?.link {
            Link::Gone(error) => Some(error),
            _ => None,
        }
    }

    /// How many sends and packets wait for the connection with a peer or for
    /// room in the port. An embedder that must keep its own packets in order
    /// with the announcements holds them back until this is 0.
    pub fn unsent(&self, peer: PeerId) -> usize {
        self.inner.peers.get(peer.index() as usize).map_or(0, Peer::unsent)
    }

    /// What is known of each mechanism with a peer.
    pub fn mechanism_status(&self, peer: PeerId) -> Vec<(&'static str, MechanismStatus)> {
        let mechanisms = self.inner.transfers.mechanism_status();
        mechanisms.mechanism_status(peer.index()).map(|(name, s)| (name, s.clone())).collect()
    }

    /// Which way a message to a peer would take now, and why. What others are
    /// reading now counts, unless `message` says that more do. The embedder
    /// carries short messages itself, so nothing is eager here.
    ///
    /// # Errors
    /// The peer is unknown.
    pub fn explain(&self, peer: PeerId, message: &Message) -> Result<Explanation, OperationError> {
        let inner = &self.inner;
        if inner.peers.len() <= peer.index() as usize {
            return Err(OperationError::UnknownPeer);
        }
        let key = peer.index();
        let readers = message.readers.max(inner.transfers.other_readers(key));
        let message = Message { readers, ..*message };
        Ok(inner.selection.explain(key, inner.transfers.mechanism_status(), &inner.config, &message))
    }

    /// What this device layer's mechanisms have moved, with all peers.
    pub fn totals(&self) -> Vec<(&'static str, Counters)> {
        self.inner.transfers.mechanism_status().totals().collect()
    }

    /// Has `report` called with [`DeviceLayer::totals`] once this device layer has been closed,
    /// by [`DeviceLayer::close`] or by being dropped; not in a forked child.
    pub fn at_end(&mut self, report: impl FnOnce(&[(&'static str, Counters)]) + Send + 'static) {
        self.at_end = Some(Box::new(report));
    }

    /// Begins to send `buffer` as one message, announced with `envelope` (at
    /// most [`ENVELOPE_MAX_BYTES`]) for the peer's matching.
    ///
    /// # Errors
    /// The peer is unknown or dead, the envelope is too long, or as many sends
    /// and packets wait ([`DeviceLayer::unsent`]) as `pending_max_messages` allows.
    pub fn send(&mut self, to: PeerId, envelope: &[u8], buffer: Buffer) -> Result<RequestId, OperationError> {
        self.send_with(to, envelope, buffer, Hints::default())
    }

    /// As [`DeviceLayer::send`], with what helps to choose the way.
    ///
    /// # Errors
    /// As [`DeviceLayer::send`].
    pub fn send_with(
        &mut self,
        to: PeerId,
        envelope: &[u8],
        buffer: Buffer,
        hints: Hints,
    ) -> Result<RequestId, OperationError> {
        self.check_fork()?;
        let envelope = pack(envelope)?;
        let key = to.index();
        let peer = self.inner.peers.get_mut(key as usize).ok_or(OperationError::UnknownPeer)?;
        if let Link::Gone(error) = &peer.link {
            return Err(error.clone().into());
        }
        let pending = peer.unsent() as u32;
        if pending >= self.inner.config.pending_max_messages {
            return Err(OperationError::WouldBlock { id: peer.id, pending });
        }
        let id = self.inner.requests.begin(buffer, Some(key), Label::default(), Waiting::Queued);
        let early = PendingSend { request: id, envelope, hints };
        if self.inner.peers[key as usize].link == Link::Up {
            self.inner.announce(key, early);
        } else {
            self.inner.peers[key as usize].early.push_back(early);
        }
        Ok(id)
    }

    /// Takes a packet that a peer's [`PacketTransport::send_packet`] was given.
    ///
    /// # Errors
    /// [`BadPacket`]: it was ignored. So are packets of a peer whose connection
    /// has ended ([`DeviceLayer::peer_error`]): what it wrote before is of no use.
    pub fn on_packet(&mut self, from: PeerId, packet: &[u8]) -> Result<Arrival, BadPacket> {
        let bad = |reason: String| BadPacket { peer: from, bytes: packet.len(), reason };
        self.check_fork().map_err(|e| bad(e.to_string()))?;
        let unknown = || bad(OperationError::UnknownPeer.to_string());
        let peer = self.inner.peers.get(from.index() as usize).ok_or_else(unknown)?;
        if let Link::Gone(error) = &peer.link {
            return Err(bad(error.to_string()));
        }
        let origin = Source { layer: self.id(), peer: from, connection: peer.ended_connections };
        let (&length, rest) = packet.split_first().ok_or_else(|| bad("it is empty".into()))?;
        let too_long = || bad("its envelope is longer than the packet".into());
        let (envelope, body) = rest.split_at_checked(usize::from(length)).ok_or_else(too_long)?;
        let envelope = pack(envelope).map_err(|e| bad(e.to_string()))?;
        let packet = Packet::decode(body).map_err(|e| bad(e.to_string()))?;
        let incoming = self.inner.transfers.packet(from.index(), &packet).map_err(|e| bad(e.to_string()))?;
        self.inner.settle();
        Ok(match incoming {
            Incoming::Rts(rts) => Arrival::Announced(Announcement { origin, envelope, rts: *rts }),
            Incoming::Withdraw { send_id } => Arrival::Withdrawn(Withdrawal { origin, send_id }),
            Incoming::Handled => Arrival::Handled,
        })
    }

    /// The embedder's matching has found the receive for a message: it goes
    /// into `buffer`, cut to its length if need be.
    ///
    /// # Errors
    /// The buffer is not lent for writing, the message was announced to another
    /// device layer, or the connection over which it was announced has ended, whether
    /// or not there is another one now.
    pub fn matched(
        &mut self,
        announcement: Announcement,
        buffer: Buffer,
    ) -> Result<RequestId, OperationError> {
        self.check_fork()?;
        if buffer.access() != Access::Write {
            return Err(OperationError::ReadOnlyBuffer);
        }
        self.check_source(announcement.origin)?;
        let key = announcement.peer().index();
        // The transfer has the buffer.
        let bytes = buffer.total_bytes();
        let id = self.inner.requests.begin_without_buffer(bytes, key, Label::default(), Waiting::Matched);
        self.inner.transfers.matched(key, &announcement.rts, buffer, id.to_raw());
        self.inner.settle();
        Ok(id)
    }

    /// Answers [`Arrival::Withdrawn`]: whether the message was found unmatched
    /// and is forgotten. Does nothing where nobody waits for the answer: at
    /// another device layer, in a forked child, and when the connection over which it
    /// was asked has ended.
    pub fn withdrawn(&mut self, withdrawal: Withdrawal, found: bool) {
        let Withdrawal { origin, send_id } = withdrawal;
        if let Err(error) = self.check_fork().and_then(|()| self.check_source(origin)) {
            tracing::debug!(%error, "an answer to a withdrawal was not sent");
            return;
        }
        self.inner.transfers.withdrawn(origin.peer.index(), send_id, found);
        self.inner.settle();
    }

    /// Whether what was announced may still be answered.
    fn check_source(&self, origin: Source) -> Result<(), OperationError> {
        if origin.layer != self.id() {
            return Err(OperationError::ForeignMessage);
        }
        let peer = self.inner.peers.get(origin.peer.index() as usize).ok_or(OperationError::UnknownPeer)?;
        match &peer.link {
            Link::Gone(error) => Err(error.clone().into()),
            // Another process may be at this address now, with sends of its
            // own under the same numbers.
            _ if peer.ended_connections != origin.connection => Err(PeerError::Dead { id: peer.id }.into()),
            _ => Ok(()),
        }
    }

    /// Takes a send back if the peer has not matched it; its result tells.
    ///
    /// # Errors
    /// This is a forked child.
    pub fn cancel(&mut self, request: RequestId) -> Result<(), OperationError> {
        self.check_fork()?;
        self.inner.cancel(request);
        Ok(())
    }

    /// The result of a request if it is finished; it is taken.
    pub fn test(&mut self, request: RequestId) -> Option<Result<Status, OperationError>> {
        if let Err(error) = self.check_fork() {
            return Some(Err(error));
        }
        self.inner.requests.take_result(request)
    }

    /// Moves bytes and packets, and makes connections. Never waits; where nothing
    /// moves of what is in flight, call after call, others are let run (sched_yield(2)):
    /// whoever it waits for may have no core. Returns whether anything moved.
    ///
    /// # Errors
    /// This is a forked child.
    pub fn progress(&mut self, port: &mut impl PacketTransport) -> Result<bool, OperationError> {
        self.check_fork()?;
        match self.calls_until_sockets.checked_sub(1) {
            Some(left) => {
                self.calls_until_sockets = left;
                if left % CLOCK_EVERY == 0 && self.sockets_polled_at.elapsed() >= SOCKET_POLL_INTERVAL {
                    self.poll_sockets();
                }
            }
            None => self.poll_sockets(),
        }
        let quota_bytes = self.inner.config.quota_bytes;
        // First the packets: a peer that is to help is not to wait for a copy.
        let mut moved = self.inner.flush(port);
        moved |= self.inner.transfers.step(quota_bytes);
        self.inner.settle();
        moved |= self.inner.transfers.is_prefaulting() && self.inner.transfers.prefault();
        if self.inner.transfers.mechanism_status().has_oob_messages() {
            let Inner { transfers, peers, .. } = &mut self.inner;
            transfers.hand_over(&mut self.connector, |key| peers.get(key as usize).map(|peer| peer.id));
        }
        if std::mem::take(&mut self.inner.death_seen) {
            self.poll_sockets();
        }
        moved |= self.inner.flush(port);
        self.yield_if_idle(moved);
        Ok(moved)
    }

    #[inline]
    fn yield_if_idle(&mut self, moved: bool) {
        if moved || !self.inner.transfers.is_active() {
            self.sharing.end_wait();
            return;
        }
        self.sharing.count_empty(self.inner.config.spins, false);
        if self.sharing.is_time_to_yield() {
            self.sharing.yield_core();
        }
    }

    /// Accepts, connects, notices deaths.
    #[cold]
    fn poll_sockets(&mut self) {
        let now = Instant::now();
        self.connector.progress(now, &mut self.inner);
        self.calls_until_sockets = if self.connector.connecting() > 0 { 0 } else { SOCKET_EVERY };
        self.sockets_polled_at = now;
    }

    /// A descriptor that is readable when connections need progress; the
    /// embedder's own packets and active transfers do not make it so.
    pub fn wait_descriptor(&self) -> BorrowedFd<'_> {
        self.connector.epoll_fd()
    }

    /// How long the embedder may sleep at most before the next progress.
    pub fn sleep_limit(&self) -> Duration {
        let busy = self.inner.transfers.is_active() || self.inner.peers.iter().any(|p| !p.packets.is_empty());
        let limit = if busy { Duration::ZERO } else { Duration::from_secs(1) };
        let until = |at: Instant| at.saturating_duration_since(Instant::now());
        self.connector.next_deadline().map_or(limit, |at| limit.min(until(at)))
    }

    /// Says goodbye to the peers and ends what is in flight with them, with
    /// [`PeerError::Removed`]: a peer that has heard the goodbye uses its memory
    /// for something else, so nothing may be copied into it any more. Call it
    /// when all requests are finished: a peer that is in the middle of a copy may
    /// use the memory of one that is not until it has read the goodbye. A peer is
    /// reached again by [`DeviceLayer::insert_peer`].
    ///
    /// # Errors
    /// This is a forked child.
    pub fn close(&mut self) -> Result<(), OperationError> {
        self.check_fork()?;
        for key in 0..self.inner.peers.len() as PeerKey {
            let Peer { id, link, .. } = &self.inner.peers[key as usize];
            if !matches!(link, Link::Gone(_)) {
                let error = PeerError::Removed { id: *id };
                self.inner.fail_peer(key, error);
            }
        }
        // What still copied in the background has been ended by now.
        self.connector.goodbye_all();
        self.report_totals();
        Ok(())
    }

    fn report_totals(&mut self) {
        if let Some(report) = self.at_end.take() {
            report(&self.totals());
        }
    }
}

impl Drop for DeviceLayer {
    /// Peers see from the connections that it is gone; what is in flight ends
    /// with the mechanisms.
    fn drop(&mut self) {
        if self.origin.is_this_process() {
            self.report_totals();
        }
    }
}

#[cfg(test)]
#[path = "device_tests.rs"]
mod tests;
