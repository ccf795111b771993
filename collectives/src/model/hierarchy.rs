//! Broadcast by nodes and caches (knem-jpdc2013, 5.5), of which the papers have no
//! formula: the paper's cost of a copy, stage by stage.

use super::formulas::Model;
use crate::call::Domain;

/// How many parts each level of a group has, where it has the most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hierarchy {
    /// NUMA nodes.
    pub nodes: u32,
    /// Caches of a node.
    pub caches: u32,
    /// Ranks of a cache.
    pub members: u32,
}

impl Hierarchy {
    /// That of ranks in these domains; all in one where there are none.
    ///
    /// ```
    /// use lmt_collectives::call::Domain;
    /// use lmt_collectives::model::Hierarchy;
    ///
    /// let domain = |rank: u32| Domain { node: rank / 4 * 4, cache: rank / 2 * 2 };
    /// let domains: Vec<Domain> = (0..8).map(domain).collect();
    /// assert_eq!(Hierarchy::of(&domains), Hierarchy { nodes: 2, caches: 2, members: 2 });
    /// ```
    pub fn of(domains: &[Domain]) -> Self {
        let ranks = || (0..).zip(domains);
        let count = |is_wanted: &dyn Fn(u32, &Domain) -> bool| {
            ranks().filter(|&(rank, domain)| is_wanted(rank, domain)).count().max(1) as u32
        };
        let caches = |node: u32| count(&|rank, domain| domain.node == node && domain.cache == rank);
        let members = |cache: u32| count(&|_, domain| domain.cache == cache);
        Self {
            nodes: count(&|rank, domain| domain.node == rank),
            caches: domains.iter().map(|domain| caches(domain.node)).max().unwrap_or(1),
            members: domains.iter().map(|domain| members(domain.cache)).max().unwrap_or(1),
        }
    }

    /// How many read from one rank in each stage: at the root those of all stages.
    fn readers(self) -> Vec<u32> {
        let widths = [self.nodes, self.caches, self.members].map(|parts| parts.saturating_sub(1));
        let widths: Vec<u32> = widths.into_iter().filter(|width| *width > 0).collect();
        (0..widths.len())
            .map(|stage| widths[stage..].iter().fold(0, |sum: u32, width| sum.saturating_add(*width)))
            .collect()
    }
}

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
