//! A lock that is held for moments only, and is not waited for without end.

use std::sync::{Mutex, MutexGuard, TryLockError};
use std::time::{Duration, Instant};

/// Who holds the lock for so long does not come back: it is a thread that this
/// process, a forked child, does not have.
const PATIENCE: Duration = Duration::from_millis(200);

/// Locks what a panic leaves as good as it was; `None` when nobody gives it back.
pub fn patiently<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    let mut since = None;
    loop {
        match mutex.try_lock() {
            Ok(guard) => return Some(guard),
            Err(TryLockError::Poisoned(guard)) => return Some(guard.into_inner()),
            Err(TryLockError::WouldBlock) => {}
        }
        if since.get_or_insert_with(Instant::now).elapsed() > PATIENCE {
            return None;
        }
        std::thread::yield_now();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_does_not_come_back_is_not_waited_for() {
        let mutex = Mutex::new(1);
        let held = patiently(&mutex).expect("nobody holds it");
        let start = Instant::now();
        assert!(patiently(&mutex).is_none());
        assert!((PATIENCE..PATIENCE * 20).contains(&start.elapsed()));
        drop(held);
        assert_eq!(patiently(&mutex).as_deref(), Some(&1));
    }

    #[test]
    fn a_panic_leaves_it_usable() {
        let mutex = Mutex::new(1);
        std::thread::scope(|threads| {
            let panics = threads.spawn(|| {
                let _held = mutex.lock();
                panic!("with the lock");
            });
            assert!(panics.join().is_err());
        });
        assert_eq!(patiently(&mutex).as_deref(), Some(&1));
    }
}
