//! Reductions and scans, of which the paper has no formulas: those of Thakur,
//! Rabenseifner and Gropp (2005) with the paper's cost of a copy.

use super::formulas::Model;
use crate::algorithm::Kind;

impl Model<'_> {
    /// Each rank reads its part of all others' vectors and combines it (their
    /// pairwise exchange: (p-1) alpha + (p-1)/p n (beta + gamma)), and then the
    /// parts are put together: written to the root by all in turn, gathered in a
    /// ring, or left where they are.
    pub(super) fn direct_reduce_us(&self, kind: Kind, ranks: u32, bytes: u64) -> f64 {
        let part = match kind {
            Kind::ReduceScatter => bytes,
            _ => bytes.div_ceil(u64::from(ranks)),
        };
        let combining = self.combine_us(part) * self.parameters.sharing(ranks);
        let reduced = self.pairwise_us(ranks, part) + f64::from(ranks - 1) * combining;
        match kind {
            Kind::Allreduce => reduced + self.ring_us(ranks, part),
            Kind::Reduce => reduced + self.sequential_us(ranks, part),
            _ => reduced + self.shared_us(ranks),
        }
    }

    /// Piece by piece along the ranks: as many steps as there are pieces and ranks,
    /// less two.
    pub(super) fn chain_us(&self, piece_kib: u32, ranks: u32, bytes: u64) -> f64 {
        let piece = bytes.min(u64::from(piece_kib) << 10).max(1);
        let pieces = bytes.div_ceil(piece).max(1);
        let steps = pieces as f64 + f64::from(ranks - 1) - 1.0;
        // As many ranks are at it as there are pieces.
        let busy = u32::try_from(pieces).unwrap_or(u32::MAX).min(ranks);
        let step = self.copies_us(busy, 1, piece) + self.combine_us(piece) * self.parameters.sharing(busy);
        2.0 * self.shared_us(ranks) + steps * (step + self.parameters.line_us)
    }

    /// Combining so many bytes with others, by one rank.
    pub(super) fn combine_us(&self, bytes: u64) -> f64 {
        bytes as f64 * self.parameters.combine_ns / 1e3
    }
}
