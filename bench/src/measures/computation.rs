//! A computation that takes as long as it is told to and touches no memory.

use std::hint::black_box;
use std::time::Instant;

/// Rounds of one calibration, some 100 us.
const ROUNDS: u64 = 1 << 16;
/// Calibrations, of which the fastest counts: whatever else runs only adds.
const CALIBRATIONS: u32 = 15;

/// How fast this core computes.
#[derive(Clone, Copy, Debug)]
pub struct Computation {
    rounds_per_s: f64,
}

impl Computation {
    /// Measures this core.
    pub fn calibrate() -> Self {
        let timed = (0..CALIBRATIONS).map(|_| {
            let start = Instant::now();
            compute(ROUNDS);
            start.elapsed().as_secs_f64()
        });
        let fastest = timed.fold(f64::INFINITY, f64::min).max(1e-9);
        Self { rounds_per_s: ROUNDS as f64 / fastest }
    }

    /// How many rounds take so many seconds.
    pub fn rounds(self, seconds: f64) -> u64 {
        // A conversion of what is negative or too large ends at the bounds.
        ((self.rounds_per_s * seconds) as u64).max(1)
    }
}

/// Rounds of a generator in registers (xorshift64), each of which needs the
/// result of the one before.
pub fn compute(rounds: u64) {
    let mut state = black_box(0x9E37_79B9_7F4A_7C15_u64);
    for _ in 0..rounds {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
    }
    black_box(state);
}
