//! How many parts each level of a group has.

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
    pub(super) fn readers(self) -> Vec<u32> {
        let widths = [self.nodes, self.caches, self.members].map(|parts| parts.saturating_sub(1));
        let widths: Vec<u32> = widths.into_iter().filter(|width| *width > 0).collect();
        (0..widths.len())
            .map(|stage| widths[stage..].iter().fold(0, |sum: u32, width| sum.saturating_add(*width)))
            .collect()
    }
}
