//! Blocking until a queue has something (fi_cq(3), fi_poll(3)).
#![allow(unsafe_code)] // Calls C functions.

use std::ffi::c_int;
use std::ptr;
use std::time::{Duration, Instant};

use lmt_fi::abi::Errno;
use lmt_fi::abi::eq::CqTaggedEntry;

use crate::harness::{Pair, Side, context, pair};

/// `fi_trywait` of one side's queue.
fn try_wait(pair: &Pair, side: &Side) -> c_int {
    let mut fids = [side.cq.cast()];
    // SAFETY: a fabric and a queue of its.
    unsafe { ((*(*pair.fabric).ops).trywait)(pair.fabric, fids.as_mut_ptr(), 1) }
}

/// `fi_cq_sread` of so many.
fn read_blocking(side: &Side, count: usize, timeout_ms: c_int) -> isize {
    // SAFETY: zeros are valid for all its fields.
    let mut entry: CqTaggedEntry = unsafe { std::mem::zeroed() };
    assert!(count <= 1);
    let entries = (&raw mut entry).cast();
    // SAFETY: a queue and room for one entry.
    unsafe { ((*(*side.cq).ops).sread)(side.cq, entries, count, ptr::null(), timeout_ms) }
}

/// How long this thread has run.
fn cpu_time() -> Duration {
    let time = nix::time::clock_gettime(nix::time::ClockId::CLOCK_THREAD_CPUTIME_ID);
    Duration::from(time.expect("a clock of this thread"))
}

#[test]
fn a_blocking_read_sleeps_after_the_time_of_a_trywait_is_over() {
    let pair = pair();
    let one = &pair.one;
    assert_eq!(try_wait(&pair, one), 0);
    // Longer than an engine lets its user sleep.
    std::thread::sleep(Duration::from_millis(1200));
    let (before, start) = (cpu_time(), Instant::now());
    assert_eq!(read_blocking(one, 1, 800), Errno::AGAIN.returned());
    assert!(start.elapsed() >= Duration::from_millis(790));
    let used = cpu_time() - before;
    assert!(used < Duration::from_millis(300), "{used:?} of 800 ms");
    pair.close();
}

#[test]
fn a_blocking_read_of_nothing_returns_when_something_is_there() {
    let pair = pair();
    let (one, two) = (&pair.one, &pair.two);
    assert_eq!(read_blocking(one, 0, 20), Errno::AGAIN.returned());
    // SAFETY: an endpoint, and a byte that lives on.
    let sent = unsafe {
        let tagged = &*(*one.ep).tagged;
        (tagged.send)(one.ep, b"x".as_ptr().cast(), 1, ptr::null_mut(), one.peer, 1, context(7))
    };
    assert_eq!(sent, 0);
    let start = Instant::now();
    while try_wait(&pair, one) == 0 {
        // SAFETY: a queue; it is asked for nothing, but makes progress.
        unsafe { ((*(*two.cq).ops).read)(two.cq, ptr::null_mut(), 0) };
        assert!(start.elapsed() < Duration::from_secs(20));
    }
    let start = Instant::now();
    while read_blocking(one, 0, 100) != 0 {
        assert!(start.elapsed() < Duration::from_secs(20));
    }
    assert_eq!(one.wait(two).0.op_context, context(7), "it is still there");
    pair.close();
}

#[test]
fn a_signal_has_who_asks_look_once() {
    let pair = pair();
    let one = &pair.one;
    assert_eq!(try_wait(&pair, one), 0);
    for _ in 0..2 {
        // SAFETY: a queue.
        assert_eq!(unsafe { ((*(*one.cq).ops).signal)(one.cq) }, 0);
    }
    assert_eq!(try_wait(&pair, one), Errno::AGAIN.returned_int());
    assert_eq!(try_wait(&pair, one), 0);
    pair.close();
}
