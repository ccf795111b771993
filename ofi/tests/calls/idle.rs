//! Idle polls: of many empty polls in a row, of a caller for whom the domain has no lock, most look
//! for a message only. Nothing may be lost by that.
#![allow(unsafe_code)] // Calls C functions, and forks.

use std::time::Instant;

use lmt_fi::abi::fabric::{DomainAttr, THREAD_DOMAIN};
use lmt_fi::abi::{ADDR_UNSPEC, Errno};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, fork};

use crate::harness::{Side, context, free, getinfo, open_domain, open_side};
use crate::others::{Other, TIME_LIMIT, has_role};

/// More than come before the idle ones, and than are idle in a row.
const POLLS: usize = 40;

/// An endpoint in a domain of its own, whose user calls from one thread.
fn open() -> Side {
    // SAFETY: null pointers and zeros are valid for all its fields.
    let mut domain: DomainAttr = unsafe { std::mem::zeroed() };
    domain.threading = THREAD_DOMAIN;
    let info = getinfo(|hints| hints.domain_attr = &raw mut domain).expect("an offer");
    let (_, domain) = open_domain(info);
    let side = open_side(domain, info, 0);
    free(info);
    side
}

/// Two that are connected.
fn two() -> (Side, Side) {
    let (mut one, mut two) = (open(), open());
    (one.peer, two.peer) = (one.insert(&two.name()), two.insert(&one.name()));
    exchange(&one, &two, 0, 0);
    (one, two)
}

/// Polls that find nothing.
fn poll_empty(side: &Side, polls: usize) {
    for _ in 0..polls {
        assert_eq!(side.read().map(drop), Err(Errno::AGAIN.returned()));
    }
}

/// A message to `two`, which has polled so often before it is sent.
fn exchange(one: &Side, two: &Side, polls: usize, value: u8) {
    let (from, mut into) = ([value; 8], [0; 8]);
    assert_eq!(two.trecv(&mut into, ADDR_UNSPEC, 1, 0, 2), 0);
    poll_empty(two, polls);
    assert_eq!(one.tsend(&from, 1, 1), 0);
    assert_eq!(two.wait(one).0.op_context, context(2));
    assert_eq!(into, from, "after {polls} polls");
    assert_eq!(one.wait(two).0.op_context, context(1));
}

#[test]
fn a_message_is_found_by_the_next_poll_however_many_were_empty() {
    let (one, two) = two();
    for polls in 0..POLLS {
        let (from, mut into) = ([polls as u8; 8], [0; 8]);
        assert_eq!(two.trecv(&mut into, ADDR_UNSPEC, 1, 0, 2), 0);
        poll_empty(&two, polls);
        assert_eq!(one.tsend(&from, 1, 1), 0);
        assert_eq!(one.read().expect("it has gone").0.op_context, context(1));
        let (end, _) = two.read().expect("it lies in the box at which each poll looks");
        assert_eq!((end.op_context, into), (context(2), from), "after {polls} polls");
    }
    [one, two].into_iter().for_each(Side::close);
}

#[test]
fn what_a_call_has_ended_is_found_by_the_next_poll() {
    let (one, two) = two();
    for polls in 0..POLLS {
        let mut never = [0; 8];
        assert_eq!(two.trecv(&mut never, ADDR_UNSPEC, 9, 0, 3), 0);
        poll_empty(&two, polls);
        assert_eq!(two.cancel(3), 0);
        // Asked for nothing, it does not take it.
        // SAFETY: a queue.
        let read = unsafe { ((*(*two.cq).ops).read)(two.cq, std::ptr::null_mut(), 0) };
        assert_eq!(read, Errno::AGAIN.returned());
        assert_eq!(two.read().map(drop), Err(Errno::AVAIL.returned()), "after {polls} polls");
        assert_eq!(two.read_error().op_context, context(3));
    }
    [one, two].into_iter().for_each(Side::close);
}

/// Sockets are looked at, too.
#[test]
fn who_only_polls_lets_others_connect() {
    let (one, two) = two();
    let mut third = open();
    third.peer = third.insert(&two.name());
    let mut into = [0; 8];
    assert_eq!(two.trecv(&mut into, ADDR_UNSPEC, 1, 0, 2), 0);
    poll_empty(&two, POLLS);
    assert_eq!(third.tsend(&[7; 8], 1, 1), 0);
    let start = Instant::now();
    while two.read().is_err() {
        // It connects, and is told that its message has gone.
        let _ = third.read();
        assert!(start.elapsed() < TIME_LIMIT, "it never came");
    }
    assert_eq!(into, [7; 8]);
    [one, two, third].into_iter().for_each(Side::close);
}

/// Another process, in which nobody else holds a lock while it forks.
#[test]
fn forker() {
    if !has_role("idle::forker") {
        return;
    }
    // Its name, which nobody wants.
    println!("says 00");
    let (one, two) = two();
    poll_empty(&two, POLLS);
    // SAFETY: this process has one thread beside the test harness's, which waits for it.
    match unsafe { fork() }.expect("a child") {
        ForkResult::Child => {
            // SAFETY: a child that hangs is killed, and its parent says so.
            unsafe { libc::alarm(10) };
            let found = (0..POLLS).filter(|_| two.read().is_ok()).count();
            // SAFETY: ends the process at once, which is always allowed.
            unsafe { libc::_exit(i32::from(found > 0)) }
        }
        ForkResult::Parent { child } => {
            assert_eq!(waitpid(child, None), Ok(WaitStatus::Exited(child, 0)));
        }
    }
    exchange(&one, &two, POLLS, 3);
    [one, two].into_iter().for_each(Side::close);
    println!("says done");
}

#[test]
fn a_forked_child_that_polls_is_told_nothing_and_lives() {
    let other = Other::start("idle::forker", &[]);
    assert_eq!(other.says.recv_timeout(TIME_LIMIT).as_deref(), Ok("done"));
}
