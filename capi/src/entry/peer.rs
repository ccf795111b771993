//! An endpoint's peers.
#![allow(unsafe_code)] // Functions that C calls.

use std::ffi::c_void;
use std::mem::MaybeUninit;

use lmt::{Address, OperationError};

use crate::border::{bytes, places, there};
use crate::code::lmt_code::{self, LMT_ERR_ADDRESS};
use crate::error::{Error, guard};
use crate::objects::{ENDPOINTS, name_of, peer_of};
use crate::types::{LMT_ID_BYTES, lmt_endpoint, lmt_peer};

/// An address that a caller hands over.
///
/// # Safety
/// `address` is NULL or leads to so many bytes.
pub(super) unsafe fn address_of(address: *const c_void, length: usize) -> Result<Address, Error> {
    // SAFETY: the caller's promise.
    let bytes = unsafe { bytes(address, length, "address") }?;
    Address::from_bytes(bytes).map_err(|error| Error::new(LMT_ERR_ADDRESS, error.to_string()))
}

/// Names a peer by its address, for this endpoint; the same address gives the same
/// peer. Does no I/O: the connection is made with the first operation. A peer that
/// had died is tried again once it is named again.
///
/// Errors: `LMT_ERR_NULL`, `LMT_ERR_HANDLE`, `LMT_ERR_BUSY`, `LMT_ERR_ADDRESS`,
/// `LMT_ERR_FORKED`, `LMT_ERR_SYSTEM` (as many peers as `max_peers` allows).
///
/// # Safety
/// `address` is NULL or leads to `length` bytes; `peer` is NULL or memory for one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lmt_peer_insert(
    endpoint: *mut lmt_endpoint,
    address: *const c_void,
    length: usize,
    peer: Option<&mut MaybeUninit<lmt_peer>>,
) -> lmt_code {
    guard(|| {
        let place = there(peer, "peer")?;
        // SAFETY: the caller's promise.
        let address = unsafe { address_of(address, length) }?;
        ENDPOINTS.with(endpoint.addr() as u64, |endpoint| {
            let peer = endpoint.inner.insert_peer(&address)?;
            place.write(name_of(endpoint.number, peer));
            Ok(())
        })
    })
}

/// Forgets a peer, dead or alive: operations that name it end with
/// `LMT_ERR_PEER_REMOVED`, and `peer` names nobody any more. Peers count towards
/// `max_peers` until they are removed.
///
/// Errors: `LMT_ERR_NULL`, `LMT_ERR_HANDLE`, `LMT_ERR_BUSY`, `LMT_ERR_UNKNOWN_PEER`,
/// `LMT_ERR_PEER_BUSY` (transfers with it are under way), `LMT_ERR_FORKED`.
///
/// # Safety
/// Any pointer will do.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lmt_peer_remove(endpoint: *mut lmt_endpoint, peer: lmt_peer) -> lmt_code {
    guard(|| {
        ENDPOINTS.with(endpoint.addr() as u64, |endpoint| {
            Ok(endpoint.inner.remove_peer(peer_of(endpoint.number, peer)?)?)
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
        // SAFETY: the caller's promise.
        let room = unsafe { places(id.cast::<u8>(), LMT_ID_BYTES, "id") }?;
        ENDPOINTS.with(endpoint.addr() as u64, |endpoint| {
            let peer = peer_of(endpoint.number, peer)?;
            let id = endpoint.inner.peer_id(peer).ok_or(OperationError::UnknownPeer)?;
            super::write::list(&id.to_bytes(), room, None)
        })
    })
}
