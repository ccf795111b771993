//! How much time a stream may spend on trying.

/// Of the time that a stream takes, this part may go into trials when it has
/// settled, and as much again after changes: 1 % together.
const SHARE: f64 = 0.005;
/// The first allowance, for a start and for the first changes, in rounds.
const FIRST_ROUNDS: f64 = 1024.0;
/// With less than this part of it left, only ways are tried that were the best in
/// some phase.
const SCARCE: f64 = 0.25;
/// What a settled stream may save up, in rounds.
const SAVED_ROUNDS: f64 = 64.0;
/// A round counts as no more than so many: in a pause nothing is earned.
const LONGEST_ROUND: f64 = 10.0;

/// Time that trials may take, in rounds of usual length. What is usual changes
/// with a phase, and what was saved in one is spent in another.
#[derive(Clone, Copy, Debug)]
pub(super) struct Budget {
    /// While the stream is settled.
    steady: f64,
    /// After a start or a change.
    change: f64,
}

impl Budget {
    pub const fn new() -> Self {
        Self { steady: 0.0, change: FIRST_ROUNDS }
    }

    /// A round that took so many times as long as usual.
    #[inline]
    pub fn earn(&mut self, rounds: f64) {
        let earned = SHARE * rounds.min(LONGEST_ROUND);
        self.steady = (self.steady + earned).min(SAVED_ROUNDS);
        self.change = (self.change + earned).min(FIRST_ROUNDS);
    }

    /// Whether a settled stream may try something that takes so long.
    pub fn allows_steady(&self, rounds: f64) -> bool {
        self.steady >= rounds
    }

    /// Whether a changed one may.
    pub fn allows_change(&self, rounds: f64) -> bool {
        self.change >= rounds
    }

    /// Whether little is left of what is there for changes.
    pub fn is_scarce(&self) -> bool {
        self.change < SCARCE * FIRST_ROUNDS
    }

    /// A trial has taken so long. It may have taken longer than was expected:
    /// then the next one waits the longer.
    pub fn spend(&mut self, rounds: f64, is_settled: bool) {
        *(if is_settled { &mut self.steady } else { &mut self.change }) -= rounds;
    }
}

#[cfg(test)]
#[path = "budget_tests.rs"]
mod tests;
