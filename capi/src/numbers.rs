//! Peers and requests, as C holds them.

use lmt::{OperationError, Outcome, PeerId, RequestId, Status};

use crate::error::Error;
use crate::handle::Number;
use crate::types::{lmt_peer, lmt_request, lmt_status};

/// A peer, as C holds it.
#[inline]
pub const fn peer_to_c(owner: Number, peer: PeerId) -> lmt_peer {
    lmt_peer { owner, number: peer.to_raw() }
}

/// The peer that C names.
///
/// # Errors
/// It is another's.
#[inline]
pub fn peer_of(owner: Number, peer: lmt_peer) -> Result<PeerId, Error> {
    if peer.owner == owner {
        return Ok(PeerId::from_raw(peer.number));
    }
    Err(OperationError::UnknownPeer.into())
}

/// An operation, as C holds it.
#[inline]
pub const fn request_to_c(owner: Number, request: RequestId) -> lmt_request {
    lmt_request { owner, number: request.to_raw() }
}

/// The operation that C names.
///
/// # Errors
/// It is another's, or none.
#[inline]
pub fn request_of(owner: Number, request: lmt_request) -> Result<RequestId, Error> {
    if request.owner == owner {
        return Ok(RequestId::from_raw(request.number));
    }
    Err(OperationError::UnknownRequest.into())
}

/// What C is told of an operation that has ended, if there is something to tell.
#[inline]
pub fn status_of(owner: Number, outcome: &Outcome) -> Option<lmt_status> {
    match *outcome {
        Ok(Status { peer, tag, bytes, .. }) => {
            Some(lmt_status { peer: peer_to_c(owner, peer), tag, bytes, message_bytes: bytes })
        }
        Err(OperationError::Truncated { peer, tag, message_bytes, received_bytes, .. }) => {
            let peer = peer_to_c(owner, peer);
            Some(lmt_status { peer, tag, bytes: received_bytes, message_bytes })
        }
        Err(_) => None,
    }
}

/// What C is told of a request that names no operation.
///
/// cbindgen:ignore
pub const NO_STATUS: lmt_status =
    lmt_status { peer: lmt_peer { owner: 0, number: 0 }, tag: 0, bytes: 0, message_bytes: 0 };
