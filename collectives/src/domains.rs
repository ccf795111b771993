//! Which ranks share a NUMA node or a cache, so that what crosses between such domains
//! does so once.
#![forbid(unsafe_code)]

use lmt_core::cpu_set::CpuSet;
use lmt_selector::topology::Machine;

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

/// For each rank the lowest one of its domain: of its NUMA node if the ranks are on
/// several, else of its cache if they use several, else all are in one.
pub(crate) fn domains(places: &[Place]) -> Vec<u32> {
    let by = |kind: usize| {
        let lowest = |rank: usize| {
            let own = places[rank][kind];
            let same = |other: &Place| own != NOWHERE && other[kind] == own;
            places.iter().position(same).unwrap_or(rank) as u32
        };
        (0..places.len()).map(lowest).collect::<Vec<u32>>()
    };
    let tells_apart = |domains: &Vec<u32>| {
        let count = domains.iter().enumerate().filter(|&(rank, &lowest)| rank as u32 == lowest).count();
        count > 1 && count < domains.len()
    };
    [0, 1].into_iter().map(by).find(tells_apart).unwrap_or_else(|| vec![0; places.len()])
}

#[cfg(test)]
#[path = "domains_tests.rs"]
mod tests;
