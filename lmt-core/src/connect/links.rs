//! What is kept for each peer, and what an event brings along.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::errno::Errno;

use super::handshake::State;
use super::probe_area::ProbeLease;
use super::wire::HelloBody;
use super::{Greeting, Rejection};
use crate::base::process::PeerProcess;
use crate::vocabulary::identity::{Address, EndpointId};
use crate::vocabulary::peer_facts::PeerFacts;

/// The first and the longest pause between attempts to connect.
pub(super) const RETRY_MIN: Duration = Duration::from_millis(1);

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
    /// Shared with the [`super::Waker`].
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
    pub watched_for_room: bool,
    /// Where the peer probes us; given back once it has reported.
    pub lease: Option<ProbeLease>,
    /// What the peer's HELLO said.
    pub hello: HelloBody,
}

/// Everything kept for one peer.
#[derive(Debug)]
pub(super) struct Peer {
    pub state: State,
    /// Where it is reached, if we ever wished to reach it.
    pub address: Option<Address>,
    pub connect_requested_at: Instant,
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
    pub no_listener: bool,
    pub link: Option<Link>,
    /// The process whose pidfd is in the epoll, under this serial number. It
    /// stays there between a connection given up and the next.
    pub watch: Option<(u64, Arc<PeerProcess>)>,
    pub timer: Option<Instant>,
}

/// What an event brings along.
#[derive(Debug, Default)]
pub(super) struct EventData {
    pub connection: Option<Connection>,
    pub hello: HelloBody,
    pub blob: Vec<u8>,
    pub descriptors: Vec<OwnedFd>,
    pub lost_descriptors: usize,
    pub reason: String,
    /// What the system answered, if that is the reason.
    pub errno: Option<Errno>,
}

impl EventData {
    /// The greeting that it brings.
    pub fn greeting(self) -> Greeting {
        let Self { blob, descriptors, lost_descriptors, .. } = self;
        Greeting { bytes: blob, descriptors, lost_descriptors }
    }

    pub fn saying(why: impl Into<Rejection>) -> Self {
        let Rejection { reason, errno } = why.into();
        Self { reason, errno, ..Self::default() }
    }
}

impl Peer {
    pub fn new(deadline: Instant) -> Self {
        Self {
            state: State::Idle,
            address: None,
            connect_requested_at: Instant::now(),
            deadline,
            answer_by: None,
            retry_at: None,
            pause: RETRY_MIN,
            flush_at: None,
            shortage: None,
            no_listener: false,
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

    pub fn next_due(&self) -> Option<Instant> {
        [self.deadline(), self.retry_at, self.flush_at].into_iter().flatten().min()
    }
}

impl Link {
    pub fn facts(&self, id: EndpointId) -> PeerFacts {
        PeerFacts {
            id,
            process: self.connection.process.clone(),
            probe_address: self.hello.probe_address,
            nonce: self.hello.nonce,
        }
    }
}
