//! What is kept for each peer, and the doing of what the handshake decides.

use std::collections::VecDeque;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::epoll::EpollFlags;

use super::connector::{Connector, RETRY_MIN};
use super::handshake::{Action, Event, Failure, State, decide};
use super::poller::TimerKey;
use super::probe_area::ProbeLease;
use super::socket::{self, Sent};
use super::wire::{self, HelloBody, Kind};
use super::{Closed, Greeting, Handler, MAX_BLOB_BYTES, MAX_DESCRIPTORS, Unwilling, Waker};
use crate::error::PeerError;
use crate::identity::{Address, EndpointId};
use crate::mechanism::PeerFacts;
use crate::process::PeerProcess;
use crate::refusal::advice;

/// How long sending rests when only time can help.
const FLUSH_PAUSE: Duration = Duration::from_millis(1);

/// To whom a serial number in the epoll belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// An incoming connection without HELLO.
    HalfOpen,
    /// The current connection with a peer.
    Link(EndpointId),
    /// The pidfd of a peer.
    Watch(EndpointId),
}

/// An incoming connection that has not said HELLO.
#[derive(Debug)]
pub(super) struct HalfOpen {
    pub fd: OwnedFd,
    pub timer: Option<Instant>,
}

/// A socket in the epoll and the process at its other end.
#[derive(Debug)]
pub(super) struct Connection {
    pub serial: u64,
    /// Shared with the [`Waker`].
    pub fd: Arc<OwnedFd>,
    pub process: Arc<PeerProcess>,
}

/// A datagram that waits to be sent.
#[derive(Debug)]
pub(super) struct Outgoing {
    pub bytes: Vec<u8>,
    pub descriptors: Vec<OwnedFd>,
}

/// The current connection with a peer.
#[derive(Debug)]
pub(super) struct Link {
    pub connection: Connection,
    pub outgoing: VecDeque<Outgoing>,
    /// Whether the epoll watches for room to send.
    watched_for_room: bool,
    /// Where the peer probes us; given back once it has reported.
    lease: Option<ProbeLease>,
    /// What the peer's HELLO said.
    hello: HelloBody,
}

/// Everything kept for one peer.
#[derive(Debug)]
pub(super) struct Peer {
    pub state: State,
    /// Where it is reached, if we ever wished to reach it.
    pub address: Option<Address>,
    pub wished_at: Instant,
    /// Until when it must be established.
    pub deadline: Instant,
    /// Until when it may take to answer, if it is there.
    pub answer_by: Option<Instant>,
    pub retry_at: Option<Instant>,
    /// The pause before the next attempt but one.
    pub pause: Duration,
    pub flush_at: Option<Instant>,
    /// What this process lacked at the last attempt.
    pub shortage: Option<Errno>,
    /// Whether nobody listened at its address when last tried.
    pub found_nobody: bool,
    pub link: Option<Link>,
    /// The process whose pidfd is in the epoll, under this serial number. It
    /// stays there between a connection given up and the next.
    watch: Option<(u64, Arc<PeerProcess>)>,
    timer: Option<Instant>,
}

/// What an event brings along.
#[derive(Debug, Default)]
pub(super) struct Cargo {
    pub connection: Option<Connection>,
    pub hello: HelloBody,
    pub blob: Vec<u8>,
    pub descriptors: Vec<OwnedFd>,
    pub lost_descriptors: usize,
    pub reason: String,
    /// What the system answered, if that is the reason.
    pub errno: Option<Errno>,
}

impl Cargo {
    /// The greeting that it brings.
    fn greeting(self) -> Greeting {
        let Self { blob, descriptors, lost_descriptors, .. } = self;
        Greeting { bytes: blob, descriptors, lost_descriptors }
    }

    pub fn saying(why: impl Into<Unwilling>) -> Self {
        let Unwilling { reason, errno } = why.into();
        Self { reason, errno, ..Self::default() }
    }
}

impl Peer {
    pub fn new(deadline: Instant) -> Self {
        Self {
            state: State::Idle,
            address: None,
            wished_at: Instant::now(),
            deadline,
            answer_by: None,
            retry_at: None,
            pause: RETRY_MIN,
            flush_at: None,
            shortage: None,
            found_nobody: false,
            link: None,
            watch: None,
            timer: None,
        }
    }

    /// Whether its process is known to be dead.
    pub fn is_dead(&self) -> bool {
        self.watch.as_ref().is_some_and(|(_, process)| !process.is_alive())
    }

    /// When it is given up.
    pub fn deadline(&self) -> Option<Instant> {
        let deadline = self.answer_by.map_or(self.deadline, |answer_by| self.deadline.max(answer_by));
        (self.state != State::Established).then_some(deadline)
    }

    fn next_due(&self) -> Option<Instant> {
        [self.deadline(), self.retry_at, self.flush_at].into_iter().flatten().min()
    }
}

impl Connector {
    /// Lets the handshake decide what an event means for a peer, and does it.
    pub(super) fn happen(&mut self, id: EndpointId, event: Event, cargo: Cargo, handler: &mut dyn Handler) {
        let Some(peer) = self.peers.get_mut(&id) else { return };
        let (next, action) = decide(peer.state, event, self.id < id);
        tracing::trace!(me = %self.id, peer = %id, ?event, from = ?peer.state, to = ?next, ?action);
        peer.state = next;
        if next != State::Wanted {
            peer.retry_at = None;
        }
        self.act(id, action, cargo, handler);
        self.retime(id);
    }

    fn act(&mut self, id: EndpointId, action: Action, mut cargo: Cargo, handler: &mut dyn Handler) {
        match action {
            // Try follows a wish only, which `connect` carries out itself.
            Action::Nothing | Action::Try => self.dismiss(cargo.connection, None),
            Action::Greet => {
                self.greet(id, cargo, handler);
            }
            Action::Adopt => {
                self.drop_link(id);
                let (connection, hello) = (cargo.connection.take(), cargo.hello);
                let greeting = cargo.greeting();
                let opening = Cargo { connection, ..Cargo::default() };
                if self.greet(id, opening, handler) {
                    self.probe(id, hello, greeting, handler);
                }
            }
            Action::AnswerMerge => {
                let bytes = wire::encode(self.id, Kind::Merge, 0, None, &[]);
                self.dismiss(cargo.connection, Some(&bytes));
            }
            Action::AnswerRefuse => {
                let sentence = "this id is connected already; give each process its own rank";
                self.dismiss(cargo.connection, Some(&wire::encode_refusal(self.id, sentence)));
            }
            Action::Probe => {
                let hello = cargo.hello;
                self.probe(id, hello, cargo.greeting(), handler);
            }
            Action::Establish => self.establish(id, cargo.blob, handler),
            Action::Deliver => handler.descriptors(id, &cargo.blob, cargo.descriptors),
            Action::Retreat => {
                self.drop_link(id);
                self.retry_later(id, None);
            }
            Action::Fail(failure) => self.fail(id, failure, cargo, handler),
            Action::Refuse => {
                self.say_refusal(id, &cargo.reason, cargo.errno);
                self.fail(id, Failure::Refused, cargo, handler);
            }
            Action::Close { goodbye } => {
                self.end_peer(id);
                handler.closed(id, if goodbye { Closed::Goodbye } else { Closed::Died });
            }
            Action::RefuseAndClose => {
                tracing::warn!(peer = %id, reason = cargo.reason, "a connection is given up");
                self.say_refusal(id, &cargo.reason, cargo.errno);
                self.end_peer(id);
                handler.closed(id, Closed::Died);
            }
        }
    }

    fn fail(&mut self, id: EndpointId, failure: Failure, cargo: Cargo, handler: &mut dyn Handler) {
        self.dismiss(cargo.connection, None);
        let error = match (failure, self.peers.get(&id)) {
            (Failure::Late, Some(peer)) => self.lateness(id, peer),
            (Failure::Refused, _) => match cargo.errno {
                Some(errno) => PeerError::System { id, errno, reason: cargo.reason },
                None => PeerError::Refused { id, reason: cargo.reason },
            },
            _ => PeerError::Dead { id },
        };
        if failure == Failure::Late {
            self.say_refusal(id, "the handshake was not done in time", None);
        }
        self.end_peer(id);
        handler.failed(id, error);
    }

    /// Makes a connection the current one and says HELLO. False when it came
    /// to nothing.
    fn greet(&mut self, id: EndpointId, cargo: Cargo, handler: &mut dyn Handler) -> bool {
        let Some(connection) = cargo.connection else { return false };
        self.watch_process(id, &connection.process);
        self.is_there(id);
        self.owners.insert(connection.serial, Owner::Link(id));
        let Some(peer) = self.peers.get_mut(&id) else { return false };
        peer.shortage = None;
        let link = peer.link.insert(Link {
            connection,
            outgoing: VecDeque::new(),
            watched_for_room: false,
            lease: None,
            hello: HelloBody::default(),
        });
        let lease = ProbeLease::new().map_err(|errno| Unwilling {
            reason: format!("getrandom answered {errno}; {}", advice("getrandom", errno)),
            errno: Some(errno),
        });
        let greeting = lease.and_then(|lease| Ok((lease, handler.hello(id)?)));
        let (lease, greeting) = match greeting {
            Ok(both) if fits(&both.1) => both,
            Ok(_) => return self.unwilling(id, TOO_LONG.into(), handler),
            Err(why) => return self.unwilling(id, why, handler),
        };
        let (probe_address, nonce) = lease.place();
        link.lease = Some(lease);
        let hello = HelloBody { probe_address, nonce };
        let Greeting { bytes, descriptors, .. } = greeting;
        let bytes = wire::encode(self.id, Kind::Hello, descriptors.len(), Some(&hello), &bytes);
        self.enqueue(id, Outgoing { bytes, descriptors });
        true
    }

    fn unwilling(&mut self, id: EndpointId, why: Unwilling, handler: &mut dyn Handler) -> bool {
        self.happen(id, Event::Unwilling, Cargo::saying(why), handler);
        false
    }

    fn probe(&mut self, id: EndpointId, hello: HelloBody, greeting: Greeting, handler: &mut dyn Handler) {
        let Some(link) = self.peers.get_mut(&id).and_then(|peer| peer.link.as_mut()) else { return };
        link.hello = hello;
        let facts = link.facts(id);
        let waker = Waker::new(self.id, Arc::clone(&link.connection.fd));
        let report = match handler.probe(&facts, greeting, waker) {
            Ok(report) if report.len() <= MAX_BLOB_BYTES => report,
            Ok(_) => {
                self.unwilling(id, TOO_LONG.into(), handler);
                return;
            }
            Err(why) => {
                self.unwilling(id, why, handler);
                return;
            }
        };
        let bytes = wire::encode(self.id, Kind::Report, 0, None, &report);
        self.enqueue(id, Outgoing { bytes, descriptors: Vec::new() });
    }

    fn establish(&mut self, id: EndpointId, report: Vec<u8>, handler: &mut dyn Handler) {
        let Some(peer) = self.peers.get_mut(&id) else { return };
        let Some(link) = peer.link.as_mut() else { return };
        if let Some(mut lease) = link.lease.take() {
            lease.probed();
        }
        peer.address = None;
        let facts = link.facts(id);
        handler.established(facts, report);
    }

    pub(super) fn enqueue(&mut self, id: EndpointId, datagram: Outgoing) {
        let Some(link) = self.peers.get_mut(&id).and_then(|peer| peer.link.as_mut()) else { return };
        link.outgoing.push_back(datagram);
        self.flush(id);
    }

    /// Sends what the socket takes.
    pub(super) fn flush(&mut self, id: EndpointId) {
        let Some(peer) = self.peers.get_mut(&id) else { return };
        let Some(link) = peer.link.as_mut() else { return };
        let mut full = false;
        while let Some(datagram) = link.outgoing.front() {
            match socket::send(link.connection.fd.as_fd(), &datagram.bytes, &datagram.descriptors) {
                Sent::Yes => {
                    link.outgoing.pop_front();
                }
                Sent::Full => {
                    full = true;
                    break;
                }
                Sent::Later => {
                    peer.flush_at = Some(self.now + FLUSH_PAUSE);
                    break;
                }
                // Reading tells how the connection ended, after what the
                // peer still had to say; epoll reports its end.
                Sent::Broken => {
                    link.outgoing.clear();
                    let _ = nix::sys::socket::shutdown(
                        std::os::fd::AsRawFd::as_raw_fd(&link.connection.fd),
                        nix::sys::socket::Shutdown::Both,
                    );
                }
            }
        }
        if full != link.watched_for_room {
            link.watched_for_room = full;
            let room = if full { EpollFlags::EPOLLOUT } else { EpollFlags::empty() };
            let flags = EpollFlags::EPOLLIN | room;
            self.poller.rewatch(link.connection.fd.as_fd(), link.connection.serial, flags);
        }
    }

    /// Puts the pidfd of the peer's process into the epoll, instead of an
    /// earlier one.
    fn watch_process(&mut self, id: EndpointId, process: &Arc<PeerProcess>) {
        self.unwatch_process(id);
        let Some(pidfd) = process.pidfd() else { return };
        let serial = self.new_watch(id);
        if let Err(errno) = self.poller.watch(pidfd, serial) {
            // Then the connection's end tells of the death.
            tracing::warn!(peer = %id, %errno, "a pidfd cannot be watched");
        }
        if let Some(peer) = self.peers.get_mut(&id) {
            peer.watch = Some((serial, process.clone()));
        }
    }

    fn unwatch_process(&mut self, id: EndpointId) {
        let Some((serial, process)) = self.peers.get_mut(&id).and_then(|peer| peer.watch.take()) else {
            return;
        };
        self.owners.remove(&serial);
        if let Some(pidfd) = process.pidfd() {
            let _ = self.poller.forget(pidfd);
        }
    }

    fn say_refusal(&self, id: EndpointId, reason: &str, errno: Option<Errno>) {
        let Some(link) = self.peers.get(&id).and_then(|peer| peer.link.as_ref()) else { return };
        socket::send(link.connection.fd.as_fd(), &wire::encode_refusal_by(self.id, reason, errno), &[]);
    }

    /// Closes a connection that is not or no longer the current one, after a
    /// last word.
    fn dismiss(&mut self, connection: Option<Connection>, last_word: Option<&[u8]>) {
        let Some(connection) = connection else { return };
        if let Some(bytes) = last_word {
            socket::send(connection.fd.as_fd(), bytes, &[]);
        }
        self.owners.remove(&connection.serial);
        let _ = self.poller.forget(connection.fd.as_fd());
        socket::close(connection.fd);
    }

    /// Closes the current connection; the peer's process stays watched.
    fn drop_link(&mut self, id: EndpointId) {
        let Some(peer) = self.peers.get_mut(&id) else { return };
        peer.flush_at = None;
        if let Some(link) = peer.link.take() {
            self.dismiss(Some(link.connection), None);
        }
    }

    /// Forgets a peer and closes its connection.
    fn end_peer(&mut self, id: EndpointId) {
        if let Some(fd) = self.remove_peer(id) {
            socket::close(fd);
        }
    }

    /// Forgets a peer; its connection, if any, is out of the epoll but open.
    pub(super) fn remove_peer(&mut self, id: EndpointId) -> Option<Arc<OwnedFd>> {
        self.unwatch_process(id);
        let mut peer = self.peers.remove(&id)?;
        self.poller.set_timer(TimerKey::Peer(id), &mut peer.timer, None);
        let connection = peer.link.take()?.connection;
        self.owners.remove(&connection.serial);
        let _ = self.poller.forget(connection.fd.as_fd());
        Some(connection.fd)
    }

    /// Sets a peer's timer to what is due next.
    pub(super) fn retime(&mut self, id: EndpointId) {
        let Some(peer) = self.peers.get_mut(&id) else { return };
        let due = peer.next_due();
        self.poller.set_timer(TimerKey::Peer(id), &mut peer.timer, due);
    }
}

const TOO_LONG: &str = "this endpoint's greeting or report is longer than one datagram takes; pass less";

fn fits(greeting: &Greeting) -> bool {
    greeting.bytes.len() <= MAX_BLOB_BYTES && greeting.descriptors.len() <= MAX_DESCRIPTORS
}

impl Link {
    fn facts(&self, id: EndpointId) -> PeerFacts {
        PeerFacts {
            id,
            process: self.connection.process.clone(),
            probe_address: self.hello.probe_address,
            nonce: self.hello.nonce,
        }
    }
}
