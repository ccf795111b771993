//! Messages under an owner's matching.
#![allow(unsafe_code)] // Calls C functions.

use std::ptr;

use lmt_fi::abi::{ADDR_UNSPEC, Errno, flags};

use super::matching::{Owner, SENDER, user_addresses};
use crate::harness::{context, insert, name_of};
use crate::messages::pattern;

const LENGTHS: [usize; 9] = [0, 1, 40, 3073, 16_384, 65_536, 100_000, 200_000, 3 << 20];

impl Owner {
    fn send(&self, kind: u64, from: &[u8], tag: u64, data: u64, number: usize) {
        let sent = if kind == flags::TAGGED {
            self.sender.tsenddata(from, tag, data, number)
        } else {
            let (ep, to) = (self.sender.ep, self.sender.peer);
            // SAFETY: an endpoint, and memory that the tests keep until it is sent.
            unsafe {
                let (address, none) = (from.as_ptr().cast(), ptr::null_mut());
                ((*(*ep).msg).senddata)(ep, address, from.len(), none, data, to, context(number))
            }
        };
        assert_eq!(sent, 0);
    }
}

#[test]
fn messages_of_all_lengths_arrive_whether_their_receive_is_there_or_not() {
    let owner = Owner::open();
    for kind in [flags::TAGGED, flags::MSG] {
        let tag = if kind == flags::TAGGED { 5 << 60 | 9 } else { 0 };
        for bytes in LENGTHS {
            for posted_first in [true, false] {
                let (from, mut into) = (pattern(bytes), vec![0; bytes]);
                if posted_first {
                    owner.receive(kind, &mut into, SENDER, tag, 0, 2);
                }
                owner.send(kind, &from, tag, 0xfedc_ba98, 1);
                if !posted_first {
                    owner.until_unexpected(1);
                    assert_eq!(owner.unexpected(), [(tag, SENDER)]);
                    owner.receive(kind, &mut into, SENDER, tag, 0, 2);
                }
                let told = owner.wait();
                assert_eq!((told.context, told.bytes, told.tag), (context(2), bytes, tag));
                assert_eq!(told.flags, user_addresses(kind) | flags::REMOTE_CQ_DATA);
                assert_eq!((told.data, told.source, told.failure), (0xfedc_ba98, SENDER, None));
                assert!(into == from, "{bytes} bytes");
                owner.wait_sent(1);
                assert_eq!(owner.entries(), 0, "the entry came back");
            }
        }
    }
    owner.close();
}

#[test]
fn the_owner_s_endpoint_sends_too_and_its_queue_hears_of_it() {
    let owner = Owner::open();
    let text = pattern(5000);
    let mut into = vec![0; 5000];
    assert_eq!(owner.sender.trecv(&mut into, ADDR_UNSPEC, 3, 0, 4), 0);
    // SAFETY: an endpoint, and memory that is kept until it is sent.
    let sent = unsafe {
        let (address, none) = (text.as_ptr().cast(), ptr::null_mut());
        ((*(*owner.ep).tagged).send)(owner.ep, address, text.len(), none, 0, 3, context(5))
    };
    assert_eq!(sent, 0);
    let told = owner.wait();
    assert_eq!((told.context, told.flags), (context(5), flags::TAGGED | flags::SEND));
    owner.wait_sent(4);
    assert!(into == text);
    owner.close();
}

#[test]
fn messages_are_handed_up_in_the_order_in_which_they_were_sent() {
    let owner = Owner::open();
    let texts: Vec<Vec<u8>> = LENGTHS.iter().chain(&LENGTHS).map(|bytes| pattern(*bytes)).collect();
    let count = texts.len();
    for _round in 0..5 {
        for (number, text) in texts.iter().enumerate() {
            owner.send(flags::TAGGED, text, number as u64, 0, 1);
        }
        owner.until_unexpected(count);
        let tags: Vec<u64> = owner.unexpected().into_iter().map(|(tag, _)| tag).collect();
        assert_eq!(tags, (0..count as u64).collect::<Vec<_>>());
        for (number, text) in texts.iter().enumerate() {
            let mut into = vec![0; text.len()];
            owner.receive(flags::TAGGED, &mut into, ADDR_UNSPEC, 0, u64::MAX, number);
            let told = owner.wait();
            assert_eq!((told.context, told.tag), (context(number), number as u64));
            assert!(into == *text);
        }
    }
    owner.close();
}

#[test]
fn a_message_that_is_dropped_is_received_by_nobody_and_its_sender_goes_on() {
    let owner = Owner::open();
    for kind in [flags::TAGGED, flags::MSG] {
        for bytes in [10, 100_000, 1 << 20] {
            let text = pattern(bytes);
            owner.send(kind, &text, 0, 0, 1);
            owner.until_unexpected(1);
            assert!(owner.discard(kind, 0) && !owner.discard(kind, 0));
            owner.wait_sent(1);
            assert_eq!(owner.entries(), 0);
        }
    }
    let mut into = [0; 4];
    owner.send(flags::TAGGED, b"next", 0, 0, 1);
    owner.receive(flags::TAGGED, &mut into, SENDER, 0, 0, 2);
    assert_eq!((owner.wait().context, &into), (context(2), b"next"));
    owner.close();
}

#[test]
fn a_message_that_is_too_long_is_cut_and_told_so() {
    let owner = Owner::open();
    for bytes in [10, 5000, 100_000, 1 << 20] {
        for posted_first in [true, false] {
            let (from, mut into) = (pattern(bytes), [0; 7]);
            if posted_first {
                owner.receive(flags::TAGGED, &mut into, SENDER, 1, 0, 2);
            }
            owner.send(flags::TAGGED, &from, 1, 7, 1);
            if !posted_first {
                owner.until_unexpected(1);
                owner.receive(flags::TAGGED, &mut into, SENDER, 1, 0, 2);
            }
            let told = owner.wait();
            assert_eq!((told.context, told.bytes, told.data), (context(2), 7, 7));
            assert_eq!(told.failure, Some((bytes - 7, Errno::TRUNC.0)));
            assert_eq!(into, from[..7]);
            owner.wait_sent(1);
            assert_eq!(owner.entries(), 0);
        }
    }
    owner.close();
}

#[test]
fn a_receive_that_the_owner_takes_back_takes_no_message() {
    let owner = Owner::open();
    let (mut first, mut second) = ([0; 4], [0; 4]);
    owner.receive(flags::TAGGED, &mut first, SENDER, 1, 0, 2);
    // The endpoint has not heard of it: it is the owner's.
    // SAFETY: an endpoint.
    let cancelled = unsafe { ((*(*owner.ep).ops).cancel)(owner.ep.cast(), context(2)) };
    assert_eq!(cancelled, Errno::NOENT.returned());
    assert!(owner.take_back(2) && !owner.take_back(2));
    owner.send(flags::TAGGED, b"here", 1, 0, 1);
    owner.until_unexpected(1);
    owner.receive(flags::TAGGED, &mut second, SENDER, 1, 0, 3);
    assert_eq!(owner.wait().context, context(3));
    assert_eq!((&first, &second), (&[0; 4], b"here"));
    owner.close();
}

#[test]
fn what_the_owner_cannot_take_now_comes_later_and_in_order() {
    let owner = Owner::open();
    owner.refuse(3, 2);
    let mut into = [[0; 2]; 3];
    let [first, second, third] = &mut into;
    owner.receive(flags::TAGGED, first, SENDER, 0, u64::MAX, 0);
    owner.receive(flags::TAGGED, second, SENDER, 0, u64::MAX, 1);
    owner.receive(flags::MSG, third, SENDER, 0, 0, 2);
    owner.send(flags::TAGGED, b"a1", 1, 0, 9);
    owner.send(flags::TAGGED, b"a2", 2, 0, 9);
    owner.send(flags::MSG, b"b1", 0, 0, 9);
    let mut told = [owner.wait(), owner.wait(), owner.wait()].map(|told| (told.context, told.tag));
    told.sort_unstable();
    assert_eq!(told, [(context(0), 1), (context(1), 2), (context(2), 0)]);
    assert_eq!(&into, &[*b"a1", *b"a2", *b"b1"]);
    owner.close();
}

#[test]
fn messages_of_a_sender_that_is_not_known_yet_get_its_number_when_it_is() {
    let owner = Owner::open_unknowing();
    owner.send(flags::TAGGED, b"who?", 1, 0, 1);
    owner.until_unexpected(1);
    assert_eq!(owner.unexpected(), [(1, ADDR_UNSPEC)]);
    // Others become known; that does not help.
    insert(owner.av, &name_of(owner.ep), 77, flags::AV_USER_ID);
    assert_eq!(owner.unexpected(), [(1, ADDR_UNSPEC)]);
    insert(owner.av, &owner.sender.name(), SENDER, flags::AV_USER_ID);
    assert_eq!(owner.unexpected(), [(1, SENDER)]);
    let mut into = [0; 4];
    owner.receive(flags::TAGGED, &mut into, SENDER, 1, 0, 2);
    let told = owner.wait();
    assert_eq!((told.source, &into), (SENDER, b"who?"));
    owner.close();
}

#[test]
fn an_owner_may_insert_an_address_while_it_is_told_of_a_completion() {
    let owner = Owner::open_unknowing();
    owner.send(flags::TAGGED, b"who?", 1, 0, 1);
    owner.until_unexpected(1);
    let mut into = [0; 4];
    owner.receive(flags::TAGGED, &mut into, ADDR_UNSPEC, 2, 0, 2);
    owner.insert_sender_from_within();
    owner.send(flags::TAGGED, b"told", 2, 0, 3);
    assert_eq!(owner.wait().context, context(2));
    // It is asked for with the next look.
    assert_eq!(owner.progress(), None);
    assert_eq!(owner.unexpected(), [(1, SENDER)]);
    owner.receive(flags::TAGGED, &mut into, SENDER, 1, 0, 4);
    assert_eq!((owner.wait().context, &into), (context(4), b"who?"));
    owner.close();
}
