use super::*;
use crate::algorithms::tried::{programs, refused};
use crate::simulation::{Case, Lengths, check};

const KINDS: [Kind; 2] = [Kind::Allgather, Kind::Alltoall];

#[test]
fn lengths_around_pieces_agree_with_the_serial_model() {
    for kind in KINDS {
        for bytes in [0, 1, 63, 64, 65, 4096, CELL_BYTES - 1, CELL_BYTES, CELL_BYTES + 1, MAX_BYTES] {
            for in_place in [false, true] {
                check(&Case { in_place, ..Case::new(kind, 2, bytes) }, Algorithm::Swap, bytes);
            }
        }
    }
}

#[test]
fn what_it_cannot_do_says_what_can() {
    for kind in KINDS {
        let lengths = Lengths::Listed(vec![1; if kind == Kind::Alltoall { 4 } else { 2 }]);
        let listed = Case { lengths, ..Case::new(kind, 2, 0) };
        for case in [Case::new(kind, 1, 8), Case::new(kind, 3, 8), Case::new(kind, 2, MAX_BYTES + 1), listed]
        {
            let refused = refused(&case, Algorithm::Swap);
            assert!(refused.ends_with("up to 192 KiB; messages do others"), "{refused}");
        }
    }
}

/// Each cell is written by turns, and by the one who has just read it.
#[test]
fn cells_change_their_owner_with_each_piece() {
    let programs = programs(&Case::new(Kind::Allgather, 2, MAX_BYTES), Algorithm::Swap);
    let used = |program: &Program| {
        let actions = program.before.iter().chain(program.steps.iter().flatten());
        let cells = actions.filter_map(|action| match action {
            Action::Hand { cell, .. } => Some((true, cell % 2)),
            Action::Accept { cell, .. } => Some((false, cell % 2)),
            _ => None,
        });
        cells.collect::<Vec<_>>()
    };
    let (w, r) = (true, false);
    assert_eq!(used(&programs[0]), [(w, 0), (r, 1), (w, 1), (r, 0), (w, 0), (r, 1)]);
    assert_eq!(used(&programs[1]), [(w, 1), (r, 0), (w, 0), (r, 1), (w, 1), (r, 0)]);
}
