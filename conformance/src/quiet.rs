//! Measurements that other programs on the machine upset.
//!
//! What a test says of time holds where the test has a core to itself. A
//! measurement that fails counts only if the machine was quiet before and after it.

use std::thread;
use std::time::{Duration, Instant};

use crate::require;

/// For so long it is looked whether the machine is quiet.
const LOOK: Duration = Duration::from_millis(10);
/// A thread that is stopped for longer shares its core: a time slice is longer.
const LONGEST_GAP: Duration = Duration::from_micros(700);
/// As many cores are to be free as a pair of ranks takes.
const CORES: usize = 2;

/// Whether two threads have a core each for a moment.
pub fn is_quiet() -> bool {
    thread::scope(|scope| {
        let looks: Vec<_> = (0..CORES).map(|_| scope.spawn(longest_gap)).collect();
        looks.into_iter().all(|look| look.join().is_ok_and(|gap| gap < LONGEST_GAP))
    })
}

/// The longest that this thread was stopped for.
fn longest_gap() -> Duration {
    let (begun, mut last, mut longest) = (Instant::now(), Instant::now(), Duration::ZERO);
    while last.duration_since(begun) < LOOK {
        let now = Instant::now();
        longest = longest.max(now.duration_since(last));
        last = now;
    }
    longest
}

/// Asserts that something took less than `bound`. Where the machine is busy, ten times
/// that is allowed, and said on standard error to be so.
///
/// # Panics
/// When it took longer.
pub fn took_less(what: &str, took: Duration, bound: Duration) {
    if took < bound {
        return;
    }
    assert!(took < bound * 10 && !is_quiet(), "{what} took {took:?}; at most {bound:?} was expected");
    eprintln!("SKIPPED: {what} took {took:?} on a busy machine, where {bound:?} is not asked for");
}

/// Measures until it holds. Says on standard error that it is skipped where the
/// machine was not quiet for `failures` measurements within `limit`.
///
/// # Panics
/// When so many measurements failed at quiet moments; or when there were not so
/// many and `LMT_REQUIRE` names `quiet`.
pub fn holds(failures: usize, limit: Duration, mut measure: impl FnMut() -> Result<(), String>) {
    holds_by(failures, limit, is_quiet, &mut measure);
}

fn holds_by(
    failures: usize,
    limit: Duration,
    mut is_quiet: impl FnMut() -> bool,
    measure: &mut dyn FnMut() -> Result<(), String>,
) {
    let deadline = Instant::now() + limit;
    let (mut failed, mut upset) = (Vec::new(), 0);
    while failed.len() < failures {
        let was_quiet = is_quiet();
        let Err(what) = measure() else { return };
        if was_quiet && is_quiet() {
            failed.push(what);
        } else {
            upset += 1;
        }
        if failed.len() < failures && Instant::now() > deadline {
            let why =
                format!("other programs upset {upset} measurements, and {} failed: {failed:?}", failed.len());
            return require::skipped("quiet", &why);
        }
    }
    panic!("{} measurements at quiet moments failed: {failed:?}", failed.len());
}

#[cfg(test)]
#[path = "quiet_tests.rs"]
mod tests;
