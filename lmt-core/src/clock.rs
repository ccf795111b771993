//! The clock by which messages are timed.

use std::time::Instant;

/// Time since some moment, in ns.
#[derive(Debug)]
pub(crate) struct Clock {
    start: Instant,
}

impl Clock {
    pub fn new() -> Self {
        Self { start: Instant::now() }
    }

    /// So long after the clock was made; for 584 years.
    #[inline]
    pub fn now_ns(&self) -> u64 {
        let passed = self.start.elapsed();
        passed.as_secs().wrapping_mul(1_000_000_000).wrapping_add(u64::from(passed.subsec_nanos()))
    }
}
