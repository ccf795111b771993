//! The second door: its beginning and end, peers, progress and what it tells.
#![allow(unsafe_code)] // Functions that C calls.

use std::ffi::{c_char, c_int, c_void};
use std::mem::{ManuallyDrop, MaybeUninit};
use std::os::fd::AsRawFd;

use lmt::OperationError;

use super::endpoint::options_of;
use super::explain::{counters_of, format_of, question, written};
use super::peer::address_of;
use super::progress::microseconds;
use super::write;
use crate::border::{answer, places, there};
use crate::code::lmt_code::{self, LMT_ERR_CALLBACK};
use crate::code::of_peer;
use crate::error::{Error, guard};
use crate::objects::{DOORS, DoorObject, name_of, peer_of};
use crate::port::CPort;
use crate::types::{lmt_counters, lmt_door, lmt_options, lmt_peer, lmt_send_packet};

/// Opens a door: the layer of large messages alone, for a device layer with packets
/// and matching of its own. `options` may be NULL. `send_packet` carries packets to
/// peers, and is called with `context` within `lmt_door_progress`. To be closed by
/// `lmt_door_close`.
///
/// Errors: `LMT_ERR_NULL`, `LMT_ERR_HANDLE`, `LMT_ERR_BUSY`, `LMT_ERR_CONFIGURATION`,
/// `LMT_ERR_NO_MEMORY`, `LMT_ERR_SYSTEM`.
///
/// # Safety
/// `send_packet` is NULL or keeps to what its type says, and can be called until the
/// door is closed, by each thread that uses it; `door` is NULL or memory for a
/// pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lmt_door_create(
    options: *const lmt_options,
    send_packet: lmt_send_packet,
    context: *mut c_void,
    door: Option<&mut MaybeUninit<*mut lmt_door>>,
) -> lmt_code {
    guard(|| {
        let place = there(door, "door")?;
        // SAFETY: the caller's promise.
        let port = there(unsafe { CPort::new(send_packet, context) }, "send_packet")?;
        let inner = options_of(options)?.builder()?.build_door()?;
        let number = DOORS.insert(Box::new(DoorObject { number: 0, inner, port }))?;
        DOORS.with(number, |door| {
            (door.number, door.port.owner) = (number, number);
            Ok(())
        })?;
        place.write(std::ptr::without_provenance_mut(number as usize));
        Ok(())
    })
}

/// Closes a door: what is under way ends, peers are told goodbye, and no operation
/// uses memory any more. Call it when all requests have ended. Its handle, peers and
/// requests name nothing any more; announcements and withdrawals are to be dropped all
/// the same. It is gone also where an error is told.
///
/// Errors: `LMT_ERR_NULL`, `LMT_ERR_HANDLE`, `LMT_ERR_BUSY`, `LMT_ERR_FORKED`.
///
/// # Safety
/// Any pointer will do.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lmt_door_close(door: *mut lmt_door) -> lmt_code {
    guard(|| {
        // As `lmt_endpoint_close` does it.
        let mut door = ManuallyDrop::new(DOORS.take(door.addr() as u64)?);
        let closed = door.inner.close();
        drop(ManuallyDrop::into_inner(door));
        Ok(closed?)
    })
}

/// The bytes by which others reach this door, as `lmt_endpoint_address`.
///
/// Errors: `LMT_ERR_NULL`, `LMT_ERR_HANDLE`, `LMT_ERR_BUSY`, `LMT_ERR_TOO_SHORT`.
///
/// # Safety
/// `address` is NULL or memory for `capacity` bytes; `length` is NULL or memory for
/// a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lmt_door_address(
    door: *mut lmt_door,
    address: *mut c_void,
    capacity: usize,
    length: Option<&mut MaybeUninit<usize>>,
) -> lmt_code {
    guard(|| {
        // SAFETY: the caller's promise.
        let room = unsafe { places(address.cast::<u8>(), capacity, "address") }?;
        DOORS.with(door.addr() as u64, |door| write::list(&door.inner.address().to_bytes(), room, length))
    })
}

/// Names a peer by its door's address and begins to connect to it, which goes on in
/// `lmt_door_progress`. The same address gives the same peer; one that is gone is tried
/// again.
///
/// Errors: `LMT_ERR_NULL`, `LMT_ERR_HANDLE`, `LMT_ERR_BUSY`, `LMT_ERR_ADDRESS`,
/// `LMT_ERR_FORKED`, `LMT_ERR_SYSTEM` (as many peers as `max_peers` allows).
///
/// # Safety
/// `address` is NULL or leads to `length` bytes; `peer` is NULL or memory for one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lmt_door_insert_peer(
    door: *mut lmt_door,
    address: *const c_void,
    length: usize,
    peer: Option<&mut MaybeUninit<lmt_peer>>,
) -> lmt_code {
    guard(|| {
        let place = there(peer, "peer")?;
        // SAFETY: the caller's promise.
        let address = unsafe { address_of(address, length) }?;
        DOORS.with(door.addr() as u64, |door| {
            let peer = door.inner.insert_peer(&address)?;
            place.write(name_of(door.number, peer));
            Ok(())
        })
    })
}

/// What the door knows of a peer. `is_connected` tells whether the connection is made;
/// `unsent` how many sends and packets wait for it or for room in `send_packet`: who
/// must keep packets of its own in order with announcements holds them back until it
/// is 0. Both may be NULL. The code tells why there is no connection any more:
/// `LMT_ERR_PEER_DEAD`, `LMT_ERR_PEER_UNREACHABLE`, `LMT_ERR_PEER_REFUSED`,
/// `LMT_ERR_PEER_REMOVED`; receives that wait for this peer end with it.
///
/// Errors: those, and `LMT_ERR_NULL`, `LMT_ERR_HANDLE`, `LMT_ERR_BUSY`,
/// `LMT_ERR_UNKNOWN_PEER`.
///
/// # Safety
/// `is_connected` and `unsent` are NULL or memory for one each.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lmt_door_peer(
    door: *mut lmt_door,
    peer: lmt_peer,
    is_connected: Option<&mut MaybeUninit<bool>>,
    unsent: Option<&mut MaybeUninit<usize>>,
) -> lmt_code {
    guard(|| {
        DOORS.with(door.addr() as u64, |door| {
            let peer = peer_of(door.number, peer)?;
            if !door.inner.knows(peer) {
                return Err(OperationError::UnknownPeer.into());
            }
            answer(is_connected, door.inner.is_connected(peer));
            answer(unsent, door.inner.unsent(peer));
            match door.inner.peer_error(peer) {
                Some(error) => Err(Error::new(of_peer(error), error.to_string())),
                None => Ok(()),
            }
        })
    })
}

/// Moves bytes and packets (by `send_packet`), and makes connections. Never waits.
/// `moved` (which may be NULL) tells whether anything was moved.
///
/// Errors: `LMT_ERR_NULL`, `LMT_ERR_HANDLE`, `LMT_ERR_BUSY` (also within
/// `send_packet`), `LMT_ERR_FORKED`, `LMT_ERR_CALLBACK` (`send_packet` answered something
/// else than `LMT_OK` and `LMT_ERR_WOULD_BLOCK`; the packet is tried again).
///
/// # Safety
/// `moved` is NULL or memory for one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lmt_door_progress(
    door: *mut lmt_door,
    moved: Option<&mut MaybeUninit<bool>>,
) -> lmt_code {
    guard(|| {
        DOORS.with(door.addr() as u64, |door| {
            let DoorObject { inner, port, .. } = &mut **door;
            answer(moved, inner.progress(port)?);
            match port.failed.take() {
                None => Ok(()),
                Some(code) => Err(callback_failed(code)),
            }
        })
    })
}

fn callback_failed(code: c_int) -> Error {
    let sentence = format!(
        "send_packet returned {code}; it must be LMT_OK, or LMT_ERR_WOULD_BLOCK where there is no room, and the packet is tried again"
    );
    Error::new(LMT_ERR_CALLBACK, sentence)
}

/// A descriptor that is readable when connections need progress; packets of the
/// program's own and transfers under way do not make it so. It is the door's, as
/// that of `lmt_wait_descriptor` is the endpoint's. `limit_us` (which may be NULL)
/// tells for how many microseconds at most to sleep before the next progress.
///
/// Errors: `LMT_ERR_NULL`, `LMT_ERR_HANDLE`, `LMT_ERR_BUSY`.
///
/// # Safety
/// `descriptor` and `limit_us` are NULL or memory for a number each.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lmt_door_wait_descriptor(
    door: *mut lmt_door,
    descriptor: Option<&mut MaybeUninit<c_int>>,
    limit_us: Option<&mut MaybeUninit<u64>>,
) -> lmt_code {
    guard(|| {
        let place = there(descriptor, "descriptor")?;
        DOORS.with(door.addr() as u64, |door| {
            place.write(door.inner.wait_descriptor().as_raw_fd());
            answer(limit_us, microseconds(door.inner.sleep_limit()));
            Ok(())
        })
    })
}

/// As `lmt_explain`, of a door: short messages are the program's own, so nothing is
/// eager.
///
/// Errors: as `lmt_explain`.
///
/// # Safety
/// As `lmt_explain`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lmt_door_explain(
    door: *mut lmt_door,
    peer: lmt_peer,
    bytes: u64,
    flags: u32,
    format: u32,
    text: *mut c_char,
    capacity: usize,
    length: Option<&mut MaybeUninit<usize>>,
) -> lmt_code {
    guard(|| {
        // SAFETY: the caller's promise.
        let room = unsafe { places(text, capacity, "text") }?;
        let (message, format) = (question(bytes, flags)?, format_of(format)?);
        DOORS.with(door.addr() as u64, |door| {
            let explanation = door.inner.explain(peer_of(door.number, peer)?, &message)?;
            write::text(&written(&explanation, format)?, room, length)
        })
    })
}

/// What each mechanism has moved, with all peers; else as `lmt_statistics`.
///
/// Errors: `LMT_ERR_NULL`, `LMT_ERR_INVALID`, `LMT_ERR_HANDLE`, `LMT_ERR_BUSY`,
/// `LMT_ERR_TOO_SHORT` (nothing but `count` is written).
///
/// # Safety
/// As `lmt_statistics`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lmt_door_statistics(
    door: *mut lmt_door,
    list: *mut lmt_counters,
    capacity: usize,
    count: Option<&mut MaybeUninit<usize>>,
) -> lmt_code {
    guard(|| {
        // SAFETY: the caller's promise.
        let room = unsafe { places(list, capacity, "list") }?;
        DOORS.with(door.addr() as u64, |door| {
            let totals = door.inner.totals();
            let all: Vec<_> = totals.iter().map(|(path, counters)| counters_of(path, counters)).collect();
            write::list(&all, room, count)
        })
    })
}
