//! Scatter and gather: the same in two directions, and tested the same.

use super::*;
use crate::simulation::{Case, Lengths, check, sweep};
use crate::{Algorithm, Kind};
use proptest::prelude::*;

#[test]
fn every_algorithm_agrees_with_the_serial_model() {
    for kind in [Kind::Scatter, Kind::Gather] {
        for algorithm in Algorithm::of(kind) {
            // Two in five fit into slots; of so many, chance leaves a third no less.
            sweep(kind, (1..=18_u32).prop_map(move |number| algorithm.with_number(number)), 1000);
        }
    }
}

/// What the others do, so many at a time, and what the root does.
const MOVERS: [(Kind, Algorithm, Algorithm, Algorithm); 2] = [
    (Kind::Scatter, Algorithm::ParallelRead, Algorithm::ThrottledRead(1), Algorithm::SequentialWrite),
    (Kind::Gather, Algorithm::ParallelWrite, Algorithm::ThrottledWrite(1), Algorithm::SequentialRead),
];

#[test]
fn no_more_at_a_time_than_allowed_and_as_many_as_that() {
    for ((kind, parallel, throttled, sequential), size) in
        MOVERS.into_iter().flat_map(|movers| (2..=17_u32).map(move |size| (movers, size)))
    {
        let case = Case { root: size - 1, ..Case::new(kind, size, 5000) };
        let others = size - 1;
        for k in [1, 2, 3, 4, 8, 16, 17, u32::MAX] {
            let most = check(&case, throttled.with_number(k), 3);
            assert_eq!(most, k.min(others) as usize, "{kind}, {k} of {size} ranks");
        }
        assert_eq!(check(&case, parallel, 3), others as usize);
        assert_eq!(check(&case, sequential, 3), 1);
    }
}

#[test]
fn nothing_for_some_is_nothing_special() {
    let lengths = || Lengths::Listed(vec![0, 7, 0, 0, 12, 0]);
    for kind in [Kind::Scatter, Kind::Gather] {
        let takes_lists = |algorithm: &Algorithm| !matches!(algorithm, Algorithm::Pipelined(_));
        for algorithm in Algorithm::of(kind).filter(takes_lists) {
            for (root, in_place) in [(0, false), (1, true), (5, false), (5, true)] {
                let case = Case { root, in_place, lengths: lengths(), ..Case::new(kind, 6, 0) };
                check(&case, algorithm.with_number(2), 5);
            }
        }
    }
}

#[test]
fn ranks_count_from_the_root() {
    let case = Case { root: 3, ..Case::new(Kind::Gather, 5, 1) };
    let counted = (0..5).map(|rank| from_root(&crate::simulation::any_call(&case, rank)));
    assert_eq!(counted.collect::<Vec<u32>>(), [2, 3, 4, 0, 1]);
    let call = crate::simulation::any_call(&case, 0);
    assert_eq!([0, 1, 2, 4].map(|other| at(&call, other)), [3, 4, 0, 2]);
}
