//! Models of the box, run by loom as those of the inbox beside it are.

use loom::cell::UnsafeCell;
use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;

use super::ring::{Progress, Reader, Words, Writer};
use crate::inbox::drain::Drain;
use crate::inbox::ring::{LINE_WORDS, Line, Ring};
use crate::sync::{AtomicU64, Ordering};

/// A box on the heap with cells in which loom detects races, and beside it the
/// inbox whose `sleeping` word it shares.
struct Memory {
    lines: Vec<Line>,
    consumed: Progress,
    sent: Progress,
    cells: Vec<UnsafeCell<u64>>,
    claims: Vec<AtomicU64>,
    inbox_lines: Vec<Line>,
    tail_hint: AtomicU64,
    sleeping: AtomicU64,
    doorbell: Mutex<bool>,
    rung: Condvar,
}

fn zero() -> AtomicU64 {
    AtomicU64::new(0)
}

fn lines(count: usize) -> Vec<Line> {
    let line = || Line { words: std::array::from_fn::<_, LINE_WORDS, _>(|_| zero()) };
    (0..count).map(|_| line()).collect()
}

impl Memory {
    fn new(box_lines: usize, cells: usize) -> Arc<Self> {
        Arc::new(Self {
            lines: lines(box_lines),
            consumed: Progress { lines: zero(), cells: zero() },
            sent: Progress { lines: zero(), cells: zero() },
            cells: (0..cells).map(|_| UnsafeCell::new(0)).collect(),
            claims: vec![zero(), zero()],
            inbox_lines: lines(2),
            tail_hint: zero(),
            sleeping: zero(),
            doorbell: Mutex::new(false),
            rung: Condvar::new(),
        })
    }

    fn words(&self) -> Words<'_> {
        Words { lines: &self.lines, consumed: &self.consumed, sent: &self.sent }
    }

    fn ring(&self) -> Ring<'_> {
        Ring {
            claims: &self.claims,
            lines: &self.inbox_lines,
            tail_hint: &self.tail_hint,
            sleeping: &self.sleeping,
        }
    }

    fn ring_doorbell(&self) {
        *self.doorbell.lock().unwrap() = true;
        self.rung.notify_one();
    }

    fn wait_for_doorbell(&self) {
        let mut rung = self.doorbell.lock().unwrap();
        while !*rung {
            rung = self.rung.wait(rung).unwrap();
        }
        *rung = false;
    }

    #[allow(unsafe_code)]
    fn write_cell(&self, cell: u64, value: u64) {
        // SAFETY: loom fails the model if another access is not ordered.
        self.cells[cell as usize].with_mut(|cell| unsafe { *cell = value });
    }

    #[allow(unsafe_code)]
    fn read_cell(&self, cell: u64) -> u64 {
        // SAFETY: loom fails the model if a write is not ordered before or after.
        self.cells[cell as usize].with(|cell| unsafe { *cell })
    }
}

/// Every second message has a cell.
fn has_cell(value: u64) -> bool {
    value.is_multiple_of(2)
}

fn send(memory: &Memory, writer: &mut Writer, value: u64) -> bool {
    let words = memory.words();
    let Ok(cell) = writer.reserve(&words, has_cell(value)) else { return false };
    if has_cell(value) {
        memory.write_cell(cell, value);
    }
    writer.publish(&words, &[value], value as u8, has_cell(value));
    true
}

/// Sends these numbers, and wakes the reader after each.
fn send_all(memory: &Memory, values: std::ops::RangeInclusive<u64>) {
    let mut writer = Writer::new(&memory.words(), memory.cells.len());
    for value in values {
        while !send(memory, &mut writer, value) {
            if memory.ring().wants_doorbell() {
                memory.ring_doorbell();
            }
            thread::yield_now();
        }
        if memory.ring().wants_doorbell() {
            memory.ring_doorbell();
        }
    }
}

/// Takes the next message, which must be number `value`, if it is there.
fn take(memory: &Memory, reader: &mut Reader, value: u64) -> bool {
    let words = memory.words();
    let Some(kind) = reader.find(&words) else { return false };
    assert_eq!(kind, value as u8, "lost, repeated or out of order");
    assert_eq!(reader.line(&words)[1].load(Ordering::Relaxed), value);
    if has_cell(value) {
        assert_eq!(memory.read_cell(reader.cell()), value);
    }
    reader.consume(&words, has_cell(value));
    true
}

fn take_all(memory: &Memory, reader: &mut Reader, values: std::ops::RangeInclusive<u64>) {
    for value in values {
        while !take(memory, reader, value) {
            thread::yield_now();
        }
    }
}

fn model(run: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.max_branches = 20_000;
    builder.check(run);
}

fn spawn(memory: &Arc<Memory>, work: impl FnOnce(&Memory) + 'static) -> thread::JoinHandle<()> {
    let memory = memory.clone();
    thread::spawn(move || work(&memory))
}

#[test]
fn loom_a_box_goes_round_with_fewer_cells_than_lines() {
    model(|| {
        let memory = Memory::new(2, 1);
        let writer = spawn(&memory, |m| send_all(m, 1..=5));
        let mut reader = Reader::new(1);
        take_all(&memory, &mut reader, 1..=5);
        writer.join().unwrap();
        assert!(reader.find(&memory.words()).is_none(), "something came twice");
    });
}

#[test]
fn loom_a_box_gives_back_in_batches() {
    model(|| {
        let memory = Memory::new(8, 4);
        let writer = spawn(&memory, |m| send_all(m, 1..=10));
        let mut reader = Reader::new(4);
        take_all(&memory, &mut reader, 1..=10);
        writer.join().unwrap();
    });
}

#[test]
fn loom_a_box_wakes_its_reader() {
    model(|| {
        let memory = Memory::new(2, 1);
        let writer = spawn(&memory, |m| send_all(m, 1..=2));
        let (mut drain, mut reader) = (Drain::new(2, 0), Reader::new(1));
        for value in 1..=2 {
            while !take(&memory, &mut reader, value) {
                // As `InboxReceiver::prepare_sleep` does.
                let asleep = drain.prepare_sleep(&memory.ring());
                if asleep && reader.find(&memory.words()).is_none() {
                    // A lost wake is a deadlock here, which loom reports.
                    memory.wait_for_doorbell();
                }
                drain.cancel_sleep(&memory.ring());
            }
        }
        writer.join().unwrap();
    });
}

#[test]
fn loom_a_writer_that_connects_anew_goes_on() {
    model(|| {
        let memory = Memory::new(2, 1);
        let writer = spawn(&memory, |m| {
            send_all(m, 1..=2);
            send_all(m, 3..=4);
        });
        let mut reader = Reader::new(1);
        take_all(&memory, &mut reader, 1..=4);
        writer.join().unwrap();
    });
}
