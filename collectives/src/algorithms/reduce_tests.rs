//! The reductions against the serial model, whose operation is not commutative.

use proptest::prelude::*;

use super::*;
use crate::algorithms::tried;
use crate::simulation::{Case, Lengths, check, sweep};

const KINDS: [Kind; 3] = [Kind::Reduce, Kind::Allreduce, Kind::ReduceScatter];

#[test]
fn each_does_each_with_1_to_17_ranks() {
    for kind in KINDS {
        for algorithm in Algorithm::of(kind) {
            // Fewer elements than ranks, and some more.
            for elements in [0, 1, 5, 20] {
                tried::equal(kind, algorithm, elements * 8);
            }
        }
    }
}

#[test]
fn each_does_blocks_of_any_length() {
    for algorithm in Algorithm::of(Kind::ReduceScatter) {
        tried::listed(Kind::ReduceScatter, algorithm, 7, &[8, 0, 704, 2048, 0, 16, 64]);
        tried::listed(Kind::ReduceScatter, algorithm, 4, &[0, 0, 8, 0]);
    }
}

#[test]
fn random_cases_are_as_the_serial_model_says() {
    for kind in KINDS {
        sweep(kind, prop::sample::select(Algorithm::of(kind).collect::<Vec<_>>()), 60);
    }
}

#[test]
fn parts_longer_than_a_piece_and_elements_of_odd_lengths() {
    for kind in KINDS {
        for algorithm in [Algorithm::Messages, Algorithm::DirectReduce] {
            for (size, element_bytes) in [(2, 8), (3, 56)] {
                // A piece and an element, and one less: for one rank each.
                let piece = PIECE_BYTES / element_bytes * element_bytes;
                let lengths = [piece + element_bytes, piece, 2 * piece + 3 * element_bytes];
                let lengths = match kind {
                    Kind::ReduceScatter => Lengths::Listed(lengths[..size as usize].to_vec()),
                    _ => Lengths::Equal(lengths.iter().sum()),
                };
                for in_place in [false, true] {
                    let lengths = lengths.clone();
                    let case = Case { element_bytes, lengths, in_place, root: 1, ..Case::new(kind, size, 0) };
                    check(&case, algorithm, 3);
                }
            }
        }
    }
}

#[test]
fn vectors_that_do_not_fit_slots_are_refused_by_all_ranks() {
    for kind in [Kind::Reduce, Kind::Allreduce] {
        check(&Case::new(kind, 3, 4096), Algorithm::Slots, 1);
        tried::assert_too_long_for_slots(&Case::new(kind, 3, 4104), 4104);
    }
    tried::assert_too_long_for_slots(&Case::new(Kind::ReduceScatter, 3, 1368), 4104);
}

#[test]
fn no_two_ranks_read_from_the_same_one() {
    for kind in [Kind::Allreduce, Kind::ReduceScatter] {
        let programs = tried::programs(&Case::new(kind, 6, 6 * 80), Algorithm::DirectReduce);
        tried::assert_no_contention(&tried::reads(&programs));
    }
}

#[test]
fn scratch_memory_of_long_vectors_stays_in_the_cache() {
    for kind in KINDS {
        let case = Case { root: 1, ..Case::new(kind, 2, 8 << 20) };
        let kept = if kind == Kind::Reduce { 4 << 20 } else { 0 };
        let program = program(&tried::calls(&case)[0], Algorithm::DirectReduce).unwrap();
        assert_eq!(program.work_bytes, kept + 2 * PIECE_BYTES);
    }
}
