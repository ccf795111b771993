use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::*;
use crate::engine::State;

/// A list whose chunks end when the test says so, and how.
struct Scripted {
    /// Told when a chunk begins.
    begun: Sender<()>,
    /// What the chunk is to do.
    script: Receiver<Chunk>,
    /// Told when the list lets go of its memory.
    dropped: Sender<()>,
}

#[derive(Clone, Copy)]
enum Chunk {
    More(u64),
    Done(u64),
    Fail(u64, CopyFailure),
    Panic,
}

impl Work for Scripted {
    fn chunk(&mut self) -> (u64, Option<Result<(), CopyFailure>>) {
        self.begun.send(()).unwrap();
        match self.script.recv().unwrap() {
            Chunk::More(bytes) => (bytes, None),
            Chunk::Done(bytes) => (bytes, Some(Ok(()))),
            Chunk::Fail(bytes, failure) => (bytes, Some(Err(failure))),
            Chunk::Panic => panic!("the test asked for it"),
        }
    }
}

impl Drop for Scripted {
    fn drop(&mut self) {
        let _test_is_over = self.dropped.send(());
    }
}

/// The test's end of a scripted list.
struct Remote {
    begun: Receiver<()>,
    script: Sender<Chunk>,
    dropped: Receiver<()>,
    outcome: Arc<Outcome>,
}

impl Remote {
    fn begins(&self) {
        self.begun.recv_timeout(Duration::from_secs(20)).expect("the chunk begins");
    }

    fn say(&self, chunk: Chunk) {
        self.script.send(chunk).unwrap();
    }

    fn state(&self) -> State {
        self.outcome.look().state
    }

    fn ends(&self) -> State {
        let until = Instant::now() + Duration::from_secs(20);
        while self.state() == State::Running {
            assert!(Instant::now() < until, "the list never ended");
            std::thread::sleep(Duration::from_micros(100));
        }
        self.state()
    }
}

type Lists = Arc<Queue<Scripted>>;

fn push(queue: &Lists) -> Option<Remote> {
    let (begun, begun_here) = channel();
    let (script_here, script) = channel();
    let (dropped, dropped_here) = channel();
    let outcome = queue.push(Scripted { begun, script, dropped })?;
    Some(Remote { begun: begun_here, script: script_here, dropped: dropped_here, outcome })
}

fn start() -> (Lists, JoinHandle<()>, Receiver<()>) {
    let queue: Lists = Arc::new(Queue::new());
    let (rings, heard) = channel();
    let own = Arc::clone(&queue);
    let thread = std::thread::spawn(move || own.run(|| rings.send(()).unwrap()));
    (queue, thread, heard)
}

fn stop(queue: &Lists, thread: JoinHandle<()>) {
    queue.close();
    thread.join().unwrap();
    assert!(push(queue).is_none(), "a closed queue takes nothing");
}

#[test]
fn a_list_that_completes_late_is_running_until_then() {
    let (queue, thread, heard) = start();
    let list = push(&queue).unwrap();
    list.begins();
    assert_eq!(list.outcome.look(), crate::engine::Progress { bytes: 0, state: State::Running });
    list.say(Chunk::More(100));
    list.begins();
    assert_eq!(list.outcome.look().bytes, 100);
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!(list.state(), State::Running);
    list.say(Chunk::Done(1));
    assert_eq!(list.ends(), State::Done);
    assert_eq!(list.outcome.look().bytes, 101);
    heard.recv_timeout(Duration::from_secs(20)).expect("the end is announced");
    list.dropped.try_recv().expect("the memory is let go before the end is told");
    stop(&queue, thread);
}

#[test]
fn failures_keep_what_came_before_and_their_errno() {
    let (queue, thread, heard) = start();
    for failure in [CopyFailure::Refused { errno: libc::EFAULT }, CopyFailure::PeerDead] {
        let list = push(&queue).unwrap();
        list.say(Chunk::More(5));
        list.say(Chunk::Fail(2, failure));
        assert_eq!(list.ends(), State::Failed(failure));
        assert_eq!(list.outcome.look().bytes, 7);
        heard.recv_timeout(Duration::from_secs(20)).expect("the end is announced");
    }
    stop(&queue, thread);
}

#[test]
fn a_slow_chunk_holds_quiesce_until_it_has_ended() {
    let (queue, thread, _heard) = start();
    let list = push(&queue).unwrap();
    list.begins();
    let waiter = {
        let (queue, outcome) = (Arc::clone(&queue), Arc::clone(&list.outcome));
        std::thread::spawn(move || queue.quiesce(&outcome))
    };
    std::thread::sleep(Duration::from_millis(30));
    assert!(!waiter.is_finished(), "it gave memory back that is being copied");
    list.say(Chunk::More(9));
    waiter.join().unwrap();
    assert_eq!(list.state(), State::Failed(CopyFailure::Cancelled));
    assert_eq!(list.outcome.look().bytes, 9);
    list.dropped.try_recv().expect("the memory is let go");
    stop(&queue, thread);
}

#[test]
fn what_waits_is_taken_out_at_once() {
    let (queue, thread, _heard) = start();
    let (busy, waiting) = (push(&queue).unwrap(), push(&queue).unwrap());
    busy.begins();
    queue.quiesce(&waiting.outcome);
    assert_eq!(waiting.state(), State::Failed(CopyFailure::Cancelled));
    waiting.dropped.try_recv().expect("the memory is let go");
    assert_eq!(busy.state(), State::Running);
    busy.say(Chunk::Done(1));
    assert_eq!(busy.ends(), State::Done);
    queue.cancel(&busy.outcome);
    queue.quiesce(&busy.outcome);
    assert_eq!(busy.state(), State::Done, "too late is too late");
    stop(&queue, thread);
}

#[test]
fn cancel_does_not_wait() {
    let (queue, thread, _heard) = start();
    let list = push(&queue).unwrap();
    list.begins();
    queue.cancel(&list.outcome);
    assert_eq!(list.state(), State::Running);
    list.say(Chunk::More(3));
    assert_eq!(list.ends(), State::Failed(CopyFailure::Cancelled));
    stop(&queue, thread);
}

#[test]
fn lists_take_turns() {
    let (queue, thread, _heard) = start();
    let long = push(&queue).unwrap();
    long.begins();
    let short = push(&queue).unwrap();
    long.say(Chunk::More(1));
    short.begins();
    short.say(Chunk::Done(1));
    assert_eq!(short.ends(), State::Done);
    long.begins();
    long.say(Chunk::Done(1));
    assert_eq!(long.ends(), State::Done);
    stop(&queue, thread);
}

#[test]
fn closing_ends_what_waits_and_what_runs() {
    let (queue, thread, _heard) = start();
    let (running, waiting) = (push(&queue).unwrap(), push(&queue).unwrap());
    running.begins();
    queue.close();
    assert_eq!(waiting.state(), State::Failed(CopyFailure::EngineGone));
    assert_eq!(running.state(), State::Running);
    running.say(Chunk::More(1));
    assert_eq!(running.ends(), State::Failed(CopyFailure::EngineGone));
    queue.quiesce(&running.outcome);
    stop(&queue, thread);
}

#[test]
fn a_panic_of_the_thread_leaves_nobody_waiting() {
    let (queue, thread, _heard) = start();
    let (running, waiting) = (push(&queue).unwrap(), push(&queue).unwrap());
    running.begins();
    running.say(Chunk::Panic);
    queue.quiesce(&running.outcome);
    queue.quiesce(&waiting.outcome);
    assert!(matches!(running.state(), State::Failed(_)));
    assert!(matches!(waiting.state(), State::Failed(_)));
    assert!(thread.join().is_err());
    assert!(push(&queue).is_none());
}
