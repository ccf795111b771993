//! The lists that wait for a copying thread, and the thread's turns.
//!
//! The thread works through the lists in turns of one chunk each, so that a
//! long list holds up no short one. Work is handed over under a mutex, which is
//! held for some instructions and never while something is copied; a thread
//! without work sleeps. How far a list is is read without the mutex.
//!
//! **When memory is given back.** A list is touched by the thread only while it
//! is `current`. Who wants it to end takes it out of the waiting lists, or, if
//! it is current, marks it and sleeps until the thread has written its end:
//! the thread looks at the mark after each chunk.

use std::collections::VecDeque;

use crate::engine::CopyFailure;
use crate::outcome::Outcome;
use crate::sync::{Arc, Condvar, Mutex, MutexGuard};

/// A list as the thread sees it.
pub(crate) trait Work {
    /// Copies the next chunk; returns the bytes that are in place now in
    /// addition, and how the list ended if it has.
    fn chunk(&mut self) -> (u64, Option<Result<(), CopyFailure>>);
}

struct Entry<W> {
    work: W,
    outcome: Arc<Outcome>,
}

impl<W> Entry<W> {
    /// Lets go of the memory, then says so.
    fn end(self, failure: Option<CopyFailure>) {
        drop(self.work);
        self.outcome.end(failure);
    }
}

struct Lists<W> {
    waiting: VecDeque<Entry<W>>,
    /// The list of which a chunk is being copied now.
    current: Option<Arc<Outcome>>,
    /// Whether that one is to end after the chunk.
    cancelled: bool,
    /// Nothing is begun any more.
    closed: bool,
    /// Outcomes for lists to come; one that somebody still looks at is not
    /// taken.
    spare: Vec<Arc<Outcome>>,
}

/// So many outcomes are there from the first: where the thread is slow to let
/// go of one, the next is taken. Models do without, being of few steps.
const SPARE: usize = if cfg!(loom) { 0 } else { 8 };
/// The most that are kept.
const MAX_SPARE: usize = 64;

impl<W> Lists<W> {
    /// An outcome that nobody else has.
    fn outcome(&mut self) -> Arc<Outcome> {
        for at in (0..self.spare.len()).rev() {
            if let Some(outcome) = Arc::get_mut(&mut self.spare[at]) {
                *outcome = Outcome::new();
                return self.spare.swap_remove(at);
            }
        }
        Arc::new(Outcome::new())
    }
}

/// The meeting place of those who submit and the thread that copies.
pub(crate) struct Queue<W> {
    lists: Mutex<Lists<W>>,
    /// There is a list, or the queue is closed.
    work: Condvar,
    /// A list has ended.
    quiet: Condvar,
}

impl<W: Work> Queue<W> {
    pub fn new() -> Self {
        let spare = (0..SPARE).map(|_| Arc::new(Outcome::new())).collect();
        let lists = Lists { waiting: VecDeque::new(), current: None, cancelled: false, closed: false, spare };
        Self { lists: Mutex::new(lists), work: Condvar::new(), quiet: Condvar::new() }
    }

    /// The lists; a panic elsewhere leaves them as they are between two
    /// statements, which is in order at any of them.
    fn lock(&self) -> MutexGuard<'_, Lists<W>> {
        self.lists.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Adds a list behind those that wait; `None` when the queue is closed.
    pub fn push(&self, work: W) -> Option<Arc<Outcome>> {
        let mut lists = self.lock();
        if lists.closed {
            return None;
        }
        let outcome = lists.outcome();
        lists.waiting.push_back(Entry { work, outcome: Arc::clone(&outcome) });
        drop(lists);
        self.work.notify_one();
        Some(outcome)
    }

    /// Takes a list out if it waits, or marks it. Never waits for a copy.
    fn withdraw(&self, outcome: &Arc<Outcome>) -> MutexGuard<'_, Lists<W>> {
        let mut lists = self.lock();
        if let Some(at) = lists.waiting.iter().position(|entry| Arc::ptr_eq(&entry.outcome, outcome)) {
            if let Some(entry) = lists.waiting.remove(at) {
                entry.end(Some(CopyFailure::Cancelled));
            }
        } else if lists.current.as_ref().is_some_and(|current| Arc::ptr_eq(current, outcome)) {
            lists.cancelled = true;
        }
        lists
    }

    /// Has a list end as soon as may be.
    pub fn cancel(&self, outcome: &Arc<Outcome>) {
        if !outcome.has_ended() {
            drop(self.withdraw(outcome));
        }
    }

    /// Has a list end and waits until the thread touches none of its memory.
    pub fn quiesce(&self, outcome: &Arc<Outcome>) {
        if outcome.has_ended() {
            return;
        }
        let mut lists = self.withdraw(outcome);
        while !outcome.has_ended() {
            lists = self.quiet.wait(lists).unwrap_or_else(std::sync::PoisonError::into_inner);
        }
    }

    /// Takes back the outcome of a list that has ended, for another.
    pub fn give_back(&self, outcome: Arc<Outcome>) {
        let mut lists = self.lock();
        if lists.spare.len() < MAX_SPARE {
            lists.spare.push(outcome);
        }
    }

    /// Has the thread end after its chunk, and all lists with it.
    pub fn close(&self) {
        let mut lists = self.lock();
        lists.closed = true;
        for entry in lists.waiting.drain(..) {
            entry.end(Some(CopyFailure::EngineGone));
        }
        drop(lists);
        self.work.notify_all();
        self.quiet.notify_all();
    }

    /// The thread's life: copies until the queue is closed. `ended` is called
    /// after each list that has ended by the thread's own doing.
    pub fn run(&self, mut ended: impl FnMut()) {
        let _last = EndOnDrop(self);
        loop {
            let Some(mut entry) = self.next() else { return };
            let (bytes, end) = entry.work.chunk();
            entry.outcome.add(bytes);
            if self.put_back(entry, end) {
                ended();
            }
        }
    }

    /// Waits for a list and makes it the current one; `None` when closed.
    fn next(&self) -> Option<Entry<W>> {
        let mut lists = self.lock();
        loop {
            if lists.closed {
                return None;
            }
            if let Some(entry) = lists.waiting.pop_front() {
                lists.current = Some(Arc::clone(&entry.outcome));
                lists.cancelled = false;
                return Some(entry);
            }
            lists = self.work.wait(lists).unwrap_or_else(std::sync::PoisonError::into_inner);
        }
    }

    /// After a chunk: the list goes behind the others, or has ended, which is
    /// returned.
    fn put_back(&self, entry: Entry<W>, end: Option<Result<(), CopyFailure>>) -> bool {
        let mut lists = self.lock();
        lists.current = None;
        let end = match end {
            None if lists.closed => Err(CopyFailure::EngineGone),
            None if lists.cancelled => Err(CopyFailure::Cancelled),
            None => {
                lists.waiting.push_back(entry);
                return false;
            }
            Some(end) => end,
        };
        entry.end(end.err());
        drop(lists);
        self.quiet.notify_all();
        true
    }
}

/// When the thread ends, also by a panic, nobody waits for it in vain.
struct EndOnDrop<'a, W: Work>(&'a Queue<W>);

impl<W: Work> Drop for EndOnDrop<'_, W> {
    fn drop(&mut self) {
        self.0.close();
        // A chunk that panicked has let go of its memory by unwinding.
        if let Some(current) = self.0.lock().current.take() {
            current.end(Some(CopyFailure::EngineGone));
        }
        self.0.quiet.notify_all();
    }
}

#[cfg(all(test, not(loom)))]
#[path = "queue_tests.rs"]
mod tests;

#[cfg(all(test, loom))]
#[path = "queue_loom_models.rs"]
mod loom_models;
