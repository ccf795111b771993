use super::*;

/// Two packages, each a NUMA node with one cache for four CPUs.
fn machine() -> Machine {
    Machine::synthetic("package:2 numa:1 l3:2(size=4194304) core:2 pu:1").expect("a machine")
}

fn at(cpu: usize) -> Place {
    place(&machine(), &[cpu].into_iter().collect())
}

/// The nodes' and the caches' lowest ranks.
fn both(places: &[Place]) -> (Vec<u32>, Vec<u32>) {
    domains(places).into_iter().map(|domain| (domain.node, domain.cache)).unzip()
}

#[test]
fn by_nodes_where_there_are_several_and_by_their_caches() {
    let places = [0, 4, 1, 5, 3].map(at);
    assert_eq!(both(&places), ([0, 1, 0, 1, 0].into(), [0, 1, 0, 1, 4].into()));
    // Each cache its own rank would be no help.
    let places = [0, 4].map(at).repeat(2);
    assert_eq!(both(&places), ([0, 1, 0, 1].into(), [0, 1, 0, 1].into()));
}

#[test]
fn half_a_cache_is_shared_among_those_that_use_it() {
    let of = |cpus: &[usize], places: &[Place]| {
        StreamsFrom::of(&machine(), &cpus.iter().copied().collect(), places).together_bytes
    };
    let places = [0, 1, 2, 1].map(at);
    assert_eq!(of(&[0], &places), (2 << 20) / 3);
    assert_eq!(of(&[2], &places), 2 << 20);
    assert_eq!(of(&[0, 2], &places), (2 << 20) / 3, "wherever it runs");
    assert_eq!(of(&[2], &[at(2), [NOWHERE; 2]]), 1 << 20, "who is nowhere may use any");
    assert_eq!(of(&[], &places), u64::MAX);
    let alone = |cpu| StreamsFrom::of(&machine(), &CpuSet::from_iter([cpu]), &places).alone_bytes;
    assert_eq!([0, 2].map(alone), [2 << 20; 2]);
}

#[test]
fn by_caches_within_one_node() {
    let places = [2, 0, 3, 1].map(at);
    assert_eq!(both(&places), ([0; 4].into(), [0, 1, 0, 1].into()));
}

#[test]
fn one_domain_where_nothing_tells_ranks_apart() {
    assert_eq!(domains(&[0, 1].map(at)), [Domain::ALL; 2]);
    // Each its own would be no help either.
    assert_eq!(domains(&[0, 2].map(at)), [Domain::ALL; 2]);
    assert_eq!(domains(&[[NOWHERE; 2]; 3]), [Domain::ALL; 3]);
    assert!(domains(&[]).is_empty());
}

#[test]
fn a_cache_is_shared_where_all_say_the_same_one() {
    assert!(share_a_cache(&[0, 1, 0].map(at)));
    assert!(!share_a_cache(&[0, 2, 4].map(at)), "each has its own");
    assert!(!share_a_cache(&[0, 1, 2].map(at)));
    assert!(!share_a_cache(&[[NOWHERE; 2]; 3]), "nobody knows");
    assert!(share_a_cache(&[[NOWHERE; 2]; 2]), "nobody asks");
}

#[test]
fn a_process_that_may_run_anywhere_is_nowhere() {
    assert_eq!(place(&machine(), &(0..8).collect()), [NOWHERE; 2]);
    assert_eq!(place(&machine(), &CpuSet::EMPTY), [NOWHERE; 2]);
    // All of a node, but no one cache.
    assert_eq!(place(&machine(), &(4..8).collect()), [4, NOWHERE]);
    let places = [at(0), [NOWHERE; 2], at(1), at(4)];
    assert_eq!(both(&places).0, [0, 1, 0, 3]);
}
