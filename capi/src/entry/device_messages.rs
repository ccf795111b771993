//! A device layer: packets that come, and the messages that they announce.
#![allow(unsafe_code)] // Functions that C calls.

use std::ffi::c_void;
use std::ptr;

use lmt::OperationError;
use lmt::buffer::Access;
use lmt::device::Arrival;

use super::both;
use super::messages::{HINTS, check_flags, hints_of};
use crate::border::{Place, bytes as bytes_of, lend_segments};
use crate::code::lmt_code::{self, LMT_ERR_BAD_PACKET};
use crate::error::{Error, guard};
use crate::handle::{handle_of, number_of};
use crate::numbers::{peer_of, request_of, request_to_c};
use crate::objects::{ANNOUNCEMENTS, DeviceLayerObject, Side, WITHDRAWALS};
use crate::types::lmt_arrival_kind::{LMT_ANNOUNCED, LMT_HANDLED, LMT_WITHDRAWN};
use crate::types::{
    LMT_ENVELOPE_MAX_BYTES, lmt_announcement, lmt_arrival, lmt_device, lmt_peer, lmt_request, lmt_status,
    lmt_withdrawal,
};

/// Begins to send segments as one message, announced to the peer's matching with
/// `envelope`, at most `LMT_ENVELOPE_MAX_BYTES`. `flags` may hint: `LMT_HINT_WARM`,
/// `LMT_HINT_COLD`, `LMT_HINT_ONCE`, `LMT_HINT_AGAIN`. The segments belong to the
/// request until `lmt_device_test` has told its end or the device layer is closed; the list and
/// the envelope are copied.
///
/// Errors: `LMT_ERR_NULL`, `LMT_ERR_INVALID` (flags; an envelope that is too long),
/// `LMT_ERR_HANDLE`, `LMT_ERR_BUSY`, `LMT_ERR_UNKNOWN_PEER`, `LMT_ERR_WOULD_BLOCK`,
/// `LMT_ERR_PEER_DEAD` and its kin, `LMT_ERR_FORKED`.
///
/// # Safety
/// `envelope` is NULL or leads to `envelope_bytes` bytes; `segments` and `request` as
/// for `lmt_isend_segments`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lmt_device_send(
    device: *mut lmt_device,
    to: lmt_peer,
    envelope: *const c_void,
    envelope_bytes: usize,
    segments: *const libc::iovec,
    count: usize,
    flags: u32,
    request: *mut lmt_request,
) -> lmt_code {
    guard(|| {
        // SAFETY: by `# Safety`, `request` is NULL or memory for one.
        let place = unsafe { Place::new(request, "request") }?;
        // SAFETY: by `# Safety`, `envelope` is NULL or leads to so many bytes.
        let envelope = unsafe { bytes_of(envelope, envelope_bytes, "envelope") }?;
        if envelope.len() > LMT_ENVELOPE_MAX_BYTES {
            let sentence = format!(
                "the envelope has {envelope_bytes} bytes; it may have {LMT_ENVELOPE_MAX_BYTES}, so send the rest in the message"
            );
            return Err(Error::invalid(sentence));
        }
        check_flags(flags, HINTS)?;
        // SAFETY: by `# Safety`, as `lmt_isend_segments`: `segments` is NULL or leads to
        // `count` segments that nobody frees or writes until the request has ended.
        let buffer = unsafe { lend_segments(segments, count, Access::Read) }?;
        DeviceLayerObject::with(device, |device| {
            let to = peer_of(device.number(), to)?;
            let request = device.inner.send_with(to, envelope, buffer, hints_of(flags))?;
            place.write(request_to_c(device.number(), request));
            Ok(())
        })
    })
}

/// Takes a packet that the peer's `send_packet` was given, and tells what it meant.
/// An announcement is to be matched (`lmt_device_matched`) or given up
/// (`lmt_announcement_drop`); a withdrawal is to be answered (`lmt_device_withdrawn`).
///
/// Errors: `LMT_ERR_NULL`, `LMT_ERR_HANDLE`, `LMT_ERR_BUSY`, `LMT_ERR_UNKNOWN_PEER`,
/// `LMT_ERR_INVALID`, `LMT_ERR_NO_MEMORY` (there are too many announcements; the
/// packet was not taken, hand it over again), `LMT_ERR_BAD_PACKET`: it was ignored,
/// also since the connection with that peer has ended (`lmt_device_peer` tells).
///
/// # Safety
/// `packet` is NULL or leads to `bytes` bytes; `arrival` is NULL or memory for one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lmt_device_on_packet(
    device: *mut lmt_device,
    from: lmt_peer,
    packet: *const c_void,
    bytes: usize,
    arrival: *mut lmt_arrival,
) -> lmt_code {
    guard(|| {
        // SAFETY: by `# Safety`, `arrival` is NULL or memory for one.
        let place = unsafe { Place::new(arrival, "arrival") }?;
        // SAFETY: by `# Safety`, `packet` is NULL or leads to `bytes` bytes.
        let packet = unsafe { bytes_of(packet, bytes, "packet") }?;
        DeviceLayerObject::with(device, |device| {
            let peer = peer_of(device.number(), from)?;
            if !device.inner.knows(peer) {
                return Err(OperationError::UnknownPeer.into());
            }
            // What the packet brings must not be lost for want of a place.
            ANNOUNCEMENTS.keep_place(&mut device.spare_announcement)?;
            WITHDRAWALS.keep_place(&mut device.spare_withdrawal)?;
            let meant = device.inner.on_packet(peer, packet);
            let meant = meant.map_err(|error| Error::new(LMT_ERR_BAD_PACKET, error.to_string()))?;
            place.write(told(device, from, meant)?);
            Ok(())
        })
    })
}

/// What C is told of a packet.
fn told(device: &mut DeviceLayerObject, peer: lmt_peer, meant: Arrival) -> Result<lmt_arrival, Error> {
    let owner = device.number();
    let mut arrival = lmt_arrival {
        kind: LMT_HANDLED,
        envelope_bytes: 0,
        peer,
        bytes: 0,
        announcement: ptr::null_mut(),
        withdrawal: ptr::null_mut(),
        envelope: [0; LMT_ENVELOPE_MAX_BYTES],
    };
    match meant {
        Arrival::Handled => {}
        Arrival::Announced(inner) => {
            let envelope = inner.envelope();
            arrival.kind = LMT_ANNOUNCED;
            arrival.envelope_bytes = envelope.len() as u32;
            arrival.envelope[..envelope.len()].copy_from_slice(envelope);
            arrival.bytes = inner.bytes();
            let number = ANNOUNCEMENTS.take_in(&mut device.spare_announcement, owner, inner)?;
            arrival.announcement = handle_of(number);
        }
        Arrival::Withdrawn(inner) => {
            arrival.kind = LMT_WITHDRAWN;
            let number = WITHDRAWALS.take_in(&mut device.spare_withdrawal, owner, inner)?;
            arrival.withdrawal = handle_of(number);
        }
    }
    Ok(arrival)
}

/// The program's matching has found the receive for an announced message: it goes
/// into the segments, cut to their length if need be (`LMT_ERR_TRUNCATED` when it
/// ends). They belong to the request as those of `lmt_irecv` do. `announcement` names
/// nothing any more, unless the code is `LMT_ERR_NULL`, `LMT_ERR_INVALID`,
/// `LMT_ERR_HANDLE`, `LMT_ERR_BUSY` or `LMT_ERR_FOREIGN_MESSAGE` (another device layer was
/// told of it).
///
/// Errors: those, `LMT_ERR_PEER_DEAD` and its kin (the connection over which it was
/// announced has ended), `LMT_ERR_FORKED`.
///
/// # Safety
/// `segments` and `request` as for `lmt_irecv_segments`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lmt_device_matched(
    device: *mut lmt_device,
    announcement: *mut lmt_announcement,
    segments: *const libc::iovec,
    count: usize,
    request: *mut lmt_request,
) -> lmt_code {
    guard(|| {
        // SAFETY: by `# Safety`, `request` is NULL or memory for one.
        let place = unsafe { Place::new(request, "request") }?;
        // SAFETY: by `# Safety`, as `lmt_irecv_segments`: `segments` is NULL or leads to
        // `count` segments that do not overlap and that nobody frees or uses until the
        // request has ended.
        let buffer = unsafe { lend_segments(segments, count, Access::Write) }?;
        DeviceLayerObject::with(device, |device| {
            let announcement = ANNOUNCEMENTS.take_of(number_of(announcement), device.number())?;
            let request = device.inner.matched(announcement, buffer)?;
            place.write(request_to_c(device.number(), request));
            Ok(())
        })
    })
}

/// Gives up an announced message without matching it: its sender waits until it
/// cancels or the connection ends. For messages of a peer that is gone.
///
/// Errors: `LMT_ERR_NULL`, `LMT_ERR_HANDLE`, `LMT_ERR_BUSY`.
///
/// # Safety
/// Any pointer will do.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lmt_announcement_drop(announcement: *mut lmt_announcement) -> lmt_code {
    guard(|| ANNOUNCEMENTS.give_up(number_of(announcement)))
}

/// Tells whether an announced message is the one that a sender takes back.
///
/// Errors: `LMT_ERR_NULL`, `LMT_ERR_INVALID`, `LMT_ERR_HANDLE`, `LMT_ERR_BUSY`.
///
/// # Safety
/// `is_it` is NULL or memory for one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lmt_announcement_is(
    announcement: *mut lmt_announcement,
    withdrawal: *mut lmt_withdrawal,
    is_it: *mut bool,
) -> lmt_code {
    guard(|| {
        // SAFETY: by `# Safety`, `is_it` is NULL or memory for one.
        let place = unsafe { Place::new(is_it, "is_it") }?;
        ANNOUNCEMENTS.with(number_of(announcement), |announcement| {
            WITHDRAWALS.with(number_of(withdrawal), |withdrawal| {
                place.write(announcement.inner.is(&withdrawal.inner));
                Ok(())
            })
        })
    })
}

/// Answers a withdrawal: whether the message was found unmatched and is forgotten
/// (its announcement is then to be given up too). `withdrawal` names nothing any
/// more, unless the code is `LMT_ERR_NULL`, `LMT_ERR_HANDLE`, `LMT_ERR_BUSY` or
/// `LMT_ERR_FOREIGN_MESSAGE` (another device layer was asked).
///
/// Errors: those.
///
/// # Safety
/// Any pointer will do.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lmt_device_withdrawn(
    device: *mut lmt_device,
    withdrawal: *mut lmt_withdrawal,
    found: bool,
) -> lmt_code {
    guard(|| {
        DeviceLayerObject::with(device, |device| {
            let withdrawal = WITHDRAWALS.take_of(number_of(withdrawal), device.number())?;
            device.inner.withdrawn(withdrawal, found);
            Ok(())
        })
    })
}

/// Gives up a withdrawal that is not to be answered any more, since its device layer is
/// closed; while that is open its sender waits for the answer.
///
/// Errors: `LMT_ERR_NULL`, `LMT_ERR_HANDLE`, `LMT_ERR_BUSY`.
///
/// # Safety
/// Any pointer will do.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lmt_withdrawal_drop(withdrawal: *mut lmt_withdrawal) -> lmt_code {
    guard(|| WITHDRAWALS.give_up(number_of(withdrawal)))
}

/// Asks for a send of a device layer to be taken back if the peer has not matched it; its end
/// tells what became of it. Of an operation whose end was told before nothing is left
/// to be taken back: `LMT_OK`.
///
/// Errors: `LMT_ERR_NULL`, `LMT_ERR_HANDLE`, `LMT_ERR_BUSY`, `LMT_ERR_FORKED`,
/// `LMT_ERR_UNKNOWN_REQUEST` (it is of another device layer, or `LMT_REQUEST_NULL`).
///
/// # Safety
/// Any pointer will do.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lmt_device_cancel(device: *mut lmt_device, request: lmt_request) -> lmt_code {
    guard(|| {
        DeviceLayerObject::with(device, |device| {
            let request = request_of(device.number(), request)?;
            Ok(device.inner.cancel(request)?)
        })
    })
}

/// Tells whether an operation of a device layer has ended; makes no progress, which is
/// `lmt_device_progress`'s, as that calls `send_packet`. `done`, `status`, the code and
/// `LMT_REQUEST_NULL` are as for `lmt_test`.
///
/// Errors: as `lmt_test`; operations of device layers are not `LMT_ERR_PEER_REMOVED`.
///
/// # Safety
/// `done` and `status` are NULL or memory for one each.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lmt_device_test(
    device: *mut lmt_device,
    request: lmt_request,
    done: *mut bool,
    status: *mut lmt_status,
) -> lmt_code {
    // SAFETY: `both::test` asks for what `# Safety` says.
    guard(|| unsafe { both::test::<DeviceLayerObject>(device, request, done, status) })
}
