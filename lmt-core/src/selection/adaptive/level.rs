//! What a stream's messages cost by the way that is chosen, how much that
//! varies, and whether it has changed for good.

/// A block differs from the level by this (a logarithm: 16 %) if the level has
/// changed, unless blocks vary more.
const CHANGE: f64 = 0.15;
const CHANGE_IN_NOISE: f64 = 2.0;
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
    /// The same, not as a logarithm.
    ns_per_byte: f64,
    noise: f64,
    last: f64,
    blocks: u32,
    /// Blocks in a row that are above (positive) or below the level, and the
    /// least distant of them.
    out: i8,
    nearest: f64,
    /// The noise before those.
    usual_noise: f64,
}

impl Default for Level {
    fn default() -> Self {
        Self {
            log: 0.0,
            ns_per_byte: 1.0,
            noise: FIRST_NOISE,
            last: 0.0,
            blocks: 0,
            out: 0,
            nearest: 0.0,
            usual_noise: FIRST_NOISE,
        }
    }
}

impl Level {
    /// Whether enough has been seen to compare with.
    pub const fn is_known(&self) -> bool {
        self.blocks >= BLOCKS as u32
    }

    #[cfg(test)]
    pub const fn log(&self) -> f64 {
        self.log
    }

    /// In ns per byte.
    pub const fn ns_per_byte(&self) -> f64 {
        self.ns_per_byte
    }

    /// By how much two blocks in a row differ, on the average.
    pub const fn noise(&self) -> f64 {
        self.noise
    }

    /// Whether the last block was by the level.
    pub const fn is_usual(&self) -> bool {
        self.is_known() && self.out == 0
    }

    /// A block by the way that is chosen. `is_quiet` where the peer was not to
    /// try anything either. Returns whether the level has changed for good.
    pub fn block(&mut self, log: f64, is_quiet: bool) -> bool {
        if self.blocks == 0 {
            self.last = log;
            self.set(log);
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
            self.note_noise(log);
            self.set(self.log + off * weight);
        }
        false
    }

    fn note_noise(&mut self, log: f64) {
        let step = (log - self.last).abs().min(MOST_NOISE);
        self.noise += (step - self.noise) * WEIGHT;
        self.last = log;
    }

    fn note_out(&mut self, log: f64, off: f64) -> bool {
        if self.out == 0 {
            self.usual_noise = self.noise;
        }
        self.note_noise(log);
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
        // What was no noise is not to be taken for it.
        self.noise = self.usual_noise;
        self.restart(self.nearest);
        true
    }

    /// Another way is chosen, which costs so much more.
    pub fn shift(&mut self, log_ratio: f64) {
        self.restart(self.log + log_ratio);
    }

    fn set(&mut self, log: f64) {
        (self.log, self.ns_per_byte) = (log, log.exp());
    }

    fn restart(&mut self, log: f64) {
        (self.last, self.out) = (log, 0);
        self.set(log);
        // What comes next counts as much as this.
        self.blocks = u32::from(BLOCKS);
    }
}

#[cfg(test)]
#[path = "level_tests.rs"]
mod tests;
