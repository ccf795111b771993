//! The lock of a domain, which costs nothing where the user has promised to be
//! there alone.
#![allow(unsafe_code)] // A value that is reached by one at a time.

use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A value for one thread at a time.
#[derive(Debug)]
pub struct Lock<T> {
    /// None where the user sees to it.
    mutex: Option<Mutex<()>>,
    value: UnsafeCell<T>,
}

// SAFETY: as a Mutex: the value is reached through a guard only, and of those
// there is one at a time, by the mutex or by `Lock::unlocked`'s promise. It is
// handed from thread to thread, hence Send.
unsafe impl<T: Send> Sync for Lock<T> {}

/// The value, until it is dropped.
pub struct Guard<'a, T> {
    lock: &'a Lock<T>,
    _held: Option<MutexGuard<'a, ()>>,
}

impl<T> Lock<T> {
    /// For any number of threads.
    pub fn new(value: T) -> Self {
        Self { mutex: Some(Mutex::new(())), value: UnsafeCell::new(value) }
    }

    /// For a user who calls from one thread at a time.
    ///
    /// # Safety
    /// [`Lock::lock`] is not called while a guard of it lives. That is what
    /// `FI_THREAD_DOMAIN` promises of the calls of one domain (fi_domain(3)), and no
    /// call holds two guards.
    pub const unsafe fn unlocked(value: T) -> Self {
        Self { mutex: None, value: UnsafeCell::new(value) }
    }

    /// Whether it costs nothing, as [`Lock::unlocked`] has it.
    #[inline]
    pub const fn is_free(&self) -> bool {
        self.mutex.is_none()
    }

    /// The value, once nobody else has it. A panic elsewhere leaves it as usable as
    /// it was: none is thrown in the middle of a change.
    #[inline]
    pub fn lock(&self) -> Guard<'_, T> {
        let held = self.mutex.as_ref().map(|mutex| mutex.lock().unwrap_or_else(PoisonError::into_inner));
        Guard { lock: self, _held: held }
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: this guard is the only one, see `Lock`; the reference lives no
        // longer than the borrow of it.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above, and the guard is borrowed for as long.
        unsafe { &mut *self.lock.value.get() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_threads_have_it_in_turn() {
        let lock = Lock::new(0);
        std::thread::scope(|threads| {
            for _ in 0..4 {
                threads.spawn(|| (0..1000).for_each(|_| *lock.lock() += 1));
            }
        });
        assert_eq!(*lock.lock(), 4000);
    }

    #[test]
    fn one_thread_has_it_without_a_lock() {
        // SAFETY: one guard at a time, below.
        let lock = unsafe { Lock::unlocked(1) };
        *lock.lock() += 1;
        assert_eq!(*lock.lock(), 2);
    }
}
