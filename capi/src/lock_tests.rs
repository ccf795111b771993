use super::*;

#[test]
fn who_was_left_behind_by_a_fork_is_not_waited_for() {
    let lock = ShortLock::new(1);
    let held = lock.lock().expect("nobody holds it");
    // As a child finds it.
    let here = lock.holder.swap(u64::MAX, Ordering::Relaxed);
    let start = Instant::now();
    assert!(lock.lock().is_none());
    assert!((PATIENCE..Duration::from_secs(60)).contains(&start.elapsed()));
    lock.holder.store(here, Ordering::Relaxed);
    drop(held);
    assert_eq!(lock.lock().as_deref(), Some(&1));
}

#[test]
fn a_thread_of_this_process_is_waited_for() {
    let lock = ShortLock::new(1);
    std::thread::scope(|threads| {
        let held = lock.lock().expect("nobody holds it");
        let waits = threads.spawn(|| lock.lock().as_deref().copied());
        std::thread::sleep(PATIENCE * 2);
        drop(held);
        assert_eq!(waits.join().expect("no panic"), Some(1));
    });
}

#[test]
fn a_panic_leaves_it_usable() {
    let lock = ShortLock::new(1);
    std::thread::scope(|threads| {
        let panics = threads.spawn(|| {
            let _held = lock.lock();
            panic!("with the lock");
        });
        assert!(panics.join().is_err());
    });
    assert_eq!(lock.lock().as_deref(), Some(&1));
}
