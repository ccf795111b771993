//! Scatter, gather and broadcast (contention-aware-cma, IV.A, IV.B, V.B).

use super::formulas::{Counting, Model, log_ceil};

impl Model<'_> {
    /// All at once: T^sm + alpha + n beta + l gamma_p ceil(n/s) + T^sm.
    pub(super) fn parallel_us(&self, ranks: u32, bytes: u64) -> f64 {
        let readers = self.readers(ranks);
        self.copies_us(readers, readers, bytes) + 2.0 * self.shared_us(ranks)
    }

    /// One after the other, by the root: T^sm + p (alpha + n beta + l ceil(n/s)) +
    /// T^sm.
    pub(super) fn sequential_us(&self, ranks: u32, bytes: u64) -> f64 {
        let copies = f64::from(self.readers(ranks));
        copies * self.copies_us(1, 1, bytes) + 2.0 * self.shared_us(ranks)
    }

    /// So many at a time: T^sm + ceil(p/k) (alpha + n beta + l gamma_k ceil(n/s)).
    pub(super) fn throttled_us(&self, k: u32, ranks: u32, bytes: u64) -> f64 {
        let readers = self.readers(ranks);
        let k = k.clamp(1, readers);
        let steps = f64::from(readers.div_ceil(k));
        // The last turns are told to the root.
        self.shared_us(ranks) + steps * (self.copies_us(k, k, bytes) + self.turn_us())
    }

    /// A tree: T^sm + ceil(log_k p) (alpha + n beta + l gamma_k ceil(n/s)).
    pub(super) fn knomial_us(&self, k: u32, ranks: u32, bytes: u64) -> Option<f64> {
        let k = k.clamp(1, self.readers(ranks));
        let base = match self.counting {
            Counting::Ranks => k,
            Counting::Readers => k + 1,
        };
        let steps = (base >= 2).then(|| log_ceil(base, ranks))?;
        // In the last step, which is the largest, next to all copy.
        let busiest = (ranks - ranks / base).max(k);
        let step = self.copies_us(busiest, k, bytes) + self.turn_us();
        Some(self.shared_us(ranks) + f64::from(steps) * step)
    }

    /// The root writes a part to each, then a ring gathers the parts, as in the
    /// paper's figure 12: T^sm + T_scatter(n/p) + T_allgather(n/p), both in place.
    pub(super) fn scatter_allgather_us(&self, ranks: u32, bytes: u64) -> f64 {
        let part = bytes.div_ceil(u64::from(ranks));
        self.shared_us(ranks) + self.sequential_us(ranks, part) + self.ring_us(ranks, part)
    }
}
