//! The lock of a [`crate::SharedEndpoint`]: who holds it, who sleeps meanwhile,
//! and what becomes of it in a forked child.

use std::ops::{Deref, DerefMut};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

use lmt_core::endpoint::{Engine, OperationError};
use lmt_core::fork_guard::Origin;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;

/// A sleep up to this long need not be cut short.
const SHORT_SLEEP: Duration = Duration::from_millis(1);

/// An engine behind a lock.
pub(crate) struct EngineLock {
    engine: Mutex<Locked>,
    /// How many threads of the application want the lock: the progress thread,
    /// which would take it again at once, lets them go first.
    wanting: AtomicU32,
    /// Outside of the lock, which a forked child may find taken for ever by a
    /// thread that it does not have.
    origin: Origin,
}

struct Locked {
    engine: Engine,
    /// How many threads sleep in the wait descriptor for so long that new
    /// work must wake them.
    sleepers: u32,
}

/// The engine, locked. When it is let go while another thread sleeps, that one
/// is woken for what is left to do.
pub(crate) struct Held<'a>(MutexGuard<'a, Locked>);

impl Deref for Held<'_> {
    type Target = Engine;
    fn deref(&self) -> &Engine {
        &self.0.engine
    }
}

impl DerefMut for Held<'_> {
    fn deref_mut(&mut self) -> &mut Engine {
        &mut self.0.engine
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        if self.0.sleepers > 0 {
            self.0.engine.hand_over();
        }
    }
}

impl EngineLock {
    pub fn new(engine: Engine) -> Self {
        let locked = Locked { engine, sleepers: 0 };
        Self { engine: Mutex::new(locked), wanting: AtomicU32::new(0), origin: Origin::here() }
    }

    pub fn is_forked(&self) -> bool {
        !self.origin.is_this_process()
    }

    /// Whether this is a forked child that finds the lock taken: by a thread
    /// that was in the middle of a change, and does not exist here.
    pub fn is_locked_in_fork(&self) -> bool {
        self.is_forked() && matches!(self.engine.try_lock(), Err(TryLockError::WouldBlock))
    }

    // The engine keeps its invariants on a panic: none is thrown while one of
    // its tables is half changed. So a poisoned lock is taken all the same;
    // else a panic in one thread would hang the scopes of all others.
    fn lock_bare(&self) -> Result<MutexGuard<'_, Locked>, OperationError> {
        if self.is_forked() {
            return Err(OperationError::Forked);
        }
        // Relaxed: the counter only tells the progress thread to be polite.
        self.wanting.fetch_add(1, Ordering::Relaxed);
        let guard = self.engine.lock().unwrap_or_else(PoisonError::into_inner);
        self.wanting.fetch_sub(1, Ordering::Relaxed);
        Ok(guard)
    }

    pub fn lock(&self) -> Result<Held<'_>, OperationError> {
        self.lock_bare().map(Held)
    }

    /// Wakes a thread that sleeps in the wait descriptor.
    pub fn wake(&self) -> Result<(), OperationError> {
        self.lock_bare().map(|locked| locked.engine.ring_self())
    }

    /// Makes progress until nothing moves, then sleeps a moment.
    pub fn work(&self, at_most: Duration) -> Result<(), OperationError> {
        while self.lock_bare()?.engine.progress()? {
            // Relaxed: see `lock_bare`.
            while self.wanting.load(Ordering::Relaxed) > 0 {
                std::thread::yield_now();
            }
        }
        self.sleep(at_most)
    }

    /// Sleeps in the wait descriptor without holding the lock.
    pub fn sleep(&self, at_most: Duration) -> Result<(), OperationError> {
        let (limit, long, descriptor) = {
            let mut locked = self.lock_bare()?;
            if !locked.engine.prepare_to_sleep()? {
                return locked.engine.progress().map(|_| ());
            }
            let Ok(descriptor) = locked.engine.wait_descriptor().try_clone_to_owned() else {
                // No descriptor is left: a thread that yields works as well.
                locked.engine.woken();
                drop(locked);
                std::thread::yield_now();
                return Ok(());
            };
            let limit = locked.engine.sleep_limit().min(at_most);
            let long = u32::from(limit > SHORT_SLEEP);
            locked.sleepers += long;
            (limit, long, descriptor)
        };
        let mut fds = [PollFd::new(descriptor.as_fd(), PollFlags::POLLIN)];
        let timeout = TimeSpec::from_duration(limit);
        // Interrupted or timed out, the next look finds out.
        let _ready = ppoll(&mut fds, Some(timeout), None);
        let mut locked = self.lock_bare()?;
        locked.sleepers -= long;
        locked.engine.woken();
        let moved = locked.engine.progress();
        // The bell is silent now, and others may have waited for it.
        drop(Held(locked));
        moved.map(|_| ())
    }
}
