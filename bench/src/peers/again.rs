//! What goes over a network is tried again.

use std::time::{Duration, Instant};

/// How often at most.
pub const ATTEMPTS: u32 = 3;
/// Between two attempts.
pub const PAUSE: Duration = Duration::from_secs(5);

/// What the first attempt that succeeds returns: up to [`ATTEMPTS`] of them, with
/// `pause` between, none begun after `limit`. Each is given the seconds that are
/// left to it. `wanted` says whether another is still wanted.
///
/// # Errors
/// The last attempt's.
///
/// ```
/// use std::time::Duration;
/// let mut failures = 2;
/// let tried = lmt_bench::peers::again::tried(Duration::from_secs(9), Duration::ZERO, || true, |_left_s| {
///     if failures == 0 { Ok("here") } else { failures -= 1; Err("no network") }
/// });
/// assert_eq!(tried, Ok("here"));
/// ```
pub fn tried<T, E>(
    limit: Duration,
    pause: Duration,
    wanted: impl Fn() -> bool,
    mut attempt: impl FnMut(u64) -> Result<T, E>,
) -> Result<T, E> {
    let end = Instant::now() + limit;
    let mut last = attempt(limit.as_secs().max(1));
    for _ in 1..ATTEMPTS {
        if last.is_ok() || !wanted() || Instant::now() + pause >= end {
            break;
        }
        std::thread::sleep(pause);
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break;
        }
        last = attempt(left.as_secs().max(1));
    }
    last
}

#[cfg(test)]
#[path = "again_tests.rs"]
mod tests;
