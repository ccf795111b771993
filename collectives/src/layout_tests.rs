use std::collections::HashSet;

use super::*;

#[test]
fn nothing_lies_on_anything_else() {
    for (size, slot_bytes) in [(1, 64), (2, 128), (3, 100), (9, 4096)] {
        let layout = Layout::new(size, slot_bytes);
        let mut taken: HashSet<u64> = (0..HEAD_LINES).collect();
        let mut take = |line: u64| assert!(taken.insert(line), "line {line} is taken twice");
        for rank in 0..size {
            take(layout.rank_line(rank));
            for call in 0..DEPTH {
                (0..CARD_LINES).for_each(|line| take(layout.card(rank, call) + line));
                let lines: HashSet<u64> = (0..size).map(|of| layout.table_entry(rank, call, of).0).collect();
                lines.into_iter().for_each(&mut take);
            }
            assert!(layout.ring(rank).is_multiple_of(LINE_BYTES));
            let first = layout.ring(rank) / LINE_BYTES;
            (0..layout.ring_bytes() / LINE_BYTES).for_each(|line| take(first + line));
        }
        for (call, cell) in (0..DEPTH).flat_map(|call| [(call, 0), (call, 1)]) {
            assert!(layout.cell(call, cell).is_multiple_of(LINE_BYTES));
            let first = layout.cell(call, cell) / LINE_BYTES;
            (0..layout.cell_bytes() / LINE_BYTES).for_each(|line| take(first + line));
        }
        assert_eq!(taken.iter().max().map(|last| (last + 1) * LINE_BYTES), Some(layout.total_bytes()));
    }
}

#[test]
fn entries_of_a_table_are_apart_and_within_a_line() {
    let layout = Layout::new(10, 64);
    let entries: HashSet<(u64, usize)> = (0..10).map(|of| layout.table_entry(3, 2, of)).collect();
    assert_eq!(entries.len(), 10);
    assert!(entries.iter().all(|(_, word)| word % 2 == 0 && *word < 8));
}

#[test]
fn a_call_has_the_place_of_the_one_that_many_before() {
    let layout = Layout::new(5, 4096);
    for call in [0, 1, 77, u32::MAX - 3] {
        assert_eq!(layout.card(2, call), layout.card(2, call.wrapping_add(DEPTH)));
        assert_ne!(layout.card(2, call), layout.card(2, call.wrapping_add(1)));
    }
}

#[test]
fn cells_change_places_from_call_to_call() {
    let layout = Layout::new(2, 4096);
    for call in [0, 1, 77, u32::MAX - 7] {
        assert_eq!(layout.cell(call, 0), layout.cell(call + DEPTH, 1));
        assert_eq!(layout.cell(call, 1), layout.cell(call + DEPTH, 2));
    }
    assert_eq!(Layout::new(3, 4096).cell_bytes(), 0, "only two ranks have cells");
}

/// After all rounds each rank has heard of all, whatever their number.
#[test]
fn a_meeting_reaches_everybody() {
    for size in (1..80).chain([511, 512, 513, 1024]) {
        let layout = Layout::new(size, 64);
        let mut known: Vec<HashSet<u32>> = (0..size).map(|rank| HashSet::from([rank])).collect();
        for round in 0..layout.rounds() {
            let before = known.clone();
            for rank in 0..size {
                for met in layout.partners_in(rank, round) {
                    known[rank as usize].extend(&before[met as usize]);
                }
            }
        }
        assert!(known.iter().all(|known| known.len() == size as usize), "{size} ranks");
        let expected = if size == 1 { 0 } else { f64::from(size).log(8.0).ceil() as u32 };
        assert!(layout.rounds() <= expected.max(u32::from(size > 1)) + 1, "{size} ranks");
    }
}
