//! Which way messages take and why, and what was moved.
#![allow(unsafe_code)] // Functions that C calls.

use std::ffi::c_char;
use std::mem::MaybeUninit;

use lmt::Explanation;
use lmt::mechanism::SharedEnds;
use lmt::mechanisms::Counters;
use lmt::selection::Message;

use super::messages::{HINTS, check_flags, hints_of};
use super::write;
use crate::border::places;
use crate::code::lmt_code::{self, LMT_ERR_SYSTEM};
use crate::error::{Error, guard};
use crate::objects::{ANY_PEER, ENDPOINTS, peer_of};
use crate::types::{
    LMT_JSON, LMT_NAME_BYTES, LMT_SEGMENTS, LMT_SHARED_RECEIVER, LMT_SHARED_SENDER, LMT_TEXT, lmt_counters,
    lmt_endpoint, lmt_peer,
};

/// The message that is asked about.
pub(super) fn question(bytes: u64, flags: u32) -> Result<Message, Error> {
    check_flags(flags, HINTS | LMT_SEGMENTS | LMT_SHARED_SENDER | LMT_SHARED_RECEIVER)?;
    let shared =
        SharedEnds { sender: flags & LMT_SHARED_SENDER != 0, receiver: flags & LMT_SHARED_RECEIVER != 0 };
    let contiguous = flags & LMT_SEGMENTS == 0;
    Ok(Message { contiguous, shared, hints: hints_of(flags), ..Message::of_bytes(bytes) })
}

/// How an answer is to be written.
#[derive(Clone, Copy)]
pub(super) enum Format {
    Text,
    Json,
}

pub(super) fn format_of(number: u32) -> Result<Format, Error> {
    match number {
        LMT_TEXT => Ok(Format::Text),
        LMT_JSON => Ok(Format::Json),
        _ => Err(Error::invalid(format!("`format` is {number}; it must be LMT_TEXT or LMT_JSON"))),
    }
}

pub(super) fn written(explanation: &Explanation, format: Format) -> Result<String, Error> {
    match format {
        Format::Text => Ok(explanation.to_string()),
        Format::Json => {
            serde_json::to_string(explanation).map_err(|error| Error::new(LMT_ERR_SYSTEM, error.to_string()))
        }
    }
}

/// One path's counters, as C has them.
pub(super) fn counters_of(path: &str, counters: &Counters) -> lmt_counters {
    let mut name = [0; LMT_NAME_BYTES];
    for (place, byte) in name.iter_mut().zip(path.bytes()).take(LMT_NAME_BYTES - 1) {
        *place = byte as c_char;
    }
    let Counters { sent, received, peer_bytes, demotions, .. } = *counters;
    lmt_counters {
        path: name,
        sent: sent.messages,
        sent_bytes: sent.bytes,
        received: received.messages,
        received_bytes: received.bytes,
        by_sender_bytes: peer_bytes,
        demotions,
    }
}

/// Says which way a message of `bytes` bytes to a peer would take now, which rule
/// says so, where that rule comes from, and why each other mechanism is not taken:
/// in words (`LMT_TEXT`) or as JSON (`LMT_JSON`). `flags` say more of the message: those
/// of hints, `LMT_SEGMENTS`, `LMT_SHARED_SENDER`, `LMT_SHARED_RECEIVER`. What works with a
/// peer is known once the first operation has connected it.
///
/// As much as there is room for is written, with a zero behind it; `length` (which
/// may be NULL) tells the length of all of it without the zero.
///
/// Errors: `LMT_ERR_NULL`, `LMT_ERR_INVALID`, `LMT_ERR_HANDLE`, `LMT_ERR_BUSY`,
/// `LMT_ERR_UNKNOWN_PEER`, `LMT_ERR_TOO_SHORT`.
///
/// # Safety
/// `text` is NULL or memory for `capacity` bytes, `length` NULL or memory for a
/// number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lmt_explain(
    endpoint: *mut lmt_endpoint,
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
        ENDPOINTS.with(endpoint.addr() as u64, |endpoint| {
            let peer = peer_of(endpoint.number, peer)?;
            let explanation = endpoint.inner.explain_message(peer, &message)?;
            write::text(&written(&explanation, format)?, room, length)
        })
    })
}

/// What has gone by each path, to and from one peer since it connected, or with
/// `LMT_ANY_PEER` to and from all: first by the cells of inboxes (`eager`), then by each
/// mechanism that is known. `count` (which may be NULL) tells how many paths there
/// are.
///
/// Errors: `LMT_ERR_NULL`, `LMT_ERR_INVALID`, `LMT_ERR_HANDLE`, `LMT_ERR_BUSY`,
/// `LMT_ERR_UNKNOWN_PEER`, `LMT_ERR_TOO_SHORT` (nothing but `count` is written).
///
/// # Safety
/// `list` is NULL or memory for `capacity` counters, `count` NULL or memory for a
/// number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lmt_statistics(
    endpoint: *mut lmt_endpoint,
    peer: lmt_peer,
    list: *mut lmt_counters,
    capacity: usize,
    count: Option<&mut MaybeUninit<usize>>,
) -> lmt_code {
    guard(|| {
        // SAFETY: the caller's promise.
        let room = unsafe { places(list, capacity, "list") }?;
        ENDPOINTS.with(endpoint.addr() as u64, |endpoint| {
            let (eager, mechanisms) = if peer == ANY_PEER {
                endpoint.engine(|engine| engine.totals())
            } else {
                let peer = peer_of(endpoint.number, peer)?;
                endpoint.inner.peer_id(peer).ok_or(lmt::OperationError::UnknownPeer)?;
                (endpoint.inner.eager_counters(peer), endpoint.inner.counters(peer))
            };
            let eager = Counters { sent: eager.sent, received: eager.received, ..Counters::default() };
            let paths = std::iter::once(("eager", eager)).chain(mechanisms);
            let all: Vec<_> = paths.map(|(path, counters)| counters_of(path, &counters)).collect();
            write::list(&all, room, count)
        })
    })
}
