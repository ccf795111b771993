//! An event queue: what has become of requests that end later than their call
//! returns. It belongs to a fabric, and no engine moves for it.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::watch::Watch;
use crate::abi::Errno;

/// A request that failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FailedRequest {
    /// The object that it was for, an address that is only handed back.
    pub fid: usize,
    /// What it was begun with, likewise.
    pub context: usize,
    /// What its kind says, as the number of an address in its list.
    pub data: u64,
    /// Why.
    pub error: Errno,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Event {
    Told { number: u32, bytes: Box<[u8]> },
    Failed(FailedRequest),
}

/// The most events that wait while the user writes more; what the provider tells
/// is never dropped.
const MAX_WRITTEN: usize = 16 << 10;

#[derive(Debug, Default)]
struct Waiting {
    events: VecDeque<Event>,
    watch: Watch,
}

/// Events that wait to be read, oldest first.
#[derive(Debug, Default)]
pub struct Events {
    waiting: Mutex<Waiting>,
    came: Condvar,
}

/// What a read does to the event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AfterRead {
    /// It is gone.
    Take,
    /// The next read finds it again.
    Leave,
}

impl Events {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        // A panic elsewhere leaves it usable: no change has two steps.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, event: Event) {
        self.push_to(&mut self.lock(), event);
    }

    fn push_to(&self, waiting: &mut Waiting, event: Event) {
        waiting.events.push_back(event);
        waiting.watch.ring();
        self.came.notify_all();
    }

    /// The user writes one itself.
    ///
    /// # Errors
    /// [`Errno::AGAIN`]: [`MAX_WRITTEN`] wait to be read.
    pub fn write(&self, number: u32, bytes: &[u8]) -> Result<(), Errno> {
        let mut waiting = self.lock();
        if waiting.events.len() >= MAX_WRITTEN {
            return Err(Errno::AGAIN);
        }
        self.push_to(&mut waiting, Event::Told { number, bytes: bytes.into() });
        Ok(())
    }

    /// Something has happened.
    pub fn tell(&self, number: u32, bytes: &[u8]) {
        self.push(Event::Told { number, bytes: bytes.into() });
    }

    /// A request has failed.
    pub fn fail(&self, failed: FailedRequest) {
        self.push(Event::Failed(failed));
    }

    /// Has `f` write the oldest event, its number and its bytes, to where there is
    /// room for so many bytes; how many it has.
    ///
    /// # Errors
    /// [`Errno::AGAIN`]: there is none; [`Errno::AVAIL`]: it is one of a failure;
    /// [`Errno::TOOSMALL`]: it does not fit, and stays.
    pub fn read(
        &self,
        room_bytes: usize,
        then: AfterRead,
        f: impl FnOnce(u32, &[u8]),
    ) -> Result<usize, Errno> {
        let mut waiting = self.lock();
        waiting.watch.user_polls();
        read(&mut waiting, room_bytes, then, f)
    }

    /// The same, once there is an event, at most until the deadline.
    ///
    /// # Errors
    /// As [`Events::read`].
    pub fn wait(
        &self,
        room_bytes: usize,
        then: AfterRead,
        deadline: Option<Instant>,
        f: impl FnOnce(u32, &[u8]),
    ) -> Result<usize, Errno> {
        let mut waiting = self.lock();
        waiting.watch.user_polls();
        while waiting.events.is_empty() {
            let left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                break;
            }
            let left = left.unwrap_or(Duration::from_secs(3600));
            waiting = match self.came.wait_timeout(waiting, left) {
                Ok((guard, _)) => guard,
                Err(poisoned) => poisoned.into_inner().0,
            };
        }
        read(&mut waiting, room_bytes, then, f)
    }

    /// Takes the oldest event if it is one of a failure.
    pub fn take_failure(&self) -> Option<FailedRequest> {
        let mut waiting = self.lock();
        waiting.watch.user_polls();
        match waiting.events.front() {
            Some(Event::Failed(failed)) => {
                let failed = *failed;
                waiting.events.pop_front();
                Some(failed)
            }
            _ => None,
        }
    }

    /// Calls `f` with who waits for an event that comes through a descriptor.
    pub fn with_watch<T>(&self, f: impl FnOnce(&mut Watch) -> T) -> T {
        f(&mut self.lock().watch)
    }

    /// Whether its user may block, who is woken by what comes from now on.
    pub fn may_block(&self) -> bool {
        let mut waiting = self.lock();
        let is_empty = waiting.events.is_empty();
        if is_empty {
            waiting.watch.arm(true);
        }
        is_empty
    }
}

fn read(
    waiting: &mut Waiting,
    room_bytes: usize,
    then: AfterRead,
    f: impl FnOnce(u32, &[u8]),
) -> Result<usize, Errno> {
    match waiting.events.front() {
        None => Err(Errno::AGAIN),
        Some(Event::Failed(_)) => Err(Errno::AVAIL),
        Some(Event::Told { bytes, .. }) if bytes.len() > room_bytes => Err(Errno::TOOSMALL),
        Some(Event::Told { number, bytes }) => {
            f(*number, bytes);
            let read_bytes = bytes.len();
            if then == AfterRead::Take {
                waiting.events.pop_front();
            }
            Ok(read_bytes)
        }
    }
}

#[cfg(test)]
#[path = "events_tests.rs"]
mod tests;
