//! Models of the box, run by loom as those of the inbox beside it are.

use crate::base::sync::{AtomicU64, Ordering};
use crate::queue::drain::Drain;
use crate::queue::fast_box::cell_ownership::OwnedCells;
use crate::queue::fast_box::ring::{Progress, Reader, Words, Writer};
use crate::queue::ring::{LINE_WORDS, Line, Ring};
use loom::cell::UnsafeCell;
use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;

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

/// Every second message has a cell; of the others one in two lies in its line as bytes.
fn has_cell(value: u64) -> bool {
    value.is_multiple_of(2)
}

fn has_bytes(value: u64) -> bool {
    value % 4 == 1
}

fn send(memory: &Memory, writer: &mut Writer, value: u64) -> bool {
    let words = memory.words();
    let Ok(cell) = writer.reserve(&words, has_cell(value)) else { return false };
    if has_cell(value) {
        memory.write_cell(cell, value);
    }
    if has_bytes(value) {
        writer.publish_bytes(&words, [value, 0], &value.to_le_bytes(), value as u8);
    } else {
        writer.publish(&words, &[value], value as u8, has_cell(value));
    }
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
    if has_bytes(value) {
        assert_eq!(reader.line(&words)[3].load(Ordering::Relaxed), value, "the bytes in its line");
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

/// Two boxes, one each way, and the cells that change their owner.
struct Pair {
    boxes: [Arc<Memory>; 2],
    cells: Vec<UnsafeCell<u64>>,
}

/// One of the two processes.
struct Side {
    pair: Arc<Pair>,
    me: usize,
    writer: Writer,
    reader: Reader,
    cell_ownership: OwnedCells,
}

impl Side {
    fn new(pair: &Arc<Pair>, me: usize, own: u64) -> Self {
        let writer = Writer::new(&pair.boxes[1 - me].words(), 1);
        Self { pair: pair.clone(), me, writer, reader: Reader::new(1), cell_ownership: OwnedCells::new(own) }
    }

    /// Sends a number in two pieces through one cell, or, without one, in its
    /// line; whether it went through a cell.
    #[allow(unsafe_code)]
    fn send(&mut self, value: u64) -> bool {
        let Some(cell) = self.cell_ownership.take() else {
            self.publish(&[value, 0]);
            return false;
        };
        for piece in [0, 1] {
            // SAFETY: loom fails the model if another access is not ordered.
            self.pair.cells[2 * usize::from(cell) + piece].with_mut(|at| unsafe { *at = value });
            self.publish(&[u64::from(cell), 1 + piece as u64]);
        }
        true
    }

    fn publish(&mut self, words: &[u64]) {
        let target = self.pair.boxes[1 - self.me].clone();
        while self.writer.reserve(&target.words(), false).is_err() {
            thread::yield_now();
        }
        self.writer.publish(&target.words(), words, 1, false);
    }

    /// Takes the next number, and its cell.
    #[allow(unsafe_code)]
    fn receive(&mut self) -> u64 {
        let source = self.pair.boxes[self.me].clone();
        let mut first = None;
        loop {
            while self.reader.find(&source.words()).is_none() {
                thread::yield_now();
            }
            let line = self.reader.line(&source.words());
            let (word, piece) = (line[1].load(Ordering::Relaxed), line[2].load(Ordering::Relaxed));
            let value = match piece {
                0 => word,
                // SAFETY: loom fails the model if a write is not ordered.
                _ => self.pair.cells[2 * word as usize + piece as usize - 1].with(|at| unsafe { *at }),
            };
            assert_eq!(*first.get_or_insert(value), value, "two pieces of different messages");
            self.reader.consume(&source.words(), false);
            match piece {
                1 => {}
                2 => {
                    self.cell_ownership.keep(word as u8);
                    return value;
                }
                _ => return value,
            }
        }
    }
}

fn pair(cells: usize) -> Arc<Pair> {
    let cells = (0..2 * cells).map(|_| UnsafeCell::new(0)).collect();
    Arc::new(Pair { boxes: [Memory::new(4, 1), Memory::new(4, 1)], cells })
}

#[test]
fn loom_a_cell_changes_its_owner_with_its_message() {
    model(|| {
        let pair = pair(1);
        let mut one = Side::new(&pair, 0, 1);
        let mut two = Side::new(&pair, 1, 0);
        let other = thread::spawn(move || {
            for value in [1, 3] {
                assert_eq!(two.receive(), value);
                assert!(two.send(value + 1), "the cell that came goes back");
            }
        });
        for value in [1, 3] {
            assert!(one.send(value));
            assert_eq!(one.receive(), value + 1);
        }
        other.join().unwrap();
    });
}

#[test]
fn loom_messages_that_meet_on_their_way_have_cells_of_their_own() {
    model(|| {
        let pair = pair(2);
        let mut one = Side::new(&pair, 0, 1);
        let mut two = Side::new(&pair, 1, 2);
        let other = thread::spawn(move || {
            for value in [10, 11] {
                two.send(value);
                assert_eq!(two.receive(), value + 10);
            }
        });
        for value in [20, 21] {
            one.send(value);
            assert_eq!(one.receive(), value - 10);
        }
        other.join().unwrap();
    });
}

#[test]
fn loom_who_has_given_all_cells_sends_without() {
    model(|| {
        let pair = pair(1);
        let mut one = Side::new(&pair, 0, 1);
        let mut two = Side::new(&pair, 1, 0);
        let other = thread::spawn(move || {
            assert_eq!((two.receive(), two.receive()), (1, 2));
            assert!(two.send(3));
        });
        assert_eq!((one.send(1), one.send(2)), (true, false));
        assert_eq!(one.receive(), 3);
        assert!(one.send(4));
        other.join().unwrap();
    });
}
