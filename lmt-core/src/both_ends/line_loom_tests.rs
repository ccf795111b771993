#![allow(unsafe_code)] // loom cells stand for the parts of a message.

use super::*;
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

const UNITS: u32 = 3;

struct Line {
    shared: AtomicU64,
    retired: AtomicU64,
    /// What arrives, by unit.
    parts: [UnsafeCell<u32>; UNITS as usize],
    /// The sender's memory, which is its own again after the end.
    source: UnsafeCell<u32>,
}

impl Line {
    fn new() -> Arc<Self> {
        let zero = || AtomicU64::new(0);
        let part = || UnsafeCell::new(0);
        Arc::new(Self {
            shared: zero(),
            retired: zero(),
            parts: [part(), part(), part()],
            source: UnsafeCell::new(1),
        })
    }

    fn words(&self) -> Words<'_> {
        Words { shared: &self.shared, retired: &self.retired }
    }

    /// What one end does with a unit it has claimed.
    fn copy(&self, unit: u32) {
        let source = self.source.with(|source| {
            // SAFETY: what the model checks: it is written after the end only.
            unsafe { *source }
        });
        self.parts[unit as usize].with_mut(|part| {
            // SAFETY: what the model checks: one end only has claimed it.
            unsafe { *part += source }
        });
    }

    fn check(&self) {
        for part in &self.parts {
            let copies = part.with(|part| {
                // SAFETY: what the model checks: nobody writes it now.
                unsafe { *part }
            });
            assert_eq!(copies, 1);
        }
    }

    fn reuse_source(&self) {
        self.source.with_mut(|source| {
            // SAFETY: what the model checks: nobody reads it any more.
            unsafe { *source = 7 }
        });
    }
}

fn check(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

fn opened(line: &Line, generation: u32) -> ReceiverEnd {
    let mut front = ReceiverEnd::new(generation, UNITS);
    front.open(line.words());
    front
}

/// Receives one message; returns whether the sender learns of it here.
fn receive(line: &Line, generation: u32) -> (ReceiverEnd, bool) {
    let mut front = opened(line, generation);
    let sender_knows = receive_rest(line, &mut front);
    (front, sender_knows)
}

fn receive_rest(line: &Line, front: &mut ReceiverEnd) -> bool {
    loop {
        let first = front.front;
        let units = front.claim(line.words(), |_| 1).expect("an honest sender");
        (first..first + units).for_each(|unit| line.copy(unit));
        if units == 0 && front.is_whole(line.words()).expect("an honest sender") {
            break;
        }
        if units == 0 {
            thread::yield_now();
        }
    }
    line.check();
    front.end(line.words()).expect("an honest sender")
}

/// Helps until there is nothing to claim, then leaves; returns whether it has
/// seen the end.
fn help(line: &Line, back: &mut SenderEnd, looks: u32) -> bool {
    for _ in 0..looks {
        match back.claim(line.words(), |_| 1) {
            Found::Claimed(units) => {
                (back.back()..back.back() + units).for_each(|unit| line.copy(unit));
                back.retire(line.words());
            }
            Found::Nothing => thread::yield_now(),
            Found::Ended | Found::Over => break,
        }
    }
    let ended = back.leave(line.words());
    if ended {
        line.reuse_source();
    }
    ended
}

/// Each part is copied once, without a race, the receiver sees all of it, and
/// the two agree on who tells of the end, whenever the sender comes or goes.
#[test]
fn loom_both_ends_copy_each_part_once_and_agree_on_the_end() {
    for looks in [1, 3] {
        check(move || {
            let line = Line::new();
            // The packet that names the line comes behind its opening.
            let mut front = opened(&line, 1);
            let there = Arc::clone(&line);
            let sender = thread::spawn(move || help(&there, &mut SenderEnd::new(1, UNITS), looks));
            let sender_knows = receive_rest(&line, &mut front);
            assert_eq!(sender.join().expect("it ends"), sender_knows);
            if sender_knows {
                assert!(gone(line.words(), 1));
            }
        });
    }
}

/// A sender that comes after its message claims nothing of the next one in the
/// same line, and does not disturb it.
#[test]
fn loom_a_late_sender_finds_nothing() {
    check(|| {
        let line = Line::new();
        let there = Arc::clone(&line);
        let late = thread::spawn(move || {
            let mut back = SenderEnd::new(1, UNITS);
            assert_eq!(back.claim(there.words(), |_| 1), Found::Over, "it has ended before");
            assert!(!back.leave(there.words()));
        });
        let mut first = ReceiverEnd { front: UNITS, ..ReceiverEnd::new(1, UNITS) };
        first.close(line.words());
        assert!(first.is_quiescent(line.words()));
        let (_, sender_knows) = receive(&line, 2);
        assert!(!sender_knows);
        late.join().expect("it ends");
    });
}

/// A receiver that gives up waits for what the sender has in flight, and no
/// longer; after that nobody writes the message's memory.
#[test]
fn loom_a_closed_line_is_quiet_only_when_the_sender_copies_no_more() {
    for fails in [false, true] {
        check(move || {
            let line = Line::new();
            let mut front = opened(&line, 1);
            let there = Arc::clone(&line);
            let sender = thread::spawn(move || {
                let mut back = SenderEnd::new(1, UNITS);
                if let Found::Claimed(units) = back.claim(there.words(), |_| 2) {
                    (back.back()..back.back() + units).for_each(|unit| there.copy(unit));
                    if !fails {
                        back.retire(there.words());
                    }
                }
                assert!(!back.leave(there.words()), "it was not whole");
            });
            front.close(line.words());
            while !front.is_quiescent(line.words()) {
                thread::yield_now();
            }
            for part in &line.parts {
                part.with_mut(|part| {
                    // SAFETY: what the model checks: the sender has ended.
                    unsafe { *part = 9 }
                });
            }
            sender.join().expect("it ends");
        });
    }
}
