use super::*;

/// Two packages, each a NUMA node with one cache for four CPUs.
fn machine() -> Machine {
    Machine::synthetic("package:2 numa:1 l3:2(size=4194304) core:2 pu:1").expect("a machine")
}

fn at(cpu: usize) -> Place {
    place(&machine(), &[cpu].into_iter().collect())
}

#[test]
fn by_nodes_where_there_are_several() {
    let places = [0, 4, 1, 5, 3].map(at);
    assert_eq!(domains(&places), [0, 1, 0, 1, 0]);
}

#[test]
fn by_caches_within_one_node() {
    let places = [2, 0, 3, 1].map(at);
    assert_eq!(domains(&places), [0, 1, 0, 1]);
}

#[test]
fn one_domain_where_nothing_tells_ranks_apart() {
    assert_eq!(domains(&[0, 1].map(at)), [0, 0]);
    // Each its own would be no help either.
    assert_eq!(domains(&[0, 2].map(at)), [0, 0]);
    assert_eq!(domains(&[[NOWHERE; 2]; 3]), [0, 0, 0]);
    assert!(domains(&[]).is_empty());
}

#[test]
fn a_process_that_may_run_anywhere_is_nowhere() {
    assert_eq!(place(&machine(), &(0..8).collect()), [NOWHERE; 2]);
    assert_eq!(place(&machine(), &CpuSet::EMPTY), [NOWHERE; 2]);
    // All of a node, but no one cache.
    assert_eq!(place(&machine(), &(4..8).collect()), [4, NOWHERE]);
    let places = [at(0), [NOWHERE; 2], at(1), at(4)];
    assert_eq!(domains(&places), [0, 1, 0, 3]);
}
