//! The connector: what it is told, what is ready, what is due.

use std::collections::{BTreeMap, HashMap};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::errno::Errno;

use super::descriptor_shortage::Shortage;
use super::handshake::{Event, State};
use super::links::{Connection, EventData, HalfOpen, Outgoing, Owner, Peer};
use super::poller::{Poller, Ready, TimerKey};
use super::socket::{ConnectFailure, Listener, Received};
use super::wire::Kind;
use super::{ConnectError, Handler, MAX_BLOB_BYTES, MAX_DESCRIPTORS, SendError, socket, users, wire, yama};
use crate::base::errno_advice::{advice, socket_file_advice};
use crate::base::fork_guard::Origin;
use crate::vocabulary::config::Config;
use crate::vocabulary::error::PeerError;
use crate::vocabulary::identity::{Address, EndpointId};

/// The serial number of the listening socket; others count from 1.
pub(super) const LISTENER: u64 = 0;

/// How many datagrams one call reads from one peer at most.
const READS_PER_PROGRESS: usize = 64;

/// How many are read when everything must be: more than a socket holds.
const READS_TO_DRAIN: usize = 4096;

/// How many datagrams may wait for one peer.
const MAX_OUTGOING: usize = 256;

const RETRY_MAX: Duration = Duration::from_millis(50);

/// The connections of one endpoint.
///
/// Owned by one thread at a time. After fork(2) the child's copy does nothing
/// any more, also when it is dropped; the parent's is unharmed.
#[derive(Debug)]
pub struct Connector {
    pub(super) id: EndpointId,
    address: Address,
    pub(super) listener: Listener,
    pub(super) poller: Poller,
    pub(super) timeout: Duration,
    /// For a peer that is there.
    pub(super) answer_timeout: Duration,
    allow_other_users: bool,
    euid: u32,
    /// Whether other users appear here under this process's own number.
    shares_its_number: bool,
    /// The process that made this, which a forked child is not.
    origin: Origin,
    pub(super) peers: HashMap<EndpointId, Peer>,
    pub(super) half_open: BTreeMap<u64, HalfOpen>,
    pub(super) owners: HashMap<u64, Owner>,
    next_serial: u64,
    pub(super) now: Instant,
    pub(super) buffer: Box<[u8]>,
    pub(super) accept_again: Option<Instant>,
    pub(super) shortage: Shortage,
}

impl Connector {
    /// Starts listening under the name of `id`, in the abstract socket
    /// namespace or in `config.socket_dir`, and admits the launcher's
    /// processes ([`yama::admit_launcher`]).
    ///
    /// # Errors
    /// [`ConnectError::NameInUse`] when another endpoint has this id; others
    /// when the system has no sockets or the folder is not usable.
    pub fn new(id: EndpointId, config: &Config) -> Result<Self, ConnectError> {
        let failed = |call| move |errno: Errno| ConnectError::System { call, errno: errno as i32 };
        let address = match &config.socket_dir {
            Some(folder) => Address::in_folder(id, folder)?,
            None => Address::abstract_socket(id),
        };
        let poller = Poller::new().map_err(failed("epoll_create1"))?;
        let listener = socket::listen_at(&address, config.allow_other_users)?;
        let shortage = Shortage::none(&listener.fd);
        let connector = Self {
            id,
            address,
            listener,
            poller,
            timeout: Duration::from_millis(config.connect_timeout_ms),
            answer_timeout: Duration::from_millis(config.answer_timeout_ms),
            allow_other_users: config.allow_other_users,
            euid: nix::unistd::geteuid().as_raw(),
            shares_its_number: users::shares_its_number(),
            origin: Origin::here(),
            peers: HashMap::new(),
            half_open: BTreeMap::new(),
            owners: HashMap::new(),
            next_serial: LISTENER + 1,
            now: Instant::now(),
            buffer: vec![0; wire::MAX_DATAGRAM_BYTES].into_boxed_slice(),
            accept_again: None,
            shortage,
        };
        connector.poller.watch(connector.listener.fd.as_fd(), LISTENER).map_err(failed("epoll_ctl"))?;
        yama::admit_launcher();
        Ok(connector)
    }

    /// Where others reach this endpoint.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// A descriptor that is readable whenever [`Self::progress`] has something
    /// to do other than timers, for event loops. Look at [`Self::next_deadline`]
    /// for those.
    pub fn epoll_fd(&self) -> BorrowedFd<'_> {
        self.poller.epoll_fd()
    }

    /// Watches another descriptor: [`Handler::readable`] is called with
    /// `token` while it is readable.
    ///
    /// # Errors
    /// EINVAL when the token's highest bit is set, EPERM in a forked child,
    /// else what epoll_ctl(2) says.
    pub fn add_readable(&mut self, fd: BorrowedFd<'_>, token: u64) -> Result<(), Errno> {
        if self.in_forked_child() {
            return Err(Errno::EPERM);
        }
        self.poller.watch_embedder(fd, token)
    }

    /// Ends watching; to be called before the descriptor is closed.
    ///
    /// # Errors
    /// What epoll_ctl(2) says of a descriptor that is not watched.
    pub fn remove_readable(&mut self, fd: BorrowedFd<'_>) -> Result<(), Errno> {
        if self.in_forked_child() {
            return Ok(());
        }
        self.poller.forget(fd)
    }

    /// When [`Self::progress`] must be called even if nothing is readable.
    pub fn next_deadline(&self) -> Option<Instant> {
        self.poller.next_due()
    }

    /// Sleeps until there is something to do for [`Self::progress`], a signal
    /// arrives, or `timeout` is over.
    pub fn wait(&self, timeout: Option<Duration>) {
        let due = self.next_deadline().map(|due| due.saturating_duration_since(Instant::now()));
        let sleep = match (timeout, due) {
            (Some(timeout), Some(due)) => Some(timeout.min(due)),
            (timeout, due) => timeout.or(due),
        };
        self.poller.wait(sleep);
    }

    /// Wishes to be connected with the endpoint at `address`. Only notes the
    /// wish; [`Self::progress`] does the rest and tells the outcome, within
    /// `connect_timeout_ms` or, of a peer that was seen to listen, within
    /// `answer_timeout_ms` of that if it is longer. A wish that stands already is not
    /// changed.
    pub fn connect(&mut self, address: &Address) {
        if self.in_forked_child() {
            return;
        }
        let id = address.id();
        let now = Instant::now();
        let deadline = now + self.timeout;
        let peer = self.peers.entry(id).or_insert_with(|| Peer::new(deadline));
        if peer.address.is_none() {
            peer.address = Some(address.clone());
            peer.connect_requested_at = now;
            peer.deadline = peer.deadline.max(deadline);
        }
        let smaller = self.id < id;
        let (next, action) = super::handshake::decide(peer.state, Event::ConnectRequested, smaller);
        peer.state = next;
        if action == super::handshake::Action::Try {
            peer.retry_at = Some(self.now);
        }
        self.reset_timer(id);
    }

    /// Whether a peer is wished for, and nobody listened at its address when a connection
    /// was last tried.
    pub fn has_no_listener(&self, peer: EndpointId) -> bool {
        // It may have come to this one meanwhile.
        self.peers.get(&peer).is_some_and(|peer| peer.no_listener && peer.state == State::Wanted)
    }

    /// Whether the connection with this peer is established.
    pub fn is_established(&self, peer: EndpointId) -> bool {
        self.peers.get(&peer).is_some_and(|peer| peer.state == State::Established)
    }

    /// How many peers are being connected.
    pub fn connecting(&self) -> usize {
        self.peers.values().filter(|peer| peer.state != State::Established).count()
    }

    /// Whether a peer is being connected and has been for less than so long.
    pub fn connects_since(&self, at_most: Duration) -> bool {
        let is_young = |peer: &Peer| self.now.saturating_duration_since(peer.connect_requested_at) < at_most;
        self.peers.values().any(|peer| peer.state != State::Established && is_young(peer))
    }

    /// Datagrams for this peer that the socket has not taken yet.
    pub fn unsent(&self, peer: EndpointId) -> usize {
        self.peers.get(&peer).and_then(|peer| peer.link.as_ref()).map_or(0, |link| link.outgoing.len())
    }

    /// Whether [`Self::send_descriptors`] to this peer would not be
    /// [`SendError::Full`].
    pub fn has_room(&self, peer: EndpointId) -> bool {
        self.unsent(peer) < MAX_OUTGOING
    }

    /// Sends bytes and descriptors to an established peer, in order; what the
    /// socket does not take now waits for [`Self::progress`]. Where the peer is
    /// short of descriptors, the bytes arrive without any.
    ///
    /// # Errors
    /// [`SendError`]; the descriptors are closed then.
    pub fn send_descriptors(
        &mut self,
        id: EndpointId,
        bytes: &[u8],
        descriptors: Vec<OwnedFd>,
    ) -> Result<(), SendError> {
        if bytes.len() > MAX_BLOB_BYTES || descriptors.len() > MAX_DESCRIPTORS {
            return Err(SendError::TooLarge { bytes: bytes.len(), descriptors: descriptors.len() });
        }
        if !self.is_established(id) || self.in_forked_child() {
            return Err(SendError::NotConnected(id));
        }
        if !self.has_room(id) {
            return Err(SendError::Full { id, waiting: self.unsent(id) });
        }
        let datagram = wire::encode(self.id, Kind::Descriptors, descriptors.len(), None, bytes);
        self.enqueue(id, Outgoing { bytes: datagram, descriptors });
        self.reset_timer(id);
        Ok(())
    }

    /// Ends the connection with this peer, or the attempt at one: the peer is
    /// told goodbye, this endpoint's handler nothing.
    pub fn goodbye(&mut self, id: EndpointId) {
        if self.in_forked_child() {
            return;
        }
        self.flush(id);
        if let Some(link) = self.remove_peer(id) {
            let bytes = wire::encode(self.id, Kind::Goodbye, 0, None, &[]);
            socket::send(link.as_fd(), &bytes, &[]);
            socket::close(link);
        }
    }

    /// [`Self::goodbye`] to every peer.
    pub fn goodbye_all(&mut self) {
        let ids: Vec<_> = self.peers.keys().copied().collect();
        for id in ids {
            self.goodbye(id);
        }
    }

    /// Does everything that is ready or due, and never waits. Costs one
    /// epoll_wait(2) when there is nothing.
    ///
    /// A peer's flood is read in portions: while [`Self::epoll_fd`] is
    /// readable there is more to do.
    pub fn progress(&mut self, now: Instant, handler: &mut impl Handler) {
        if self.in_forked_child() {
            return;
        }
        self.now = now;
        for ready in self.poller.ready() {
            match ready {
                Ready::Embedder(token) => handler.readable(token),
                Ready::Ours(LISTENER) => self.accept_all(handler),
                Ready::Ours(serial) => self.on_ready(serial, handler),
            }
        }
        if self.poller.next_due().is_some_and(|due| due <= now) {
            for key in self.poller.due(now) {
                self.on_due(key, handler);
            }
        }
    }

    fn on_ready(&mut self, serial: u64, handler: &mut dyn Handler) {
        // A serial number without an owner was closed by an earlier event of
        // the same batch.
        match self.owners.get(&serial).copied() {
            Some(Owner::HalfOpen) => self.read_half_open(serial, handler),
            Some(Owner::Link(id)) => {
                self.flush(id);
                self.read_peer(id, READS_PER_PROGRESS, handler);
                self.reset_timer(id);
            }
            Some(Owner::Watch(id)) => self.read_out(id, handler),
            None => {}
        }
    }

    /// Reads everything that a peer has said, and whether it is dead: what it
    /// said before its death still counts.
    pub(super) fn read_out(&mut self, id: EndpointId, handler: &mut dyn Handler) {
        self.read_peer(id, READS_TO_DRAIN, handler);
        if self.peers.get(&id).is_some_and(Peer::is_dead) {
            self.happen(id, Event::Died, EventData::default(), handler);
        }
    }

    fn on_due(&mut self, key: TimerKey, handler: &mut dyn Handler) {
        match key {
            TimerKey::Listener => self.accept_anew(),
            TimerKey::HalfOpen(serial) => self.give_up_half_open(serial),
            TimerKey::Peer(id) => {
                let Some(peer) = self.peers.get_mut(&id) else { return };
                let due = |at: Option<Instant>| at.is_some_and(|at| at <= self.now);
                if peer.deadline().is_some_and(|deadline| deadline <= self.now) {
                    self.happen(id, Event::Late, EventData::default(), handler);
                } else if due(peer.retry_at) {
                    self.attempt(id, handler);
                } else if due(peer.flush_at) {
                    peer.flush_at = None;
                    self.flush(id);
                }
                self.reset_timer(id);
            }
        }
    }

    /// One attempt to connect to a peer that is wanted.
    fn attempt(&mut self, id: EndpointId, handler: &mut dyn Handler) {
        let Some(peer) = self.peers.get_mut(&id) else { return };
        peer.retry_at = None;
        let Some(address) = peer.address.clone().filter(|_| peer.state == State::Wanted) else { return };
        if id == self.id {
            let cargo = EventData::saying("an endpoint does not connect to itself".to_owned());
            return self.happen(id, Event::Rejection, cargo, handler);
        }
        let tried = socket::try_connect(&address);
        peer.no_listener = matches!(tried, Err(ConnectFailure::Nobody));
        match tried {
            Ok(fd) => self.on_connected(id, fd, handler),
            Err(ConnectFailure::Full) => {
                // Once only: a listener that accepts nobody for so long is hung.
                if peer.answer_by.is_none() {
                    self.is_there(id);
                }
                self.retry_later(id, None);
            }
            Err(ConnectFailure::Nobody) => {
                peer.answer_by = None;
                self.retry_later(id, None);
            }
            Err(ConnectFailure::Short(errno)) => self.retry_later(id, Some(errno)),
            Err(ConnectFailure::Never(errno)) => {
                let advice = if address.folder().is_some() { socket_file_advice } else { advice };
                let advice = advice("connect", errno);
                let reason = format!("connect answered {errno} for the socket of {address:?}; {advice}");
                let cargo = EventData { errno: Some(errno), ..EventData::saying(reason) };
                self.happen(id, Event::Rejection, cargo, handler);
            }
        }
    }

    fn on_connected(&mut self, id: EndpointId, fd: OwnedFd, handler: &mut dyn Handler) {
        match self.identify(&fd) {
            Ok(Some(process)) => {
                let connection =
                    Connection { serial: self.new_serial(), fd: Arc::new(fd), process: Arc::new(process) };
                if let Err(errno) = self.poller.watch(connection.fd.as_fd(), connection.serial) {
                    return self.retry_later(id, Some(errno));
                }
                let cargo = EventData { connection: Some(connection), ..EventData::default() };
                self.happen(id, Event::Connected, cargo, handler);
            }
            // The listener was killed, and a forked child of it keeps the
            // socket: nobody will ever answer.
            Ok(None) => self.happen(id, Event::Died, EventData::default(), handler),
            Err(Identify::Short(errno)) => self.retry_later(id, Some(errno)),
            Err(Identify::Rejected(reason)) => {
                socket::send(fd.as_fd(), &wire::encode_refusal(self.id, &reason), &[]);
                self.happen(id, Event::Rejection, EventData::saying(reason), handler);
            }
        }
    }

    /// Plans the next attempt; `shortage` is what this process lacks.
    pub(super) fn retry_later(&mut self, id: EndpointId, shortage: Option<Errno>) {
        let Some(peer) = self.peers.get_mut(&id) else { return };
        peer.shortage = shortage;
        peer.retry_at = Some(self.now + peer.pause);
        peer.pause = (peer.pause * 2).min(RETRY_MAX);
    }

    /// The peer's endpoint was seen to listen or to live: it may take its time.
    pub(super) fn is_there(&mut self, id: EndpointId) {
        if let Some(peer) = self.peers.get_mut(&id) {
            let answer_by = self.now + self.answer_timeout;
            peer.answer_by = peer.answer_by.max(Some(answer_by));
        }
    }

    /// The process at the other end, unless it is another user's.
    pub(super) fn identify(
        &self,
        fd: &OwnedFd,
    ) -> Result<Option<crate::base::process::PeerProcess>, Identify> {
        let credentials = socket::credentials(fd).map_err(Identify::Short)?;
        if credentials.uid() != self.euid && !self.allow_other_users {
            return Err(Identify::Rejected(format!(
                "the processes belong to the users {} and {}; run both as one user, or set allow_other_users on both sides",
                self.euid,
                credentials.uid()
            )));
        }
        let process = socket::process(fd, &credentials).map_err(Identify::Short)?;
        let is_unsure = self.shares_its_number && !self.allow_other_users;
        match process {
            Some(process) if is_unsure && !users::is_same(&process) => {
                Err(Identify::Rejected(users::unsure(self.euid)))
            }
            process => Ok(process),
        }
    }

    /// Reads at most `limit` datagrams from a peer's current connection.
    fn read_peer(&mut self, id: EndpointId, limit: usize, handler: &mut dyn Handler) {
        let link_serial = |this: &Self| Some(this.peers.get(&id)?.link.as_ref()?.connection.serial);
        let Some(serial) = link_serial(self) else { return };
        for _ in 0..limit {
            // What was read may have ended or replaced the connection.
            let Some(link) = self.peers.get(&id).and_then(|peer| peer.link.as_ref()) else { return };
            if link.connection.serial != serial {
                return;
            }
            match socket::receive(link.connection.fd.as_fd(), &mut self.buffer) {
                Received::Nothing => return,
                Received::End => {
                    let alive =
                        link.connection.process.pidfd().is_some() && link.connection.process.is_alive();
                    return self.happen(id, Event::Eof { alive }, EventData::default(), handler);
                }
                Received::Datagram(datagram) => self.on_datagram(id, datagram, handler),
            }
        }
    }

    fn on_datagram(&mut self, id: EndpointId, datagram: super::sys::Datagram, handler: &mut dyn Handler) {
        if wire::is_wake(&self.buffer[..datagram.bytes]) {
            // That it came is all that it says.
            return;
        }
        let bytes = self.buffer[..datagram.bytes].to_vec();
        let parsed = wire::parse(&bytes, datagram.descriptors.len());
        // What lost descriptors were for is told of it, and may do without.
        let may_lose = |kind| matches!(kind, Kind::Hello | Kind::Descriptors);
        let whole = |kind| !datagram.cut && (!datagram.descriptors_lost || may_lose(kind));
        let packet = match parsed {
            Ok(packet) if packet.id == id && whole(packet.kind) => packet,
            other => {
                let reason = match other {
                    Err(wrong) => wrong.to_string(),
                    Ok(packet) if packet.id != id => {
                        format!("endpoint {} answers at the address of {id}; correct the address", packet.id)
                    }
                    Ok(_) => "a datagram was truncated".to_owned(),
                };
                return self.happen(id, Event::Malformed, EventData::saying(reason), handler);
            }
        };
        let event = match packet.kind {
            Kind::Hello => Event::Hello,
            Kind::Report => Event::Report,
            Kind::Refuse => Event::Refuse,
            Kind::Merge => Event::Merge,
            Kind::Goodbye => Event::Goodbye,
            Kind::Descriptors => Event::Descriptors,
            Kind::Wake => return,
        };
        let reason = match event {
            // Its advice is for that process.
            Event::Refuse if packet.errno.is_some() => {
                format!("in the peer's process, not in this one, {}", packet.reason())
            }
            Event::Refuse => packet.reason(),
            _ => format!("{:?} came at a moment when the protocol has no place for it", packet.kind),
        };
        let cargo = EventData {
            hello: packet.hello,
            blob: packet.blob.to_vec(),
            // Those of a mechanism's out-of-band message are of use only when all are there.
            descriptors: match event {
                Event::Descriptors if packet.lost_descriptors > 0 => Vec::new(),
                _ => datagram.descriptors,
            },
            lost_descriptors: packet.lost_descriptors,
            reason,
            errno: packet.errno,
            ..EventData::default()
        };
        self.happen(id, event, cargo, handler);
    }

    pub(super) fn new_serial(&mut self) -> u64 {
        let serial = self.next_serial;
        self.next_serial += 1;
        serial
    }

    /// A serial number for watching a process.
    pub(super) fn new_watch(&mut self, id: EndpointId) -> u64 {
        let serial = self.new_serial();
        self.owners.insert(serial, Owner::Watch(id));
        serial
    }

    /// How a failed attempt is told.
    pub(super) fn timeout_error(&self, id: EndpointId, peer: &Peer) -> PeerError {
        match peer.shortage {
            Some(errno) => PeerError::System {
                id,
                errno,
                reason: format!(
                    "it needs descriptors and memory, and the system answered {errno}; {}",
                    advice("connect", errno)
                ),
            },
            None => PeerError::Unreachable {
                id,
                waited_ms: self.now.saturating_duration_since(peer.connect_requested_at).as_millis() as u64,
            },
        }
    }

    /// The listening socket, for a test that leaves it to a child.
    #[cfg(test)]
    pub(super) fn listener_for_test(&self) -> OwnedFd {
        self.listener.fd.try_clone().unwrap()
    }

    fn in_forked_child(&self) -> bool {
        !self.origin.is_this_process()
    }
}

/// Why the process at the other end is not accepted.
pub(super) enum Identify {
    /// Not now.
    Short(Errno),
    /// Not at all.
    Rejected(String),
}

impl Drop for Connector {
    fn drop(&mut self) {
        if self.in_forked_child() {
            // The parent shares the epoll, the connections and the socket's
            // file: closing our descriptors is all that does not touch them.
            return;
        }
        self.goodbye_all();
        self.listener.close();
        for (_, half) in std::mem::take(&mut self.half_open) {
            socket::close(half.fd);
        }
    }
}
