//! Models of the ring, run by loom over every interleaving up to a bound:
//! `RUSTFLAGS="--cfg loom" cargo test -p lmt-core --release --lib loom`.

use crate::base::sync::{AtomicU64, Ordering};
use crate::queue::drain::{Arrival, Drain};
use crate::queue::ring::{Claimer, LINE_WORDS, Line, Ring, RingFull};
use loom::cell::UnsafeCell;
use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;

/// A ring on the heap, with one cell a slot in which loom detects races.
struct Memory {
    claims: Vec<AtomicU64>,
    lines: Vec<Line>,
    tail_hint: AtomicU64,
    sleeping: AtomicU64,
    cells: Vec<UnsafeCell<u64>>,
    doorbell: Mutex<bool>,
    rung: Condvar,
}

impl Memory {
    fn new(slots: usize) -> Arc<Self> {
        let zero = || AtomicU64::new(0);
        let line = || Line { words: std::array::from_fn::<_, LINE_WORDS, _>(|_| AtomicU64::new(0)) };
        Arc::new(Self {
            claims: (0..slots).map(|_| zero()).collect(),
            lines: (0..slots).map(|_| line()).collect(),
            tail_hint: zero(),
            sleeping: zero(),
            cells: (0..slots).map(|_| UnsafeCell::new(0)).collect(),
            doorbell: Mutex::new(false),
            rung: Condvar::new(),
        })
    }

    fn ring(&self) -> Ring<'_> {
        Ring {
            claims: &self.claims,
            lines: &self.lines,
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
    fn write_cell(&self, slot: usize, value: u64) {
        // SAFETY: loom fails the model if another access is not ordered.
        self.cells[slot].with_mut(|cell| unsafe { *cell = value });
    }

    #[allow(unsafe_code)]
    fn read_cell(&self, slot: usize) -> u64 {
        // SAFETY: loom fails the model if a write is not ordered before or after.
        self.cells[slot].with(|cell| unsafe { *cell })
    }
}

/// After which step a sender stops forever.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stop {
    HintLoad,
    Claim,
    HintStore,
    MidPayload,
    BeforePublish,
    Never,
}

fn send(memory: &Memory, claimer: &mut Claimer, value: u64, stop: Stop) -> Result<(), RingFull> {
    let ring = memory.ring();
    let start = claimer.start(&ring);
    if stop == Stop::HintLoad {
        return Ok(());
    }
    let claimed = claimer.take(&ring, start).inspect_err(|full| {
        if full.wake {
            memory.ring_doorbell();
        }
    })?;
    if stop == Stop::Claim {
        return Ok(());
    }
    claimer.store_hint(&ring, &claimed);
    if stop == Stop::HintStore {
        return Ok(());
    }
    memory.write_cell(ring.slot(claimed.position()), value);
    if stop == Stop::MidPayload {
        return Ok(());
    }
    claimer.write_words(&ring, &claimed, &[value]);
    if stop == Stop::BeforePublish {
        return Ok(());
    }
    if claimer.publish(&ring, claimed, 0) {
        memory.ring_doorbell();
    }
    Ok(())
}

/// Sends `count` messages numbered from 1, waiting while the ring is full.
fn send_all(memory: &Memory, me: u16, count: u64) {
    let mut claimer = Claimer::new(me);
    for value in 1..=count {
        while send(memory, &mut claimer, value, Stop::Never).is_err() {
            thread::yield_now();
        }
    }
}

/// What came: per sender the last number, each being one more than before.
struct Inbox {
    drain: Drain,
    last: [u64; 3],
}

impl Inbox {
    fn new(slots: usize, lazy: usize) -> Self {
        Self { drain: Drain::new(slots, lazy), last: [0; 3] }
    }

    fn take(&mut self, memory: &Memory, arrival: Arrival) {
        let ring = memory.ring();
        let value = memory.read_cell(ring.slot(arrival.position));
        assert_eq!(ring.line(arrival.position).words[1].load(Ordering::Relaxed), value);
        let last = &mut self.last[usize::from(arrival.publish.owner())];
        assert_eq!(value, *last + 1, "lost, repeated or out of order");
        *last = value;
        self.drain.consume(&ring, arrival);
    }

    fn poll_until(&mut self, memory: &Memory, want: [u64; 3]) {
        while self.last != want {
            let ring = memory.ring();
            // As the inbox looks: at one line alone, most of the time.
            let found = if self.drain.is_empty(&ring) { None } else { self.drain.find(&ring) };
            match found {
                Some(arrival) => self.take(memory, arrival),
                None => thread::yield_now(),
            }
        }
    }

    /// Looks thoroughly each time, so that it passes over whom it can.
    fn poll_thoroughly_until(&mut self, memory: &Memory, want: [u64; 3]) {
        while self.last != want {
            match self.drain.find_past_stalled(&memory.ring()) {
                Some(arrival) => self.take(memory, arrival),
                None => thread::yield_now(),
            }
        }
    }

    fn sleep_until(&mut self, memory: &Memory, want: [u64; 3]) {
        while self.last != want {
            let is_empty = self.drain.is_empty(&memory.ring());
            if let Some(arrival) = (!is_empty).then(|| self.drain.find(&memory.ring())).flatten() {
                self.take(memory, arrival);
            } else if self.drain.prepare_sleep(&memory.ring()) {
                // A lost wake is a deadlock here, which loom reports.
                memory.wait_for_doorbell();
                self.drain.cancel_sleep(&memory.ring());
            }
        }
    }
}

fn model(preemptions: usize, run: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 20_000;
    builder.check(run);
}

fn spawn(memory: &Arc<Memory>, work: impl FnOnce(&Memory) + 'static) -> thread::JoinHandle<()> {
    let memory = memory.clone();
    thread::spawn(move || work(&memory))
}

/// After all else: the whole ring can be filled and drained again, twice.
fn check_whole_ring(memory: &Memory, inbox: &mut Inbox, slots: u64) {
    assert!(inbox.drain.find_past_stalled(&memory.ring()).is_none(), "something came twice");
    let mut claimer = Claimer::new(2);
    // A slot that was stuck comes back one lap later.
    for _ in 0..slots {
        assert!(send(memory, &mut claimer, inbox.last[2] + 1, Stop::Never).is_ok(), "no slot");
        let arrival = inbox.drain.find(&memory.ring()).expect("what was just sent");
        inbox.take(memory, arrival);
        inbox.drain.find_past_stalled(&memory.ring());
    }
    for _ in 0..2 {
        let before = inbox.last;
        for n in 1..=slots {
            assert!(send(memory, &mut claimer, before[2] + n, Stop::Never).is_ok(), "a slot is lost");
        }
        assert!(send(memory, &mut claimer, 99, Stop::Never).is_err(), "more slots than there are");
        while let Some(arrival) = inbox.drain.find(&memory.ring()) {
            inbox.take(memory, arrival);
        }
        assert_eq!(inbox.last[2], before[2] + slots);
    }
}

#[test]
fn loom_two_senders_wrap_and_fill_the_ring() {
    model(2, || {
        let memory = Memory::new(2);
        let a = spawn(&memory, |m| send_all(m, 0, 2));
        let b = spawn(&memory, |m| send_all(m, 1, 1));
        let mut inbox = Inbox::new(2, 0);
        inbox.sleep_until(&memory, [2, 1, 0]);
        a.join().unwrap();
        b.join().unwrap();
        check_whole_ring(&memory, &mut inbox, 2);
    });
}

#[test]
fn loom_slots_given_back_late_are_given_back() {
    model(3, || {
        let memory = Memory::new(2);
        let a = spawn(&memory, |m| send_all(m, 0, 5));
        let mut inbox = Inbox::new(2, 1);
        inbox.poll_until(&memory, [5, 0, 0]);
        a.join().unwrap();
        check_whole_ring(&memory, &mut inbox, 2);
    });
}

#[test]
fn loom_a_slow_sender_is_passed_over_and_nothing_changes_order() {
    model(2, || {
        let memory = Memory::new(2);
        let a = spawn(&memory, |m| send_all(m, 0, 2));
        let b = spawn(&memory, |m| send_all(m, 1, 1));
        let mut inbox = Inbox::new(2, 0);
        inbox.poll_thoroughly_until(&memory, [2, 1, 0]);
        a.join().unwrap();
        b.join().unwrap();
        check_whole_ring(&memory, &mut inbox, 2);
    });
}

#[test]
fn loom_a_slow_sender_in_a_ring_of_four() {
    model(2, || {
        let memory = Memory::new(4);
        let a = spawn(&memory, |m| send_all(m, 0, 2));
        let b = spawn(&memory, |m| send_all(m, 1, 2));
        let mut inbox = Inbox::new(4, 1);
        inbox.poll_thoroughly_until(&memory, [2, 2, 0]);
        a.join().unwrap();
        b.join().unwrap();
        check_whole_ring(&memory, &mut inbox, 4);
    });
}

#[test]
fn loom_no_wake_is_lost() {
    model(3, || {
        let memory = Memory::new(2);
        let a = spawn(&memory, |m| send_all(m, 0, 2));
        let mut inbox = Inbox::new(2, 0);
        inbox.sleep_until(&memory, [2, 0, 0]);
        a.join().unwrap();
    });
}

#[test]
fn loom_no_wake_is_lost_between_two_senders() {
    model(2, || {
        let memory = Memory::new(4);
        let a = spawn(&memory, |m| send_all(m, 0, 1));
        let b = spawn(&memory, |m| send_all(m, 1, 2));
        let mut inbox = Inbox::new(4, 0);
        inbox.sleep_until(&memory, [1, 2, 0]);
        a.join().unwrap();
        b.join().unwrap();
    });
}

/// Sender 0 sends `before` messages and stops in the next; sender 1 goes on.
fn stopped(stop: Stop, slots: usize, before: u64, others: u64) {
    model(2, move || {
        let memory = Memory::new(slots);
        let a = spawn(&memory, move |m| {
            let mut claimer = Claimer::new(0);
            for value in 1..=before {
                while send(m, &mut claimer, value, Stop::Never).is_err() {
                    thread::yield_now();
                }
            }
            while send(m, &mut claimer, before + 1, stop).is_err() {
                thread::yield_now();
            }
        });
        let b = spawn(&memory, move |m| send_all(m, 1, others));
        let mut inbox = Inbox::new(slots, 0);
        inbox.sleep_until(&memory, [before, others, 0]);
        a.join().unwrap();
        b.join().unwrap();
        let freed = inbox.drain.release_dead(&memory.ring(), 0);
        assert_eq!(freed, usize::from(stop != Stop::HintLoad), "what stop {stop:?} leaves behind");
        assert_eq!(inbox.drain.release_dead(&memory.ring(), 0), 0);
        check_whole_ring(&memory, &mut inbox, slots as u64);
    });
}

#[test]
fn loom_a_sender_stops_forever_after_loading_the_hint() {
    stopped(Stop::HintLoad, 2, 0, 2);
}

#[test]
fn loom_a_sender_stops_forever_after_its_claim() {
    stopped(Stop::Claim, 2, 0, 2);
}

#[test]
fn loom_a_sender_stops_forever_after_storing_the_hint() {
    stopped(Stop::HintStore, 2, 0, 2);
}

#[test]
fn loom_a_sender_stops_forever_in_the_payload() {
    stopped(Stop::MidPayload, 2, 0, 2);
}

#[test]
fn loom_a_sender_stops_forever_before_publishing() {
    stopped(Stop::BeforePublish, 2, 0, 2);
}

#[test]
fn loom_a_sender_stops_forever_in_its_second_message() {
    stopped(Stop::Claim, 2, 1, 1);
}
