//! Alltoall against the serial model.

use proptest::prelude::*;

use super::*;
use crate::algorithm::Kind;
use crate::algorithms::tried;
use crate::simulation::{Case, Lengths, check, sweep};

#[test]
fn each_does_the_plain_form_with_1_to_17_ranks() {
    // Swap is for two ranks, and has its own tests.
    for algorithm in Algorithm::of(Kind::Alltoall).filter(|one| *one != Algorithm::Swap) {
        tried::equal(Kind::Alltoall, algorithm, 24);
        tried::equal(Kind::Alltoall, algorithm, 0);
    }
}

fn takes_lists(algorithm: &Algorithm) -> bool {
    use Algorithm as A;
    !matches!(algorithm, A::Bruck | A::BruckMessages | A::Pipelined(_) | A::Swap)
}

#[test]
fn each_that_takes_lists_does_listed_blocks_of_any_length() {
    // As long from one to the other as back, for the form in place.
    let lengths = [9, 0, 700, 5000, 0, 0, 1, 4096, 700, 1, 0, 2, 5000, 4096, 2, 3];
    for algorithm in Algorithm::of(Kind::Alltoall).filter(takes_lists) {
        tried::listed(Kind::Alltoall, algorithm, 4, &lengths);
    }
}

#[test]
fn random_cases_are_as_the_serial_model_says() {
    let all: Vec<_> = Algorithm::of(Kind::Alltoall).collect();
    sweep(Kind::Alltoall, prop::sample::select(all), 300);
}

#[test]
fn bruck_refuses_lists() {
    for algorithm in [Algorithm::Bruck, Algorithm::BruckMessages] {
        let case = Case { lengths: Lengths::Listed(vec![1; 9]), ..Case::new(Kind::Alltoall, 3, 0) };
        let sentence =
            format!("{algorithm} cannot do this call: it needs blocks of one length; pairwise does others");
        assert_eq!(tried::refused(&case, algorithm), sentence);
    }
}

#[test]
fn bruck_refuses_scratch_memory_longer_than_any() {
    let call = Call {
        blocks: Blocks::Equal(1 << 61),
        input_blocks: Blocks::Equal(1 << 61),
        ..tried::calls(&Case::new(Kind::Alltoall, 4, 0))[1].clone()
    };
    for algorithm in [Algorithm::Bruck, Algorithm::BruckMessages] {
        let sentence = program(&call, algorithm).unwrap_err().to_string();
        assert!(sentence.contains("more than 2^64 bytes"), "{sentence}");
    }
    assert!(program(&call, Algorithm::Pairwise).is_ok());
}

#[test]
fn equal_blocks_must_fit_the_slot_together_and_listed_ones_need_not() {
    check(&Case::new(Kind::Alltoall, 4, 1365), Algorithm::Slots, 1);
    tried::assert_too_long_for_slots(&Case::new(Kind::Alltoall, 4, 1366), 4098);
    tried::listed(Kind::Alltoall, Algorithm::Slots, 2, &[2048, 2049, 2049, 4096]);
    tried::listed(Kind::Alltoall, Algorithm::Slots, 2, &[2049, 2048, 2048, 0]);
}

#[test]
fn pairwise_reads_from_one_rank_each_as_the_paper_says() {
    for size in 2..=17_u32 {
        let reads = tried::reads(&tried::programs(&Case::new(Kind::Alltoall, size, 8), Algorithm::Pairwise));
        tried::assert_no_contention(&reads);
        for (rank, reads) in (0..).zip(reads) {
            let expected =
                |step| if size.is_power_of_two() { rank ^ step } else { (rank + size - step) % size };
            assert!(reads.iter().copied().eq((1..size).map(expected)), "{size} ranks: {reads:?}");
        }
    }
}

#[test]
fn bruck_takes_as_many_steps_as_the_logarithm() {
    for (size, expected) in [(1, 0), (2, 1), (3, 2), (4, 2), (8, 3), (9, 4), (16, 4), (17, 5)] {
        let reads = tried::reads(&tried::programs(&Case::new(Kind::Alltoall, size, 8), Algorithm::Bruck));
        assert!(reads.iter().all(|reads| reads.len() == expected), "{size} ranks: {reads:?}");
    }
}
