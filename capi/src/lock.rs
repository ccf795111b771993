//! A lock that is held for moments only, and is not waited for in vain: a forked
//! child does not have the thread that held it at the fork.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use lmt_core::fork_guard::Origin;

/// A holder has written down which process it belongs to long before.
const PATIENCE: Duration = Duration::from_millis(200);

/// A value behind such a lock.
pub struct ShortLock<T> {
    value: Mutex<T>,
    /// The process ([`Origin::number`]) whose thread took the lock last.
    holder: AtomicU64,
}

impl<T> ShortLock<T> {
    pub const fn new(value: T) -> Self {
        Self { value: Mutex::new(value), holder: AtomicU64::new(0) }
    }

    /// Locks what a panic leaves as good as it was. `None`: this process was
    /// forked while a thread held it, which never gives it back here.
    pub fn lock(&self) -> Option<MutexGuard<'_, T>> {
        let here = Origin::here().number();
        let mut since = None;
        loop {
            let found = match self.value.try_lock() {
                Ok(guard) => Some(guard),
                Err(TryLockError::Poisoned(guard)) => Some(guard.into_inner()),
                Err(TryLockError::WouldBlock) => None,
            };
            // Relaxed, both: a number of this process is seen as it is by its own
            // threads, sooner or later; fork orders a child after its parent.
            if let Some(guard) = found {
                self.holder.store(here, Ordering::Relaxed);
                return Some(guard);
            }
            let waited = since.get_or_insert_with(Instant::now).elapsed();
            if waited > PATIENCE && self.holder.load(Ordering::Relaxed) != here {
                return None;
            }
            std::thread::yield_now();
        }
    }
}

#[cfg(test)]
impl<T> ShortLock<T> {
    /// As a forked child finds one that was held at the fork.
    pub fn forget_holder(&self) {
        self.holder.store(u64::MAX, Ordering::Relaxed);
    }
}

/// Locks a mutex that is held by threads of this process only; of what a panic has
/// left it says so.
pub fn lock_or_broken<T>(mutex: &Mutex<T>) -> (MutexGuard<'_, T>, bool) {
    match mutex.lock() {
        Ok(guard) => (guard, false),
        Err(poisoned) => (PoisonError::into_inner(poisoned), true),
    }
}

#[cfg(test)]
#[path = "lock_tests.rs"]
mod tests;
