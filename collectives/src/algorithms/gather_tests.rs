use super::*;
use crate::simulation::{Case, Lengths, check, sweep};
use proptest::prelude::*;

#[test]
fn every_algorithm_agrees_with_the_serial_model() {
    for algorithm in Algorithm::of(Kind::Gather) {
        sweep(Kind::Gather, (1..=18_u32).prop_map(move |number| algorithm.with_number(number)), 400);
    }
}

#[test]
fn no_more_at_a_time_than_allowed_and_as_many_as_that() {
    for size in 2..=17_u32 {
        let case = Case { root: size - 1, ..Case::new(Kind::Gather, size, 5000) };
        let others = size - 1;
        for k in [1, 2, 3, 4, 8, 16, 17, u32::MAX] {
            let most = check(&case, Algorithm::ThrottledWrite(k), 3);
            assert_eq!(most, k.min(others) as usize, "{k} of {size} ranks");
        }
        assert_eq!(check(&case, Algorithm::ParallelWrite, 3), others as usize);
        assert_eq!(check(&case, Algorithm::SequentialRead, 3), 1);
    }
}

#[test]
fn nothing_for_some_is_nothing_special() {
    let case = Case { lengths: Lengths::Listed(vec![0, 7, 0, 0, 12, 0]), ..Case::new(Kind::Gather, 6, 0) };
    for algorithm in Algorithm::of(Kind::Gather) {
        for (root, in_place) in [(0, false), (1, true), (5, false), (5, true)] {
            check(&Case { root, in_place, ..case.clone() }, algorithm.with_number(2), 5);
        }
    }
}
