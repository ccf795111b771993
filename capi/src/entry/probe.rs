//! Messages that are looked at, or taken out of matching, before they are received.
#![allow(unsafe_code)] // Functions that C calls.

use std::ffi::c_void;

use lmt::TagMatch;
use lmt::buffer::Access;

use crate::border::{Place, lend};
use crate::code::lmt_code;
use crate::error::guard;
use crate::handle::{handle_of, number_of};
use crate::numbers::{request_to_c, status_of};
use crate::objects::{Endpoint, MESSAGES, Side};
use crate::types::{lmt_endpoint, lmt_message, lmt_peer, lmt_request, lmt_status};

/// Looks for a message that a receive like this would match, without receiving it,
/// after making progress once; others are let run as by `lmt_progress`. `status` (which
/// may be NULL) tells its peer, tag and length when `found` is true.
///
/// Errors: `LMT_ERR_NULL`, `LMT_ERR_INVALID`, `LMT_ERR_HANDLE`, `LMT_ERR_BUSY`,
/// `LMT_ERR_UNKNOWN_PEER`, `LMT_ERR_FORKED`.
///
/// # Safety
/// `found` and `status` are NULL or memory for one each.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lmt_iprobe(
    endpoint: *mut lmt_endpoint,
    source: lmt_peer,
    tag: u64,
    ignore: u64,
    found: *mut bool,
    status: *mut lmt_status,
) -> lmt_code {
    guard(|| {
        // SAFETY: by `# Safety`, `found` is NULL or memory for one.
        let place = unsafe { Place::new(found, "found") }?;
        // SAFETY: by `# Safety`, `status` is NULL or memory for one.
        let status = unsafe { Place::wanted(status, "status") }?;
        Endpoint::with(endpoint, |endpoint| {
            let source = endpoint.source(source)?;
            let found = endpoint.awake(|engine| {
                let found = engine.probe(source, TagMatch { tag, ignore });
                found.map(|found| engine.or_yield(found))
            })?;
            place.write(found.is_some());
            if let Some(found) = found.and_then(|found| status_of(endpoint.number(), &Ok(found))) {
                status.write(found);
            }
            Ok(())
        })
    })
}

/// Takes a message out of matching that a receive like this would match, after
/// making progress once, as `lmt_iprobe`: only `lmt_imrecv` gets it. `message` becomes
/// NULL when there is none; else it is to be given to `lmt_imrecv` or
/// `lmt_message_discard`, and `status` (which may be NULL) tells its peer, tag and length.
///
/// Errors: as `lmt_iprobe`, and `LMT_ERR_NO_MEMORY`.
///
/// # Safety
/// `message` is NULL or memory for a pointer, `status` NULL or memory for one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lmt_improbe(
    endpoint: *mut lmt_endpoint,
    source: lmt_peer,
    tag: u64,
    ignore: u64,
    message: *mut *mut lmt_message,
    status: *mut lmt_status,
) -> lmt_code {
    guard(|| {
        // SAFETY: by `# Safety`, `message` is NULL or memory for a pointer.
        let place = unsafe { Place::new(message, "message") }?;
        // SAFETY: by `# Safety`, `status` is NULL or memory for one.
        let status = unsafe { Place::wanted(status, "status") }?;
        Endpoint::with(endpoint, |endpoint| {
            let source = endpoint.source(source)?;
            MESSAGES.keep_place(&mut endpoint.spare)?;
            let found = endpoint.awake(|engine| {
                let found = engine.matched_probe(source, TagMatch { tag, ignore });
                found.map(|found| engine.or_yield(found))
            })?;
            let Some(inner) = found else {
                place.write(std::ptr::null_mut());
                return Ok(());
            };
            let owner = endpoint.number();
            if let Some(found) = status_of(owner, &Ok(inner.status())) {
                status.write(found);
            }
            place.write(handle_of(MESSAGES.take_in(&mut endpoint.spare, owner, inner)?));
            Ok(())
        })
    })
}

/// Begins to receive a message that `lmt_improbe` took from this endpoint; else as
/// `lmt_irecv`. `message` names nothing any more, unless the code is `LMT_ERR_NULL`,
/// `LMT_ERR_INVALID`, `LMT_ERR_HANDLE`, `LMT_ERR_BUSY` or `LMT_ERR_FOREIGN_MESSAGE`
/// (it is another endpoint's).
///
/// Errors: those, and `LMT_ERR_FORKED`.
///
/// # Safety
/// As `lmt_irecv`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lmt_imrecv(
    endpoint: *mut lmt_endpoint,
    message: *mut lmt_message,
    into: *mut c_void,
    capacity: usize,
    request: *mut lmt_request,
) -> lmt_code {
    guard(|| {
        // SAFETY: by `# Safety`, `request` is NULL or memory for one.
        let place = unsafe { Place::new(request, "request") }?;
        // SAFETY: by `# Safety`, as `lmt_irecv`: `into` is memory that nobody frees or
        // uses until the request has ended.
        let buffer = unsafe { lend(into, capacity, Access::Write) }?;
        Endpoint::with(endpoint, |endpoint| {
            let message = MESSAGES.take_of(number_of(message), endpoint.number())?;
            let request = endpoint.engine(|engine| engine.receive_matched(message, buffer))?;
            place.write(request_to_c(endpoint.number(), request));
            Ok(())
        })
    })
}

/// Gives up a message that `lmt_improbe` took: its sender's operation ends as if it
/// had been received, once this process makes progress.
///
/// Errors: `LMT_ERR_NULL`, `LMT_ERR_HANDLE`, `LMT_ERR_BUSY`.
///
/// # Safety
/// Any pointer will do.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lmt_message_discard(message: *mut lmt_message) -> lmt_code {
    guard(|| MESSAGES.give_up(number_of(message)))
}
