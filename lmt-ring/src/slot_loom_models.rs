#![allow(unsafe_code)] // loom cells stand for the ring's cells.

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

use super::*;

const TAG: u64 = 7;

fn check(model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

fn opened(cells_at_begin: u64) -> Arc<Slot> {
    let slot = Arc::new(Slot::new());
    slot.open(TAG, cells_at_begin, 17, 100);
    slot
}

/// Of a withdrawal and an attachment just one happens, and both ends know which.
#[test]
fn a_message_is_withdrawn_or_attached_to() {
    check(|| {
        let slot = opened(0);
        let there = Arc::clone(&slot);
        let receiver = thread::spawn(move || there.attach(TAG));
        let withdrawn = slot.withdraw(TAG, false);
        let attached = receiver.join().expect("the receiver ends");
        assert_ne!(withdrawn, attached);
        let state = if attached { State::Attached } else { State::Withdrawn };
        assert_eq!(slot.emptied(TAG), (0, state));
        assert_eq!(slot.produced(), if attached { ABANDONED } else { 0 });
    });
}

/// A receiver that attached hears in the end that the sender gives no more, and
/// the sender that it has gone.
#[test]
fn an_abandoned_receiver_closes_early() {
    check(|| {
        let slot = opened(0);
        let there = Arc::clone(&slot);
        let receiver = thread::spawn(move || {
            if !there.attach(TAG) {
                return false;
            }
            while there.produced() != ABANDONED {
                thread::yield_now();
            }
            there.close(TAG, false);
            true
        });
        let withdrawn = slot.withdraw(TAG, false);
        let attached = receiver.join().expect("the receiver ends");
        let state = if attached { State::Early } else { State::Withdrawn };
        assert_eq!((slot.emptied(TAG).1, withdrawn), (state, !attached));
    });
}

/// The sender leaves while the receiver closes: exactly one of them is told by a
/// packet or sees it here, never neither and never both.
#[test]
fn of_leaving_and_closing_one_sees_the_other() {
    for is_whole in [true, false] {
        check(move || {
            let slot = opened(0);
            let there = Arc::clone(&slot);
            let receiver = thread::spawn(move || {
                assert!(there.attach(TAG), "nobody withdraws");
                there.close(TAG, is_whole)
            });
            let knows = slot.leave(TAG);
            let told_here = receiver.join().expect("the receiver ends");
            assert_eq!(knows, told_here && is_whole);
            let state = if is_whole { State::Whole } else { State::Early };
            assert_eq!(slot.emptied(TAG).1, state);
        });
    }
}

/// A receiver that goes without all leaves cells to the sender; those that it
/// has emptied are counted in the state that the sender sees.
#[test]
fn who_sees_it_closed_sees_all_that_was_emptied() {
    check(|| {
        let slot = opened(0);
        let there = Arc::clone(&slot);
        let receiver = thread::spawn(move || {
            assert!(there.attach(TAG), "nobody withdraws");
            there.empty(0, true);
            there.empty(1, false);
            there.close(TAG, true);
        });
        let (emptied, state) = slot.emptied(TAG);
        if state == State::Whole {
            assert_eq!(emptied, 2);
        }
        assert!(emptied < 1 || slot.is_returned(0));
        assert!(emptied < 2 || !slot.is_returned(1));
        receiver.join().expect("the receiver ends");
    });
}

type Cells = [UnsafeCell<u64>; 2];

/// Two cells are filled and emptied; the first comes back, is filled again as
/// the third of the message, the second stays. No access to a cell races with
/// another, and the receiver sees every value.
#[test]
fn a_returned_cell_is_filled_again_without_a_race() {
    check(|| {
        let slot = opened(1);
        let cells: Arc<Cells> = Arc::new([UnsafeCell::new(0), UnsafeCell::new(0)]);
        let (there, theirs) = (Arc::clone(&slot), Arc::clone(&cells));
        let receiver = thread::spawn(move || empty_three(&there, &theirs));
        for k in [0, 1] {
            fill(&slot, &cells, k, k as u8);
        }
        while slot.emptied(TAG).0 == 0 {
            thread::yield_now();
        }
        assert!(slot.is_returned(0));
        fill(&slot, &cells, 2, 0);
        receiver.join().expect("the receiver ends");
        assert_eq!(slot.emptied(TAG), (3, State::Whole));
        assert!(!slot.is_returned(1) && slot.is_returned(2));
    });
}

fn fill(slot: &Slot, cells: &Cells, k: u64, cell: u8) {
    slot.name_cell(k, cell);
    // SAFETY: what the model checks: nobody reads it now.
    cells[usize::from(cell)].with_mut(|p| unsafe { *p = 100 + k });
    slot.publish(k + 1);
}

fn empty_three(slot: &Slot, cells: &Cells) {
    assert!(slot.attach(TAG), "nobody withdraws");
    assert_eq!(slot.cells_at_begin(), 1);
    let mut taken = 0;
    while taken < 3 {
        if slot.produced() == taken {
            thread::yield_now();
            continue;
        }
        let cell = usize::from(slot.cell(taken));
        assert_eq!(cell, [0, 1, 0][taken as usize]);
        // SAFETY: what the model checks: nobody writes it now.
        assert_eq!(cells[cell].with(|p| unsafe { *p }), 100 + taken);
        slot.empty(taken, taken != 1);
        taken += 1;
    }
    assert!(slot.close(TAG, true), "the sender has not left");
}

/// The slot carries the next message once the first is closed: who attaches to
/// that one sees its words, not those of the first.
#[test]
fn the_next_message_begins_anew() {
    check(|| {
        let slot = opened(3);
        slot.publish(9);
        let there = Arc::clone(&slot);
        let receiver = thread::spawn(move || {
            assert!(there.attach(TAG), "nobody withdraws");
            there.empty(0, true);
            there.close(TAG, true);
            while !there.has(TAG + 1) {
                thread::yield_now();
            }
            assert!(there.attach(TAG + 1), "nobody withdraws");
            assert_eq!((there.cells_at_begin(), there.produced()), (4, 0));
        });
        while slot.emptied(TAG).1 != State::Whole {
            thread::yield_now();
        }
        slot.open(TAG + 1, 4, 17, 100);
        receiver.join().expect("the receiver ends");
        assert_eq!(slot.emptied(TAG + 1), (0, State::Attached));
    });
}
