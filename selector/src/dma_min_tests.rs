use super::*;
use crate::topology::testing::{DUNNINGTON, E5345, cpus, machine};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

fn by_cores(machine: &Machine, receiver: &CpuSet) -> u64 {
    DmaMin::by_cores(machine, receiver).expect("its caches are known").bytes
}

/// For the receiver that is the first of the group.
fn by_processes(machine: &Machine, group: &[CpuSet]) -> u64 {
    DmaMin::by_processes(machine, &group[0], group).expect("its caches are known").bytes
}

/// 4 MiB / (2 x 2 cores) = 1 MiB for every receiver.
#[test]
fn e5345_by_cores() {
    let machine = machine(E5345);
    for cpu in 0..8 {
        assert_eq!(by_cores(&machine, &cpus([cpu])), 1_048_576);
    }
    let unpinned = DmaMin::by_cores(&machine, machine.online()).expect("its caches are known");
    assert_eq!(unpinned.to_string(), "DMAmin 1 MiB = 4 MiB of L2 / (2 x 2 cores that share it)");
    assert_eq!((unpinned.cache.level, unpinned.cache.bytes, unpinned.sharing), (2, 4 * MIB, 2));
}

/// Two on one L2: 4 MiB / (2 x 2) = 1 MiB. On two: 4 MiB / (2 x 1) = 2 MiB.
#[test]
fn e5345_by_processes() {
    let machine = machine(E5345);
    assert_eq!(by_processes(&machine, &[cpus([0]), cpus([1])]), 1_048_576);
    for other in 2..8 {
        assert_eq!(by_processes(&machine, &[cpus([0]), cpus([other])]), 2_097_152, "with CPU {other}");
    }
    let alone = DmaMin::by_processes(&machine, &cpus([0]), &[cpus([0]), cpus([2])]);
    let alone = alone.expect("its caches are known").to_string();
    assert_eq!(alone, "DMAmin 2 MiB = 4 MiB of L2 / (2 x 1 process that uses it)");
    // Four on one L2, oversubscribed: 4 MiB / (2 x 4) = 512 KiB.
    let four = DmaMin::by_processes(&machine, &cpus([0]), &[cpus([0]), cpus([0]), cpus([1]), cpus([1])]);
    let four = four.expect("its caches are known").to_string();
    assert_eq!(four, "DMAmin 512 KiB = 4 MiB of L2 / (2 x 4 processes that use it)");
}

/// Nobody knows where two of the three run: 4 MiB / (2 x 3).
#[test]
fn a_process_of_unknown_place_counts_for_every_cache() {
    let machine = machine(E5345);
    let group = [cpus([0]), CpuSet::EMPTY, CpuSet::EMPTY];
    assert_eq!(by_processes(&machine, &group), 4 * MIB / 6);
    assert_eq!(by_processes(&machine, &[cpus([0]), CpuSet::EMPTY]), MIB);
}

/// 16 MiB / (2 x 6 cores) = 16777216 / 12 = 1398101.33, rounded down. By
/// processes, two on it: 16 MiB / 4 = 4 MiB.
#[test]
fn sixteen_dunnington() {
    let machine = machine(DUNNINGTON);
    for cpu in [0, 5, 6, 95] {
        assert_eq!(by_cores(&machine, &cpus([cpu])), 1_398_101);
    }
    assert_eq!(by_processes(&machine, &[cpus([0]), cpus([5])]), 4_194_304);
    let said = DmaMin::by_cores(&machine, &cpus([0])).expect("its caches are known").to_string();
    assert_eq!(said, "DMAmin 1398101 B = 16 MiB of L3 / (2 x 6 cores that share it)");
}

/// Unpinned processes count for every cache that they may come to: all four for
/// either L2, 4 MiB / (2 x 4) = 512 KiB.
#[test]
fn unpinned_processes_use_every_cache_that_they_may_come_to() {
    let machine = machine(E5345);
    let everywhere = *machine.online();
    assert_eq!(by_processes(&machine, &[everywhere; 4]), 512 * KIB);
    // A receiver that may run on two L2s, of which one has another user: the
    // smaller result, 4 MiB / (2 x 2), not 4 MiB / (2 x 1).
    assert_eq!(by_processes(&machine, &[cpus([0, 2]), cpus([3])]), MIB);
}

#[test]
fn none_where_no_cache_is_known() {
    let bare = machine("package:1 core:4 pu:1");
    assert_eq!(DmaMin::by_cores(&bare, bare.online()), None);
    assert_eq!(DmaMin::by_processes(&bare, bare.online(), &[*bare.online()]), None);
    let machine = machine(E5345);
    assert_eq!(DmaMin::by_cores(&machine, &CpuSet::EMPTY), None);
    assert_eq!(DmaMin::by_cores(&machine, &cpus([99])), None);
    // A CPU that is not known changes nothing about the known one.
    assert_eq!(by_cores(&machine, &cpus([0, 99])), MIB);
}

#[test]
fn a_group_without_users_counts_the_receiver() {
    let machine = machine(E5345);
    let dma_min = DmaMin::by_processes(&machine, &cpus([0]), &[]).expect("its caches are known");
    assert_eq!((dma_min.bytes, dma_min.sharing), (2 * MIB, 1));
}

/// 1 KiB / (2 x 1000 processes) is less than a byte: 0, which is still a number.
#[test]
fn a_small_cache_with_many_users_gives_nothing_but_no_panic() {
    let machine = machine("l1:1(size=1024) core:1 pu:1");
    let group = vec![cpus([0]); 1000];
    assert_eq!(by_processes(&machine, &group), 0);
}
