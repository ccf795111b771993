//! A peer that is killed: what names it ends with an error, within a second.
#![allow(unsafe_code)] // Calls C functions.

use std::ptr;
use std::time::{Duration, Instant};

use lmt_fi::abi::{Errno, flags};

use crate::harness::{Side, context, until_taken};
use crate::others::{Other, TIME_LIMIT, from_text, has_role, introduce, open, to_text};

/// The other process: says its name, and sends one message to whom it is told.
#[test]
fn victim() {
    if !has_role("death::victim") {
        return;
    }
    let mut side = open();
    let words = introduce(&side);
    let bytes = from_text(&words[0]);
    side.peer = side.insert(&bytes);
    // SAFETY: an endpoint, and bytes for the call.
    let inject = || unsafe { ((*(*side.ep).tagged).inject)(side.ep, b"x".as_ptr().cast(), 1, side.peer, 1) };
    // The other process makes progress by itself.
    assert_eq!(until_taken(&side, inject), 0);
    let start = Instant::now();
    while start.elapsed() < TIME_LIMIT {
        let _progress = side.read();
    }
}

#[test]
fn operations_with_a_killed_peer_end_within_a_second() {
    let mut side = open();
    let mut victim = Other::start("death::victim", &[]);
    side.peer = side.insert(&victim.name);
    victim.tell(&to_text(&side.name()));
    // One message tells that both are connected.
    let mut into = [0_u8; 1];
    let receive = |into: &mut [u8], number| {
        let (address, bytes) = (into.as_mut_ptr().cast(), into.len());
        // SAFETY: an endpoint, and memory that is kept until it is received.
        unsafe {
            let tagged = &*(*side.ep).tagged;
            (tagged.recv)(side.ep, address, bytes, ptr::null_mut(), side.peer, 1, 0, context(number))
        }
    };
    assert_eq!(receive(&mut into, 1), 0);
    assert_eq!(poll(&side, TIME_LIMIT), Ok(context(1)));
    // Two that never end: a receive, and a send that nobody receives.
    let long = vec![0_u8; 4 << 20];
    assert_eq!(receive(&mut into, 2), 0);
    // SAFETY: an endpoint, and memory that is kept until it is sent.
    let sent = unsafe {
        let tagged = &*(*side.ep).tagged;
        (tagged.send)(side.ep, long.as_ptr().cast(), long.len(), ptr::null_mut(), side.peer, 9, context(3))
    };
    assert_eq!(sent, 0);
    victim.kill();
    let mut ended = [poll(&side, Duration::from_secs(1)), poll(&side, Duration::from_secs(1))];
    ended.sort_unstable_by_key(|end| format!("{end:?}"));
    let reset = |number, flags| Err(Some((context(number), Errno::CONNRESET.0, flags)));
    assert!(ended.contains(&reset(2, flags::TAGGED | flags::RECV)), "{ended:?}");
    assert!(ended.contains(&reset(3, flags::TAGGED | flags::SEND)), "{ended:?}");
}

type Failed = Option<(*mut std::ffi::c_void, i32, u64)>;

/// The next completion's context, or its failure, or nothing in time.
fn poll(side: &Side, limit: Duration) -> Result<*mut std::ffi::c_void, Failed> {
    let start = Instant::now();
    while start.elapsed() < limit {
        match side.read() {
            Ok((entry, _)) => return Ok(entry.op_context),
            Err(error) if error == Errno::AVAIL.returned() => {
                let entry = side.read_error();
                return Err(Some((entry.op_context, entry.err, entry.flags)));
            }
            Err(_) => {}
        }
    }
    Err(None)
}
