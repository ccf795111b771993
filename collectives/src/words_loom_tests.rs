//! Models of the board's words, run by loom over every interleaving up to a bound:
//! `RUSTFLAGS="--cfg loom" cargo test -p lmt-collectives --release --lib loom`. There a
//! rank has one call under way, and in a round of a meeting looks at one other.
#![allow(unsafe_code)] // loom cells stand for the slots, and for memory that is lent.

use loom::cell::UnsafeCell;
use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;

use super::*;
use crate::meeting::Meeting;

/// A board on the heap, with a cell a rank in which loom detects races.
struct Memory {
    lines: Vec<Line>,
    cells: Vec<UnsafeCell<u64>>,
}

impl Memory {
    /// What stands in a rank's cell.
    fn read(&self, rank: u32) -> u64 {
        // SAFETY: loom checks that nobody writes meanwhile.
        self.cells[rank as usize].with(|cell| unsafe { *cell })
    }

    fn write(&self, rank: u32, value: u64) {
        // SAFETY: loom checks that nobody else is there meanwhile.
        self.cells[rank as usize].with_mut(|cell| unsafe { *cell = value });
    }
}

impl Lines for Arc<Memory> {
    fn line(&self, line: u64) -> &Line {
        &self.lines[line as usize]
    }
}

type Board = Words<Arc<Memory>>;

/// One board for each of `size` ranks, all of the same memory.
fn boards(size: u32) -> Vec<Board> {
    let layout = Layout::new(size, 0);
    let memory = Arc::new(Memory {
        lines: (0..layout.total_bytes() / LINE_BYTES).map(|_| Line::new()).collect(),
        cells: (0..size).map(|_| UnsafeCell::new(0)).collect(),
    });
    (0..size).map(|rank| Words { lines: memory.clone(), layout, rank }).collect()
}

/// Runs each rank in a thread, rank 0 in this one, and waits for all.
fn on_ranks(size: u32, run: impl Fn(Board) + Clone + 'static) {
    let mut boards = boards(size);
    let others = boards.split_off(1).into_iter().map(|board| {
        let run = run.clone();
        thread::spawn(move || run(board))
    });
    let others: Vec<_> = others.collect();
    run(boards.remove(0));
    others.into_iter().for_each(|rank| rank.join().expect("a rank's assertion"));
}

fn model(preemptions: usize, run: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 20_000;
    builder.check(run);
}

/// What a rank shows of a call, no word like another's.
fn notice(rank: u32, call: u32) -> Notice {
    let word = |at: u64| (u64::from(call) + 1) * 1000 + u64::from(rank) * 100 + at;
    Notice { call: [word(0), word(1)], regions: [(word(2), word(3)), (word(4), word(5)), (word(6), word(7))] }
}

fn block(rank: u32, call: u32, of: u32) -> Block {
    Block { offset: u64::from(call * 100 + rank * 10 + of), bytes: u64::from(call + of) }
}

/// Shows all there is to show, and comes to the call's first point.
fn arrive(board: &Board, call: u32, signature: u64) {
    board.lines.write(board.rank, signature);
    for of in 0..board.layout.size {
        board.list(call, of, block(board.rank, call, of));
    }
    board.show(call, signature, &notice(board.rank, call));
    board.publish(call, 1);
}

fn assert_sees(board: &Board, rank: u32, call: u32, signature: u64) {
    assert_eq!(board.signature_of(rank, call), signature);
    assert_eq!(board.notice_of(rank, call), notice(rank, call));
    for of in 0..board.layout.size {
        assert_eq!(board.listed(rank, call, of), block(rank, call, of));
    }
    assert_eq!(board.lines.read(rank), signature);
}

fn await_point(board: &Board, rank: u32, call: u32, point: u32) {
    while board.point_of(rank, call).is_none_or(|at| at < point) {
        thread::yield_now();
    }
}

/// Meets all; whether calls differ.
fn meet(board: &Board, call: u32, signature: u64) -> bool {
    let mut meeting = Meeting::new(board, call, signature);
    loop {
        while !meeting.is_round_met(board) {
            thread::yield_now();
        }
        if !meeting.begin_next_round(board) {
            return meeting.differs();
        }
    }
}

/// Ends all calls before the next one, and waits until all have.
fn end(board: &Board, call: u32) {
    board.publish_ended(call + 1);
    for rank in 0..board.layout.size {
        while board.ended_of(rank) <= call {
            thread::yield_now();
        }
    }
}

/// Who sees a rank's point sees all that it has shown, and put into its slot; who does
/// not see it sees that it has not begun.
#[test]
fn loom_what_was_shown_is_seen_with_the_point() {
    model(3, || {
        on_ranks(2, |board| match board.rank {
            0 => arrive(&board, 0, 7),
            _ => match board.point_of(0, 0) {
                Some(point) => {
                    assert_eq!(point, 1);
                    assert_sees(&board, 0, 0, 7);
                }
                None => assert_eq!(board.point_of(0, 1), None),
            },
        });
    });
}

/// After a meeting each rank sees what every other has shown.
fn all_meet(size: u32, preemptions: usize) {
    model(preemptions, move || {
        on_ranks(size, move |board| {
            arrive(&board, 0, 7);
            assert!(!meet(&board, 0, 7), "all call the same");
            (0..size).for_each(|rank| assert_sees(&board, rank, 0, 7));
        });
    });
}

#[test]
fn loom_two_meet() {
    assert_eq!(Layout::new(2, 0).rounds(), 1);
    all_meet(2, 3);
}

#[test]
fn loom_three_meet_in_two_rounds() {
    assert_eq!(Layout::new(3, 0).rounds(), 2);
    all_meet(3, 2);
}

/// If one calls something else, all hear of it, and can say who and what.
#[test]
fn loom_all_hear_that_calls_differ() {
    for size in [2, 3] {
        for other in 0..size {
            model(2, move || {
                on_ranks(size, move |board| {
                    let signature = |rank: u32| if rank == other { 8 } else { 7 };
                    arrive(&board, 0, signature(board.rank));
                    assert!(meet(&board, 0, signature(board.rank)), "rank {other} calls something else");
                    (0..size).for_each(|rank| assert_sees(&board, rank, 0, signature(rank)));
                });
            });
        }
    }
}

/// Of one that is about to sleep and one that publishes, one sees the other: the sleeper
/// is rung for, or does not sleep. A lost wake-up would leave it at the bell for ever,
/// which loom reports.
#[test]
fn loom_no_wake_up_is_lost() {
    model(3, || {
        let bell = Arc::new((Mutex::new(false), Condvar::new()));
        on_ranks(2, move |board| {
            let (rung, ring) = &*bell;
            if board.rank == 0 {
                board.publish(0, 1);
                if board.sleepers().any(|rank| rank == 1) {
                    *rung.lock().unwrap() = true;
                    ring.notify_one();
                }
                return;
            }
            board.fall_asleep();
            if board.point_of(0, 0).is_none() {
                let mut rung = rung.lock().unwrap();
                while !*rung {
                    rung = ring.wait(rung).unwrap();
                }
            }
            board.wake_up();
            assert_eq!(board.point_of(0, 0), Some(1), "who was rung for sees why");
            assert_eq!(board.sleepers().count(), 0, "it is awake");
        });
    });
}

/// Nobody reads words of a call as those of the one that had their place before, which
/// is taken once all have ended that.
#[test]
fn loom_a_card_is_used_again_after_all_have_ended() {
    for size in [2, 3] {
        model(2, move || {
            on_ranks(size, move |board| {
                for call in 0..if size == 2 { 2 } else { 1 } {
                    arrive(&board, call, call.into());
                    let next = (board.rank + 1) % size;
                    await_point(&board, next, call, 1);
                    assert_sees(&board, next, call, call.into());
                    end(&board, call);
                }
                // What loom sees as a race if anybody still reads it.
                board.lines.write(board.rank, 9);
            });
        });
    }
}

/// A meeting's words of a call are not taken for those of the next one in their place.
#[test]
fn loom_a_meeting_is_not_taken_for_that_of_the_call_before() {
    model(2, || {
        on_ranks(3, |board| {
            for call in 0..2 {
                arrive(&board, call, call.into());
                assert!(!meet(&board, call, call.into()));
                end(&board, call);
            }
        });
    });
}

/// Of two reasons the first counts, for all; who sees it sees what its writer did before.
#[test]
fn loom_the_first_reason_breaks_the_group() {
    model(3, || {
        on_ranks(3, |board| {
            if board.rank < 2 {
                let reason = u64::from(board.rank) + 1;
                board.lines.write(board.rank, reason);
                board.break_for(reason);
            }
            let seen = board.broken();
            if seen != 0 {
                assert_eq!(board.lines.read(seen as u32 - 1), seen);
                board.break_for(3);
                assert_eq!(board.broken(), seen, "it stays");
            }
            assert!(seen != 0 || board.rank == 2, "who breaks it sees why");
        });
    });
}

/// Who takes its memory back and finds that another has not come, or has ended, can use
/// it: the other finds the memory taken back before it writes.
#[test]
fn loom_nobody_writes_to_memory_that_was_left() {
    model(3, || {
        // Stands for the region's entry: 1 while the memory may be written to.
        let entry = Arc::new(AtomicU64::new(1));
        on_ranks(2, move |board| {
            if board.rank == 0 {
                board.publish(0, 1);
                board.fence_of_leaving();
                // Acquire: as the engine reads entries.
                if entry.load(Ordering::Acquire) == 1 {
                    board.lines.write(1, 5);
                }
                board.publish(0, u32::MAX);
                return;
            }
            // Relaxed: as the engine takes entries back.
            entry.swap(0, Ordering::Relaxed);
            board.fence_of_leaving();
            if board.point_of(0, 0).is_none_or(|point| point == u32::MAX) {
                board.lines.write(1, 6);
            }
        });
    });
}
