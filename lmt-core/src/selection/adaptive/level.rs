//! What a stream's messages cost by the way that is chosen, how much that
//! varies, and whether it has changed for good.

/// A block differs from the level by this (a logarithm: 25 %) if the level has
/// changed, unless blocks vary more.
const CHANGE: f64 = 0.22;
const CHANGE_IN_NOISE: f64 = 3.0;
/// So many blocks in a row say that it has.
const BLOCKS: u8 = 3;
const WEIGHT: f64 = 1.0 / 8.0;
/// What a single block can add to the noise at most.
const MOST_NOISE: f64 = 0.5;
/// What noise is taken to be before it is known.
const FIRST_NOISE: f64 = 0.03;

/// The level of a stream. Costs are logarithms of ns per byte.
#[derive(Clone, Copy, Debug)]
pub(super) struct Level {
    log: f64,
    noise: f64,
    last: f64,
    blocks: u32,
    /// Blocks in a row that are above (positive) or below the level, and the
    /// least distant of them.
    out: i8,
    nearest: f64,
}

impl Default for Level {
    fn default() -> Self {
        Self { log: 0.0, noise: FIRST_NOISE, last: 0.0, blocks: 0, out: 0, nearest: 0.0 }
    }
}

impl Level {
    /// Whether enough has been seen to compare with.
    pub const fn is_known(&self) -> bool {
        self.blocks >= BLOCKS as u32
    }

    pub const fn log(&self) -> f64 {
        self.log
    }

    /// By how much two blocks in a row differ, on the average.
    pub const fn noise(&self) -> f64 {
        self.noise
    }

    /// A block by the way that is chosen. `is_quiet` where the peer was not to
    /// try anything either. Returns whether the level has changed for good.
    pub fn block(&mut self, log: f64, is_quiet: bool) -> bool {
        if self.blocks == 0 {
            (self.log, self.last) = (log, log);
        }
        let off = log - self.log;
        let bound = CHANGE.max(CHANGE_IN_NOISE * self.noise);
        if off.abs() > bound && self.is_known() {
            return self.note_out(log, off);
        }
        self.out = 0;
        if is_quiet || !self.is_known() {
            self.blocks = self.blocks.saturating_add(1);
            let weight = WEIGHT.max(1.0 / f64::from(self.blocks));
            let step = (log - self.last).abs().min(MOST_NOISE);
            self.noise += (step - self.noise) * WEIGHT;
            self.log += off * weight;
            self.last = log;
        }
        false
    }

    fn note_out(&mut self, log: f64, off: f64) -> bool {
        let side = if off > 0.0 { 1 } else { -1 };
        if self.out.signum() != side {
            (self.out, self.nearest) = (0, log);
        }
        self.out += side;
        let is_nearer = (log - self.log).abs() < (self.nearest - self.log).abs();
        self.nearest = if is_nearer { log } else { self.nearest };
        if self.out.unsigned_abs() < BLOCKS {
            return false;
        }
        self.restart(self.nearest);
        true
    }

    /// Another way is chosen, which costs so much more.
    pub fn shift(&mut self, log_ratio: f64) {
        self.restart(self.log + log_ratio);
    }

    fn restart(&mut self, log: f64) {
        (self.log, self.last, self.out) = (log, log, 0);
        // What comes next counts as much as this.
        self.blocks = u32::from(BLOCKS);
    }
}

#[cfg(test)]
#[path = "level_tests.rs"]
mod tests;
