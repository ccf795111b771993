//! How operations end: their status, or the error that ended them.

use super::ids::{PeerId, RequestId};
use super::label::Label;
use crate::region::RegionError;
use crate::rendezvous::TransferError;
use crate::vocabulary::error::PeerError;
use crate::vocabulary::identity::EndpointId;

/// What an operation has done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Status {
    /// The other side of the message.
    pub peer: PeerId,
    /// The message's tag.
    pub tag: u64,
    /// Its length in bytes.
    pub bytes: u64,
    /// What its sender added ([`Label::immediate`]).
    pub immediate: Option<u32>,
}

/// What an embedder names an operation by whose end it is told: words of its own, which are
/// handed back as they are. Enough for what it has to know of a receive, so that it need not
/// keep that elsewhere.
pub type ReportToken = [u64; 3];

/// An operation that has ended, as [`crate::endpoint::Engine::report`] asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Completion {
    /// What the embedder named it by.
    pub token: ReportToken,
    /// What became of it.
    pub result: Reported,
}

/// What became of an operation whose end is reported. Errors are long and rare, and what
/// goes from hand to hand had better be short.
pub type Reported = Result<Status, Box<OperationError>>;

/// What became of an operation.
pub type Outcome = Result<Status, OperationError>;

/// What an operation has come to when it was begun.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use = "an operation that goes on is to be waited for"]
pub enum Started {
    /// It is done; there is no request to wait for.
    Done(Status),
    /// It goes on, or has failed: [`crate::endpoint::Engine::wait`] and its like take its result.
    Pending(RequestId),
}

/// Why an operation did not do what was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OperationError {
    /// The message was longer than the receive's buffer.
    #[error(
        "the message of {message_bytes} bytes was cut to the {received_bytes} bytes of the receive's buffer; post a buffer as long as the longest message, or probe first"
    )]
    Truncated {
        /// Who sent it.
        peer: PeerId,
        /// Its tag.
        tag: u64,
        /// Its full length in bytes.
        message_bytes: u64,
        /// What was written to the buffer, in bytes.
        received_bytes: u64,
        /// What its sender added.
        immediate: Option<u32>,
    },
    /// The operation was cancelled before it was matched.
    #[error("the operation was cancelled before it was matched")]
    Cancelled,
    /// The peer is dead, unreachable, or refused the connection.
    #[error(transparent)]
    Peer(#[from] PeerError),
    /// This process was forked off the one that owns the endpoint.
    #[error(
        "this endpoint belongs to the process that this one was forked from; create an endpoint of its own after fork"
    )]
    Forked,
    /// As much as the configuration allows waits for this peer already, or is
    /// announced to it and not done.
    #[error(
        "{pending} messages to peer {id} wait already, or are announced and not done (pending_max_messages); make progress or wait for requests, then send again"
    )]
    WouldBlock {
        /// Which peer.
        id: EndpointId,
        /// How many wait.
        pending: u32,
    },
    /// Memory of this process is in the peer's hands.
    #[error(
        "{operations} operations with peer {id} are in flight, whose memory it may be using; wait for them or cancel them, then remove the peer"
    )]
    PeerBusy {
        /// Which peer.
        id: EndpointId,
        /// How many.
        operations: usize,
    },
    /// No such request, or its result was taken already.
    #[error("there is no such request; its result may have been taken already")]
    UnknownRequest,
    /// As many peers are known as the configuration allows.
    #[error("{max_peers} peers are known already (max_peers); raise it, or remove peers that have gone")]
    TooManyPeers {
        /// How many that is.
        max_peers: u32,
    },
    /// No such peer of this endpoint.
    #[error("there is no such peer at this endpoint; insert its address first")]
    UnknownPeer,
    /// The region is not what the operation needs.
    #[error(transparent)]
    Region(#[from] RegionError),
    /// The buffer lent to the operation does not suit it.
    #[error("a receive or a get needs a writable buffer; this one is read-only")]
    ReadOnlyBuffer,
    /// The message was taken by a matched probe of another endpoint.
    #[error("this message was taken from another endpoint; receive it there")]
    ForeignMessage,
    /// The system refused something that the endpoint needs.
    #[error("{0}")]
    System(String),
}

impl OperationError {
    /// A transfer's error, with the peer named.
    pub(crate) fn of_transfer(error: TransferError, id: EndpointId) -> Self {
        match error {
            TransferError::Cancelled => Self::Cancelled,
            TransferError::PeerDead => PeerError::Dead { id }.into(),
            other => PeerError::NoMechanism { id, reason: other.to_string() }.into(),
        }
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
pub(crate) fn truncated(message: Status, received_bytes: u64) -> OperationError {
    let Status { peer, tag, bytes: message_bytes, immediate } = message;
    OperationError::Truncated { peer, tag, message_bytes, received_bytes, immediate }
}
