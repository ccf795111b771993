//! Sends and receives.
#![allow(unsafe_code)] // Functions that C calls.

use std::ffi::c_void;

use lmt::buffer::{Access, Buffer};
use lmt::{Hints, Reuse, SendMode, SendOptions, TagMatch, Warmth};

use super::both::tell;
use crate::border::{Place, bytes as bytes_of, bytes_mut, lend, lend_segments};
use crate::code::lmt_code;
use crate::error::{Error, guard};
use crate::numbers::{peer_of, request_to_c};
use crate::objects::{Endpoint, Side};
use crate::types::{
    LMT_HINT_AGAIN, LMT_HINT_COLD, LMT_HINT_ONCE, LMT_HINT_WARM, LMT_SEND_SYNCHRONOUS, lmt_endpoint,
    lmt_peer, lmt_request, lmt_status,
};

/// Refuses flags that are none of `known`, and two that contradict each other.
pub(super) fn check_flags(flags: u32, known: u32) -> Result<(), Error> {
    if flags & !known != 0 {
        let strange = flags & !known;
        return Err(Error::invalid(format!(
            "`flags` has bits that mean nothing here ({strange:#x}); leave them out"
        )));
    }
    for (one, other, words) in
        [(LMT_HINT_WARM, LMT_HINT_COLD, "warm and cold"), (LMT_HINT_ONCE, LMT_HINT_AGAIN, "once and again")]
    {
        if flags & one != 0 && flags & other != 0 {
            return Err(Error::invalid(format!("`flags` says {words}; one of them is wrong")));
        }
    }
    Ok(())
}

/// What flags tell of a message.
pub(super) const fn hints_of(flags: u32) -> Hints {
    let warmth = match flags & (LMT_HINT_WARM | LMT_HINT_COLD) {
        LMT_HINT_WARM => Warmth::Warm,
        LMT_HINT_COLD => Warmth::Cold,
        _ => Warmth::Unknown,
    };
    let reuse = match flags & (LMT_HINT_ONCE | LMT_HINT_AGAIN) {
        LMT_HINT_ONCE => Reuse::Once,
        LMT_HINT_AGAIN => Reuse::Again,
        _ => Reuse::Unknown,
    };
    Hints { warmth, reuse }
}

/// The flags that hint at something.
pub(super) const HINTS: u32 = LMT_HINT_WARM | LMT_HINT_COLD | LMT_HINT_ONCE | LMT_HINT_AGAIN;

fn send_options(flags: u32) -> Result<SendOptions, Error> {
    check_flags(flags, LMT_SEND_SYNCHRONOUS | HINTS)?;
    let mode = if flags & LMT_SEND_SYNCHRONOUS != 0 { SendMode::Synchronous } else { SendMode::Standard };
    Ok(SendOptions { mode, hints: hints_of(flags) })
}

/// Sends `bytes` bytes to `to` under `tag`, and waits until `data` may be used
/// again; with `LMT_SEND_SYNCHRONOUS` among `flags`, until a receive has matched the
/// message. `flags` may also hint at what helps to choose the path: `LMT_HINT_WARM`,
/// `LMT_HINT_COLD`, `LMT_HINT_ONCE`, `LMT_HINT_AGAIN`.
///
/// Errors: `LMT_ERR_NULL`, `LMT_ERR_INVALID`, `LMT_ERR_HANDLE`, `LMT_ERR_BUSY`,
/// `LMT_ERR_UNKNOWN_PEER`, `LMT_ERR_WOULD_BLOCK` (`pending_max_messages` wait for
/// it), `LMT_ERR_FORKED`, and how an operation with a peer can end:
/// `LMT_ERR_PEER_DEAD`, `LMT_ERR_PEER_UNREACHABLE`, `LMT_ERR_PEER_REFUSED`,
/// `LMT_ERR_NO_MECHANISM`.
///
/// # Safety
/// `data` is NULL or leads to `bytes` bytes that nobody writes during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lmt_send(
    endpoint: *mut lmt_endpoint,
    to: lmt_peer,
    tag: u64,
    data: *const c_void,
    bytes: usize,
    flags: u32,
) -> lmt_code {
    guard(|| {
        // SAFETY: by `# Safety`, `data` is NULL or leads to `bytes` bytes that nobody
        // writes during the call.
        let data = unsafe { bytes_of(data, bytes, "data") }?;
        let options = send_options(flags)?;
        Endpoint::with(endpoint, |endpoint| {
            let to = peer_of(endpoint.number(), to)?;
            Ok(endpoint.send(to, tag, data, (flags != 0).then_some(options)).map(drop)?)
        })
    })
}

/// Receives the first message from `source` whose tag equals `tag` in every bit that
/// is not set in `ignore`, and waits for it. `LMT_ANY_PEER` is anybody who was
/// inserted here; see also `lmt_options_set_hear_strangers`. `status` may be NULL.
///
/// Errors: as `lmt_send`, and `LMT_ERR_TRUNCATED` when the message is longer than
/// `capacity`; `into` holds its beginning then, and `status` tells how long it was.
///
/// # Safety
/// `into` is NULL or memory for `capacity` bytes that nobody else uses during the
/// call; `status` is NULL or memory for one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lmt_recv(
    endpoint: *mut lmt_endpoint,
    source: lmt_peer,
    tag: u64,
    ignore: u64,
    into: *mut c_void,
    capacity: usize,
    status: *mut lmt_status,
) -> lmt_code {
    guard(|| {
        // SAFETY: by `# Safety`, `status` is NULL or memory for one.
        let status = unsafe { Place::wanted(status, "status") }?;
        // SAFETY: by `# Safety`, `into` is NULL or memory for `capacity` bytes that
        // nobody else uses during the call.
        let into = unsafe { bytes_mut(into, capacity, "into") }?;
        Endpoint::with(endpoint, |endpoint| {
            let source = endpoint.source(source)?;
            let outcome = endpoint.receive(source, TagMatch { tag, ignore }, into);
            tell(endpoint.number(), outcome, status)
        })
    })
}

fn begin_send(
    endpoint: *mut lmt_endpoint,
    to: lmt_peer,
    tag: u64,
    buffer: Buffer,
    flags: u32,
    place: Place<'_, lmt_request>,
) -> Result<(), Error> {
    let options = send_options(flags)?;
    Endpoint::with(endpoint, |endpoint| {
        let to = peer_of(endpoint.number(), to)?;
        let request = endpoint.engine(|engine| engine.send(to, tag, buffer, options))?;
        place.write(request_to_c(endpoint.number(), request));
        Ok(())
    })
}

fn begin_recv(
    endpoint: *mut lmt_endpoint,
    source: lmt_peer,
    tags: TagMatch,
    buffer: Buffer,
    place: Place<'_, lmt_request>,
) -> Result<(), Error> {
    Endpoint::with(endpoint, |endpoint| {
        let source = endpoint.source(source)?;
        let request = endpoint.engine(|engine| engine.receive(source, tags, buffer))?;
        place.write(request_to_c(endpoint.number(), request));
        Ok(())
    })
}

/// Begins a send; `flags` as for `lmt_send`. Until `lmt_wait`, `lmt_test` or
/// `lmt_wait_all` has told the end of the request, or the endpoint is closed (see
/// `lmt_endpoint_close`), `data` belongs to it: nobody frees or writes it. What is
/// in flight moves in calls that make progress: `lmt_progress`, `lmt_test`,
/// `lmt_wait` and their kin.
///
/// Errors: `LMT_ERR_NULL`, `LMT_ERR_INVALID`, `LMT_ERR_HANDLE`, `LMT_ERR_BUSY`,
/// `LMT_ERR_UNKNOWN_PEER`, `LMT_ERR_WOULD_BLOCK` (make progress, and try again),
/// `LMT_ERR_PEER_DEAD`, `LMT_ERR_FORKED`.
///
/// # Safety
/// `data` is NULL or leads to `bytes` bytes that nobody frees or writes until the
/// request has ended or the endpoint was closed; `request` is NULL or memory for one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lmt_isend(
    endpoint: *mut lmt_endpoint,
    to: lmt_peer,
    tag: u64,
    data: *const c_void,
    bytes: usize,
    flags: u32,
    request: *mut lmt_request,
) -> lmt_code {
    guard(|| {
        // SAFETY: by `# Safety`, `request` is NULL or memory for one.
        let place = unsafe { Place::new(request, "request") }?;
        // SAFETY: by `# Safety`, `data` is NULL or leads to `bytes` bytes that nobody
        // frees or writes until the request has ended or its endpoint was closed.
        let buffer = unsafe { lend(data, bytes, Access::Read) }?;
        begin_send(endpoint, to, tag, buffer, flags, place)
    })
}

/// As `lmt_isend`, of several segments as one message. The list itself is copied.
///
/// Errors: as `lmt_isend`.
///
/// # Safety
/// `segments` is NULL or leads to `count` segments, of each of which holds what
/// `lmt_isend` says of its data; `request` is NULL or memory for one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lmt_isend_segments(
    endpoint: *mut lmt_endpoint,
    to: lmt_peer,
    tag: u64,
    segments: *const libc::iovec,
    count: usize,
    flags: u32,
    request: *mut lmt_request,
) -> lmt_code {
    guard(|| {
        // SAFETY: by `# Safety`, `request` is NULL or memory for one.
        let place = unsafe { Place::new(request, "request") }?;
        // SAFETY: by `# Safety`, `segments` is NULL or leads to `count` segments, each
        // lent as `lmt_isend` says.
        let buffer = unsafe { lend_segments(segments, count, Access::Read) }?;
        begin_send(endpoint, to, tag, buffer, flags, place)
    })
}

/// Begins a receive; source, tag and ignore as for `lmt_recv`. Until `lmt_wait`,
/// `lmt_test` or `lmt_wait_all` has told the end of the request, or the endpoint is
/// closed (see `lmt_endpoint_close`), `into` belongs to it: nobody frees, reads or
/// writes it.
///
/// Errors: as `lmt_isend`; that the message was cut is told when it ends.
///
/// # Safety
/// `into` is NULL or memory for `capacity` bytes that nobody frees or uses until the
/// request has ended or the endpoint was closed; `request` is NULL or memory for one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lmt_irecv(
    endpoint: *mut lmt_endpoint,
    source: lmt_peer,
    tag: u64,
    ignore: u64,
    into: *mut c_void,
    capacity: usize,
    request: *mut lmt_request,
) -> lmt_code {
    guard(|| {
        // SAFETY: by `# Safety`, `request` is NULL or memory for one.
        let place = unsafe { Place::new(request, "request") }?;
        // SAFETY: by `# Safety`, `into` is NULL or memory for `capacity` bytes that
        // nobody frees or uses until the request has ended or its endpoint was closed.
        let buffer = unsafe { lend(into, capacity, Access::Write) }?;
        begin_recv(endpoint, source, TagMatch { tag, ignore }, buffer, place)
    })
}

/// As `lmt_irecv`, into several segments, one after the other, which do not overlap.
/// The list itself is copied.
///
/// Errors: as `lmt_irecv`.
///
/// # Safety
/// `segments` is NULL or leads to `count` segments that do not overlap, of each of
/// which holds what `lmt_irecv` says of its memory; `request` is NULL or memory for
/// one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lmt_irecv_segments(
    endpoint: *mut lmt_endpoint,
    source: lmt_peer,
    tag: u64,
    ignore: u64,
    segments: *const libc::iovec,
    count: usize,
    request: *mut lmt_request,
) -> lmt_code {
    guard(|| {
        // SAFETY: by `# Safety`, `request` is NULL or memory for one.
        let place = unsafe { Place::new(request, "request") }?;
        // SAFETY: by `# Safety`, `segments` is NULL or leads to `count` segments that do
        // not overlap, each lent as `lmt_irecv` says.
        let buffer = unsafe { lend_segments(segments, count, Access::Write) }?;
        begin_recv(endpoint, source, TagMatch { tag, ignore }, buffer, place)
    })
}
