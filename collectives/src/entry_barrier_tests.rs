use super::*;
use crate::layout::{DEPTH, LINE_BYTES, Layout, RADIX};
use crate::words::Line;

/// A board on the heap.
struct Heap(Vec<Line>);

impl Lines for &Heap {
    fn line(&self, line: u64) -> &Line {
        &self.0[line as usize]
    }
}

/// What each of `size` ranks hears in a meeting in which they call these; they come in
/// an order of which `step` makes another.
fn hear(size: u32, step: u32, signature: impl Fn(u32) -> u64) -> Vec<bool> {
    let layout = Layout::new(size, 0);
    let heap = Heap((0..layout.total_bytes() / LINE_BYTES).map(|_| Line::new()).collect());
    let order: Vec<u32> = (0..size).map(|at| (at * step + 3) % size).collect();
    let board = |rank| Words { lines: &heap, layout, rank };
    let mut meetings: Vec<(u32, EntryBarrier)> = Vec::new();
    let mut heard = vec![None; size as usize];
    for &rank in &order {
        board(rank).show(0, signature(rank), &Default::default());
        board(rank).publish(0, 1);
        meetings.push((rank, EntryBarrier::new(&board(rank), 0, signature(rank))));
    }
    while !meetings.is_empty() {
        let before = meetings.len();
        let mut moved = false;
        meetings.retain_mut(|(rank, entry_barrier)| {
            while entry_barrier.is_round_complete(&board(*rank)) {
                moved = true;
                if !entry_barrier.begin_next_round(&board(*rank)) {
                    heard[*rank as usize] = Some(entry_barrier.differs());
                    return false;
                }
            }
            true
        });
        assert!(moved, "{before} of {size} ranks wait for ever");
    }
    heard.into_iter().map(|heard| heard.expect("all have met")).collect()
}

const SIZES: [u32; 12] = [1, 2, 3, 7, 8, 9, 15, 16, 17, 64, 65, 130];

#[test]
fn all_hear_that_they_call_the_same() {
    for size in SIZES {
        for step in [1, size - 1] {
            assert!(hear(size, step.max(1), |_| 5).iter().all(|differs| !differs), "{size} ranks");
        }
    }
}

#[test]
fn all_hear_that_one_calls_something_else() {
    for size in SIZES.into_iter().filter(|&size| size > 1) {
        for other in [0, size / 2, size - 1] {
            let heard = hear(size, 1, |rank| u64::from(rank == other));
            assert!(
                heard.iter().all(|&differs| differs),
                "{size} ranks, of which {other} differs: {heard:?}"
            );
        }
    }
}

/// In the first round each sees only its like.
#[test]
fn all_hear_that_halves_call_different_things() {
    for size in SIZES.into_iter().filter(|&size| size > 1) {
        for part in [RADIX, size / 2].into_iter().filter(|part| (1..size).contains(part)) {
            let heard = hear(size, 1, |rank| u64::from(rank < part));
            assert!(heard.iter().all(|&differs| differs), "{size} ranks, {part} of them: {heard:?}");
            let heard = hear(size, 1, |rank| u64::from(rank / part));
            assert!(heard.iter().all(|&differs| differs), "{size} ranks by {part}: {heard:?}");
        }
    }
}

#[test]
fn who_is_missing_is_waited_for() {
    let layout = Layout::new(2, 0);
    let heap = Heap((0..layout.total_bytes() / LINE_BYTES).map(|_| Line::new()).collect());
    let board = |rank| Words { lines: &heap, layout, rank };
    let mut entry_barrier = EntryBarrier::new(&board(0), 0, 5);
    assert!(!entry_barrier.is_round_complete(&board(0)), "a board that nobody wrote is no call 0");
    board(1).show(0, 5, &Default::default());
    assert!(!entry_barrier.is_round_complete(&board(0)), "it has shown, and not come");
    board(1).publish(0, 1);
    assert!(
        entry_barrier.is_round_complete(&board(0))
            && !entry_barrier.begin_next_round(&board(0))
            && !entry_barrier.differs()
    );
}

/// Words of the call that had the place before are none of the next one.
#[test]
fn a_meeting_is_not_taken_for_that_of_the_call_before() {
    let layout = Layout::new(RADIX + 1, 0);
    assert_eq!(layout.rounds(), 2);
    let heap = Heap((0..layout.total_bytes() / LINE_BYTES).map(|_| Line::new()).collect());
    let board = |rank| Words { lines: &heap, layout, rank };
    for call in [0, DEPTH] {
        let mut meetings: Vec<_> =
            (0..layout.size).map(|rank| EntryBarrier::new(&board(rank), call, 5)).collect();
        for rank in 0..layout.size {
            let first = &mut meetings[0];
            assert!(!first.is_round_complete(&board(0)), "call {call}: only those before {rank} have come");
            board(rank).show(call, 5, &Default::default());
            board(rank).publish(call, 1);
        }
        for (rank, entry_barrier) in (0..).zip(&mut meetings) {
            assert!(
                entry_barrier.is_round_complete(&board(rank)) && entry_barrier.begin_next_round(&board(rank))
            );
            assert_eq!(
                entry_barrier.is_round_complete(&board(rank)),
                rank == RADIX,
                "call {call}, rank {rank}"
            );
        }
        for (rank, entry_barrier) in (0..).zip(&mut meetings) {
            assert!(
                entry_barrier.is_round_complete(&board(rank))
                    && !entry_barrier.begin_next_round(&board(rank))
            );
        }
    }
}
