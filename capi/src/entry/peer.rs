//! An endpoint's peers.
#![allow(unsafe_code)] // Functions that C calls.

use std::ffi::c_void;

use lmt::OperationError;

use super::{both, write};
use crate::border::{Place, Places};
use crate::code::lmt_code;
use crate::error::guard;
use crate::numbers::peer_of;
use crate::objects::{Endpoint, Side};
use crate::types::{LMT_ID_BYTES, lmt_endpoint, lmt_peer};

/// Names a peer by its address, for this endpoint; the same address gives the same
/// peer. Does no I/O: the connection is made with the first operation. A peer that
/// had died is tried again once it is named again.
///
/// Errors: `LMT_ERR_NULL`, `LMT_ERR_INVALID`, `LMT_ERR_HANDLE`, `LMT_ERR_BUSY`,
/// `LMT_ERR_ADDRESS`, `LMT_ERR_FORKED`, `LMT_ERR_LIMIT`.
///
/// # Safety
/// `address` is NULL or leads to `length` bytes; `peer` is NULL or memory for one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lmt_peer_insert(
    endpoint: *mut lmt_endpoint,
    address: *const c_void,
    length: usize,
    peer: *mut lmt_peer,
) -> lmt_code {
    // SAFETY: `insert_peer` asks for what `# Safety` says.
    guard(|| unsafe { both::insert_peer::<Endpoint>(endpoint, address, length, peer) })
}

/// Forgets a peer, dead or alive: operations that name it end with
/// `LMT_ERR_PEER_REMOVED`, and `peer` names nobody any more. Peers count towards
/// `max_peers` until they are removed.
///
/// Errors: `LMT_ERR_NULL`, `LMT_ERR_HANDLE`, `LMT_ERR_BUSY`, `LMT_ERR_UNKNOWN_PEER`,
/// `LMT_ERR_PEER_BUSY` (transfers with it are in flight), `LMT_ERR_FORKED`.
///
/// # Safety
/// Any pointer will do.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lmt_peer_remove(endpoint: *mut lmt_endpoint, peer: lmt_peer) -> lmt_code {
    guard(|| {
        Endpoint::with(endpoint, |endpoint| {
            let peer = peer_of(endpoint.number(), peer)?;
            Ok(endpoint.engine(|engine| engine.remove_peer(peer))?)
        })
    })
}

/// The identity of a peer, `LMT_ID_BYTES` bytes.
///
/// Errors: `LMT_ERR_NULL`, `LMT_ERR_HANDLE`, `LMT_ERR_BUSY`, `LMT_ERR_UNKNOWN_PEER`.
///
/// # Safety
/// `id` is NULL or memory for `LMT_ID_BYTES` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lmt_peer_id(
    endpoint: *mut lmt_endpoint,
    peer: lmt_peer,
    id: *mut c_void,
) -> lmt_code {
    guard(|| {
        // SAFETY: by `# Safety`, `id` is NULL or memory for so many bytes.
        let room = unsafe { Places::new(id.cast::<u8>(), LMT_ID_BYTES, "id") }?;
        Endpoint::with(endpoint, |endpoint| {
            let peer = peer_of(endpoint.number(), peer)?;
            let id = endpoint.engine(|engine| engine.peer_id(peer)).ok_or(OperationError::UnknownPeer)?;
            write::list(&id.to_bytes(), "bytes", room, Place::nowhere())
        })
    })
}
