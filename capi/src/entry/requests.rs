//! Operations under way: their end, and taking them back.
#![allow(unsafe_code)] // Functions that C calls.

use std::mem::MaybeUninit;
use std::time::{Duration, Instant};

use lmt::RequestId;

use super::messages::tell;
use crate::border::{places, there, values};
use crate::code::lmt_code::{self, LMT_ERR_TIMEOUT, LMT_OK};
use crate::error::{Error, guard};
use crate::handle::Number;
use crate::objects::{ENDPOINTS, Endpoint, request_of, status_of};
use crate::types::{lmt_endpoint, lmt_request, lmt_status};

/// When a wait of so many milliseconds ends; a negative one, and one beyond what
/// the clock counts, has no end.
pub(super) fn deadline_of(timeout_ms: i64) -> Option<Instant> {
    let limit = Duration::from_millis(u64::try_from(timeout_ms).ok()?);
    Instant::now().checked_add(limit)
}

pub(super) fn too_late(timeout_ms: i64) -> Error {
    let sentence = format!(
        "nothing has ended within {timeout_ms} ms; what is under way goes on, so wait again or cancel it"
    );
    Error::new(LMT_ERR_TIMEOUT, sentence)
}

fn all_of(owner: Number, requests: &[lmt_request]) -> Result<Vec<RequestId>, Error> {
    requests.iter().map(|request| request_of(owner, *request)).collect()
}

/// Tells whether an operation has ended, after making progress once. If `done` is
/// true, the code is what it ended with, `status` (which may be NULL) is written for
/// `LMT_OK` and `LMT_ERR_TRUNCATED`, and the request names nothing any more. If it is
/// false, the code is `LMT_OK`.
///
/// Errors: `LMT_ERR_NULL`, `LMT_ERR_HANDLE`, `LMT_ERR_BUSY` (`done` is not written);
/// `LMT_ERR_UNKNOWN_REQUEST`, `LMT_ERR_FORKED`, and what the operation ended with
/// (`done` is true).
///
/// # Safety
/// `done` and `status` are NULL or memory for one each.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lmt_test(
    endpoint: *mut lmt_endpoint,
    request: lmt_request,
    done: Option<&mut MaybeUninit<bool>>,
    status: Option<&mut MaybeUninit<lmt_status>>,
) -> lmt_code {
    guard(|| {
        let done = there(done, "done")?;
        ENDPOINTS.with(endpoint.addr() as u64, |endpoint| {
            done.write(true);
            let request = request_of(endpoint.number, request)?;
            match endpoint.awake(|engine| engine.test(request)) {
                Some(result) => tell(endpoint.number, result, status),
                None => {
                    done.write(false);
                    Ok(())
                }
            }
        })
    })
}

/// Waits for the end of an operation, at most `timeout_ms` milliseconds; a negative
/// number is no limit. The code is what it ended with; `status` (which may be NULL)
/// is written for `LMT_OK` and `LMT_ERR_TRUNCATED`. The request names nothing any
/// more, except after `LMT_ERR_TIMEOUT`.
///
/// Errors: `LMT_ERR_NULL`, `LMT_ERR_HANDLE`, `LMT_ERR_BUSY`, `LMT_ERR_TIMEOUT`,
/// `LMT_ERR_UNKNOWN_REQUEST`, `LMT_ERR_FORKED`; `LMT_ERR_CANCELLED`,
/// `LMT_ERR_TRUNCATED`, `LMT_ERR_PEER_DEAD`, `LMT_ERR_PEER_UNREACHABLE`,
/// `LMT_ERR_PEER_REFUSED`, `LMT_ERR_PEER_REMOVED`, `LMT_ERR_NO_MECHANISM`, and those of
/// regions.
///
/// # Safety
/// `status` is NULL or memory for one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lmt_wait(
    endpoint: *mut lmt_endpoint,
    request: lmt_request,
    timeout_ms: i64,
    status: Option<&mut MaybeUninit<lmt_status>>,
) -> lmt_code {
    guard(|| {
        ENDPOINTS.with(endpoint.addr() as u64, |endpoint| {
            let request = request_of(endpoint.number, request)?;
            let deadline = deadline_of(timeout_ms);
            match endpoint.awake(|engine| engine.wait_until(request, deadline)) {
                Some(result) => tell(endpoint.number, result, status),
                None => Err(too_late(timeout_ms)),
            }
        })
    })
}

/// Waits until one of `requests` has ended, at most `timeout_ms` milliseconds (a
/// negative number is no limit), and tells its place. How it ended is told by
/// `lmt_test` or `lmt_wait`, at once. One that was told before, or is all zero, counts
/// as ended.
///
/// Errors: `LMT_ERR_NULL`, `LMT_ERR_INVALID` (an empty list), `LMT_ERR_HANDLE`,
/// `LMT_ERR_BUSY`, `LMT_ERR_UNKNOWN_REQUEST` (one is of another endpoint),
/// `LMT_ERR_TIMEOUT`, `LMT_ERR_FORKED`.
///
/// # Safety
/// `requests` is NULL or leads to `count` of them; `index` is NULL or memory for a
/// number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lmt_wait_any(
    endpoint: *mut lmt_endpoint,
    requests: *const lmt_request,
    count: usize,
    timeout_ms: i64,
    index: Option<&mut MaybeUninit<usize>>,
) -> lmt_code {
    guard(|| {
        let place = there(index, "index")?;
        // SAFETY: the caller's promise.
        let requests = unsafe { values(requests, count, "requests") }?;
        if requests.is_empty() {
            return Err(Error::invalid("`count` is 0; nothing of an empty list can end, so pass a request"));
        }
        ENDPOINTS.with(endpoint.addr() as u64, |endpoint| {
            if let Some(at) = requests.iter().position(|request| *request == NO_REQUEST) {
                place.write(at);
                return Ok(());
            }
            let ids = all_of(endpoint.number, requests)?;
            let deadline = deadline_of(timeout_ms);
            let found = endpoint.awake(|engine| engine.wait_any(&ids, deadline))?;
            place.write(found.ok_or_else(|| too_late(timeout_ms))?);
            Ok(())
        })
    })
}

/// The request that names no operation.
const NO_REQUEST: lmt_request = lmt_request { owner: 0, number: 0 };

/// Waits until all of `requests` have ended, at most `timeout_ms` milliseconds (a
/// negative number is no limit). `codes` says how each ended, and `LMT_ERR_TIMEOUT`
/// of those that have not; `statuses` (which may be NULL) is written as by
/// `lmt_wait`. Returns `LMT_OK` when all ended so, else the first code that is
/// another.
///
/// Errors: `LMT_ERR_NULL`, `LMT_ERR_HANDLE`, `LMT_ERR_BUSY`,
/// `LMT_ERR_UNKNOWN_REQUEST` (one is of another endpoint, and nothing is done), and
/// those of `lmt_wait`.
///
/// # Safety
/// `requests` is NULL or leads to `count` of them; `codes` and `statuses` are NULL or
/// memory for as many.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lmt_wait_all(
    endpoint: *mut lmt_endpoint,
    requests: *const lmt_request,
    count: usize,
    timeout_ms: i64,
    codes: *mut lmt_code,
    statuses: *mut lmt_status,
) -> lmt_code {
    guard(|| {
        // SAFETY: the caller's promise.
        let requests = unsafe { values(requests, count, "requests") }?;
        // SAFETY: the caller's promise.
        let codes = unsafe { places(codes, count, "codes") }?;
        let statuses = match statuses.is_null() {
            true => &mut [],
            // SAFETY: the caller's promise.
            false => unsafe { places(statuses, count, "statuses") }?,
        };
        ENDPOINTS.with(endpoint.addr() as u64, |endpoint| {
            let ids = all_of(endpoint.number, requests)?;
            wait_for_all(endpoint, &ids, timeout_ms, codes, statuses)
        })
    })
}

fn wait_for_all(
    endpoint: &mut Endpoint,
    requests: &[RequestId],
    timeout_ms: i64,
    codes: &mut [MaybeUninit<lmt_code>],
    statuses: &mut [MaybeUninit<lmt_status>],
) -> Result<(), Error> {
    let deadline = deadline_of(timeout_ms);
    let mut first = Ok(());
    for (at, request) in requests.iter().enumerate() {
        let result = endpoint.awake(|engine| engine.wait_until(*request, deadline));
        if let Some((place, status)) =
            statuses.get_mut(at).zip(result.as_ref().and_then(|result| status_of(endpoint.number, result)))
        {
            place.write(status);
        }
        let result = match result {
            Some(result) => result.map(drop).map_err(Error::from),
            None => Err(too_late(timeout_ms)),
        };
        codes[at].write(result.as_ref().err().map_or(LMT_OK, |error| error.code));
        first = first.and(result);
    }
    first
}

/// Tells whether an operation has ended, without making progress, and without
/// telling how.
///
/// Errors: `LMT_ERR_NULL`, `LMT_ERR_HANDLE`, `LMT_ERR_BUSY`,
/// `LMT_ERR_UNKNOWN_REQUEST` (it is of another endpoint; one that was told before
/// counts as ended).
///
/// # Safety
/// `done` is NULL or memory for one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lmt_is_done(
    endpoint: *mut lmt_endpoint,
    request: lmt_request,
    done: Option<&mut MaybeUninit<bool>>,
) -> lmt_code {
    guard(|| {
        let done = there(done, "done")?;
        ENDPOINTS.with(endpoint.addr() as u64, |endpoint| {
            let request = request_of(endpoint.number, request)?;
            done.write(endpoint.engine(|engine| engine.is_done(request)));
            Ok(())
        })
    })
}

/// Asks for an operation to be taken back that nothing has matched yet. Its end is
/// still to be waited for, and tells what became of it: `LMT_ERR_CANCELLED`, or what
/// it did instead.
///
/// Errors: `LMT_ERR_NULL`, `LMT_ERR_HANDLE`, `LMT_ERR_BUSY`,
/// `LMT_ERR_UNKNOWN_REQUEST`, `LMT_ERR_FORKED`.
///
/// # Safety
/// Any pointer will do.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lmt_cancel(endpoint: *mut lmt_endpoint, request: lmt_request) -> lmt_code {
    guard(|| {
        ENDPOINTS.with(endpoint.addr() as u64, |endpoint| {
            let request = request_of(endpoint.number, request)?;
            Ok(endpoint.engine(|engine| engine.cancel(request))?)
        })
    })
}
