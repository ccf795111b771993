use crate::queue::fast_box::cell_ownership::{HANDOFF_CELLS, LOWER_HALF, OwnedCells};
use crate::queue::fast_box::place::{HANDOFF_CELL_STRIDE_BYTES, Part};

#[test]
fn a_part_comes_back_from_its_word_as_it_was() {
    for cell in [0, 1, HANDOFF_CELLS as u8 - 1] {
        for offset in [0, 64, 1024, HANDOFF_CELL_STRIDE_BYTES as u32 - 41] {
            let part = Part { cell, offset };
            assert_ne!(part.to_word(), 0);
            assert_eq!(Part::from_word(part.to_word(), 41), Some(part));
        }
    }
}

#[test]
fn what_lies_outside_the_cells_is_no_part() {
    let part = Part { cell: 3, offset: 1024 };
    let room = HANDOFF_CELL_STRIDE_BYTES - 1024;
    assert!(Part::from_word(part.to_word(), room).is_some());
    assert!(Part::from_word(part.to_word(), room + 1).is_none());
    assert!(Part::from_word(part.to_word(), usize::MAX).is_none());
    let beyond = Part { cell: HANDOFF_CELLS as u8, ..part };
    assert!(Part::from_word(beyond.to_word(), 8).is_none());
    let far = Part { offset: u32::MAX, ..part };
    assert!(Part::from_word(far.to_word(), 8).is_none());
    assert!(Part::from_word(0, 8).is_none(), "a cell of the ring");
}

#[test]
fn a_cell_is_held_once_however_often_it_is_handed_over() {
    let (mine, theirs) = (OwnedCells::new(LOWER_HALF), OwnedCells::new(!LOWER_HALF));
    assert_eq!((mine.next(), theirs.next()), (Some(0), Some(32)));
    for _ in 0..3 {
        assert_eq!(mine.take(), Some(0));
        theirs.keep(0);
        assert_eq!(theirs.take(), Some(0), "the cell that came last goes next");
        mine.keep(0);
    }
    mine.keep(5);
    mine.keep(5);
    let taken: Vec<u8> = std::iter::from_fn(|| mine.take()).collect();
    assert_eq!(taken, (0..32).collect::<Vec<u8>>());
    assert_eq!((mine.next(), mine.take()), (None, None));
    theirs.keep_only(1 << 40);
    assert_eq!((theirs.take(), theirs.take()), (Some(40), None));
}
