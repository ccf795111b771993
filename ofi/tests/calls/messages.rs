//! Plain and tagged messages.
#![allow(unsafe_code)] // Calls C functions.

use std::ffi::c_void;
use std::ptr;
use std::time::{Duration, Instant};

use lmt_fi::abi::endpoint::{Msg, OPT_MIN_MULTI_RECV};
use lmt_fi::abi::tagged::MsgTagged;
use lmt_fi::abi::{ADDR_UNSPEC, Errno, FiAddr, flags};

use crate::harness::{Pair, Side, context, pair, share_handoff_cells, until_taken};
use crate::others::TIME_LIMIT;

const TAGGED_RECEIVE: u64 = flags::TAGGED | flags::RECV;
const TAGGED_SEND: u64 = flags::TAGGED | flags::SEND;

impl Side {
    pub fn trecv(&self, into: &mut [u8], from: FiAddr, tag: u64, ignore: u64, number: usize) -> isize {
        let (address, bytes) = (into.as_mut_ptr().cast::<c_void>(), into.len());
        // SAFETY: an endpoint, and memory that the tests keep until it is received.
        unsafe {
            ((*(*self.ep).tagged).recv)(
                self.ep,
                address,
                bytes,
                ptr::null_mut(),
                from,
                tag,
                ignore,
                context(number),
            )
        }
    }

    pub fn tsend(&self, from: &[u8], tag: u64, number: usize) -> isize {
        // SAFETY: an endpoint, and memory that the tests keep until it is sent.
        unsafe {
            ((*(*self.ep).tagged).send)(
                self.ep,
                from.as_ptr().cast(),
                from.len(),
                ptr::null_mut(),
                self.peer,
                tag,
                context(number),
            )
        }
    }

    pub fn tsenddata(&self, from: &[u8], tag: u64, data: u64, number: usize) -> isize {
        // SAFETY: as above.
        unsafe {
            ((*(*self.ep).tagged).senddata)(
                self.ep,
                from.as_ptr().cast(),
                from.len(),
                ptr::null_mut(),
                data,
                self.peer,
                tag,
                context(number),
            )
        }
    }

    /// To another, which makes progress meanwhile.
    pub fn tinject(&self, other: &Self, from: &[u8], tag: u64) -> isize {
        let (address, bytes) = (from.as_ptr().cast(), from.len());
        // SAFETY: an endpoint, and bytes for the call.
        until_taken(other, || unsafe {
            ((*(*self.ep).tagged).inject)(self.ep, address, bytes, self.peer, tag)
        })
    }

    fn trecvmsg(&self, into: &mut [u8], tag: u64, number: usize, with: u64) -> isize {
        let piece = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
        let msg = MsgTagged {
            msg_iov: &raw const piece,
            desc: ptr::null_mut(),
            iov_count: 1,
            addr: ADDR_UNSPEC,
            tag,
            ignore: 0,
            context: context(number),
            data: 0,
        };
        // SAFETY: an endpoint, and memory that the tests keep until it is received.
        unsafe { ((*(*self.ep).tagged).recvmsg)(self.ep, &raw const msg, with) }
    }

    /// Posts a multi-receive buffer.
    pub fn recv_many(&self, into: &mut [u8], from: FiAddr, number: usize) -> isize {
        let iov = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
        let msg = Msg {
            msg_iov: &raw const iov,
            desc: ptr::null_mut(),
            iov_count: 1,
            addr: from,
            context: context(number),
            data: 0,
        };
        // SAFETY: an endpoint, a structure for the call, and memory that the tests
        // keep until it is given back.
        unsafe { ((*(*self.ep).msg).recvmsg)(self.ep, &raw const msg, flags::MULTI_RECV) }
    }

    pub fn inject(&self, from: &[u8]) -> isize {
        // SAFETY: an endpoint, and bytes for the call.
        unsafe { ((*(*self.ep).msg).inject)(self.ep, from.as_ptr().cast(), from.len(), self.peer) }
    }

    fn tsendmsg(&self, from: &[u8], tag: u64, number: usize, with: u64) -> isize {
        let piece = libc::iovec { iov_base: from.as_ptr().cast_mut().cast(), iov_len: from.len() };
        let msg = MsgTagged {
            msg_iov: &raw const piece,
            desc: ptr::null_mut(),
            iov_count: 1,
            addr: self.peer,
            tag,
            ignore: 0,
            context: context(number),
            data: 0,
        };
        // SAFETY: an endpoint, and memory that the tests keep until it is sent.
        unsafe { ((*(*self.ep).tagged).sendmsg)(self.ep, &raw const msg, with) }
    }

    pub fn cancel(&self, number: usize) -> isize {
        // SAFETY: an endpoint.
        unsafe { ((*(*self.ep).ops).cancel)(self.ep.cast(), context(number)) }
    }
}

pub fn pattern(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at * 7 + at / 251) as u8).collect()
}

#[test]
fn tagged_messages_of_all_lengths_arrive_with_tag_number_and_source() {
    let Pair { one, two, .. } = &pair();
    for bytes in [0, 1, 40, 41, 3072, 3073, 4097, 16_384, 100_000, 3 << 20] {
        for posted_first in [true, false] {
            let (from, mut into) = (pattern(bytes), vec![0; bytes]);
            if posted_first {
                assert_eq!(two.trecv(&mut into, ADDR_UNSPEC, 5 << 60 | 9, 0, 2), 0);
            }
            assert_eq!(one.tsenddata(&from, 5 << 60 | 9, 0xfedc_ba98, 1), 0);
            if !posted_first {
                assert_eq!(two.trecv(&mut into, ADDR_UNSPEC, 5 << 60 | 9, 0, 2), 0);
            }
            let (received, source) = two.wait(one);
            assert_eq!((received.op_context, received.len, received.tag), (context(2), bytes, 5 << 60 | 9));
            assert_eq!(received.flags, TAGGED_RECEIVE | flags::REMOTE_CQ_DATA);
            assert_eq!((received.data, source), (0xfedc_ba98, two.peer));
            assert!(into == from, "{bytes} bytes");
            let (sent, _) = one.wait(two);
            assert_eq!((sent.op_context, sent.flags), (context(1), TAGGED_SEND));
        }
    }
}

#[test]
fn plain_and_tagged_messages_do_not_match_each_other() {
    let Pair { one, two, .. } = &pair();
    let (mut plain, mut tagged) = ([0; 5], [0; 6]);
    assert_eq!(two.trecv(&mut tagged, ADDR_UNSPEC, 0, u64::MAX, 1), 0);
    // SAFETY: an endpoint, and memory that is kept until it is received.
    let posted = unsafe {
        let (address, bytes) = (plain.as_mut_ptr().cast(), plain.len());
        ((*(*two.ep).msg).recv)(two.ep, address, bytes, ptr::null_mut(), ADDR_UNSPEC, context(2))
    };
    assert_eq!(posted, 0);
    assert_eq!(until_taken(two, || one.inject(b"plain")), 0);
    let (received, _) = two.wait(one);
    assert_eq!((received.op_context, received.flags), (context(2), flags::MSG | flags::RECV));
    assert_eq!(one.tinject(two, b"tagged", 3), 0);
    assert_eq!(two.wait(one).0.op_context, context(1));
    assert_eq!((&plain, &tagged), (b"plain", b"tagged"));
}

#[test]
fn a_message_that_is_too_long_is_cut_and_told_so() {
    let Pair { one, two, .. } = &pair();
    for bytes in [100, 5000, 400_000] {
        let (from, mut into) = (pattern(bytes), [0; 10]);
        assert_eq!(two.trecv(&mut into, ADDR_UNSPEC, 6, 0, 3), 0);
        assert_eq!(one.tsenddata(&from, 6, 99, 4), 0);
        let failure = two.wait_error(one);
        assert_eq!((failure.op_context, failure.err), (context(3), Errno::TRUNC.0));
        assert_eq!((failure.len, failure.olen, failure.tag, failure.data), (10, bytes - 10, 6, 99));
        assert_eq!(into, from[..10]);
        assert_eq!(one.wait(two).0.op_context, context(4));
    }
}

#[test]
fn a_receive_that_is_taken_back_takes_no_message() {
    let Pair { one, two, .. } = &pair();
    let (mut never, mut into) = ([0; 4], [0; 4]);
    assert_eq!(two.trecv(&mut never, ADDR_UNSPEC, 8, 0, 1), 0);
    assert_eq!(two.cancel(1), 0);
    let failure = two.wait_error(one);
    assert_eq!((failure.op_context, failure.err), (context(1), Errno::CANCELED.0));
    assert_eq!(two.cancel(1), Errno::NOENT.returned());
    assert_eq!(two.trecv(&mut into, ADDR_UNSPEC, 8, 0, 2), 0);
    assert_eq!(one.tinject(two, b"late", 8), 0);
    assert_eq!(two.wait(one).0.op_context, context(2));
    assert_eq!((&never, &into), (&[0; 4], b"late"));
}

#[test]
fn a_message_is_found_kept_received_or_dropped() {
    let Pair { one, two, .. } = &pair();
    let (mut into, text) = (vec![0; 6000], pattern(6000));
    assert_eq!(two.trecvmsg(&mut [], 4, 1, flags::PEEK), 0);
    let failure = two.wait_error(one);
    assert_eq!((failure.op_context, failure.err), (context(1), Errno::NOMSG.0));
    assert_eq!(one.tsenddata(&text, 4, 7, 9), 0);
    // Looking again and again, until it is there.
    let found = loop {
        assert_eq!(two.trecvmsg(&mut [], 4, 1, flags::PEEK), 0);
        match two.read() {
            Ok((entry, _)) => break entry,
            Err(_) => assert_eq!(two.read_error().err, Errno::NOMSG.0),
        }
        let _progress = one.read();
    };
    assert_eq!((found.len, found.tag, found.data), (6000, 4, 7));
    assert_eq!(found.flags, TAGGED_RECEIVE | flags::REMOTE_CQ_DATA);
    assert_eq!(two.trecvmsg(&mut [], 4, 2, flags::PEEK | flags::CLAIM), 0);
    assert_eq!(two.wait(one).0.op_context, context(2));
    // Kept, it is found no more.
    assert_eq!(two.trecvmsg(&mut [], 4, 3, flags::PEEK), 0);
    assert_eq!(two.wait_error(one).err, Errno::NOMSG.0);
    assert_eq!(two.trecvmsg(&mut into, 4, 2, flags::CLAIM), 0);
    let (received, source) = two.wait(one);
    assert_eq!((received.op_context, received.len, source), (context(2), 6000, two.peer));
    assert!(into == text);
    for with in [flags::PEEK | flags::DISCARD, flags::PEEK | flags::CLAIM] {
        assert_eq!(one.tinject(two, b"never received", 4), 0);
        loop {
            assert_eq!(two.trecvmsg(&mut [], 4, 5, with), 0);
            match two.read() {
                Ok((entry, _)) => break assert_eq!(entry.len, 14),
                Err(_) => assert_eq!(two.read_error().err, Errno::NOMSG.0),
            }
        }
    }
    assert_eq!(two.trecvmsg(&mut [], 4, 5, flags::CLAIM | flags::DISCARD), 0);
    assert_eq!(two.wait(one).0.op_context, context(5));
    assert_eq!(two.trecvmsg(&mut into, 4, 5, flags::CLAIM), Errno::NOMSG.returned(), "it is gone");
}

#[test]
fn a_multi_receive_buffer_takes_messages_until_it_is_full() {
    let Pair { one, two, .. } = &pair();
    let mut room = vec![0_u8; 100];
    let least = 40_usize;
    // SAFETY: an endpoint and a number.
    let set = unsafe {
        let value = (&raw const least).cast();
        ((*(*two.ep).ops).setopt)(two.ep.cast(), 0, OPT_MIN_MULTI_RECV, value, size_of::<usize>())
    };
    assert_eq!(set, 0);
    assert_eq!(two.recv_many(&mut room, ADDR_UNSPEC, 6), 0);
    let mut seen = Vec::new();
    for text in [&b"first"[..], b"", b"second message, which is longer than a few"] {
        assert_eq!(until_taken(two, || one.inject(text)), 0);
        let (entry, _) = two.wait(one);
        assert_eq!(entry.op_context, context(6));
        let at = entry.buf as usize - room.as_ptr() as usize;
        seen.push((room[at..at + entry.len].to_vec(), entry.flags & flags::MULTI_RECV != 0));
    }
    assert_eq!(seen[0], (b"first".to_vec(), false));
    assert_eq!(seen[1], (Vec::new(), false));
    assert_eq!(seen[2], (b"second message, which is longer than a few".to_vec(), true));
}

#[test]
fn selective_queues_tell_of_what_asks_for_it_and_counters_of_everything() {
    let Pair { one, two, .. } = &share_handoff_cells(flags::SELECTIVE_COMPLETION, |_| {});
    let (mut a, mut b) = ([0; 1], [0; 1]);
    assert_eq!(two.trecv(&mut a, ADDR_UNSPEC, 1, 0, 1), 0);
    assert_eq!(two.trecvmsg(&mut b, 2, 2, flags::COMPLETION), 0);
    assert_eq!((one.tsend(b"a", 1, 3), one.tsend(b"b", 2, 4)), (0, 0));
    assert_eq!(two.wait(one).0.op_context, context(2));
    assert_eq!((&a, &b), (b"a", b"b"));
    assert_eq!(two.read().err(), Some(Errno::AGAIN.returned()));
    assert_eq!((Side::count(one.sends), Side::count(two.receives)), (2, 2));
    assert_eq!((Side::count(two.sends), Side::count(one.receives)), (0, 0));
}

/// Nobody hears of the end of an injected message, so its sender may make no progress any
/// more: then it must have left.
#[test]
fn what_is_injected_leaves_though_its_sender_does_nothing_after_it() {
    let Pair { one, two, .. } = &pair();
    let mut into = [0; 5];
    assert_eq!(two.trecv(&mut into, ADDR_UNSPEC, 1, 0, 1), 0);
    assert_eq!(one.tinject(two, b"alone", 1), 0);
    let start = Instant::now();
    let received = loop {
        // Of the one that receives only.
        if let Ok(received) = two.read() {
            break received;
        }
        assert!(start.elapsed() < TIME_LIMIT, "it has not left");
    };
    assert_eq!((received.0.op_context, &into), (context(1), b"alone"));
}

#[test]
fn everything_closes_in_order() {
    let pair = pair();
    assert_eq!(pair.one.tinject(&pair.two, b"nobody receives this", 1), 0);
    pair.close();
}

/// The first is announced, and the second comes at once; Intel MPI relies on what
/// libfabric does not promise.
#[test]
fn messages_into_multi_receive_buffers_are_told_in_the_order_in_which_they_were_sent() {
    let pair = pair();
    let mut buffers = [vec![0_u8; 4 << 20], vec![0_u8; 4 << 20]];
    for (number, buffer) in buffers.iter_mut().enumerate() {
        assert_eq!(pair.two.recv_many(buffer, ADDR_UNSPEC, number), 0);
    }
    let bytes = vec![3_u8; 2 << 20];
    // SAFETY: an endpoint, and memory that is kept until it is sent.
    let announced = unsafe {
        let (msg, from, null) = (&*(*pair.one.ep).msg, bytes.as_ptr().cast(), ptr::null_mut());
        (msg.send)(pair.one.ep, from, bytes.len(), null, pair.one.peer, context(10))
    };
    let injected = until_taken(&pair.two, || pair.one.inject(&bytes[..8]));
    assert_eq!((announced, injected), (0, 0));
    let lengths = [0; 2].map(|_| pair.two.wait(&pair.one).0.len);
    assert_eq!(lengths, [bytes.len(), 8]);
    // One that has no message is told of at once, whichever it is.
    for number in [1, 0] {
        // SAFETY: an endpoint.
        let cancelled = unsafe { ((*(*pair.two.ep).ops).cancel)(pair.two.ep.cast(), context(number)) };
        assert_eq!(cancelled, 0);
        assert_eq!(pair.two.wait_error(&pair.one).op_context, context(number));
    }
    assert_eq!(pair.one.wait(&pair.two).0.op_context, context(10));
    pair.close();
}

#[test]
fn one_multi_receive_buffer_takes_thousands_of_messages_that_wait_for_it() {
    // Fewer than an endpoint keeps that nobody has asked for yet.
    const MESSAGES: usize = 4000;
    for is_directed in [false, true] {
        let pair = pair();
        let mut room = vec![0_u8; MESSAGES * 16 + (64 << 10)];
        let mut sent = 0;
        let deadline = Instant::now() + Duration::from_secs(20);
        let source = if is_directed { pair.two.peer } else { ADDR_UNSPEC };
        while sent < MESSAGES {
            let put = pair.one.inject(&(sent as u32).to_le_bytes());
            assert!(put == 0 || put == Errno::AGAIN.returned(), "{put}");
            sent += usize::from(put == 0);
            if put != 0 {
                for side in [&pair.one, &pair.two] {
                    assert_eq!(side.read().err(), Some(Errno::AGAIN.returned()));
                }
            }
            assert!(Instant::now() < deadline, "{sent} messages left in time");
        }
        // Until all have arrived here.
        for _ in 0..1000 {
            for side in [&pair.one, &pair.two] {
                assert_eq!(side.read().err(), Some(Errno::AGAIN.returned()));
            }
        }
        assert_eq!(pair.two.recv_many(&mut room, source, 6), 0);
        for number in 0..MESSAGES {
            let (entry, _) = pair.two.wait(&pair.one);
            assert_eq!((entry.op_context, entry.len), (context(6), 4));
            let at = entry.buf as usize - room.as_ptr() as usize;
            assert_eq!((at, &room[at..at + 4]), (number * 16, &(number as u32).to_le_bytes()[..]));
            assert_eq!(entry.flags & flags::MULTI_RECV, 0, "it takes more");
        }
        pair.close();
    }
}

#[test]
fn injected_bytes_may_be_changed_at_once_whatever_the_send_waits_for() {
    let Pair { one, two, .. } = &pair();
    for (number, with) in [0, flags::DELIVERY_COMPLETE, flags::MATCH_COMPLETE].into_iter().enumerate() {
        let (mut from, mut into) = (pattern(4096), vec![0; 4096]);
        assert_eq!(one.tsendmsg(&from, 2, number, with | flags::INJECT), 0);
        from.fill(0xff);
        assert_eq!(two.trecv(&mut into, ADDR_UNSPEC, 2, 0, 9), 0);
        assert_eq!(two.wait(one).0.op_context, context(9));
        assert_eq!(one.wait(two).0.op_context, context(number));
        assert!(into == pattern(4096), "{with:#x}");
        assert_eq!(one.tsendmsg(&[0; 4097], 2, 1, with | flags::INJECT), Errno::MSGSIZE.returned());
    }
}

#[test]
fn a_context_that_keeps_a_message_claims_no_other() {
    let Pair { one, two, .. } = &pair();
    let mut into = [0; 5];
    assert_eq!((one.tinject(two, b"first", 4), one.tinject(two, b"other", 4)), (0, 0));
    loop {
        assert_eq!(two.trecvmsg(&mut [], 4, 5, flags::PEEK | flags::CLAIM), 0);
        match two.read() {
            Ok(_) => break,
            Err(_) => assert_eq!(two.read_error().err, Errno::NOMSG.0),
        }
        let _progress = one.read();
    }
    assert_eq!(two.trecvmsg(&mut [], 4, 5, flags::PEEK | flags::CLAIM), Errno::BUSY.returned());
    assert_eq!(two.trecvmsg(&mut into, 4, 5, flags::CLAIM), 0);
    assert_eq!((two.wait(one).0.op_context, &into), (context(5), b"first"));
    assert_eq!(two.trecv(&mut into, ADDR_UNSPEC, 4, 0, 6), 0);
    assert_eq!((two.wait(one).0.op_context, &into), (context(6), b"other"));
}
