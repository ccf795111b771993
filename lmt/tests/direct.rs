//! Blocking sends and receives take a way of their own where they can; what
//! they promise is the same, also beside operations that take the general way,
//! and with and without a fast box.

mod common;

use common::{LIMIT, check, join, pattern};
use lmt::{Endpoint, OperationError, PeerId, Source, TagMatch};
use lmt_conformance::{group, test_name};

/// Around a line, a box's piece, several pieces, whole cells, and the end of what is eager.
const SIZES: [usize; 17] = [
    0, 8, 40, 41, 64, 3071, 3072, 3073, 6145, 20_000, 40_000, 65_536, 70_000, 131_072, 200_000, 262_144,
    262_145,
];
const MESSAGES: u64 = 3000;
const TAG: u64 = 7;

/// What both sides draw from message number `n`.
fn draw(n: u64) -> usize {
    (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33) as usize
}

fn bytes_of(n: u64) -> usize {
    SIZES[draw(n) % SIZES.len()]
}

/// Sends messages `0..MESSAGES`, some of them several at a time.
fn send_all(endpoint: &Endpoint, to: PeerId) {
    let mut n = 0;
    while n < MESSAGES {
        let together = if draw(n + 1000).is_multiple_of(5) { 3 } else { 1 };
        let data: Vec<Vec<u8>> = (n..n + together).map(|m| pattern(m, bytes_of(m))).collect();
        if let [one] = &data[..] {
            assert_eq!(endpoint.send(to, TAG, one).expect("sent").bytes, one.len() as u64);
        } else {
            endpoint.scope(|scope| {
                let sends: Vec<_> = data.iter().map(|one| scope.send(to, TAG, one).expect("begun")).collect();
                // While these are in flight a blocking one goes behind them.
                endpoint.send(to, TAG + 1, &[]).expect("sent");
                sends.into_iter().for_each(|send| assert!(send.wait().is_ok()));
            });
        }
        n += together;
    }
}

/// Receives them in order: blocking, or posted before and waited for.
fn receive_all(endpoint: &Endpoint, from: PeerId) {
    let mut n = 0;
    while n < MESSAGES {
        let together = if draw(n + 1000).is_multiple_of(5) { 3 } else { 1 };
        let mut into: Vec<Vec<u8>> = (n..n + together).map(|m| vec![0; bytes_of(m)]).collect();
        let source = if draw(n + 77).is_multiple_of(2) { Source::Any } else { Source::Peer(from) };
        if draw(n + 2000).is_multiple_of(3) {
            endpoint.scope(|scope| {
                let receives: Vec<_> = into
                    .iter_mut()
                    .map(|one| scope.receive(source, TagMatch::exactly(TAG), one).expect("posted"))
                    .collect();
                for (m, receive) in (n..).zip(receives) {
                    assert_eq!(receive.wait().expect("received").bytes, bytes_of(m) as u64);
                }
            });
        } else {
            for one in &mut into {
                let status = endpoint.receive(source, TagMatch::exactly(TAG), one).expect("received");
                assert_eq!((status.peer, status.tag, status.bytes), (from, TAG, one.len() as u64));
            }
        }
        if together > 1 {
            endpoint.receive(Source::Peer(from), TagMatch::exactly(TAG + 1), &mut []).expect("received");
        }
        (n..).zip(&into).for_each(|(m, one)| check(m, one));
        n += together;
    }
}

/// With this many boxes for two peers each, one rank of three receives all that
/// the others send, in their order, and answers.
fn in_order(test: &str, boxes: u32) {
    group::run(test, 3, LIMIT, move |group| {
        let (endpoint, peers) = join(group, move |config| config.fast_boxes = boxes);
        for sender in 1..3 {
            match group.rank() {
                0 => receive_all(&endpoint, peers[sender]),
                rank if rank as usize == sender => send_all(&endpoint, peers[0]),
                _ => {}
            }
            group.barrier();
            match group.rank() {
                0 => send_all(&endpoint, peers[sender]),
                rank if rank as usize == sender => receive_all(&endpoint, peers[0]),
                _ => {}
            }
            group.barrier();
        }
    });
}

#[test]
fn all_ways_keep_the_order_with_boxes() {
    in_order(test_name!(), 8);
}

#[test]
fn all_ways_keep_the_order_without_boxes() {
    in_order(test_name!(), 0);
}

#[test]
fn all_ways_keep_the_order_where_one_has_a_box() {
    in_order(test_name!(), 1);
}

/// What does not fit is cut, and said so; what has another tag waits.
#[test]
fn a_message_that_does_not_fit_or_has_another_tag() {
    group::run(test_name!(), 2, LIMIT, |group| {
        let (endpoint, peers) = join(group, |_| {});
        let other = peers[1 - group.rank() as usize];
        for round in 0..200u64 {
            if group.rank() == 0 {
                endpoint.send(other, 1, &pattern(round, 100)).expect("sent");
                endpoint.send(other, 2, &pattern(round + 1, 50)).expect("sent");
                endpoint.receive(Source::Any, TagMatch::any(), &mut []).expect("an answer");
                continue;
            }
            let mut into = [0; 100];
            let second = TagMatch::exactly(2);
            assert_eq!(endpoint.receive(Source::Any, second, &mut into).expect("received").bytes, 50);
            check(round + 1, &into[..50]);
            let cut = endpoint.receive(Source::Peer(other), TagMatch::any(), &mut into[..60]);
            let expected = OperationError::Truncated {
                peer: other,
                tag: 1,
                message_bytes: 100,
                received_bytes: 60,
                immediate: None,
            };
            assert_eq!(cut, Err(expected));
            endpoint.send(other, 3, &[]).expect("sent");
        }
    });
}
