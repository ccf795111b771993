//! What the tests of algorithms have in common: cases that every algorithm of an
//! operation gets.

use crate::algorithm::{Algorithm, Kind};
use crate::algorithms::{Unsuitable, program};
use crate::call::Call;
use crate::program::{Action, Exposed, Place, Program, Remote};
use crate::simulation::{Case, Lengths, Random, attempt, check};

/// The plain form for 1 to 17 ranks, in place and not.
pub fn equal(kind: Kind, algorithm: Algorithm, bytes: u64) {
    for size in 1..=17 {
        for in_place in [false, true] {
            let root = size / 2;
            let case = Case { in_place, root, ..Case::new(kind, size, bytes) };
            check(&case, algorithm, u64::from(size));
            if bytes >= 17 * case.element_bytes {
                assert_exposed_is_reached(&case, algorithm);
            }
        }
    }
}

/// One v form, in place and not.
pub fn listed(kind: Kind, algorithm: Algorithm, size: u32, lengths: &[u64]) {
    for in_place in [false, true] {
        let lengths = Lengths::Listed(lengths.to_vec());
        check(&Case { in_place, lengths, ..Case::new(kind, size, 0) }, algorithm, 7);
    }
}

/// What all ranks do in a case.
pub fn programs(case: &Case, algorithm: Algorithm) -> Vec<Program> {
    let calls = calls(case);
    calls.iter().map(|call| program(call, algorithm).unwrap()).collect()
}

/// What all ranks call with.
pub fn calls(case: &Case) -> Vec<Call> {
    case.scene(&mut Random(1)).calls
}

/// What every rank says to a case that the algorithm cannot do.
pub fn refused(case: &Case, algorithm: Algorithm) -> String {
    let refusals: Vec<Unsuitable> =
        calls(case).iter().map(|call| program(call, algorithm).unwrap_err()).collect();
    assert!(refusals.iter().all(|refusal| *refusal == refusals[0]), "{refusals:?}");
    assert!(attempt(case, algorithm, 1).is_ok());
    refusals[0].to_string()
}

/// All ranks refuse slots for so many bytes of one of them.
pub fn assert_too_long_for_slots(case: &Case, bytes: u64) {
    let sentence = format!("slots cannot do this call: {bytes} bytes do not fit into a slot of 4096 bytes; ");
    let refused = refused(case, Algorithm::Slots);
    assert!(refused.starts_with(&sentence), "{refused}");
}

/// What ranks expose is what others reach.
pub fn assert_exposed_is_reached(case: &Case, algorithm: Algorithm) {
    let programs = programs(case, algorithm);
    let mut reached = vec![Exposed::default(); programs.len()];
    for action in programs.iter().flat_map(|program| program.steps.iter().flatten()) {
        let (Action::Get { rank, from: remote, .. } | Action::Put { rank, into: remote, .. }) = action else {
            continue;
        };
        let (Remote::At(place, _) | Remote::Listed { place, .. }) = remote;
        match place {
            Place::Input => reached[*rank as usize].input = true,
            Place::Output => reached[*rank as usize].output = true,
            Place::Work => reached[*rank as usize].work = true,
        }
    }
    let exposed: Vec<Exposed> = programs.iter().map(|program| program.exposed).collect();
    assert_eq!(exposed, reached, "{algorithm}, {case:?}");
}

/// From whom each rank reads, in the order of its steps.
pub fn reads(programs: &[Program]) -> Vec<Vec<u32>> {
    let of = |program: &Program| {
        let actions = program.steps.iter().flatten();
        actions
            .filter_map(|action| match action {
                Action::Get { rank, .. } => Some(*rank),
                _ => None,
            })
            .collect()
    };
    programs.iter().map(of).collect()
}

/// No two ranks read from the same one in their steps of the same number.
pub fn assert_no_contention(reads: &[Vec<u32>]) {
    for number in 0..reads[0].len() {
        let mut sources: Vec<u32> = reads.iter().map(|reads| reads[number]).collect();
        sources.sort_unstable();
        sources.dedup();
        assert_eq!(sources.len(), reads.len(), "{reads:?}");
    }
}
