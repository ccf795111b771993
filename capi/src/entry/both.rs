//! What functions of endpoints and of device layers do alike.
#![allow(unsafe_code)] // Takes pointers of C.

use std::ffi::c_void;
use std::mem::ManuallyDrop;

use lmt::{Address, Outcome};

use super::write;
use crate::border::{Place, Places, bytes};
use crate::code::lmt_code::{LMT_ERR_ADDRESS, LMT_ERR_FORKED};
use crate::error::Error;
use crate::handle::{Number, number_of};
use crate::numbers::{NO_STATUS, peer_to_c, request_of, status_of};
use crate::objects::{NO_REQUEST, Side};
use crate::types::{lmt_peer, lmt_request, lmt_status};

/// Closes the one that a handle names.
pub(super) fn close<S: Side>(handle: *mut S::Handle) -> Result<(), Error> {
    let number = number_of(handle);
    let out = S::table().take(number).inspect_err(|error| {
        // A forked child gives its share of the parent's memory and files back.
        if error.code == LMT_ERR_FORKED {
            drop(S::table().take_inherited(number));
        }
    })?;
    // If a fault ends it, it is kept as it is: a second one on the way out would end
    // the process.
    let mut side = ManuallyDrop::new(out.object);
    let closed = side.close(out.is_broken);
    drop(ManuallyDrop::into_inner(side));
    Ok(closed?)
}

/// Writes an address.
///
/// # Safety
/// `room` is NULL or memory for `capacity` bytes; `length` is NULL or memory for a
/// number.
pub(super) unsafe fn write_address(
    address: impl FnOnce() -> Result<Address, Error>,
    room: *mut c_void,
    capacity: usize,
    length: *mut usize,
) -> Result<(), Error> {
    // SAFETY: by `# Safety`, `room` is NULL or memory for `capacity` bytes.
    let room = unsafe { Places::new(room.cast::<u8>(), capacity, "address") }?;
    // SAFETY: by `# Safety`, `length` is NULL or memory for a number.
    let length = unsafe { Place::wanted(length, "length") }?;
    write::list(&address()?.to_bytes(), "bytes", room, length)
}

/// Writes the address of the one that a handle names.
///
/// # Safety
/// As [`write_address`].
pub(super) unsafe fn own_address<S: Side>(
    handle: *mut S::Handle,
    room: *mut c_void,
    capacity: usize,
    length: *mut usize,
) -> Result<(), Error> {
    let address = || S::with(handle, |side| Ok(side.address()));
    // SAFETY: `write_address` asks for the same.
    unsafe { write_address(address, room, capacity, length) }
}

/// Names a peer by the bytes of its address.
///
/// # Safety
/// `address` is NULL or leads to `length` bytes; `peer` is NULL or memory for one.
pub(super) unsafe fn insert_peer<S: Side>(
    handle: *mut S::Handle,
    address: *const c_void,
    length: usize,
    peer: *mut lmt_peer,
) -> Result<(), Error> {
    // SAFETY: by `# Safety`, `peer` is NULL or memory for one.
    let place = unsafe { Place::new(peer, "peer") }?;
    // SAFETY: by `# Safety`, `address` is NULL or leads to `length` bytes.
    let bytes = unsafe { bytes(address, length, "address") }?;
    let address = Address::from_bytes(bytes).map_err(|e| Error::new(LMT_ERR_ADDRESS, e.to_string()))?;
    S::with(handle, |side| {
        let peer = side.insert_peer(&address)?;
        place.write(peer_to_c(side.number(), peer));
        Ok(())
    })
}

/// Tells whether an operation has ended, and how.
///
/// # Safety
/// `done` and `status` are NULL or memory for one each.
#[inline]
pub(super) unsafe fn test<S: Side>(
    handle: *mut S::Handle,
    request: lmt_request,
    done: *mut bool,
    status: *mut lmt_status,
) -> Result<(), Error> {
    // SAFETY: by `# Safety`, `done` is NULL or memory for one.
    let done = unsafe { Place::new(done, "done") }?;
    // SAFETY: by `# Safety`, `status` is NULL or memory for one.
    let status = unsafe { Place::wanted(status, "status") }?;
    // Also when a panic ends this: the request's memory is lent then.
    done.write(false);
    S::with(handle, |side| {
        let number = side.number();
        if request == NO_REQUEST {
            done.write(true);
            status.write(NO_STATUS);
            return Ok(());
        }
        let request = request_of(number, request).inspect_err(|_| done.write(true))?;
        let Some(outcome) = side.test(request) else { return Ok(()) };
        done.write(true);
        tell(number, outcome, status)
    })
}

/// Tells what became of an operation.
#[inline]
pub(super) fn tell(owner: Number, outcome: Outcome, place: Place<'_, lmt_status>) -> Result<(), Error> {
    if let Some(status) = status_of(owner, &outcome) {
        place.write(status);
    }
    outcome.map(drop).map_err(Error::from)
}

#[cfg(test)]
#[path = "both_tests.rs"]
mod tests;
