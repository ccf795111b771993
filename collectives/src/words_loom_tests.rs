//! Models of the board's words, run by loom over every interleaving up to a bound:
//! `RUSTFLAGS="--cfg loom" cargo test -p lmt-collectives --release --lib loom`. There a
//! rank has one call in flight, and in a round of a meeting looks at one other.
#![allow(unsafe_code)] // loom cells stand for the slots, and for memory that is lent.

use loom::cell::UnsafeCell;
use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use super::*;
use crate::entry_barrier::EntryBarrier;

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

/// Shows what a call is, and comes to its first point.
fn arrive(board: &Board, call: u32, signature: u64) {
    board.lines.write(board.rank, signature);
    board.place_slot(call, slot(board.rank, call));
    board.show(call, signature, &notice(board.rank, call));
    board.publish(call, 1);
}

fn assert_sees(board: &Board, rank: u32, call: u32, signature: u64) {
    assert_eq!(board.signature_of(rank, call), signature);
    assert_eq!(board.notice_of(rank, call).call, notice(rank, call).call);
    assert_eq!(board.lines.read(rank), signature);
    assert_eq!(board.slot_of(rank, call), slot(rank, call));
}

/// Where a rank says that its slot is.
fn slot(rank: u32, call: u32) -> u64 {
    u64::from(call * 1000 + rank * 64)
}

/// Meets all, whether calls differ; nothing if some do not come within a few looks, as
/// in some interleaving they do.
fn meet(board: &Board, call: u32, signature: u64) -> Option<bool> {
    let mut entry_barrier = EntryBarrier::new(board, call, signature);
    loop {
        if !(0..2).any(|_| entry_barrier.is_round_complete(board)) {
            return None;
        }
        if !entry_barrier.begin_next_round(board) {
            return Some(entry_barrier.differs());
        }
    }
}

/// Who sees a rank's point sees all that it has shown, and put into its slot.
#[test]
fn loom_what_was_shown_is_seen_with_the_point() {
    model(3, || {
        on_ranks(2, |board| {
            if board.rank == 0 {
                (0..2).for_each(|of| board.show_block(0, of, block(0, 0, of)));
                arrive(&board, 0, 7);
            } else if let Some(point) = board.point_of(0, 0) {
                assert_eq!(point, 1);
                assert_sees(&board, 0, 0, 7);
                assert_eq!(board.notice_of(0, 0), notice(0, 0));
                (0..2).for_each(|of| assert_eq!(board.shown_block(0, 0, of), block(0, 0, of)));
            }
        });
    });
}

/// After a meeting each rank sees what every other has shown, and hears of one that
/// calls something else.
fn all_meet(size: u32, other: Option<u32>) {
    static HAVE_MET: [AtomicBool; 3] = [const { AtomicBool::new(false) }; 3];
    let signature = move |rank: u32| if Some(rank) == other { 8 } else { 7 };
    HAVE_MET.iter().for_each(|met| met.store(false, Relaxed));
    model(2, move || {
        on_ranks(size, move |board| {
            arrive(&board, 0, signature(board.rank));
            let Some(differs) = meet(&board, 0, signature(board.rank)) else { return };
            assert_eq!(differs, other.is_some(), "{other:?} calls something else");
            (0..size).for_each(|rank| assert_sees(&board, rank, 0, signature(rank)));
            HAVE_MET[board.rank as usize].store(true, Relaxed);
        });
    });
    let met = HAVE_MET.iter().take(size as usize).all(|met| met.load(Relaxed));
    assert!(met, "a rank met the others in no interleaving");
}

/// In one test: they share what counts those that have met.
#[test]
fn loom_ranks_meet() {
    assert_eq!((Layout::new(2, 0).rounds(), Layout::new(3, 0).rounds()), (1, 2));
    for size in [2, 3] {
        all_meet(size, None);
        (0..size).for_each(|other| all_meet(size, Some(other)));
    }
}

/// Of one that is about to sleep and one that publishes, one sees the other: the sleeper
/// is rung for, or does not sleep. A lost wake-up would leave it at the bell for ever,
/// which loom reports.
#[test]
fn loom_no_wake_up_is_lost() {
    model(3, || {
        let doorbell = Arc::new((Mutex::new(false), Condvar::new()));
        on_ranks(2, move |board| {
            let (rung, ring) = &*doorbell;
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
    static WAS_USED_AGAIN: AtomicBool = AtomicBool::new(false);
    model(3, || {
        on_ranks(3, |board| {
            if board.rank == 0 {
                arrive(&board, 0, 7);
                if (1..3).all(|rank| board.ended_of(rank) == 1) {
                    arrive(&board, 1, 8);
                    WAS_USED_AGAIN.store(true, Relaxed);
                }
                return;
            }
            if board.point_of(0, 0).is_some() {
                assert_sees(&board, 0, 0, 7);
                board.publish_ended(1);
            }
            if board.rank == 1 && board.point_of(0, 1).is_some() {
                assert_sees(&board, 0, 1, 8);
            }
        });
    });
    assert!(WAS_USED_AGAIN.load(Relaxed), "in no interleaving");
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
