//! Alltoall and allgather (contention-aware-cma, IV.C, V.A).

use super::formulas::{Counting, Model, log_ceil};

impl Model<'_> {
    /// T^sm + (p-1) (alpha + n beta + l ceil(n/s)): nobody reads where another does.
    pub(super) fn pairwise_us(&self, ranks: u32, bytes: u64) -> f64 {
        self.shared_us(ranks) + f64::from(ranks - 1) * self.copies_us(ranks, 1, bytes)
    }

    /// Bruck's alltoall, of which the paper gives no formula. Each of ceil(lg p)
    /// steps moves half of all blocks, which are put together before and apart
    /// after; all blocks are turned round before and after the steps (Bruck et
    /// al., 1997).
    pub(super) fn bruck_alltoall_us(&self, ranks: u32, bytes: u64) -> f64 {
        let steps = f64::from(log_ceil(2, ranks));
        let half = bytes.saturating_mul(u64::from(ranks / 2));
        let step = self.copies_us(ranks, 1, half) + self.shared_us(ranks);
        let copies = 2.0 * f64::from(ranks) * self.own_copy_us(bytes) + steps * 2.0 * self.own_copy_us(half);
        self.shared_us(ranks) + steps * step + copies * self.parameters.sharing(ranks)
    }

    /// T^sm + (p-1) (alpha + n beta + l ceil(n/s)) + T^sm, as the paper has it for a
    /// ring, without the copy of the own block.
    pub(super) fn ring_us(&self, ranks: u32, bytes: u64) -> f64 {
        self.pairwise_us(ranks, bytes) + self.shared_us(ranks)
    }

    /// The same where each step waits for the neighbour's last.
    pub(super) fn ring_neighbor_us(&self, step: u32, ranks: u32, bytes: u64) -> Option<f64> {
        let waits = f64::from(ranks - 1) * self.turn_us();
        let ring = self.own_copy_us(bytes) + self.ring_us(ranks, bytes) + waits;
        (divisor(step, ranks) == 1).then_some(ring)
    }

    /// T_memcpy + T^sm + lg p alpha + (p-1) (n beta + l ceil(n/s)) + T^sm. For ranks
    /// that are no power of two the paper says only that there are additional steps:
    /// 2 floor(lg p) in all, as Thakur et al. (2005, section 3) have it. Groups leave
    /// the blocks of the ranks beyond the power of two with others first, and hand
    /// all blocks to them at the end.
    pub(super) fn recursive_doubling_us(&self, ranks: u32, bytes: u64) -> f64 {
        let doublings = ranks.ilog2();
        let others = f64::from(ranks - 1);
        let (steps, blocks) = match (ranks.is_power_of_two(), self.counting) {
            (true, _) => (doublings, others),
            (false, Counting::Ranks) => (2 * doublings, others),
            (false, Counting::Readers) => (doublings + 2, 2.0 * others),
        };
        self.own_copy_us(bytes) + self.by_steps_us(steps, blocks, ranks, bytes)
    }

    /// T^sm + ceil(lg p) alpha + (p-1) (2 n beta + l ceil(n/s)) + T^sm: all blocks are
    /// moved within the rank at the end.
    pub(super) fn bruck_allgather_us(&self, ranks: u32, bytes: u64) -> f64 {
        let moved = f64::from(ranks - 1) * self.own_copy_us(bytes) * self.parameters.sharing(ranks);
        self.by_steps_us(log_ceil(2, ranks), f64::from(ranks - 1), ranks, bytes) + moved
    }

    /// So many blocks in so many steps.
    fn by_steps_us(&self, steps: u32, blocks: f64, ranks: u32, bytes: u64) -> f64 {
        let start = self.parameters.alpha_us * self.parameters.sharing(ranks);
        let block = self.copies_us(ranks, 1, bytes) - start;
        let turns = f64::from(steps) * (start + self.turn_us());
        2.0 * self.shared_us(ranks) + turns + blocks * block
    }
}

/// The greatest common divisor.
fn divisor(one: u32, other: u32) -> u32 {
    match other {
        0 => one,
        other => divisor(other, one % other),
    }
}
