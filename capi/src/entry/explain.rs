//! Which way messages take and why, and what was moved.
#![allow(unsafe_code)] // Functions that C calls.

use std::ffi::c_char;

use lmt::Explanation;
use lmt::mechanism::{Counters, SharedEnds};
use lmt::selection::Message;

use super::messages::{HINTS, check_flags, hints_of};
use super::write;
use crate::border::{Place, Places};
use crate::code::lmt_code::{self, LMT_ERR_SYSTEM};
use crate::error::{Error, guard};
use crate::numbers::peer_of;
use crate::objects::{ANY_PEER, Endpoint, Side};
use crate::types::{
    LMT_EXPLAIN_SEGMENTS, LMT_EXPLAIN_SHARED_RECEIVER, LMT_EXPLAIN_SHARED_SENDER, LMT_FORMAT_JSON,
    LMT_FORMAT_TEXT, LMT_NAME_BYTES, lmt_counters, lmt_endpoint, lmt_peer,
};

/// The message that is asked about.
pub(super) fn question(bytes: u64, flags: u32) -> Result<Message, Error> {
    check_flags(
        flags,
        HINTS | LMT_EXPLAIN_SEGMENTS | LMT_EXPLAIN_SHARED_SENDER | LMT_EXPLAIN_SHARED_RECEIVER,
    )?;
    let shared = SharedEnds {
        sender: flags & LMT_EXPLAIN_SHARED_SENDER != 0,
        receiver: flags & LMT_EXPLAIN_SHARED_RECEIVER != 0,
    };
    let contiguous = flags & LMT_EXPLAIN_SEGMENTS == 0;
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
        LMT_FORMAT_TEXT => Ok(Format::Text),
        LMT_FORMAT_JSON => Ok(Format::Json),
        _ => Err(Error::invalid(format!(
            "`format` is {number}; it must be LMT_FORMAT_TEXT or LMT_FORMAT_JSON"
        ))),
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
fn counters_of(path: &str, counters: &Counters) -> lmt_counters {
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

/// Writes what each path has moved.
pub(super) fn write_counters(
    paths: impl Iterator<Item = (&'static str, Counters)>,
    room: Places<'_, lmt_counters>,
    count: Place<'_, usize>,
) -> Result<(), Error> {
    let all: Vec<_> = paths.map(|(path, counters)| counters_of(path, &counters)).collect();
    write::list(&all, "paths", room, count)
}

/// Says which path a message of `bytes` bytes to a peer would take now, which rule
/// says so, where that rule comes from, and why each other mechanism is not taken: in
/// words (`LMT_FORMAT_TEXT`) or as JSON (`LMT_FORMAT_JSON`). `flags` say more of the
/// message: those of hints, `LMT_EXPLAIN_SEGMENTS`, `LMT_EXPLAIN_SHARED_SENDER`,
/// `LMT_EXPLAIN_SHARED_RECEIVER`. What works with a peer is known once the first
/// operation has connected it.
///
/// As much as there is room for is written, with a zero behind it; `length` (which
/// may be NULL) tells the length of all of it without the zero, so that all of it
/// needs room for one byte more.
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
    length: *mut usize,
) -> lmt_code {
    // SAFETY: `explain` asks for what `# Safety` says.
    guard(|| unsafe { explain::<Endpoint>(endpoint, peer, bytes, flags, format, text, capacity, length) })
}

/// What has gone by each path, to and from one peer since it connected, or with
/// `LMT_ANY_PEER` to and from all: first by the cells of inboxes (`eager`), then by
/// each mechanism that is known. `count` (which may be NULL) tells how many paths
/// there are.
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
    count: *mut usize,
) -> lmt_code {
    guard(|| {
        // SAFETY: by `# Safety`, `list` is NULL or memory for `capacity` counters.
        let room = unsafe { Places::new(list, capacity, "list") }?;
        // SAFETY: by `# Safety`, `count` is NULL or memory for a number.
        let count = unsafe { Place::wanted(count, "count") }?;
        Endpoint::with(endpoint, |endpoint| {
            let (eager, mechanisms) = if peer == ANY_PEER {
                endpoint.engine(|engine| engine.totals())
            } else {
                let peer = peer_of(endpoint.number(), peer)?;
                endpoint.engine(|engine| {
                    engine.peer_id(peer).ok_or(lmt::OperationError::UnknownPeer)?;
                    Ok::<_, Error>((engine.eager_counters(peer), engine.counters(peer)))
                })?
            };
            let eager = Counters { sent: eager.sent, received: eager.received, ..Counters::default() };
            let paths = std::iter::once(("eager", eager)).chain(mechanisms);
            write_counters(paths, room, count)
        })
    })
}

/// Explains the way of a message.
///
/// # Safety
/// `text` is NULL or memory for `capacity` bytes, `length` NULL or memory for a
/// number.
#[allow(clippy::too_many_arguments)] // Those of the function that C calls.
pub(super) unsafe fn explain<S: Side>(
    handle: *mut S::Handle,
    peer: lmt_peer,
    bytes: u64,
    flags: u32,
    format: u32,
    text: *mut c_char,
    capacity: usize,
    length: *mut usize,
) -> Result<(), Error> {
    // SAFETY: by `# Safety`, `text` is NULL or memory for `capacity` bytes.
    let room = unsafe { Places::new(text, capacity, "text") }?;
    // SAFETY: by `# Safety`, `length` is NULL or memory for a number.
    let length = unsafe { Place::wanted(length, "length") }?;
    let (message, format) = (question(bytes, flags)?, format_of(format)?);
    S::with(handle, |side| {
        let explanation = side.explain(peer_of(side.number(), peer)?, &message)?;
        write::text(&written(&explanation, format)?, room, length)
    })
}
