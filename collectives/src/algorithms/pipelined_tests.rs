use super::*;
use crate::algorithms::tried::{equal, refused};
use crate::simulation::{Case, Lengths, check, sweep};
use proptest::prelude::*;

const KINDS: [Kind; 5] = [Kind::Broadcast, Kind::Scatter, Kind::Gather, Kind::Allgather, Kind::Alltoall];

#[test]
fn pieces_agree_with_the_serial_model() {
    for kind in KINDS {
        let pipelined = (1..=3_u32).prop_map(Algorithm::Pipelined);
        sweep(kind, pipelined, 300);
    }
}

/// A slot of 4096 bytes has cells of at most 2048: the lengths are around those of one
/// piece, of both cells, and of many times round.
#[test]
fn lengths_around_pieces_and_slots_agree_too() {
    for kind in KINDS {
        for bytes in [0, 1, 1023, 1024, 1025, 2048, 4095, 4096, 4097, 9000] {
            equal(kind, Algorithm::Pipelined(1), bytes);
        }
        for size in [2, 3, 5] {
            let case = Case { root: size - 1, ..Case::new(kind, size, 100_000) };
            check(&case, Algorithm::Pipelined(2), 3);
        }
    }
}

#[test]
fn slots_that_hardly_hold_anything_do() {
    for kind in KINDS {
        for slot_bytes in [64, 128, 200] {
            let case = Case { slot_bytes, ..Case::new(kind, 5, 1000) };
            check(&case, Algorithm::Pipelined(1), 5);
        }
    }
}

#[test]
fn what_it_cannot_do_says_what_can() {
    let lengths = Lengths::Listed(vec![1, 2, 3]);
    let listed = Case { lengths, ..Case::new(Kind::Allgather, 3, 0) };
    assert!(refused(&listed, Algorithm::Pipelined(1)).contains("messages do others"));
    let long = Case::new(Kind::Broadcast, 2, 40 << 20);
    assert!(refused(&long, Algorithm::Pipelined(1)).contains("more than 16384 pieces for all ranks"));
}

/// Before it has met anybody a root posts what its slot holds.
#[test]
fn the_first_pieces_wait_for_nobody() {
    let case = Case::new(Kind::Broadcast, 3, 10_000);
    let programs = crate::algorithms::tried::programs(&case, Algorithm::Pipelined(1));
    let is_post = |action: &&Action| matches!(action, Action::Post { .. });
    assert_eq!(programs[0].early.iter().flatten().filter(is_post).count(), 4);
    assert_eq!(programs[0].steps.iter().flatten().filter(is_post).count(), 6);
    assert_eq!((programs[0].slot_bytes, programs[1].slot_bytes), (4096, 0));
    // Of a scatter those of all ranks.
    let case = Case::new(Kind::Scatter, 5, 1000);
    let programs = crate::algorithms::tried::programs(&case, Algorithm::Pipelined(1));
    assert_eq!(programs[0].early.iter().flatten().filter(is_post).count(), 4);
}
