//! Messages that are looked at, or taken out of matching, before they are received.
#![allow(unsafe_code)] // Functions that C calls.

use std::ffi::c_void;
use std::mem::MaybeUninit;

use lmt::TagMatch;
use lmt::buffer::Access;

use crate::border::{answer, lend, there};
use crate::code::lmt_code::{self, LMT_ERR_FOREIGN_MESSAGE};
use crate::error::{Error, guard};
use crate::objects::{ENDPOINTS, MESSAGES, Taken, handle_of, status_of};
use crate::types::{lmt_endpoint, lmt_message, lmt_peer, lmt_request, lmt_status};

/// Looks for a message that a receive like this would match, without receiving it,
/// after making progress once. `status` (which may be NULL) tells its peer, tag and
/// length when `found` is true.
///
/// Errors: `LMT_ERR_NULL`, `LMT_ERR_HANDLE`, `LMT_ERR_BUSY`, `LMT_ERR_UNKNOWN_PEER`,
/// `LMT_ERR_FORKED`.
///
/// # Safety
/// `found` and `status` are NULL or memory for one each.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lmt_iprobe(
    endpoint: *mut lmt_endpoint,
    source: lmt_peer,
    tag: u64,
    ignore: u64,
    found: Option<&mut MaybeUninit<bool>>,
    status: Option<&mut MaybeUninit<lmt_status>>,
) -> lmt_code {
    guard(|| {
        let place = there(found, "found")?;
        ENDPOINTS.with(endpoint.addr() as u64, |endpoint| {
            let source = endpoint.source(source)?;
            let found = endpoint.awake(|engine| engine.probe(source, TagMatch { tag, ignore }))?;
            place.write(found.is_some());
            if let Some(found) = found.and_then(|found| status_of(endpoint.number, &Ok(found))) {
                answer(status, found);
            }
            Ok(())
        })
    })
}

/// Takes a message out of matching that a receive like this would match, after
/// making progress once: only `lmt_imrecv` gets it. `message` becomes NULL when there
/// is none; else it is to be given to `lmt_imrecv` or `lmt_message_discard`, and
/// `status` (which may be NULL) tells its peer, tag and length.
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
    message: Option<&mut MaybeUninit<*mut lmt_message>>,
    status: Option<&mut MaybeUninit<lmt_status>>,
) -> lmt_code {
    guard(|| {
        let place = there(message, "message")?;
        ENDPOINTS.with(endpoint.addr() as u64, |endpoint| {
            let source = endpoint.source(source)?;
            let found = endpoint.awake(|engine| engine.matched_probe(source, TagMatch { tag, ignore }))?;
            let Some(inner) = found else {
                place.write(std::ptr::null_mut());
                return Ok(());
            };
            if let Some(found) = status_of(endpoint.number, &Ok(inner.status())) {
                answer(status, found);
            }
            let number = MESSAGES.insert(Taken { owner: endpoint.number, inner })?;
            place.write(std::ptr::without_provenance_mut(number as usize));
            Ok(())
        })
    })
}

/// Begins to receive a message that `lmt_improbe` took from this endpoint; else as
/// `lmt_irecv`. `message` names nothing any more, unless the code is `LMT_ERR_NULL`,
/// `LMT_ERR_INVALID`, `LMT_ERR_HANDLE`, `LMT_ERR_BUSY` or `LMT_ERR_FOREIGN_MESSAGE` (it is
/// another endpoint's).
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
    request: Option<&mut MaybeUninit<lmt_request>>,
) -> lmt_code {
    guard(|| {
        let place = there(request, "request")?;
        // SAFETY: the caller's promise.
        let buffer = unsafe { lend(into, capacity, Access::Write) }?;
        ENDPOINTS.with(endpoint.addr() as u64, |endpoint| {
            let number = message.addr() as u64;
            MESSAGES.with(number, |message| check_owner(message.owner, endpoint.number))?;
            let message = MESSAGES.take(number)?.inner;
            let request = endpoint.engine(|engine| engine.receive_matched(message, buffer))?;
            place.write(handle_of(endpoint.number, request));
            Ok(())
        })
    })
}

/// Refuses what was taken from another endpoint or door.
pub(super) fn check_owner(of: u64, this: u64) -> Result<(), Error> {
    if of == this {
        return Ok(());
    }
    let sentence = "this was taken from another endpoint or door; give it back there";
    Err(Error::new(LMT_ERR_FOREIGN_MESSAGE, sentence))
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
    guard(|| MESSAGES.take(message.addr() as u64).map(drop))
}
