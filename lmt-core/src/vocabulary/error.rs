//! Errors that more than one part shares.

use nix::errno::Errno;

use super::identity::EndpointId;
use crate::base::errno_advice::advice;

/// Memory that an endpoint needs and does not get.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{purpose} needs {needed_bytes} bytes and {available} are available ({limit}); free memory, raise the limit or lower {key}"
)]
pub struct MemoryShort {
    /// What the memory is for.
    pub purpose: &'static str,
    /// How many bytes it takes.
    pub needed_bytes: u64,
    /// How many there are, or "an unknown number".
    pub available: String,
    /// Which limit says so.
    pub limit: String,
    /// The configuration key that changes the need.
    pub key: &'static str,
}

/// Why shared memory is not to be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MemoryError {
    /// There is too little.
    #[error(transparent)]
    Short(#[from] MemoryShort),
    /// A system call failed for another reason: refused, absent, or no descriptor is
    /// left.
    #[error("{purpose} needs {call}, which failed: {errno}; {}", advice(call, *errno))]
    Call {
        /// What the memory is for.
        purpose: &'static str,
        /// Which call.
        call: &'static str,
        /// What the kernel answered.
        errno: Errno,
    },
}

impl MemoryError {
    /// The number of the error: ENOMEM where memory is short.
    pub const fn errno(&self) -> Errno {
        match self {
            Self::Short(_) => Errno::ENOMEM,
            Self::Call { errno, .. } => *errno,
        }
    }
}

/// Why an operation with a peer ended without its message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PeerError {
    /// The peer's process died or closed its endpoint.
    #[error("peer {id} has died or closed its endpoint; operations with other peers go on")]
    Dead {
        /// Which peer.
        id: EndpointId,
    },
    /// Nobody listens at the address.
    #[error(
        "no endpoint answered at the address of {id} within {waited_ms} ms; start it first, or raise connect_timeout_ms (answer_timeout_ms, if it is there and busy)"
    )]
    Unreachable {
        /// Which peer.
        id: EndpointId,
        /// How long was waited.
        waited_ms: u64,
    },
    /// The peer or this endpoint refused the connection.
    #[error("the connection with {id} was refused: {reason}")]
    Refused {
        /// Which peer.
        id: EndpointId,
        /// Why, in words.
        reason: String,
    },
    /// The system refused what the connection needs, here or to the peer.
    #[error("the connection with {id} cannot be made: {reason}")]
    System {
        /// Which peer.
        id: EndpointId,
        /// What the system answered.
        errno: Errno,
        /// What it answered it to, in which of the two processes, and what would help there.
        reason: String,
    },
    /// This endpoint removed the peer while the operation was in flight.
    #[error(
        "peer {id} was removed from this endpoint before the operation was done; insert its address again to reach it"
    )]
    Removed {
        /// Which peer.
        id: EndpointId,
    },
    /// Every mechanism failed.
    #[error("no mechanism could move the message to or from {id}: {reason}")]
    NoMechanism {
        /// Which peer.
        id: EndpointId,
        /// What the last one said.
        reason: String,
    },
}
