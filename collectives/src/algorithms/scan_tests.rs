//! Scan and exscan against the serial model, whose operation is not commutative.

use proptest::prelude::*;

use super::*;
use crate::algorithms::common::MAX_PIECES;
use crate::algorithms::tried;
use crate::simulation::{Case, check, sweep};

const KINDS: [Kind; 2] = [Kind::Scan, Kind::Exscan];

#[test]
fn each_does_each_with_1_to_17_ranks() {
    for kind in KINDS {
        for algorithm in Algorithm::of(kind).chain([Algorithm::Chain(1)]) {
            for bytes in [0, 8, 2400] {
                tried::equal(kind, algorithm, bytes);
            }
        }
    }
}

#[test]
fn random_cases_are_as_the_serial_model_says() {
    for kind in KINDS {
        let all = prop::sample::select(Algorithm::of(kind).collect::<Vec<_>>());
        sweep(kind, prop_oneof![all, (1..9_u32).prop_map(Algorithm::Chain)], 150);
    }
}

#[test]
fn pieces_are_whole_elements() {
    for kind in KINDS {
        for element_bytes in [24, 2000] {
            let case = Case { element_bytes, ..Case::new(kind, 5, 12_000) };
            check(&case, Algorithm::Chain(1), 5);
        }
    }
    let call = &tried::calls(&Case { element_bytes: 24, ..Case::new(Kind::Scan, 2, 2400) })[0];
    let expected = [(0, 1008), (1008, 1008), (2016, 384)];
    assert_eq!(chain_pieces(call, 1), expected.map(|(offset, bytes)| Span::output(offset, bytes)));
    let long = Call { bytes: 3 << 50, element_bytes: 3, ..call.clone() };
    let pieces = chain_pieces(&long, 1);
    assert!(pieces.len() as u64 <= MAX_PIECES && pieces.iter().all(|piece| piece.bytes % 3 == 0));
    assert_eq!(pieces.iter().map(|piece| piece.bytes).sum::<u64>(), long.bytes);
}

#[test]
fn vectors_that_do_not_fit_slots_are_refused_by_all_ranks() {
    for kind in KINDS {
        check(&Case::new(kind, 3, 4096), Algorithm::Slots, 1);
        tried::assert_too_long_for_slots(&Case::new(kind, 3, 4104), 4104);
    }
}
