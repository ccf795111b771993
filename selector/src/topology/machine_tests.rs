use super::testing::{BARCELONA, DUNNINGTON, E5345, MAGNY_COURS, X5460, X5650, cpus, machine};
use super::*;

/// The place of two processes that are pinned to a CPU each.
fn place(machine: &Machine, a: usize, b: usize) -> Place {
    let place = machine.place(&cpus([a]), &cpus([b]));
    assert_eq!(place, machine.place(&cpus([b]), &cpus([a])), "the order does not count");
    place
}

#[test]
fn places_on_two_e5345() {
    let machine = machine(E5345);
    assert_eq!(place(&machine, 0, 0), Place::SameCore);
    assert_eq!(place(&machine, 0, 1), Place::SharedL2);
    assert_eq!(place(&machine, 6, 7), Place::SharedL2);
    // Different L2, one package; the one memory is that of the whole machine.
    assert_eq!(place(&machine, 1, 2), Place::SameNuma);
    assert_eq!(place(&machine, 3, 4), Place::Other);
    assert_eq!(machine.numa_nodes().len(), 1);
    assert_eq!(machine.packages().len(), 2);
}

#[test]
fn places_on_an_x5460() {
    let machine = machine(X5460);
    assert_eq!(place(&machine, 2, 3), Place::SharedL2);
    assert_eq!(place(&machine, 0, 3), Place::SameNuma);
}

#[test]
fn places_on_two_westmere() {
    let machine = machine(X5650);
    assert_eq!(place(&machine, 0, 1), Place::SameCore, "two hardware threads of a core");
    assert_eq!(place(&machine, 1, 2), Place::SharedL3, "two cores of a package");
    assert_eq!(place(&machine, 0, 11), Place::SharedL3);
    assert_eq!(place(&machine, 11, 12), Place::Other);
    let of_0 = machine.caches_of(0).map(|c| (c.level, c.bytes, c.cores, c.cpus.count()));
    assert_eq!(
        of_0.collect::<Vec<_>>(),
        [(1, 32 << 10, 1, 2), (2, 256 << 10, 1, 2), (3, 12 << 20, 6, 12)],
        "cores are counted once for both of their threads"
    );
}

/// The second threads have the numbers after all first ones, as Linux gives
/// them.
#[test]
fn hardware_threads_may_be_numbered_apart() {
    let machine = machine("package:1 l3:1(size=8388608) core:4 pu:2(indexes=0,4,1,5,2,6,3,7)");
    assert_eq!(place(&machine, 0, 4), Place::SameCore);
    assert_eq!(place(&machine, 3, 7), Place::SameCore);
    assert_eq!(place(&machine, 0, 1), Place::SharedL3);
    assert_eq!(machine.caches()[0].cores, 4);
}

#[test]
fn places_on_four_barcelona() {
    let machine = machine(BARCELONA);
    assert_eq!(place(&machine, 0, 3), Place::SharedL3);
    assert_eq!(place(&machine, 3, 4), Place::Other);
    assert_eq!(place(&machine, 15, 15), Place::SameCore);
}

/// A NUMA node of several packages.
#[test]
fn places_on_sixteen_dunnington() {
    let machine = machine(DUNNINGTON);
    assert_eq!((machine.cores().len(), machine.packages().len(), machine.numa_nodes().len()), (96, 16, 4));
    assert_eq!(place(&machine, 0, 1), Place::SharedL2);
    assert_eq!(place(&machine, 1, 2), Place::SharedL3);
    assert_eq!(place(&machine, 5, 6), Place::SameNuma, "packages 0 and 1 of node 0");
    assert_eq!(place(&machine, 0, 23), Place::SameNuma, "packages 0 and 3 of node 0");
    assert_eq!(place(&machine, 23, 24), Place::Other, "nodes 0 and 1");
    assert_eq!(place(&machine, 0, 95), Place::Other);
}

/// A package of several NUMA nodes.
#[test]
fn places_on_two_magny_cours() {
    let machine = machine(MAGNY_COURS);
    assert_eq!(place(&machine, 0, 5), Place::SharedL3);
    assert_eq!(place(&machine, 5, 6), Place::SamePackage);
    assert_eq!(place(&machine, 11, 12), Place::Other);
}

#[test]
fn unpinned_processes_get_what_holds_all_their_cpus() {
    let machine = machine(E5345);
    // Pinned to one L2, pinned to CPU 0 within it.
    assert_eq!(machine.place(&cpus([0, 1]), &cpus([0])), Place::SharedL2);
    // Alone, but free to move over a package.
    assert_eq!(machine.place(&cpus([0, 1, 2, 3]), &cpus([0])), Place::SameNuma);
    assert_eq!(machine.place(machine.online(), machine.online()), Place::Other);
}

#[test]
fn unknown_cpus_and_empty_sets_are_other() {
    let machine = machine(X5460);
    assert_eq!(machine.place(&CpuSet::EMPTY, &cpus([0])), Place::Other);
    assert_eq!(machine.place(&cpus([0]), &CpuSet::EMPTY), Place::Other);
    assert_eq!(machine.place(&cpus([4]), &cpus([4])), Place::Other);
    assert_eq!(machine.place(&cpus([0, 1023]), &cpus([0])), Place::Other);
    assert_eq!(machine.caches_of(4).count(), 0);
    assert_eq!(machine.largest_cache(4), None);
    assert_eq!(machine.cpu(4), None);
}

#[test]
fn one_cpu_and_no_cache() {
    let machine = machine("pu:1");
    assert_eq!(place(&machine, 0, 0), Place::SameCore);
    assert_eq!(machine.largest_cache(0), None);
    assert!(machine.caches().is_empty() && machine.cores().is_empty() && machine.packages().is_empty());
    assert_eq!(
        machine.to_string(),
        "no package known, 1 NUMA node, no core known, 1 CPU online (0); no cache known"
    );
}

#[test]
fn without_cores_each_cpu_is_one() {
    let machine = machine("package:1 l2:1(size=1048576) pu:4");
    assert_eq!(machine.caches()[0].cores, 4);
    assert_eq!(place(&machine, 0, 1), Place::SharedL2);
    assert_eq!(place(&machine, 1, 1), Place::SameCore);
}

/// Without packages, a NUMA node is a NUMA node even when it has all CPUs.
#[test]
fn without_packages_the_node_counts() {
    let one = machine("core:4 pu:1");
    assert_eq!(place(&one, 0, 3), Place::SameNuma);
    let two = machine("numa:2 core:4 pu:1");
    assert_eq!(place(&two, 0, 3), Place::SameNuma);
    assert_eq!(place(&two, 3, 4), Place::Other);
}

#[test]
fn caches_beyond_level_3_count_as_level_3() {
    let machine = machine("package:1 l4:1(size=134217728) l3:2(size=8388608) core:2 pu:1");
    assert_eq!(place(&machine, 0, 1), Place::SharedL3);
    assert_eq!(place(&machine, 1, 2), Place::SharedL3);
    let largest = machine.largest_cache(0).expect("there is an L4");
    assert_eq!((largest.level, largest.bytes), (4, 128 << 20));
}

#[test]
fn instruction_caches_do_not_count() {
    let machine = machine("package:1 l2i:1(size=8388608) l1d:2(size=32768) l1i:1(size=32768) core:2 pu:1");
    assert_eq!(machine.caches().len(), 2);
    assert_eq!(place(&machine, 0, 1), Place::SharedL1);
    assert_eq!(place(&machine, 1, 2), Place::SameNuma);
}

#[test]
fn of_equal_caches_the_outer_one_is_largest() {
    let machine = machine("l3:1(size=1048576) l2:2(size=1048576) core:1 pu:1");
    assert_eq!(machine.largest_cache(1).map(|cache| cache.level), Some(3));
}

/// A set holds 1024 CPUs; the cores that share a cache are counted beyond.
#[test]
fn cpus_beyond_a_set_are_left_out_and_counted() {
    let machine = machine("package:2 l3:1(size=1073741824) core:600 pu:1");
    assert_eq!(machine.left_out(), 176);
    assert_eq!(machine.online().count(), 1024);
    assert_eq!(machine.cpus().len(), 1024);
    assert_eq!(machine.largest_cache(1023).map(|cache| (cache.cores, cache.cpus.count())), Some((600, 424)));
    assert!(machine.to_string().contains("176 more left out for their numbers"), "{machine}");
}

#[test]
fn described_in_a_sentence() {
    assert_eq!(
        machine(E5345).to_string(),
        "2 packages, 1 NUMA node, 8 cores, 8 CPUs online (0-7); 8 x 32 KiB of L1, each of one core; \
         4 x 4 MiB of L2, each shared by 2 cores"
    );
    assert_eq!(
        machine("package:1 l3:1(size=1500) core:1 pu:2").to_string(),
        "1 package, 1 NUMA node, 1 core, 2 CPUs online (0-1); 1500 B of L3 of one core"
    );
}

#[test]
fn a_synthetic_machine_is_not_this_one() {
    let machine = machine(X5460);
    assert!(!machine.is_this_system());
    assert_eq!(machine.source().variable(), None);
    assert_eq!(machine.source().to_string(), format!("the synthetic machine '{X5460}'"));
}

#[test]
fn names_of_places() {
    for place in Place::ALL {
        assert_eq!(place.name().parse(), Ok(place));
    }
    assert!(Place::ALL.is_sorted(), "from the narrowest to the widest");
    assert_eq!(Place::SharedL2.to_string(), "shared L2");
    assert_eq!(format!("[{:>10}]", Place::Other), "[     other]");
    let error = "shared-l4".parse::<Place>().expect_err("no such place").to_string();
    for place in Place::ALL {
        assert!(error.contains(place.name()), "{error}");
    }
    assert!(error.starts_with("'shared-l4' is not a place"), "{error}");
}
