//! Floods: nothing is lost, nothing stands still, memory stays bounded.

mod common;

use std::time::Duration;

use common::{FAST_BOX_KIB, LIMIT, Resident, check, idle, join, pattern, until};
use lmt::{Endpoint, PeerId, Source, TagMatch};
use lmt_conformance::{group, test_name};

const UNEXPECTED: u64 = 256 << 10;

fn size_of(n: u64) -> usize {
    match n % 10 {
        3 => 65_536,
        7 => 41,
        _ => (n as usize * 397) % 4097,
    }
}

/// Sends messages `0..count` with at most 64 at once.
fn flood(endpoint: &Endpoint, to: PeerId, me: u64, count: u64) {
    for first in (0..count).step_by(64) {
        let range = first..count.min(first + 64);
        let data: Vec<_> = range.clone().map(|n| pattern(me << 32 | n, size_of(n))).collect();
        endpoint.scope(|scope| {
            let sends: Vec<_> = data.iter().map(|d| scope.send(to, me, d).expect("64 may wait")).collect();
            scope.wait_all(sends).into_iter().for_each(|end| assert!(end.is_ok(), "{end:?}"));
        });
    }
}

#[test]
fn seven_senders_flood_a_slow_receiver() {
    const COUNT: u64 = 1500;
    group::run(test_name!(), 8, LIMIT, |group| {
        let (endpoint, peers) = join(group, |config| config.unexpected_max_bytes = UNEXPECTED);
        let me = u64::from(group.rank());
        if me != 0 {
            flood(&endpoint, peers[0], me, COUNT);
            group.barrier();
            return;
        }
        // Everybody connected, so that only messages make memory grow.
        idle(&endpoint, Duration::from_millis(100));
        let before = Resident::now();
        let mut most = before;
        for _ in 0..10 {
            idle(&endpoint, Duration::from_millis(50));
            most = most.max(Resident::now());
        }
        let mut next = [0; 8];
        let mut into = vec![0; 65_536];
        for turn in 0..7 * COUNT {
            let status = endpoint.receive(Source::Any, TagMatch::any(), &mut into).expect("received");
            let n = next[status.tag as usize];
            assert_eq!((status.bytes as usize, status.peer), (size_of(n), peers[status.tag as usize]));
            check(status.tag << 32 | n, &into[..status.bytes as usize]);
            next[status.tag as usize] += 1;
            if turn % 64 == 0 {
                most = most.max(Resident::now());
            }
        }
        assert_eq!(next[1..], [COUNT; 7]);
        let private_kib = most.private_kib - before.private_kib;
        let shared_kib = most.shared_kib - before.shared_kib;
        eprintln!("the receiver grew by {private_kib} KiB, and touched {shared_kib} KiB that it shares");
        // What is allowed to wait, and as much again for the allocator.
        assert!(private_kib < 2 * 7 * UNEXPECTED / 1024 + 2048, "the receiver grew by {private_kib} KiB");
        // What was taken when they connected, and counts once it is touched.
        let boxes_kib = 7 * FAST_BOX_KIB;
        assert!(shared_kib < boxes_kib + 2048, "it touched {shared_kib} KiB of its inbox and boxes");
        group.barrier();
    });
}

/// Tiny inboxes, every pair in both directions, announced messages among them,
/// so that RTS, CTS and DONE meet full inboxes on both sides.
fn everybody_floods_everybody(name: &str, mechanism: &str, cells: u32) {
    const COUNT: u64 = 300;
    group::Test::new(name, 4).time_limit(LIMIT).env("LMT_MECHANISM", mechanism).run(|group| {
        let (endpoint, peers) = join(group, move |config| {
            config.inbox_cells = cells;
            config.unexpected_max_bytes = 65_536;
        });
        let me = u64::from(group.rank());
        let data: Vec<_> = (0..COUNT).map(|n| pattern(me << 32 | n, size_of(n))).collect();
        let others: Vec<u64> = (0..4).filter(|r| *r != me).collect();
        endpoint.scope(|scope| {
            let mut sends = Vec::new();
            for data in &data {
                for other in &others {
                    sends.push(scope.send(peers[*other as usize], me, data).expect("1024 may wait"));
                }
            }
            let mut into = vec![0; 65_536];
            for n in 0..COUNT {
                for other in &others {
                    let source = Source::Peer(peers[*other as usize]);
                    let status =
                        endpoint.receive(source, TagMatch::exactly(*other), &mut into).expect("received");
                    assert_eq!(status.bytes as usize, size_of(n));
                    check(other << 32 | n, &into[..status.bytes as usize]);
                }
            }
            scope.wait_all(sends).into_iter().for_each(|end| assert!(end.is_ok(), "{end:?}"));
        });
        group.barrier();
    });
}

#[test]
fn full_inboxes_on_both_sides_with_shm() {
    everybody_floods_everybody(test_name!(), "shm", 8);
}

#[test]
fn full_inboxes_on_both_sides_with_cma() {
    everybody_floods_everybody(test_name!(), "cma", 16);
}

/// The sender makes no progress of its own between floods.
#[test]
fn a_flood_of_the_shortest_messages_arrives_in_order() {
    group::run(test_name!(), 2, LIMIT, |group| {
        let (endpoint, peers) = join(group, |_| {});
        for n in 0..200_000_u64 {
            if group.rank() == 0 {
                endpoint.send(peers[1], n % 3, &n.to_le_bytes()).expect("sent");
            } else {
                let mut into = [0; 8];
                endpoint.receive(Source::Peer(peers[0]), TagMatch::any(), &mut into).expect("received");
                assert_eq!(u64::from_le_bytes(into), n);
            }
        }
        group.barrier();
    });
}

/// What a receiver has no room for is announced at once: its sender need not come back for it.
#[test]
fn what_there_is_no_room_for_is_announced_at_once() {
    const BYTES: usize = 256 << 10;
    const MESSAGES: u64 = 8;
    group::run(test_name!(), 2, LIMIT, |group| {
        let (endpoint, peers) = join(group, |_| {});
        let other = peers[1 - group.rank() as usize];
        // Both are connected then.
        endpoint.send(other, MESSAGES, b"").expect("it is there");
        endpoint.receive(Source::Any, TagMatch::exactly(MESSAGES), &mut []).expect("it is there");
        if group.rank() == 0 {
            let data: Vec<_> = (0..MESSAGES).map(|n| pattern(n, BYTES)).collect();
            endpoint.scope(|scope| {
                let send = |n: u64| scope.send(other, n, &data[n as usize]).expect("8 may wait");
                let sends: Vec<_> = (0..MESSAGES).map(send).collect();
                group.barrier();
                group.barrier();
                scope.wait_all(sends).into_iter().for_each(|end| assert!(end.is_ok(), "{end:?}"));
            });
            return;
        }
        group.barrier();
        let last = TagMatch::exactly(MESSAGES - 1);
        until(&endpoint, "the last one's announcement", || {
            endpoint.probe(Source::Any, last).expect("no fork here").is_some()
        });
        group.barrier();
        let mut into = vec![0; BYTES];
        for n in 0..MESSAGES {
            endpoint.receive(Source::Any, TagMatch::exactly(n), &mut into).expect("received");
            check(n, &into);
        }
    });
}
