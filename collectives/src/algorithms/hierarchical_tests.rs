use super::*;
use crate::algorithm::{Algorithm, Kind};
use crate::algorithms::tried;
use crate::call::Domain;
use crate::simulation::{Case, check, domains};

const PIECES: u64 = 10;
const BYTES: u64 = PIECES * 1024 - 240;

fn case(root: u32, domains: Vec<Domain>) -> Case {
    Case {
        root,
        ..Case { domains: domains.clone(), ..Case::new(Kind::Broadcast, domains.len() as u32, BYTES) }
    }
}

/// From whom each rank reads, and in how many pieces.
fn sources(case: &Case) -> Vec<Option<(u32, usize)>> {
    let reads = tried::reads(&tried::programs(case, Algorithm::Hierarchical(1)));
    reads
        .into_iter()
        .map(|reads| {
            assert!(reads.iter().all(|from| *from == reads[0]), "{reads:?}");
            Some((*reads.first()?, reads.len()))
        })
        .collect()
}

#[test]
fn a_node_is_reached_once_and_so_is_each_of_its_caches() {
    // Two nodes of two caches of three ranks each, and the root within.
    let case = case(4, domains(12, 2, 2, false));
    let n = PIECES as usize;
    let wanted = [
        // The root's node: a cache of its own, whose first rank passes on, and the root's.
        [Some((4, n)), Some((0, n)), Some((0, n))],
        [Some((4, 1)), None, Some((4, 1))],
        // The other: its leader, which is that of its first cache too, and the second.
        [Some((4, n)), Some((6, n)), Some((6, n))],
        [Some((6, n)), Some((9, n)), Some((9, n))],
    ];
    assert_eq!(sources(&case), wanted.concat());
    check(&case, Algorithm::Hierarchical(1), 3);
}

#[test]
fn in_one_domain_it_is_the_direct_read() {
    for size in 1..=17 {
        let case = case(size / 2, vec![Domain::ALL; size as usize]);
        let programs = |algorithm| tried::programs(&case, algorithm);
        let (own, direct) = (programs(Algorithm::Hierarchical(1)), programs(Algorithm::DirectRead));
        assert_eq!(tried::reads(&own), tried::reads(&direct), "{size} ranks");
        let steps = |programs: &[Program]| programs.iter().map(|one| one.steps.len()).collect::<Vec<_>>();
        assert_eq!(steps(&own), steps(&direct), "{size} ranks");
    }
}

#[test]
fn all_numbers_of_nodes_and_caches_agree_with_the_serial_model() {
    for size in 1..=17 {
        for (nodes, caches) in (1..=4).flat_map(|nodes| (1..=4).map(move |caches| (nodes, caches))) {
            for in_turn in [false, true] {
                let case = case((size + nodes) % size, domains(size, nodes, caches, in_turn));
                check(&case, Algorithm::Hierarchical(4), u64::from(size));
                tried::assert_exposed_is_reached(&case, Algorithm::Hierarchical(4));
            }
        }
    }
}

/// A piece goes on before the next has come.
#[test]
fn pieces_overlap() {
    let case = case(0, domains(8, 2, 2, false));
    let leader = &tried::programs(&case, Algorithm::Hierarchical(1))[4];
    let position = |wanted: &Action| leader.steps.iter().position(|step| step.contains(wanted)).unwrap();
    let second = leader.steps.iter().position(|step| {
        step.iter().any(|action| matches!(action, Action::Get { into, .. } if into.offset == 1024))
    });
    assert_eq!(Some(position(&Action::Publish(1))), second, "said while the second piece is read");
}
