//! Which ranks share a NUMA node or a cache, so that what crosses between such domains
//! does so once.
#![forbid(unsafe_code)]

use lmt_core::cpu_set::CpuSet;
use lmt_selector::dma_min::DmaMin;
use lmt_selector::topology::Machine;

use crate::call::Domain;

/// What a rank says of its place: the lowest CPU of the NUMA node, and of the largest
/// cache, in which all its CPUs are; [`NOWHERE`] where there is none.
pub(crate) type Place = [u16; 2];

pub(crate) const NOWHERE: u16 = u16::MAX;

/// The place of a process that may run on these CPUs.
pub(crate) fn place(machine: &Machine, cpus: &CpuSet) -> Place {
    let first_of = |parts: &mut dyn Iterator<Item = &CpuSet>| {
        let holds = |part: &&CpuSet| !cpus.is_empty() && cpus.is_within(part);
        let first = parts.filter(holds).filter_map(|part| part.iter().next()).min();
        first.and_then(|cpu| u16::try_from(cpu).ok()).unwrap_or(NOWHERE)
    };
    let node = first_of(&mut machine.numa_nodes().iter().map(|node| &node.cpus));
    let level = machine.caches().iter().map(|cache| cache.level).max();
    let widest = machine.caches().iter().filter(|cache| Some(cache.level) == level);
    [node, first_of(&mut widest.map(|cache| &cache.cpus))]
}

/// From how many bytes on a rank had better write past its cache what it copies
/// ([`DmaMin`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct StreamsFrom {
    /// Where all ranks that use the cache copy as much.
    pub together_bytes: u64,
    /// Where it alone does.
    pub alone_bytes: u64,
}

impl StreamsFrom {
    /// Nothing is known of its caches.
    pub const NEVER: Self = Self { together_bytes: u64::MAX, alone_bytes: u64::MAX };

    /// A rank that runs on these CPUs, among the ranks at these places.
    pub fn of(machine: &Machine, cpus: &CpuSet, places: &[Place]) -> Self {
        // Of a rank's cache its first CPU is known; of one that is nowhere nothing is.
        let of_cache = |place: &Place| Some(place[1]).filter(|&cpu| cpu != NOWHERE).map(usize::from);
        let users: Vec<CpuSet> = places.iter().map(|place| of_cache(place).into_iter().collect()).collect();
        let among = |users: &[CpuSet]| {
            DmaMin::by_processes(machine, cpus, users).map_or(u64::MAX, |dma_min| dma_min.bytes)
        };
        Self { together_bytes: among(&users), alone_bytes: among(&[]) }
    }
}

/// Whether all ranks are known to use one cache. Two are not asked.
pub(crate) fn share_a_cache(places: &[Place]) -> bool {
    let same = |pair: &[Place]| pair[0][1] == pair[1][1] && pair[0][1] != NOWHERE;
    places.len() <= 2 || places.windows(2).all(same)
}

/// The domain of each rank: by NUMA nodes if the ranks are on several, and on each node
/// by caches if that tells more of them apart; else all are in one.
pub(crate) fn domains(places: &[Place]) -> Vec<Domain> {
    let all = vec![0; places.len()];
    let nodes = by(places, &all, 0);
    let nodes = if tells_apart(&nodes, &all) { nodes } else { all };
    let caches = by(places, &nodes, 1);
    let caches = if tells_apart(&caches, &nodes) { caches } else { nodes.clone() };
    nodes.into_iter().zip(caches).map(|(node, cache)| Domain { node, cache }).collect()
}

/// For each rank the lowest one of the same domain that says the same of its place; who
/// says that it is nowhere is alone.
fn by(places: &[Place], within: &[u32], kind: usize) -> Vec<u32> {
    let lowest = |rank: usize| {
        let own = places[rank][kind];
        let same =
            |&other: &usize| own != NOWHERE && places[other][kind] == own && within[other] == within[rank];
        (0..rank).find(same).unwrap_or(rank) as u32
    };
    (0..places.len()).map(lowest).collect()
}

/// Whether there are more domains than before, and not each rank is its own.
fn tells_apart(domains: &[u32], before: &[u32]) -> bool {
    count(domains) > count(before) && count(domains) < domains.len()
}

fn count(domains: &[u32]) -> usize {
    domains.iter().enumerate().filter(|&(rank, &lowest)| rank as u32 == lowest).count()
}

#[cfg(test)]
#[path = "domains_tests.rs"]
mod tests;
