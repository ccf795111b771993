#![allow(unsafe_code)] // loom cells stand for the memory that lists lend.

use loom::cell::UnsafeCell;
use loom::thread;

use super::*;
use crate::engine::State;

/// Memory of one word, which loom watches for races.
type Memory = Arc<UnsafeCell<u64>>;

/// Writes 1, 2, ... into the memory, one word a chunk.
struct Writes {
    memory: Memory,
    at: u64,
    end: u64,
}

impl Writes {
    fn new(memory: &Memory, end: u64) -> Self {
        Self { memory: Arc::clone(memory), at: 0, end }
    }
}

impl Work for Writes {
    fn chunk(&mut self) -> (u64, Option<Result<(), CopyFailure>>) {
        self.at += 1;
        write(&self.memory, self.at);
        (1, (self.at == self.end).then_some(Ok(())))
    }
}

fn write(memory: &Memory, value: u64) {
    memory.with_mut(|word| {
        // SAFETY: what the model checks: nobody else uses it now.
        unsafe { *word = value }
    });
}

fn read(memory: &Memory) -> u64 {
    memory.with(|word| {
        // SAFETY: what the model checks: nobody writes it now.
        unsafe { *word }
    })
}

fn model(body: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(body);
}

fn start(queue: &Arc<Queue<Writes>>) -> thread::JoinHandle<()> {
    let queue = Arc::clone(queue);
    thread::spawn(move || queue.run(|| {}))
}

fn wait(outcome: &Outcome) -> State {
    loop {
        match outcome.look().state {
            State::Running => thread::yield_now(),
            end => return end,
        }
    }
}

/// Who has seen the end of a list may use its memory: no race, all bytes there.
#[test]
fn loom_an_end_that_is_seen_gives_the_memory_back() {
    model(|| {
        let memory = Memory::new(UnsafeCell::new(0));
        let queue = Arc::new(Queue::new());
        let worker = start(&queue);
        let outcome = queue.push(Writes::new(&memory, 2)).expect("it is open");
        assert_eq!(wait(&outcome), State::Done);
        assert_eq!((outcome.look().bytes, read(&memory)), (2, 2));
        write(&memory, 9);
        queue.close();
        worker.join().expect("the thread ends");
    });
}

/// Whatever the thread does just then: after `quiesce` the memory is the
/// caller's.
#[test]
fn loom_quiesce_gives_the_memory_back_at_any_moment() {
    model(|| {
        let memory = Memory::new(UnsafeCell::new(0));
        let queue = Arc::new(Queue::new());
        let worker = start(&queue);
        let outcome = queue.push(Writes::new(&memory, 2)).expect("it is open");
        queue.quiesce(&outcome);
        let seen = outcome.look();
        assert_eq!(seen.bytes, read(&memory), "what was counted is not what was written");
        assert_eq!(seen.state == State::Done, seen.bytes == 2);
        write(&memory, 9);
        queue.close();
        worker.join().expect("the thread ends");
    });
}

/// The queue is closed in the middle: every list ends, and nobody waits in vain.
#[test]
fn loom_closing_ends_every_list() {
    model(|| {
        let (one, other) = (Memory::new(UnsafeCell::new(0)), Memory::new(UnsafeCell::new(0)));
        let queue = Arc::new(Queue::new());
        let worker = start(&queue);
        let first = queue.push(Writes::new(&one, 2)).expect("it is open");
        let second = queue.push(Writes::new(&other, 1)).expect("it is open");
        queue.close();
        worker.join().expect("the thread ends");
        for (outcome, memory) in [(first, one), (second, other)] {
            queue.quiesce(&outcome);
            let seen = outcome.look();
            assert_ne!(seen.state, State::Running);
            assert_eq!(seen.bytes, read(&memory));
        }
        assert!(queue.push(Writes::new(&Memory::new(UnsafeCell::new(0)), 1)).is_none());
    });
}

/// Two lists, one of which is cancelled from another thread than the one that
/// waits for the other.
#[test]
fn loom_lists_do_not_disturb_each_other() {
    model(|| {
        let (one, other) = (Memory::new(UnsafeCell::new(0)), Memory::new(UnsafeCell::new(0)));
        let queue = Arc::new(Queue::new());
        let worker = start(&queue);
        let first = queue.push(Writes::new(&one, 2)).expect("it is open");
        let second = queue.push(Writes::new(&other, 1)).expect("it is open");
        queue.quiesce(&first);
        write(&one, 9);
        assert_eq!(wait(&second), State::Done);
        assert_eq!(read(&other), 1);
        queue.close();
        worker.join().expect("the thread ends");
    });
}
