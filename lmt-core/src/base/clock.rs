//! A clock for whoever asks often and need not know exactly.

use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

/// A moment as the kernel's last tick has it, up to some ms too early: a few ns to
/// ask for, where [`std::time::Instant`] takes some tens (clock_gettime(2),
/// `CLOCK_MONOTONIC_COARSE`).
#[derive(Clone, Copy, Debug)]
pub(crate) struct CoarseInstant(Duration);

impl CoarseInstant {
    #[inline]
    pub fn now() -> Self {
        // Every Linux has it; without, all moments are one.
        Self(clock_gettime(ClockId::CLOCK_MONOTONIC_COARSE).map_or(Duration::ZERO, Duration::from))
    }

    /// How long ago it was.
    #[inline]
    pub fn elapsed(self) -> Duration {
        Self::now().0.saturating_sub(self.0)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn coarse_moments_are_not_far_from_exact_ones() {
        let (exact, coarse) = (Instant::now(), CoarseInstant::now());
        while exact.elapsed() < Duration::from_millis(30) {
            std::thread::sleep(Duration::from_millis(1));
        }
        // A tick is 10 ms at most.
        let (before, passed, after) = (Duration::from_millis(19), coarse.elapsed(), exact.elapsed());
        assert!((before..=after + Duration::from_millis(11)).contains(&passed), "{passed:?}");
    }
}
