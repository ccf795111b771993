//! Waiting for completions: a look now and again for a while, then sleep.

use std::collections::HashMap;
use std::ffi::{CString, c_char};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;

use crate::state::{Domain, State};

/// So many looks follow each other at once.
const HASTY_LOOKS: u32 = 2000;
/// The longest sleep: a signal, and what other threads have begun, is noticed
/// after it.
const NAP: Duration = Duration::from_millis(1);

/// Looks until there is something, at most until the deadline.
pub fn until<T>(
    domain: &Domain,
    deadline: Option<Instant>,
    endpoints: impl Fn(&State) -> Vec<usize>,
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
        if looks < HASTY_LOOKS {
            looks += 1;
            std::hint::spin_loop();
        } else {
            sleep(domain, &endpoints, left.unwrap_or(NAP).min(NAP));
        }
    }
}

/// Sleeps until something comes to one of the endpoints, without the lock.
fn sleep(domain: &Domain, endpoints: &impl Fn(&State) -> Vec<usize>, mut limit: Duration) {
    let descriptors: Vec<OwnedFd> = {
        let mut state = domain.lock();
        let mut ready = Vec::new();
        for number in endpoints(&state) {
            let Some(endpoint) = state.endpoints.get_mut(number) else { continue };
            let engine = endpoint.engine_mut();
            if !engine.prepare_to_sleep().unwrap_or(false) {
                limit = Duration::ZERO;
            }
            limit = limit.min(engine.sleep_limit());
            match engine.wait_descriptor().try_clone_to_owned() {
                Ok(descriptor) => ready.push(descriptor),
                // None is left: looking again soon works as well.
                Err(_) => limit = Duration::ZERO,
            }
        }
        ready
    };
    let mut polled: Vec<PollFd<'_>> =
        descriptors.iter().map(|descriptor| PollFd::new(descriptor.as_fd(), PollFlags::POLLIN)).collect();
    if limit.is_zero() {
        std::thread::yield_now();
    } else {
        // Interrupted or timed out, the next look finds out.
        let _ready = ppoll(&mut polled, Some(TimeSpec::from_duration(limit)), None);
    }
    let mut state = domain.lock();
    for number in endpoints(&state) {
        if let Some(endpoint) = state.endpoints.get_mut(number) {
            endpoint.engine_mut().woken();
        }
    }
}

/// A string that C may keep; there are few different ones.
pub fn lasting(text: &'static str) -> *const c_char {
    static STRINGS: Mutex<Option<HashMap<&'static str, CString>>> = Mutex::new(None);
    let mut strings = STRINGS.lock().unwrap_or_else(PoisonError::into_inner);
    let strings = strings.get_or_insert_default();
    strings.entry(text).or_insert_with(|| CString::new(text).unwrap_or_default()).as_ptr()
}
