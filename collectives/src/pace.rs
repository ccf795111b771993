//! How fast this rank's posts go, and how they had better.
//!
//! A line of a slot that readers' caches still hold has to be taken back before it is
//! written. Where the readers' cores share a cache with the writer's that costs little.
//! Where they do not, each line crosses the machine, one after the other, since stores
//! become visible in their order: 2 GB/s have been measured where stores past the caches,
//! which wait for nothing, do 25 (docs/performance.md). Nobody says beforehand which it
//! is, in a virtual machine least of all, and it changes: so posts are timed, of fast ones one
//! in a few.
#![forbid(unsafe_code)]

use std::cell::Cell;
use std::time::{Duration, Instant};

/// How a rank's posts go.
#[derive(Debug)]
pub(crate) struct Pace {
    /// So many pieces go past the caches before the next is tried through them.
    left: Cell<u32>,
    /// So many will if that one is slow.
    next: Cell<u32>,
    /// So many pieces go through the caches before the next is timed.
    untimed: Cell<u32>,
}

/// Shorter ones are not timed: a look at the clock costs what they do.
const TIMED_BYTES: u64 = 8 << 10;
/// Slower than that is slow: bytes in a nanosecond.
const SLOW: u64 = 8;
/// Of pieces that go past the caches: those between two that are tried through them.
const LEAST: u32 = 16;
const MOST: u32 = 1024;
/// After a fast piece so many are not timed: a look at the clock costs a twentieth of one.
const UNTIMED: u32 = 6;

impl Default for Pace {
    fn default() -> Self {
        Self { left: Cell::new(0), next: Cell::new(LEAST), untimed: Cell::new(0) }
    }
}

impl Pace {
    /// Has a piece copied, which is told whether to go past the caches.
    pub fn copy<T>(&self, bytes: u64, copy: impl FnOnce(bool) -> T) -> T {
        if bytes < TIMED_BYTES {
            return copy(false);
        }
        if self.goes_past() {
            return copy(true);
        }
        let untimed = self.untimed.get();
        if untimed > 0 {
            self.untimed.set(untimed - 1);
            return copy(false);
        }
        let begin = Instant::now();
        let copied = copy(false);
        self.took(bytes, begin.elapsed());
        copied
    }

    /// Whether the next piece goes past the caches.
    fn goes_past(&self) -> bool {
        let left = self.left.get();
        self.left.set(left.saturating_sub(1));
        left > 0
    }

    /// A piece through the caches has taken so long.
    fn took(&self, bytes: u64, time: Duration) {
        if u128::from(bytes) >= time.as_nanos() * u128::from(SLOW) {
            self.next.set(LEAST);
            self.untimed.set(UNTIMED);
            return;
        }
        let next = self.next.get();
        self.left.set(next);
        self.next.set((next * 2).min(MOST));
    }
}

#[cfg(test)]
#[path = "pace_tests.rs"]
mod tests;
