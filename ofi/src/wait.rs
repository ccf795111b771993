//! Waiting for completions: a look now and again for a while, then sleep.

use std::collections::HashMap;
use std::ffi::{CString, c_char, c_int};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::state::sleep::{Armed, WaitedFor};
use crate::state::{Domain, State};

/// So many looks follow each other at once.
const BACK_TO_BACK_POLLS: u32 = 2000;
/// How long is slept where nothing can be slept in.
const SLEEP: Duration = Duration::from_millis(1);

/// When a call is to return that blocks for so many milliseconds; below zero, never.
pub fn deadline(timeout_ms: c_int) -> Option<Instant> {
    u64::try_from(timeout_ms).ok().map(|ms| Instant::now() + Duration::from_millis(ms))
}

/// Looks until there is something, at most until the deadline. `is_quiescent` says of
/// the state alone whether a look would find nothing.
pub fn until<T>(
    domain: &Domain,
    what: WaitedFor,
    deadline: Option<Instant>,
    is_quiescent: impl Fn(&State) -> bool,
    mut look: impl FnMut() -> Option<T>,
) -> Option<T> {
    let mut looks = 0;
    loop {
        if let Some(found) = look() {
            return Some(found);
        }
        let left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
        if left.is_some_and(|left| left.is_zero()) {
            return None;
        }
        if looks < BACK_TO_BACK_POLLS {
            looks += 1;
            std::hint::spin_loop();
        } else {
            sleep(domain, what, &is_quiescent, left.unwrap_or(Duration::MAX));
        }
    }
}

/// Sleeps until something comes, without the lock.
fn sleep(domain: &Domain, what: WaitedFor, is_quiescent: &impl Fn(&State) -> bool, left: Duration) {
    let armed = {
        let mut state = domain.lock();
        if !is_quiescent(&state) {
            return;
        }
        state.arm(what, false)
    };
    match armed {
        Ok(Armed::Sleep(set, limit)) => {
            set.sleep(left.min(limit));
            if let Some(watch) = domain.lock().shared_state.watch(what) {
                watch.wake();
            }
        }
        Ok(Armed::Look) => std::thread::yield_now(),
        // No descriptor is left: looking again soon works as well.
        Err(_) => std::thread::sleep(left.min(SLEEP)),
    }
}

/// A string that C may keep; there are few different ones.
pub fn lasting(text: &'static str) -> *const c_char {
    static STRINGS: Mutex<Option<HashMap<&'static str, CString>>> = Mutex::new(None);
    let mut strings = STRINGS.lock().unwrap_or_else(PoisonError::into_inner);
    let strings = strings.get_or_insert_default();
    strings.entry(text).or_insert_with(|| CString::new(text).unwrap_or_default()).as_ptr()
}
