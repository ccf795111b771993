//! How many iterations a repetition takes, found while warming up.

/// How long one repetition is meant to take, in seconds: long against the
/// clock's resolution and an interrupt, short enough that contestants that
/// take turns meet the same machine.
const TARGET_S: f64 = 0.004;
/// The most iterations of a repetition.
const MAX_ITERATIONS: u64 = 1 << 20;
/// The fewest.
const MIN_ITERATIONS: u64 = 2;
/// How often a number of iterations must prove long enough: an interruption
/// makes any number look so once, and would have chosen far too few.
const TRIALS: u32 = 3;

/// What follows from a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Try this many iterations.
    Try(u64),
    /// A repetition is to have this many.
    Chosen(u64),
}

/// Trials with more and more iterations, until they take a good part of the
/// time aimed at.
#[derive(Debug)]
pub struct WarmUp {
    iterations: u64,
    trials: u32,
    fastest_s: f64,
}

/// The first trial has one iteration.
impl Default for WarmUp {
    fn default() -> Self {
        Self { iterations: 1, trials: 0, fastest_s: f64::INFINITY }
    }
}

impl WarmUp {
    /// The trial that was due took `seconds`.
    pub fn took(&mut self, seconds: f64) -> Next {
        self.fastest_s = self.fastest_s.min(seconds.max(1e-9));
        self.trials += 1;
        if self.fastest_s < TARGET_S / 4.0 && self.iterations < MAX_ITERATIONS {
            *self = Self { iterations: self.iterations * 2, ..Self::default() };
            return Next::Try(self.iterations);
        }
        if self.trials < TRIALS {
            return Next::Try(self.iterations);
        }
        // The product is small and positive: what is cut off is less than
        // one iteration.
        let fitting = (TARGET_S / self.fastest_s * self.iterations as f64) as u64;
        Next::Chosen(fitting.clamp(MIN_ITERATIONS, MAX_ITERATIONS))
    }
}

#[cfg(test)]
#[path = "warm_up_tests.rs"]
mod tests;
