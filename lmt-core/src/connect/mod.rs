//! Connections between the endpoints of one machine, without ever waiting.
//!
//! An endpoint listens on a Unix socket (SOCK_SEQPACKET, unix(7)) that its id
//! names. Through it two endpoints check each other's credentials and protocol
//! version, exchange what their mechanisms have to say (opaque bytes and
//! descriptors, which an inbox's memfd may be one of), find out by trying what
//! each can do with the other, and tell each other. The socket then stays open:
//! it carries later descriptors and the goodbye.
//!
//! All of it happens inside [`Connector::progress`]; what comes of it is told
//! through a [`Handler`]. Which process is at the other end, and whether it
//! still lives, is known from the kernel (SO_PEERCRED, SO_PEERPIDFD), never from
//! the peer's word.
//!
//! It must not know what the two have to say to each other: neither mechanisms nor
//! the queue.
//!
//! ```
//! use std::os::fd::OwnedFd;
//! use std::time::Instant;
//! use lmt_core::connect::{Closed, Connector, Greeting, Handler, Rejection, Waker};
//! use lmt_core::{config::Config, error::PeerError, identity::EndpointId, mechanism::PeerFacts};
//!
//! #[derive(Default)]
//! struct Met(Option<String>);
//!
//! impl Handler for Met {
//!     fn hello(&mut self, peer: EndpointId) -> Result<Greeting, Rejection> {
//!         Ok(Greeting { bytes: b"hello".to_vec(), ..Greeting::default() })
//!     }
//!     fn probe(&mut self, facts: &PeerFacts, greeting: Greeting, _: Waker) -> Result<Vec<u8>, Rejection> {
//!         Ok([b"you said ", &greeting.bytes[..]].concat())
//!     }
//!     fn established(&mut self, facts: PeerFacts, report: Vec<u8>) {
//!         self.0 = String::from_utf8(report).ok();
//!     }
//!     fn failed(&mut self, peer: EndpointId, error: PeerError) {}
//!     fn closed(&mut self, peer: EndpointId, how: Closed) {}
//!     fn descriptors(&mut self, peer: EndpointId, bytes: &[u8], descriptors: Vec<OwnedFd>) {}
//! }
//!
//! let group: EndpointId = format!("{:032x}", u128::from(std::process::id()) << 64).parse()?;
//! let mut one = Connector::new(group.member(1), &Config::default())?;
//! let mut two = Connector::new(group.member(2), &Config::default())?;
//! one.connect(two.address());
//! let (mut first, mut second) = (Met::default(), Met::default());
//! while first.0.is_none() || second.0.is_none() {
//!     one.progress(Instant::now(), &mut first);
//!     two.progress(Instant::now(), &mut second);
//! }
//! assert_eq!(first.0.as_deref(), Some("you said hello"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod actions;
mod connector;
mod descriptor_shortage;
mod handshake;
mod incoming;
mod links;
mod poller;
mod probe_area;
mod socket;
mod sys;
#[cfg(test)]
mod test_support;
mod users;
mod waker;
mod wire;
pub mod yama;

use std::os::fd::OwnedFd;
use std::path::PathBuf;

use nix::errno::Errno;

use crate::memory::shared_memory::AttachError;
use crate::vocabulary::error::PeerError;
use crate::vocabulary::identity::EndpointId;
use crate::vocabulary::peer_facts::PeerFacts;
pub use connector::Connector;
pub use waker::Waker;
pub use wire::{MAX_BLOB_BYTES, MAX_DESCRIPTORS, PROTOCOL_VERSION};

/// What one endpoint tells another when they meet.
#[derive(Debug, Default)]
pub struct Greeting {
    /// At most [`MAX_BLOB_BYTES`] bytes.
    pub bytes: Vec<u8>,
    /// At most [`MAX_DESCRIPTORS`] descriptors.
    pub descriptors: Vec<OwnedFd>,
    /// Of one that has arrived: how many of its last descriptors have not, since
    /// this process may open no more files.
    pub lost_descriptors: usize,
}

/// How an established connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closed {
    /// The peer closed its endpoint, or this connection, in good order.
    Goodbye,
    /// The peer's process died, or its connection ended without a goodbye.
    Died,
}

/// Why there is to be no connection with a peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// In a sentence.
    pub reason: String,
    /// What the system answered, if that is why.
    pub errno: Option<Errno>,
}

impl From<String> for Rejection {
    fn from(reason: String) -> Self {
        Self { reason, errno: None }
    }
}

impl From<&str> for Rejection {
    fn from(reason: &str) -> Self {
        reason.to_owned().into()
    }
}

impl From<AttachError> for Rejection {
    fn from(error: AttachError) -> Self {
        let errno = match &error {
            AttachError::System { errno, .. } => Some(*errno),
            _ => None,
        };
        Self { reason: error.to_string(), errno }
    }
}

/// What the owner of a [`Connector`] contributes and is told.
///
/// For one peer the calls come in this order: `hello`; `probe`, once the
/// peer's greeting is there; `established`; any number of `descriptors`;
/// `closed`. Before `established` an attempt can end with `failed`, or give
/// way to another with the same peer, which begins with `hello` again: then
/// what the earlier one left is of no use any more.
///
/// Everything that comes from a peer is untrusted.
pub trait Handler {
    /// What to tell this peer; called once for each attempt.
    ///
    /// # Errors
    /// Why no connection with this peer is possible; the peer
    /// is told, and `failed` follows.
    fn hello(&mut self, peer: EndpointId) -> Result<Greeting, Rejection>;

    /// Finds out what can be done with the peer and says so in at most
    /// [`MAX_BLOB_BYTES`] bytes, which the peer gets in its `established`. `waker` wakes it
    /// from now on, until the connection ends.
    ///
    /// # Errors
    /// Why this peer is of no use; the peer is told, and
    /// `failed` follows.
    fn probe(&mut self, facts: &PeerFacts, greeting: Greeting, waker: Waker) -> Result<Vec<u8>, Rejection>;

    /// The connection stands. `report` is what the peer's `probe` said.
    fn established(&mut self, facts: PeerFacts, report: Vec<u8>);

    /// There will be no connection, unless asked for anew.
    fn failed(&mut self, peer: EndpointId, error: PeerError);

    /// An established connection has ended.
    fn closed(&mut self, peer: EndpointId, how: Closed);

    /// The peer sent descriptors ([`Connector::send_descriptors`]).
    fn descriptors(&mut self, peer: EndpointId, bytes: &[u8], descriptors: Vec<OwnedFd>);

    /// A descriptor given to [`Connector::add_readable`] is readable; it is
    /// told again and again until somebody reads it.
    fn readable(&mut self, token: u64) {
        let _ = token;
    }
}

/// Why an endpoint cannot listen.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The socket's name is taken.
    #[error(
        "another endpoint already has the id {id}; give each process its own rank, and let an old one and its forked children end first"
    )]
    NameInUse {
        /// The id.
        id: EndpointId,
    },
    /// The socket folder cannot be used.
    #[error(
        "no socket can be made in the folder {folder:?} ({}); name an existing folder in which this user may create files",
        Errno::from_raw(*.errno)
    )]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// What the system answered.
        errno: i32,
    },
    /// The folder's path is too long.
    #[error(transparent)]
    Address(#[from] crate::vocabulary::identity::AddressError),
    /// A system call failed.
    #[error(
        "{call} failed for the listening socket: {0}; {1}",
        Errno::from_raw(*.errno),
        crate::base::errno_advice::advice(call, Errno::from_raw(*.errno))
    )]
    System {
        /// Which.
        call: &'static str,
        /// What it answered.
        errno: i32,
    },
}

/// Why descriptors were not taken for sending.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// There is no established connection.
    #[error("no connection with {0} is established; connect first")]
    NotConnected(EndpointId),
    /// Too many descriptors, or too many bytes with them.
    #[error(
        "{bytes} bytes and {descriptors} descriptors do not fit one datagram; at most {MAX_BLOB_BYTES} and {MAX_DESCRIPTORS} do"
    )]
    TooLarge {
        /// How many bytes.
        bytes: usize,
        /// How many descriptors.
        descriptors: usize,
    },
    /// The peer has not taken what was sent before.
    #[error("{id} has not taken the {waiting} datagrams sent before; try again after progress")]
    Full {
        /// Which peer.
        id: EndpointId,
        /// How many datagrams wait.
        waiting: usize,
    },
}

#[cfg(test)]
#[path = "connector_tests.rs"]
mod connector_tests;

#[cfg(test)]
#[path = "process_tests.rs"]
mod process_tests;
