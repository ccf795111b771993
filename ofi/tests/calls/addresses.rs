//! Address vectors (fi_av(3)): what becomes of peers whose address is removed.
#![allow(unsafe_code)] // Calls C functions.

use std::ptr;

use lmt_fi::abi::{Errno, FiAddr};

use crate::harness::{Side, context, pair};

/// `fi_av_remove` of one number.
fn remove(side: &Side, mut number: FiAddr) -> i32 {
    // SAFETY: a vector and one number.
    unsafe { ((*(*side.av).ops).remove)(side.av, &raw mut number, 1, 0) }
}

fn send(from: &Side, bytes: &[u8], number: usize) -> isize {
    // SAFETY: an endpoint, and memory that is kept until it is sent.
    unsafe {
        let tagged = &*(*from.ep).tagged;
        (tagged.send)(
            from.ep,
            bytes.as_ptr().cast(),
            bytes.len(),
            ptr::null_mut(),
            from.peer,
            1,
            context(number),
        )
    }
}

fn receive(side: &Side, into: &mut [u8], from: FiAddr, number: usize) {
    let (address, bytes) = (into.as_mut_ptr().cast(), into.len());
    // SAFETY: an endpoint, and memory that is kept until it is received.
    let begun = unsafe {
        let tagged = &*(*side.ep).tagged;
        (tagged.recv)(side.ep, address, bytes, ptr::null_mut(), from, 1, 0, context(number))
    };
    assert_eq!(begun, 0);
}

#[test]
fn a_peer_with_a_transfer_under_way_keeps_its_number() {
    let pair = pair();
    let (one, two) = (&pair.one, &pair.two);
    let (long, mut into) = (vec![5; 4 << 20], vec![0; 4 << 20]);
    // A first message connects them.
    receive(two, &mut into, two.peer, 1);
    assert_eq!(send(one, b"x", 2), 0);
    two.wait(one);
    one.wait(two);
    assert_eq!(send(one, &long, 3), 0);
    assert_eq!(remove(one, one.peer), Errno::BUSY.returned_int());
    // The number is not free, and means the same peer.
    assert_ne!(one.insert(&one.name()), one.peer);
    receive(two, &mut into, two.peer, 4);
    let (_, source) = two.wait(one);
    assert_eq!((source, into == long), (two.peer, true));
    one.wait(two);
    assert_eq!(remove(one, one.peer), 0);
    assert_eq!(remove(one, one.peer), Errno::INVAL.returned_int());
    assert_eq!(send(one, b"x", 5), Errno::INVAL.returned());
    pair.close();
}

/// A peer that was never sent to, nor named by a receive, is forgotten as well: its
/// message that nobody has received is gone with it.
#[test]
fn a_peer_that_has_only_sent_is_forgotten() {
    let pair = pair();
    let (one, two) = (&pair.one, &pair.two);
    assert_eq!(send(one, b"x", 1), 0);
    one.wait(two);
    let mut into = [0; 1];
    let any = lmt_fi::abi::ADDR_UNSPEC;
    receive(two, &mut into, any, 2);
    two.wait(one);
    assert_eq!(send(one, b"y", 3), 0);
    one.wait(two);
    assert_eq!(remove(two, two.peer), 0);
    receive(two, &mut into, any, 4);
    for _ in 0..2000 {
        assert_eq!(two.read().map(|_| ()), Err(Errno::AGAIN.returned()));
    }
    pair.close();
}
