use super::*;
use proptest::prelude::*;

fn list(sizes: &[usize]) -> Vec<Segment> {
    sizes.iter().map(|&bytes| Segment { address: 0, bytes }).collect()
}

#[test]
fn a_cursor_of_another_list_stays_within_that_list() {
    let mut at = Cursor::at(&list(&[10, 10]), 19);
    assert_eq!(at.take(&list(&[10, 3]), 9), None);
    assert_eq!(at.take(&list(&[10]), 9), None);
}

proptest! {
    #[test]
    fn pieces_cover_what_is_behind_the_offset_once_and_in_order(
        sizes in proptest::collection::vec(0usize..9, 0..20), offset in 0u64..80, max in 1u64..12,
    ) {
        let list = list(&sizes);
        let naive: Vec<(usize, u64)> = sizes.iter().enumerate()
            .flat_map(|(i, &n)| (0..n as u64).map(move |b| (i, b))).skip(offset as usize).collect();
        let mut at = Cursor::at(&list, offset);
        let mut seen = Vec::new();
        while let Some(piece) = at.take(&list, max) {
            prop_assert!(piece.bytes >= 1 && piece.bytes <= max);
            seen.extend((0..piece.bytes).map(|b| (piece.index, piece.offset + b)));
        }
        prop_assert_eq!(seen, naive);
    }
}
