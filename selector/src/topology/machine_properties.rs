//! What holds for all machines and sets of CPUs.

use proptest::collection::vec;
use proptest::prelude::*;

use super::testing::{BARCELONA, DUNNINGTON, E5345, MAGNY_COURS, X5460, X5650};
use super::*;
use crate::dma_min::DmaMin;

/// Descriptions with any of the levels, up to 3 * 2 * 2 * 2 * 3 * 3 * 2 CPUs.
fn description() -> impl Strategy<Value = String> {
    let level = |name: &'static str, most: u32| {
        prop_oneof![Just(String::new()), (1..=most).prop_map(move |count| format!("{name}:{count} "))]
    };
    let cache = |name: &'static str, most: u32| {
        let sized = (1..=most, 0..64_u32)
            .prop_map(move |(count, kib)| format!("{name}:{count}(size={}) ", u64::from(kib) << 10));
        prop_oneof![Just(String::new()), sized]
    };
    let outer = (level("package", 3), level("numa", 2), cache("l4", 1), cache("l3", 2));
    let inner = (cache("l2", 2), cache("l1", 2), level("core", 3), 1..=2_u32);
    let free = (outer, inner).prop_map(|((package, numa, l4, l3), (l2, l1, core, threads))| {
        format!("{package}{numa}{l4}{l3}{l2}{l1}{core}pu:{threads}")
    });
    let papers = [E5345, X5460, X5650, BARCELONA, DUNNINGTON, MAGNY_COURS];
    prop_oneof![4 => free, 1 => prop::sample::select(papers.map(str::to_owned).to_vec())]
}

/// CPUs that most machines above have, and some that few have.
fn cpu_set() -> impl Strategy<Value = CpuSet> {
    let cpus = prop_oneof![4 => vec(0..8_usize, 1..3), 1 => vec(0..100_usize, 0..6)];
    cpus.prop_map(CpuSet::from_iter)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn places(description in description(), a in cpu_set(), b in cpu_set(), more in cpu_set()) {
        let machine = Machine::synthetic(&description).expect("it is made of what hwloc takes");
        let place = machine.place(&a, &b);
        prop_assert_eq!(place, machine.place(&b, &a), "symmetric");
        let known = !a.is_empty() && !b.is_empty() && a.union(&b).is_within(machine.online());
        if known {
            prop_assert!(machine.place(&a.union(&more), &b) >= place, "monotone");
            prop_assert!(machine.place(&a, &a) <= place, "one of both is no wider");
            prop_assert_eq!(place, oracle(&machine, &a.union(&b)));
        } else {
            prop_assert_eq!(place, Place::Other);
        }
    }

    #[test]
    fn thresholds(description in description(), group in vec(cpu_set(), 1..6)) {
        let machine = Machine::synthetic(&description).expect("it is made of what hwloc takes");
        let receiver = group[0];
        let largest = || receiver.iter().filter_map(|cpu| machine.largest_cache(cpu));
        let by_cores = DmaMin::by_cores(&machine, &receiver);
        let by_processes = DmaMin::by_processes(&machine, &receiver, &group);
        let is_known = largest().next().is_some();
        prop_assert_eq!((by_cores.is_some(), by_processes.is_some()), (is_known, is_known));
        for dma_min in by_cores.into_iter().chain(by_processes) {
            prop_assert!(dma_min.sharing >= 1);
            prop_assert_eq!(dma_min.bytes, dma_min.cache.bytes / 2 / u64::from(dma_min.sharing));
            prop_assert!(largest().any(|cache| *cache == dma_min.cache));
            prop_assert!(!dma_min.to_string().is_empty());
        }
        // One more process never raises the threshold.
        let apply_reader_limit: Vec<CpuSet> = group.iter().chain([&receiver]).copied().collect();
        let bytes = |group: &[CpuSet]| DmaMin::by_processes(&machine, &receiver, group).map(|d| d.bytes);
        prop_assert!(bytes(&apply_reader_limit) <= bytes(&group));
    }

    #[test]
    fn tables_agree(description in description()) {
        let machine = Machine::synthetic(&description).expect("it is made of what hwloc takes");
        prop_assert_eq!(machine.cpus().len(), machine.online().count() as usize);
        for cpu in machine.cpus() {
            prop_assert!(machine.online().contains(cpu.index));
            prop_assert_eq!(machine.cpu(cpu.index), Some(cpu));
            let holds = |part: &Part| part.cpus.contains(cpu.index);
            prop_assert!(cpu.core.is_none_or(|core| holds(&machine.cores()[core])));
            prop_assert!(cpu.package.is_none_or(|package| holds(&machine.packages()[package])));
            prop_assert!(cpu.numa_nodes.iter().all(|node| holds(&machine.numa_nodes()[*node])));
            let levels: Vec<u8> = machine.caches_of(cpu.index).map(|cache| cache.level).collect();
            prop_assert!(levels.is_sorted(), "{:?}", levels);
            prop_assert!(machine.caches_of(cpu.index).all(|cache| cache.cpus.contains(cpu.index)));
        }
        prop_assert!(machine.caches().iter().all(|cache| cache.cores >= 1));
    }
}

/// The place by its definition, over all parts of the machine rather than those
/// of the first CPU.
fn oracle(machine: &Machine, both: &CpuSet) -> Place {
    let in_one = |parts: &[Part]| parts.iter().any(|part| both.is_within(&part.cpus));
    let in_cache = |levels: std::ops::RangeInclusive<u8>| {
        let mut caches = machine.caches().iter().filter(|cache| levels.contains(&cache.level));
        caches.any(|cache| both.is_within(&cache.cpus))
    };
    let nodes: Vec<Part> = machine.numa_nodes().to_vec();
    let one_node = nodes.iter().any(|node| node.cpus == *machine.online());
    let packages = machine.packages();
    let candidates = [
        (both.count() == 1 || in_one(machine.cores()), Place::SameCore),
        (in_cache(1..=1), Place::SharedL1),
        (in_cache(2..=2), Place::SharedL2),
        (in_cache(3..=5), Place::SharedL3),
        (if one_node && !packages.is_empty() { in_one(packages) } else { in_one(&nodes) }, Place::SameNuma),
        (in_one(packages), Place::SamePackage),
    ];
    candidates.into_iter().find_map(|(holds, place)| holds.then_some(place)).unwrap_or(Place::Other)
}
