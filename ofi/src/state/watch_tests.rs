use std::time::Instant;

use super::*;

fn is_readable(set: &WaitSet) -> bool {
    let mut polled = [PollFd::new(set.epoll.0.as_fd(), PollFlags::POLLIN)];
    ppoll(&mut polled, Some(TimeSpec::from_duration(Duration::ZERO)), None) == Ok(1)
}

fn watch() -> Watch {
    let mut watch = Watch::default();
    watch.wait_in(Arc::new(WaitSet::new().expect("descriptors")));
    watch
}

#[test]
fn who_blocks_without_asking_is_told_to_look() {
    assert!(is_readable(watch().set().expect("a set")));
}

#[test]
fn an_armed_watch_is_quiet_until_it_rings_and_when_its_time_is_over() {
    let mut watch = watch();
    watch.arm(true);
    let set = Arc::clone(watch.set().expect("a set"));
    assert!(watch.is_armed() && !is_readable(&set));
    watch.ring();
    assert!(is_readable(&set));
    watch.arm(true);
    assert!(!is_readable(&set));
    watch.limit(Duration::from_millis(1));
    let start = Instant::now();
    set.sleep(Duration::from_secs(20));
    assert!(start.elapsed() < Duration::from_secs(10));
}

#[test]
fn a_limit_is_over_with_the_look_that_it_was_for() {
    let mut watch = watch();
    watch.arm(true);
    let set = Arc::clone(watch.set().expect("a set"));
    watch.limit(Duration::from_micros(1));
    set.sleep(Duration::from_secs(20));
    assert!(is_readable(&set), "until the user looks");
    watch.user_polls();
    watch.arm(false);
    assert!(!is_readable(&set), "who sleeps next is not woken by it");
}

#[test]
fn nobody_is_rung_for_who_does_not_wait() {
    let mut watch = watch();
    watch.arm(false);
    watch.wake();
    watch.ring();
    assert!(!watch.is_armed() && !is_readable(watch.set().expect("a set")));
}

#[test]
fn who_looks_rings_for_the_threads_that_block() {
    let mut watch = watch();
    watch.arm(true);
    watch.user_polls();
    assert!(!watch.is_armed() && is_readable(watch.set().expect("a set")));
}
