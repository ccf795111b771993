//! Multi-receive buffers: the order in which they are filled.

use std::ptr;

use lmt_fi::abi::endpoint::OPT_MIN_MULTI_RECV;
use lmt_fi::abi::{ADDR_UNSPEC, Errno, flags};

use super::harness::{Pair, Side, context, pair, until_taken};

/// They are given back when less than this is left.
fn give_back_below(side: &Side, least: usize) {
    let value = (&raw const least).cast();
    // SAFETY: an endpoint and a number.
    let set = unsafe {
        ((*(*side.ep).ops).setopt)(side.ep.cast(), 0, OPT_MIN_MULTI_RECV, value, size_of::<usize>())
    };
    assert_eq!(set, 0);
}

fn send(side: &Side, from: &[u8], number: usize) -> isize {
    let (address, bytes) = (from.as_ptr().cast(), from.len());
    // SAFETY: an endpoint, and memory that the tests keep until it is sent.
    unsafe { ((*(*side.ep).msg).send)(side.ep, address, bytes, ptr::null_mut(), side.peer, context(number)) }
}

fn receive(side: &Side, into: &mut [u8], number: usize) -> isize {
    let (address, bytes) = (into.as_mut_ptr().cast(), into.len());
    // SAFETY: an endpoint, and memory that the tests keep until it is received.
    unsafe {
        ((*(*side.ep).msg).recv)(side.ep, address, bytes, ptr::null_mut(), ADDR_UNSPEC, context(number))
    }
}

/// Messages of `bytes` bytes that fill two buffers, the second behind the first.
fn fill_two(bytes: usize, are_sent_first: bool, is_directed: bool) {
    const EACH: usize = 8;
    let Pair { one, two, .. } = &pair();
    give_back_below(two, bytes);
    let mut rooms = [vec![0_u8; EACH * bytes], vec![0_u8; EACH * bytes]];
    let text = vec![5_u8; bytes];
    let send_all = || (0..2 * EACH).for_each(|at| assert_eq!(until_taken(two, || send(one, &text, at)), 0));
    if are_sent_first {
        send_all();
    }
    for (number, room) in rooms.iter_mut().enumerate() {
        let from = if is_directed && number == 0 { two.peer } else { ADDR_UNSPEC };
        assert_eq!(two.recv_many(room, from, number), 0);
    }
    if !are_sent_first {
        send_all();
    }
    for at in 0..2 * EACH {
        let (entry, _) = two.wait(one);
        let case = format!("message {at} of {bytes} bytes, {are_sent_first}, {is_directed}");
        assert_eq!(entry.op_context, context(at / EACH), "{case}");
        let start = rooms[at / EACH].as_ptr().addr();
        assert_eq!(entry.buf.addr(), start + at % EACH * bytes, "{case}");
        assert_eq!(entry.flags & flags::MULTI_RECV != 0, at % EACH == EACH - 1, "{case}");
    }
    assert!(rooms.iter().flatten().all(|byte| *byte == 5));
    (0..2 * EACH).for_each(|at| assert_eq!(one.wait(two).0.op_context, context(at)));
}

#[test]
fn the_first_buffer_is_filled_before_the_second_however_messages_travel() {
    for bytes in [16, 1024, 20_000, 1 << 20] {
        for are_sent_first in [false, true] {
            for is_directed in [false, true] {
                fill_two(bytes, are_sent_first, is_directed);
            }
        }
    }
}

#[test]
fn a_receive_behind_a_buffer_gets_what_comes_when_that_is_given_back() {
    let Pair { one, two, .. } = &pair();
    give_back_below(two, 16);
    let (mut room, mut behind) = ([0; 64], [0; 16]);
    assert_eq!(two.recv_many(&mut room, ADDR_UNSPEC, 1), 0);
    assert_eq!(receive(two, &mut behind, 2), 0);
    for (at, number) in [1, 1, 1, 1, 2].into_iter().enumerate() {
        assert_eq!(until_taken(two, || one.inject(&[at as u8; 16])), 0);
        assert_eq!(two.wait(one).0.op_context, context(number), "message {at}");
    }
    assert_eq!((&room[48..], behind), (&[3; 16][..], [4; 16]));
}

#[test]
fn a_buffer_for_one_peer_leaves_others_their_receives() {
    let Pair { one, two, .. } = &pair();
    let (mut theirs, mut behind) = (vec![0; 1 << 20], [0; 16]);
    assert_eq!(two.recv_many(&mut theirs, two.peer, 1), 0);
    assert_eq!(receive(two, &mut behind, 2), 0);
    let inject_itself =
        // SAFETY: an endpoint, and bytes for the call.
        || unsafe { ((*(*two.ep).msg).inject)(two.ep, [7_u8; 16].as_ptr().cast(), 16, two.own) };
    assert_eq!(until_taken(one, inject_itself), 0);
    assert_eq!((two.wait(one).0.op_context, behind), (context(2), [7; 16]));
    assert_eq!(until_taken(two, || one.inject(b"theirs")), 0);
    assert_eq!(two.wait(one).0.op_context, context(1));
}

#[test]
fn a_message_that_is_too_long_for_what_is_left_is_cut_and_ends_the_buffer() {
    let Pair { one, two, .. } = &pair();
    give_back_below(two, 1);
    for bytes in [100, 20_000, 1 << 20] {
        let (mut room, mut behind) = ([0; 40], [0; 8]);
        assert_eq!(two.recv_many(&mut room, ADDR_UNSPEC, 1), 0);
        assert_eq!(receive(two, &mut behind, 2), 0);
        assert_eq!(until_taken(two, || one.inject(&[1; 10])), 0);
        let text = vec![2; bytes];
        assert_eq!(until_taken(two, || send(one, &text, 3)), 0);
        assert_eq!(two.wait(one).0.len, 10);
        let error = two.wait_error(one);
        assert_eq!((error.op_context, error.err, error.olen), (context(1), Errno::TRUNC.0, bytes - 24));
        assert_eq!((error.buf.addr(), error.len), (room.as_ptr().addr() + 16, 24));
        assert_eq!(error.flags & flags::MULTI_RECV, flags::MULTI_RECV);
        assert_eq!(until_taken(two, || one.inject(b"in order")), 0);
        assert_eq!(two.wait(one).0.op_context, context(2));
        assert_eq!((&room[..10], &room[16..], &behind), (&[1; 10][..], &[2; 24][..], b"in order"));
        assert_eq!(one.wait(two).0.op_context, context(3));
    }
}

#[test]
fn a_buffer_is_cancelled_behind_its_messages() {
    let Pair { one, two, .. } = &pair();
    let mut room = vec![0; 4 << 20];
    assert_eq!(two.recv_many(&mut room, ADDR_UNSPEC, 1), 0);
    let text = vec![2; 2 << 20];
    assert_eq!(until_taken(two, || send(one, &text, 3)), 0);
    assert_eq!(two.wait(one).0.len, text.len());
    assert_eq!((two.cancel(1), two.cancel(1)), (0, Errno::NOENT.returned()));
    let error = two.wait_error(one);
    assert_eq!((error.op_context, error.err), (context(1), Errno::CANCELED.0));
    assert_eq!(error.flags & flags::MULTI_RECV, flags::MULTI_RECV);
}
