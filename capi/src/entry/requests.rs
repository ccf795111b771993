//! Operations in flight: their end, and taking them back.
#![allow(unsafe_code)] // Functions that C calls.

use std::time::{Duration, Instant};

use lmt::{Outcome, RequestId};

use super::both::{self, tell};
use crate::border::{Place, Places, values};
use crate::code::lmt_code::{self, LMT_ERR_TIMEOUT, LMT_OK};
use crate::error::{Error, guard};
use crate::handle::Number;
use crate::numbers::{NO_STATUS, request_of, status_of};
use crate::objects::{Endpoint, NO_INDEX, NO_REQUEST, Side};
use crate::types::{lmt_endpoint, lmt_request, lmt_status};

/// When a wait of so many milliseconds ends; a negative one, and one beyond what
/// the clock counts, has no end.
pub(super) fn deadline_of(timeout_ms: i64) -> Option<Instant> {
    let limit = Duration::from_millis(u64::try_from(timeout_ms).ok()?);
    Instant::now().checked_add(limit)
}

fn too_late(timeout_ms: i64) -> Error {
    let sentence = format!(
        "nothing has ended within {timeout_ms} ms; what is in flight goes on, so wait again or cancel it"
    );
    Error::new(LMT_ERR_TIMEOUT, sentence)
}

/// The operations of a list; `None` of `LMT_REQUEST_NULL`.
fn all_of(owner: Number, requests: &[lmt_request]) -> Result<Vec<Option<RequestId>>, Error> {
    let one = |request: &lmt_request| match *request {
        NO_REQUEST => Ok(None),
        request => request_of(owner, request).map(Some),
    };
    requests.iter().map(one).collect()
}

/// Tells whether an operation has ended, after making progress once. If `done` is
/// true, the code is what it ended with, `status` (which may be NULL) is written for
/// `LMT_OK` and `LMT_ERR_TRUNCATED`, and the request names nothing any more. If it is
/// false, the operation lives on, or this call cannot tell: the code is `LMT_OK`, or
/// says why. `LMT_REQUEST_NULL` counts as ended: `LMT_OK`, and a status of zeros.
///
/// Errors: `LMT_ERR_NULL`, `LMT_ERR_INVALID`, `LMT_ERR_HANDLE`, `LMT_ERR_BUSY`,
/// `LMT_ERR_FORKED`, `LMT_ERR_PANIC` (`done` is false where it can be written);
/// `LMT_ERR_UNKNOWN_REQUEST`, and what the operation ended with (`done` is true): see
/// `lmt_wait`.
///
/// # Safety
/// `done` and `status` are NULL or memory for one each.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lmt_test(
    endpoint: *mut lmt_endpoint,
    request: lmt_request,
    done: *mut bool,
    status: *mut lmt_status,
) -> lmt_code {
    // SAFETY: `both::test` asks for what `# Safety` says.
    guard(|| unsafe { both::test::<Endpoint>(endpoint, request, done, status) })
}

/// Waits for the end of an operation, at most `timeout_ms` milliseconds; a negative
/// number is no limit. The code is what it ended with; `status` (which may be NULL)
/// is written for `LMT_OK` and `LMT_ERR_TRUNCATED`. The request names nothing any
/// more then. It lives on, and its memory belongs to it, after `LMT_ERR_TIMEOUT`,
/// `LMT_ERR_NULL`, `LMT_ERR_INVALID`, `LMT_ERR_HANDLE`, `LMT_ERR_BUSY` and
/// `LMT_ERR_FORKED`, by which nothing was waited for, and after `LMT_ERR_PANIC` until
/// the endpoint is closed. `LMT_REQUEST_NULL` counts as ended: `LMT_OK`, and a status
/// of zeros.
///
/// Errors: those, `LMT_ERR_UNKNOWN_REQUEST`, and what operations end with:
/// `LMT_ERR_CANCELLED`, `LMT_ERR_TRUNCATED`, `LMT_ERR_PEER_DEAD`,
/// `LMT_ERR_PEER_UNREACHABLE`, `LMT_ERR_PEER_REFUSED`, `LMT_ERR_PEER_REMOVED`,
/// `LMT_ERR_NO_MECHANISM`, and of regions those of `lmt_region_get`.
///
/// # Safety
/// `status` is NULL or memory for one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lmt_wait(
    endpoint: *mut lmt_endpoint,
    request: lmt_request,
    timeout_ms: i64,
    status: *mut lmt_status,
) -> lmt_code {
    guard(|| {
        // SAFETY: by `# Safety`, `status` is NULL or memory for one.
        let status = unsafe { Place::wanted(status, "status") }?;
        Endpoint::with(endpoint, |endpoint| {
            if request == NO_REQUEST {
                status.write(NO_STATUS);
                return Ok(());
            }
            let request = request_of(endpoint.number(), request)?;
            let deadline = deadline_of(timeout_ms);
            match endpoint.awake(|engine| engine.wait_until(request, deadline)) {
                Some(outcome) => tell(endpoint.number(), outcome, status),
                None => Err(too_late(timeout_ms)),
            }
        })
    })
}

/// Waits until one of `requests` has ended, at most `timeout_ms` milliseconds (a
/// negative number is no limit), and tells its place. How it ended is told by
/// `lmt_test` or `lmt_wait`, at once. One that was told before counts as ended.
/// `LMT_REQUEST_NULL` is skipped; if the list has nothing else, or nothing, there is
/// nothing to wait for and `index` becomes `LMT_NO_INDEX`.
///
/// Errors: `LMT_ERR_NULL`, `LMT_ERR_INVALID`, `LMT_ERR_HANDLE`, `LMT_ERR_BUSY`,
/// `LMT_ERR_UNKNOWN_REQUEST` (one is of another endpoint), `LMT_ERR_TIMEOUT`,
/// `LMT_ERR_FORKED`.
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
    index: *mut usize,
) -> lmt_code {
    guard(|| {
        // SAFETY: by `# Safety`, `index` is NULL or memory for a number.
        let place = unsafe { Place::new(index, "index") }?;
        // SAFETY: by `# Safety`, `requests` is NULL or leads to `count` of them.
        let requests = unsafe { values(requests, count, "requests") }?;
        Endpoint::with(endpoint, |endpoint| {
            let all = all_of(endpoint.number(), requests)?;
            let (indices, ids): (Vec<usize>, Vec<RequestId>) =
                all.iter().enumerate().filter_map(|(at, id)| Some((at, (*id)?))).unzip();
            if ids.is_empty() {
                place.write(NO_INDEX);
                return Ok(());
            }
            let deadline = deadline_of(timeout_ms);
            let found = endpoint.awake(|engine| engine.wait_any(&ids, deadline))?;
            place.write(indices[found.ok_or_else(|| too_late(timeout_ms))?]);
            Ok(())
        })
    })
}

/// Waits until all of `requests` have ended, at most `timeout_ms` milliseconds (a
/// negative number is no limit). `codes` says how each ended, and `LMT_ERR_TIMEOUT`
/// of those that have not; `statuses` (which may be NULL) is written as by
/// `lmt_wait`. `LMT_REQUEST_NULL` counts as ended. Returns `LMT_OK` when all ended
/// so, else the first code that is another.
///
/// Errors: those of `lmt_wait`; `codes` is not written where nothing was waited for,
/// by `LMT_ERR_NULL`, `LMT_ERR_INVALID`, `LMT_ERR_HANDLE`, `LMT_ERR_BUSY`,
/// `LMT_ERR_FORKED`, or `LMT_ERR_UNKNOWN_REQUEST` where one is of another endpoint.
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
        // SAFETY: by `# Safety`, `requests` is NULL or leads to `count` of them.
        let requests = unsafe { values(requests, count, "requests") }?;
        // SAFETY: by `# Safety`, `codes` is NULL or memory for as many.
        let codes = unsafe { Places::new(codes, count, "codes") }?;
        // SAFETY: by `# Safety`, `statuses` is NULL or memory for as many.
        let statuses = unsafe { Places::wanted(statuses, count, "statuses") }?;
        Endpoint::with(endpoint, |endpoint| {
            let all = all_of(endpoint.number(), requests)?;
            wait_for_all(endpoint, &all, timeout_ms, codes, statuses)
        })
    })
}

fn wait_for_all(
    endpoint: &mut Endpoint,
    requests: &[Option<RequestId>],
    timeout_ms: i64,
    codes: Places<'_, lmt_code>,
    statuses: Places<'_, lmt_status>,
) -> Result<(), Error> {
    let deadline = deadline_of(timeout_ms);
    let (mut first, mut is_late) = (Ok(()), false);
    for (at, request) in requests.iter().enumerate() {
        let Some(request) = *request else {
            codes.write(at, LMT_OK);
            statuses.write(at, NO_STATUS);
            continue;
        };
        let outcome = match is_late {
            // Each further wait would take a look or two, and a sleep.
            true => finished(endpoint, request),
            false => endpoint.awake(|engine| engine.wait_until(request, deadline)),
        };
        is_late |= outcome.is_none();
        if let Some(status) = outcome.as_ref().and_then(|outcome| status_of(endpoint.number(), outcome)) {
            statuses.write(at, status);
        }
        let result = match outcome {
            Some(outcome) => outcome.map(drop).map_err(Error::from),
            None => Err(too_late(timeout_ms)),
        };
        codes.write(at, result.as_ref().err().map_or(LMT_OK, |error| error.code));
        first = first.and(result);
    }
    first
}

/// What an operation has ended with, without making progress.
fn finished(endpoint: &Endpoint, request: RequestId) -> Option<Outcome> {
    endpoint.engine(|engine| engine.is_done(request).then(|| engine.test(request)).flatten())
}

/// Tells whether an operation has ended, without making progress, and without
/// telling how. One that was told before counts as ended, and so does
/// `LMT_REQUEST_NULL`.
///
/// Errors: `LMT_ERR_NULL`, `LMT_ERR_INVALID`, `LMT_ERR_HANDLE`, `LMT_ERR_BUSY`,
/// `LMT_ERR_FORKED`, `LMT_ERR_UNKNOWN_REQUEST` (it is of another endpoint).
///
/// # Safety
/// `done` is NULL or memory for one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lmt_is_done(
    endpoint: *mut lmt_endpoint,
    request: lmt_request,
    done: *mut bool,
) -> lmt_code {
    guard(|| {
        // SAFETY: by `# Safety`, `done` is NULL or memory for one.
        let done = unsafe { Place::new(done, "done") }?;
        Endpoint::with(endpoint, |endpoint| {
            if request == NO_REQUEST {
                done.write(true);
                return Ok(());
            }
            let request = request_of(endpoint.number(), request)?;
            done.write(endpoint.engine(|engine| engine.is_done(request)));
            Ok(())
        })
    })
}

/// Asks for an operation to be taken back that nothing has matched yet. Its end is
/// still to be waited for, and tells what became of it: `LMT_ERR_CANCELLED`, or what
/// it did instead. Of an operation whose end was told before nothing is left to be
/// taken back: `LMT_OK`.
///
/// Errors: `LMT_ERR_NULL`, `LMT_ERR_HANDLE`, `LMT_ERR_BUSY`, `LMT_ERR_FORKED`,
/// `LMT_ERR_UNKNOWN_REQUEST` (it is of another endpoint, or `LMT_REQUEST_NULL`).
///
/// # Safety
/// Any pointer will do.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lmt_cancel(endpoint: *mut lmt_endpoint, request: lmt_request) -> lmt_code {
    guard(|| {
        Endpoint::with(endpoint, |endpoint| {
            let request = request_of(endpoint.number(), request)?;
            Ok(endpoint.engine(|engine| engine.cancel(request))?)
        })
    })
}
