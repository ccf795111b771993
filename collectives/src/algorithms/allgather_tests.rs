//! Allgather against the serial model.

use proptest::prelude::*;

use super::*;
use crate::algorithm::Kind;
use crate::algorithms::tried;
use crate::simulation::{Case, Lengths, check, sweep};

#[test]
fn each_does_the_plain_form_with_1_to_17_ranks() {
    // Swap is for two ranks, and has its own tests.
    for algorithm in Algorithm::of(Kind::Allgather).filter(|one| *one != Algorithm::Swap) {
        tried::equal(Kind::Allgather, algorithm, 24);
        tried::equal(Kind::Allgather, algorithm, 0);
    }
}

#[test]
fn each_does_blocks_of_any_length() {
    for algorithm in
        Algorithm::of(Kind::Allgather).filter(|one| !matches!(one, Algorithm::Pipelined(_) | Algorithm::Swap))
    {
        tried::listed(Kind::Allgather, algorithm, 7, &[9, 0, 700, 4096, 0, 1, 63]);
        tried::listed(Kind::Allgather, algorithm, 4, &[0, 0, 5, 0]);
    }
}

#[test]
fn random_cases_are_as_the_serial_model_says() {
    let all: Vec<_> = Algorithm::of(Kind::Allgather).collect();
    sweep(Kind::Allgather, prop::sample::select(all), 400);
    let distances = (1..20_u32).prop_map(Algorithm::RingNeighbor);
    sweep(Kind::Allgather, distances, 100);
}

#[test]
fn a_ring_of_every_distance_without_a_common_divisor_goes_round() {
    for size in 2..=12 {
        for j in (1..=size + 1).filter(|&j| common_divisor(size, j) == 1) {
            check(&Case::new(Kind::Allgather, size, 16), Algorithm::RingNeighbor(j), u64::from(j));
        }
    }
}

#[test]
fn other_distances_are_refused_with_those_that_do() {
    let refused = |size, j| tried::refused(&Case::new(Kind::Allgather, size, 16), Algorithm::RingNeighbor(j));
    assert_eq!(
        refused(12, 3),
        "ring-neighbor:3 cannot do this call: in steps of 3 a ring does not come by all of 12 ranks; those \
         without a common divisor do: 1, 5, 7, 11"
    );
    assert!(refused(17, 34).ends_with(": 1, 2, 3, 4, 5, 6, 7, 8 and others"));
    assert!(refused(2, 2).ends_with(": 1"));
}

#[test]
fn blocks_that_do_not_fit_slots_are_refused_by_all_ranks() {
    check(&Case::new(Kind::Allgather, 3, 4096), Algorithm::Slots, 1);
    tried::assert_too_long_for_slots(&Case::new(Kind::Allgather, 3, 4097), 4097);
    let lengths = Lengths::Listed(vec![1, 4097, 0]);
    let case = Case { lengths, ..Case::new(Kind::Allgather, 3, 0) };
    tried::assert_too_long_for_slots(&case, 4097);
}

#[test]
fn no_two_ranks_read_from_the_same_one() {
    for size in [2, 5, 8, 12] {
        for algorithm in [Algorithm::RingNeighbor(1), Algorithm::RingSourceRead, Algorithm::Bruck] {
            let programs = tried::programs(&Case::new(Kind::Allgather, size, 16), algorithm);
            tried::assert_no_contention(&tried::reads(&programs));
        }
    }
}

#[test]
fn recursive_doubling_has_extra_steps_for_other_numbers_than_powers_of_two() {
    for (size, expected) in [(2, 1), (4, 2), (8, 3), (16, 4), (3, 2), (6, 4), (17, 5)] {
        let case = Case::new(Kind::Allgather, size, 16);
        let reads = tried::reads(&tried::programs(&case, Algorithm::RecursiveDoubling));
        // Of rank 0: the blocks left with a peer are read apart from its own ones.
        assert_eq!(reads[0].len(), expected, "{size} ranks: {reads:?}");
    }
}
