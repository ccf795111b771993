//! From objects to plain data.

use std::collections::{HashMap, HashSet};

use lmt_core::cpu_set::CpuSet;

use super::objects::{Object, Objects, Type};
use super::{Cache, Cpu, Machine, Part, Source, TopologyError};

/// As many of these CPUs as a set holds.
fn set_of(cpus: &[u32]) -> CpuSet {
    cpus.iter().filter_map(|cpu| usize::try_from(*cpu).ok()).collect()
}

/// Which of these parts holds each CPU.
fn positions(parts: &[Part]) -> HashMap<usize, usize> {
    parts.iter().enumerate().flat_map(|(at, part)| part.cpus.iter().map(move |cpu| (cpu, at))).collect()
}

/// The objects of a type, with those of their CPUs that a set holds.
fn parts(topology: &impl Objects, object_type: Type) -> Vec<Part> {
    let described = |object: Object| Part { os_index: object.os_index, cpus: set_of(&object.cpus) };
    topology.objects(object_type).into_iter().map(described).collect()
}

fn with_cpus(mut parts: Vec<Part>) -> Vec<Part> {
    parts.retain(|part| !part.cpus.is_empty());
    parts
}

/// All data and unified caches by level. Cores are counted over all CPUs, also
/// those beyond what a set holds; a CPU without a core is one.
fn caches(topology: &impl Objects) -> Vec<Cache> {
    let cores = topology.objects(Type::CORE);
    let core_of: HashMap<u32, usize> = cores
        .iter()
        .enumerate()
        .flat_map(|(core, object)| object.cpus.iter().map(move |cpu| (*cpu, core)))
        .collect();
    let cores_in = |object: &Object| {
        let known: HashSet<usize> = object.cpus.iter().filter_map(|cpu| core_of.get(cpu).copied()).collect();
        let without = object.cpus.iter().filter(|cpu| !core_of.contains_key(cpu)).count();
        u32::try_from(known.len() + without).unwrap_or(u32::MAX).max(1)
    };
    let of_level = |(level, object_type)| {
        let cache = move |object: Object| Cache {
            level,
            bytes: object.cache_bytes,
            cpus: set_of(&object.cpus),
            cores: cores_in(&object),
        };
        topology.objects(object_type).into_iter().map(cache).collect::<Vec<_>>()
    };
    let mut caches: Vec<Cache> = Type::CACHES.into_iter().flat_map(of_level).collect();
    caches.retain(|cache| !cache.cpus.is_empty());
    caches
}

/// The sets of CPUs that count as one NUMA node. A node with all CPUs of the
/// machine is how hwloc says that there is no NUMA information (or one memory
/// behind a front-side bus): there each package counts as one, since it says
/// more about who is near whom.
fn rooms(numa_nodes: &[Part], packages: &[Part], online: &CpuSet) -> Vec<CpuSet> {
    let packaged = packages.iter().fold(CpuSet::EMPTY, |all, package| all.union(&package.cpus));
    let spans_machine = |node: &Part| online.is_within(&node.cpus);
    let nodes = numa_nodes.iter().filter(|node| packages.is_empty() || !spans_machine(node));
    let mut rooms: Vec<CpuSet> = nodes.map(|node| node.cpus).collect();
    if numa_nodes.iter().any(spans_machine) {
        rooms.extend(packages.iter().map(|package| package.cpus));
        rooms.push(online.iter().filter(|cpu| !packaged.contains(*cpu)).collect());
    }
    rooms.retain(|room| !room.is_empty());
    rooms
}

impl Machine {
    /// Copies what hwloc or the kernel's files describe.
    pub(super) fn copy_of(topology: &impl Objects, source: Source) -> Result<Self, TopologyError> {
        let pus: Vec<u32> = topology.objects(Type::PU).into_iter().filter_map(|pu| pu.os_index).collect();
        let online = set_of(&pus);
        if online.is_empty() {
            return Err(TopologyError::NoCpu { origin: source.to_string() });
        }
        let complete = topology.objects(Type::MACHINE).into_iter().flat_map(|m| m.complete_cpus);
        let known: CpuSet = set_of(&complete.collect::<Vec<_>>());
        let allowed = topology.allowed().map_or(online, |cpus| set_of(&cpus));

        let cores = with_cpus(parts(topology, Type::CORE));
        let packages = with_cpus(parts(topology, Type::PACKAGE));
        let numa_nodes = parts(topology, Type::NUMA_NODE);
        let caches = caches(topology);
        let (core_of, package_of) = (positions(&cores), positions(&packages));
        let mut of_cpu: HashMap<usize, (Vec<usize>, Vec<usize>)> = HashMap::new();
        for (at, node) in numa_nodes.iter().enumerate() {
            node.cpus.iter().for_each(|cpu| of_cpu.entry(cpu).or_default().0.push(at));
        }
        for (at, cache) in caches.iter().enumerate() {
            cache.cpus.iter().for_each(|cpu| of_cpu.entry(cpu).or_default().1.push(at));
        }
        let describe = |index| {
            let (numa_nodes, caches) = of_cpu.remove(&index).unwrap_or_default();
            let (core, package) = (core_of.get(&index).copied(), package_of.get(&index).copied());
            Cpu { index, core, package, numa_nodes, caches }
        };
        Ok(Self {
            is_this_system: topology.is_this_system(),
            online,
            allowed: online.iter().filter(|cpu| allowed.contains(*cpu)).collect(),
            offline: known.iter().filter(|cpu| !online.contains(*cpu)).collect(),
            left_out: u32::try_from(pus.len()).unwrap_or(u32::MAX).saturating_sub(online.count()),
            cpus: online.iter().map(describe).collect(),
            rooms: rooms(&numa_nodes, &packages, &online),
            cores,
            packages,
            numa_nodes,
            caches,
            source,
        })
    }
}
