//! Progress, and waiting in event loops.
#![allow(unsafe_code)] // Functions that C calls.

use std::ffi::c_int;
use std::os::fd::AsRawFd;
use std::time::Duration;

use super::requests::deadline_of;
use crate::border::Place;
use crate::code::lmt_code;
use crate::error::guard;
use crate::objects::{Endpoint, Side};
use crate::types::lmt_endpoint;

/// So long a sleep may last, for ppoll(2) and its kin.
pub(super) fn microseconds(limit: Duration) -> u64 {
    u64::try_from(limit.as_micros()).unwrap_or(u64::MAX)
}

/// Moves messages: takes one that has come, and more where receives wait for them or
/// something else is in flight, copies at most a quota of one transfer, writes what there
/// is room for. Never waits; where call after call finds nothing, others are let run
/// (sched_yield(2)). `moved` (which may be NULL) tells whether anything was moved.
///
/// Errors: `LMT_ERR_NULL`, `LMT_ERR_INVALID`, `LMT_ERR_HANDLE`, `LMT_ERR_BUSY`,
/// `LMT_ERR_FORKED`.
///
/// # Safety
/// `moved` is NULL or memory for one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lmt_progress(endpoint: *mut lmt_endpoint, moved: *mut bool) -> lmt_code {
    guard(|| {
        // SAFETY: by `# Safety`, `moved` is NULL or memory for one.
        let moved = unsafe { Place::wanted(moved, "moved") }?;
        Endpoint::with(endpoint, |endpoint| {
            moved.write(endpoint.awake(|engine| {
                let moved = engine.progress();
                engine.yield_if_idle();
                moved
            })?);
            Ok(())
        })
    })
}

/// Waits until something has moved, at most `timeout_ms` milliseconds; a negative
/// number is no limit. `moved` (which may be NULL) tells whether anything has; that
/// the time is over is no error.
///
/// Errors: as `lmt_progress`.
///
/// # Safety
/// `moved` is NULL or memory for one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lmt_wait_for_progress(
    endpoint: *mut lmt_endpoint,
    timeout_ms: i64,
    moved: *mut bool,
) -> lmt_code {
    guard(|| {
        // SAFETY: by `# Safety`, `moved` is NULL or memory for one.
        let moved = unsafe { Place::wanted(moved, "moved") }?;
        Endpoint::with(endpoint, |endpoint| {
            let deadline = deadline_of(timeout_ms);
            moved.write(endpoint.awake(|engine| engine.wait_for_progress(deadline))?);
            Ok(())
        })
    })
}

/// A descriptor for event loops, readable when there may be something to do. It is
/// the endpoint's: it is not to be closed, read or used after the endpoint. To be
/// polled after `lmt_prepare_to_sleep`.
///
/// Errors: `LMT_ERR_NULL`, `LMT_ERR_INVALID`, `LMT_ERR_HANDLE`, `LMT_ERR_BUSY`.
///
/// # Safety
/// `descriptor` is NULL or memory for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lmt_wait_descriptor(
    endpoint: *mut lmt_endpoint,
    descriptor: *mut c_int,
) -> lmt_code {
    guard(|| {
        // SAFETY: by `# Safety`, `descriptor` is NULL or memory for a number.
        let place = unsafe { Place::new(descriptor, "descriptor") }?;
        Endpoint::with(endpoint, |endpoint| {
            place.write(endpoint.engine(|engine| engine.wait_descriptor().as_raw_fd()));
            Ok(())
        })
    })
}

/// Gets ready for a sleep in the wait descriptor. If `may_sleep` is true, poll it for
/// at most `limit_us` microseconds (for work for which nobody rings; the place may be
/// NULL), and make progress after; if it is false, there is something to do at once.
///
/// Errors: `LMT_ERR_NULL`, `LMT_ERR_INVALID`, `LMT_ERR_HANDLE`, `LMT_ERR_BUSY`,
/// `LMT_ERR_FORKED`.
///
/// # Safety
/// `may_sleep` and `limit_us` are NULL or memory for one each.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lmt_prepare_to_sleep(
    endpoint: *mut lmt_endpoint,
    may_sleep: *mut bool,
    limit_us: *mut u64,
) -> lmt_code {
    guard(|| {
        // SAFETY: by `# Safety`, `may_sleep` is NULL or memory for one.
        let place = unsafe { Place::new(may_sleep, "may_sleep") }?;
        // SAFETY: by `# Safety`, `limit_us` is NULL or memory for one.
        let limit_us = unsafe { Place::wanted(limit_us, "limit_us") }?;
        Endpoint::with(endpoint, |endpoint| {
            let may_sleep = endpoint.engine(|engine| engine.prepare_to_sleep())?;
            endpoint.is_sleeping = may_sleep;
            place.write(may_sleep);
            limit_us.write(microseconds(endpoint.engine(|engine| engine.sleep_limit())));
            Ok(())
        })
    })
}
