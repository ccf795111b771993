//! Broadcast by nodes and caches (knem-jpdc2013, 5.5), of which the papers have no
//! formula: the paper's cost of a copy, stage by stage.

use super::formulas::Model;

impl Model<'_> {
    /// T^sm + the first piece through all stages + the others through the slowest +
    /// T^sm; of one stage what a direct read takes. A stage takes
    /// alpha + m beta + l gamma(readers) ceil(m/s) for a piece of m bytes, and a line
    /// that says that it has come.
    pub(super) fn hierarchical_us(&self, piece_kib: u32, ranks: u32, bytes: u64) -> Option<f64> {
        let readers = self.hierarchy?.readers();
        if readers.len() <= 1 {
            return Some(self.parallel_us(ranks, bytes));
        }
        let piece = bytes.min(u64::from(piece_kib) << 10).max(1);
        let pieces = bytes.div_ceil(piece).max(1);
        let stage = |&readers: &u32| self.copies_us(ranks - 1, readers, piece) + self.turn_us();
        let stages: Vec<f64> = readers.iter().map(stage).collect();
        let slowest = stages.iter().copied().fold(0.0, f64::max);
        let first: f64 = stages.iter().sum();
        Some(2.0 * self.shared_us(ranks) + first + (pieces - 1) as f64 * slowest)
    }
}

#[cfg(test)]
#[path = "hierarchy_tests.rs"]
mod tests;
