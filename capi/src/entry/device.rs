//! A device layer: its beginning and end, peers, progress and what it tells.
#![allow(unsafe_code)] // Functions that C calls.

use std::ffi::{c_char, c_int, c_void};
use std::os::fd::AsRawFd;

use lmt::OperationError;

use super::endpoint::options_of;
use super::explain::write_counters;
use super::progress::microseconds;
use super::{both, explain};
use crate::border::{Place, Places, there};
use crate::code::lmt_code::{self, LMT_ERR_CALLBACK};
use crate::code::of_peer;
use crate::error::{Error, guard};
use crate::handle::handle_of;
use crate::numbers::peer_of;
use crate::objects::{DeviceLayerObject, Side};
use crate::port::CTransport;
use crate::types::{lmt_counters, lmt_device, lmt_options, lmt_peer, lmt_send_packet};

/// Opens a device layer: the layer of large messages alone, under packets and matching of
/// the caller's own. `options` may be NULL. `send_packet` carries packets to
/// peers, and is called with `context` within `lmt_device_progress`. To be closed by
/// `lmt_device_close`.
///
/// Errors: as `lmt_endpoint_create`.
///
/// # Safety
/// `send_packet` is NULL or keeps to what its type says, and can be called until the
/// device layer is closed, by each thread that uses it; `device` is NULL or memory for a
/// pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lmt_device_create(
    options: *const lmt_options,
    send_packet: lmt_send_packet,
    context: *mut c_void,
    device: *mut *mut lmt_device,
) -> lmt_code {
    guard(|| {
        // SAFETY: by `# Safety`, `device` is NULL or memory for a pointer.
        let place = unsafe { Place::new(device, "device") }?;
        // SAFETY: by `# Safety`, `send_packet` is NULL or keeps to its type's words and can
        // be called until the device layer is closed, by each thread that uses it.
        let port = there(unsafe { CTransport::new(send_packet, context) }, "send_packet")?;
        let inner = options_of(options)?.builder()?.build_device_layer()?;
        let number = DeviceLayerObject::table()
            .insert(|number| Box::new(DeviceLayerObject::new(number, inner, port)))?;
        place.write(handle_of(number));
        Ok(())
    })
}

/// Closes a device layer: what is in flight ends, and peers are told goodbye. Call it when
/// all requests have ended and no packet waits (`unsent` of `lmt_device_peer`). Its
/// handle, peers and requests name nothing any more; announcements and withdrawals
/// are to be dropped all the same. `send_packet` is not called.
///
/// After it this process copies nothing for the device layer any more; what a peer was in the
/// middle of copying keeps its memory as `lmt_endpoint_close` says, and the device layer is
/// gone also where an error is told, with the same exceptions.
///
/// Errors: `LMT_ERR_NULL`, `LMT_ERR_HANDLE`, `LMT_ERR_BUSY`, `LMT_ERR_FORKED`.
///
/// # Safety
/// Any pointer will do; memory of requests that have not ended is left alone as said
/// above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lmt_device_close(device: *mut lmt_device) -> lmt_code {
    guard(|| both::close::<DeviceLayerObject>(device))
}

/// The bytes by which others reach this device layer, as `lmt_endpoint_address`.
///
/// Errors: as `lmt_endpoint_address`.
///
/// # Safety
/// `address` is NULL or memory for `capacity` bytes; `length` is NULL or memory for
/// a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lmt_device_address(
    device: *mut lmt_device,
    address: *mut c_void,
    capacity: usize,
    length: *mut usize,
) -> lmt_code {
    // SAFETY: `own_address` asks for what `# Safety` says.
    guard(|| unsafe { both::own_address::<DeviceLayerObject>(device, address, capacity, length) })
}

/// Names a peer by its device layer's address and begins to connect to it, which goes on in
/// `lmt_device_progress`. The same address gives the same peer; one that is gone is
/// tried again.
///
/// Errors: as `lmt_peer_insert`.
///
/// # Safety
/// `address` is NULL or leads to `length` bytes; `peer` is NULL or memory for one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lmt_device_insert_peer(
    device: *mut lmt_device,
    address: *const c_void,
    length: usize,
    peer: *mut lmt_peer,
) -> lmt_code {
    // SAFETY: `insert_peer` asks for what `# Safety` says.
    guard(|| unsafe { both::insert_peer::<DeviceLayerObject>(device, address, length, peer) })
}

/// What the device layer knows of a peer. `is_connected` tells whether the connection is
/// made; `unsent` how many sends and packets wait for it or for room in
/// `send_packet`: who must keep packets of its own in order with announcements holds
/// them back until it is 0. Both may be NULL. The code tells why there is no
/// connection any more: `LMT_ERR_PEER_DEAD`, `LMT_ERR_PEER_UNREACHABLE`,
/// `LMT_ERR_PEER_REFUSED`; both places are written then too. Receives that wait for
/// this peer are to be ended with it by the program, whose matching they are in.
///
/// Errors: those, and `LMT_ERR_NULL`, `LMT_ERR_INVALID`, `LMT_ERR_HANDLE`,
/// `LMT_ERR_BUSY`, `LMT_ERR_UNKNOWN_PEER`.
///
/// # Safety
/// `is_connected` and `unsent` are NULL or memory for one each.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lmt_device_peer(
    device: *mut lmt_device,
    peer: lmt_peer,
    is_connected: *mut bool,
    unsent: *mut usize,
) -> lmt_code {
    guard(|| {
        // SAFETY: by `# Safety`, `is_connected` is NULL or memory for one.
        let is_connected = unsafe { Place::wanted(is_connected, "is_connected") }?;
        // SAFETY: by `# Safety`, `unsent` is NULL or memory for one.
        let unsent = unsafe { Place::wanted(unsent, "unsent") }?;
        DeviceLayerObject::with(device, |device| {
            let peer = peer_of(device.number(), peer)?;
            if !device.inner.knows(peer) {
                return Err(OperationError::UnknownPeer.into());
            }
            is_connected.write(device.inner.is_connected(peer));
            unsent.write(device.inner.unsent(peer));
            match device.inner.peer_error(peer) {
                Some(error) => Err(Error::new(of_peer(error), error.to_string())),
                None => Ok(()),
            }
        })
    })
}

/// Moves bytes and packets (by `send_packet`), and makes connections. Never waits; where
/// nothing moves of what is in flight, call after call, others are let run
/// (sched_yield(2)). `moved` (which may be NULL) tells whether anything was moved.
///
/// Errors: `LMT_ERR_NULL`, `LMT_ERR_INVALID`, `LMT_ERR_HANDLE`, `LMT_ERR_BUSY` (also
/// within `send_packet`), `LMT_ERR_FORKED`, `LMT_ERR_CALLBACK` (`send_packet`
/// answered something else than `LMT_OK` and `LMT_ERR_WOULD_BLOCK`; the packet is
/// tried again).
///
/// # Safety
/// `moved` is NULL or memory for one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lmt_device_progress(device: *mut lmt_device, moved: *mut bool) -> lmt_code {
    guard(|| {
        // SAFETY: by `# Safety`, `moved` is NULL or memory for one.
        let moved = unsafe { Place::wanted(moved, "moved") }?;
        DeviceLayerObject::with(device, |device| {
            let DeviceLayerObject { inner, port, .. } = device;
            moved.write(inner.progress(port)?);
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
/// program's own and transfers in flight do not make it so. It is the device layer's, as
/// that of `lmt_wait_descriptor` is the endpoint's. `limit_us` (which may be NULL)
/// tells for how many microseconds at most to sleep before the next progress.
///
/// Errors: `LMT_ERR_NULL`, `LMT_ERR_INVALID`, `LMT_ERR_HANDLE`, `LMT_ERR_BUSY`.
///
/// # Safety
/// `descriptor` and `limit_us` are NULL or memory for a number each.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lmt_device_wait_descriptor(
    device: *mut lmt_device,
    descriptor: *mut c_int,
    limit_us: *mut u64,
) -> lmt_code {
    guard(|| {
        // SAFETY: by `# Safety`, `descriptor` is NULL or memory for a number.
        let place = unsafe { Place::new(descriptor, "descriptor") }?;
        // SAFETY: by `# Safety`, `limit_us` is NULL or memory for a number.
        let limit_us = unsafe { Place::wanted(limit_us, "limit_us") }?;
        DeviceLayerObject::with(device, |device| {
            place.write(device.inner.wait_descriptor().as_raw_fd());
            limit_us.write(microseconds(device.inner.sleep_limit()));
            Ok(())
        })
    })
}

/// As `lmt_explain`, of a device layer: short messages are the program's own, so nothing is
/// eager.
///
/// Errors: as `lmt_explain`.
///
/// # Safety
/// As `lmt_explain`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lmt_device_explain(
    device: *mut lmt_device,
    peer: lmt_peer,
    bytes: u64,
    flags: u32,
    format: u32,
    text: *mut c_char,
    capacity: usize,
    length: *mut usize,
) -> lmt_code {
    // SAFETY: `explain::explain` asks for what `# Safety` says.
    guard(|| unsafe {
        explain::explain::<DeviceLayerObject>(device, peer, bytes, flags, format, text, capacity, length)
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
pub unsafe extern "C" fn lmt_device_statistics(
    device: *mut lmt_device,
    list: *mut lmt_counters,
    capacity: usize,
    count: *mut usize,
) -> lmt_code {
    guard(|| {
        // SAFETY: by `# Safety`, `list` is NULL or memory for `capacity` counters.
        let room = unsafe { Places::new(list, capacity, "list") }?;
        // SAFETY: by `# Safety`, `count` is NULL or memory for a number.
        let count = unsafe { Place::wanted(count, "count") }?;
        DeviceLayerObject::with(device, |device| {
            write_counters(device.inner.totals().into_iter(), room, count)
        })
    })
}
