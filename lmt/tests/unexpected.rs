//! 1 GiB of messages into a receiver that posts no receive: neither side's
//! memory grows beyond what `unexpected_max_bytes` and `pending_max_messages`
//! allow, and then every message arrives, whole and in order.

mod common;

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use common::{FAST_BOX_KIB, LIMIT, Resident, idle, join_plain, pattern};
use lmt::{Config, Endpoint, OperationError, PeerId, Source, TagMatch};
use lmt_conformance::group::{Group, Test};
use lmt_conformance::test_name;

const TOTAL_BYTES: usize = 1 << 30;
/// How long the receiver posts nothing.
const PAUSE: Duration = Duration::from_millis(1200);
/// Messages begin at this many different places of one pattern, each in turn.
const PLACES: usize = 4093;
/// For the allocator, page tables and what is touched for the first time.
const SLACK_KIB: u64 = 1024;

fn place(number: usize) -> usize {
    number % PLACES * 16
}

/// What may wait for one sender, and as much again for the allocator.
fn bound_kib() -> u64 {
    let config = Config::default();
    let announced_bytes = 2 * u64::from(config.pending_max_messages) * 512;
    (2 * config.unexpected_max_bytes + announced_bytes) / 1024 + SLACK_KIB
}

/// What the two share has bounds of its own, and counts once it is touched: a fast
/// box each, a ring, an inbox.
const SHARED_KIB: u64 = 2 * FAST_BOX_KIB + 2048 + 1024;

/// The most memory that this process has had beyond what it began with.
struct Growth {
    before: Resident,
    most: Resident,
}

impl Growth {
    fn new() -> Self {
        let before = Resident::now();
        Self { before, most: before }
    }

    fn look(&mut self) {
        self.most = self.most.max(Resident::now());
    }

    fn check(&self, group: &Group, who: &str) {
        let grown_kib = self.most.private_kib - self.before.private_kib;
        let shared_kib = self.most.shared_kib - self.before.shared_kib;
        assert!(shared_kib < SHARED_KIB, "the {who} touched {shared_kib} KiB that it shares");
        group.report(format!("the {who} grew by {grown_kib} KiB of {} KiB", bound_kib()));
        assert!(grown_kib < bound_kib(), "the {who} grew by {grown_kib} KiB");
    }
}

/// Sends all, as many at once as it may.
fn send_all(endpoint: &Endpoint, group: &Group, to: PeerId, bytes: usize) {
    let count = TOTAL_BYTES / bytes;
    let data = pattern(1, place(PLACES - 1) + bytes);
    let mut growth = Growth::new();
    let begun = Instant::now();
    let mut begun_in_pause = 0;
    endpoint.scope(|scope| {
        let mut open = VecDeque::new();
        let mut number = 0;
        while number < count || !open.is_empty() {
            if number < count {
                match scope.send(to, 5, &data[place(number)..][..bytes]) {
                    Ok(request) => {
                        open.push_back(request);
                        number += 1;
                    }
                    Err(OperationError::WouldBlock { .. }) => std::thread::yield_now(),
                    Err(error) => panic!("message {number}: {error}"),
                }
            }
            if begun.elapsed() < PAUSE {
                begun_in_pause = number;
            }
            if number.is_multiple_of(256) {
                growth.look();
            }
            // Of each that was begun the oldest are asked.
            for _ in 0..2 {
                match open.pop_front().map(lmt::Request::test) {
                    Some(Ok(result)) => assert_eq!(result.expect("sent").bytes, bytes as u64),
                    Some(Err(request)) => open.push_front(request),
                    None => {}
                }
            }
        }
    });
    growth.check(group, "sender");
    group.report(format!("{begun_in_pause} of {count} messages were begun in the pause"));
    assert!(begun_in_pause < count, "nothing held the sender back");
}

fn receive_all(endpoint: &Endpoint, group: &Group, from: PeerId, bytes: usize, polls: bool) {
    let count = TOTAL_BYTES / bytes;
    let data = pattern(1, place(PLACES - 1) + bytes);
    let mut into = vec![0xa5; bytes];
    let mut growth = Growth::new();
    let end = Instant::now() + PAUSE;
    while Instant::now() < end {
        if polls {
            idle(endpoint, Duration::from_millis(20));
        } else {
            std::thread::sleep(Duration::from_millis(20));
        }
        growth.look();
    }
    for number in 0..count {
        let status = endpoint.receive(Source::Peer(from), TagMatch::any(), &mut into).expect("received");
        assert_eq!((status.bytes, status.tag), (bytes as u64, 5));
        assert!(into == data[place(number)..][..bytes], "message {number} of {bytes} bytes is another");
        if number % 256 == 0 {
            growth.look();
        }
    }
    growth.check(group, "receiver");
}

fn flood(name: &str, bytes: usize, polls: bool) {
    let results = Test::new(name, 2).time_limit(2 * LIMIT).run(|group| {
        let (endpoint, peers) = join_plain(group);
        let other = peers[1 - group.rank() as usize];
        // Both ways once, so that what grows is the flood's.
        for sends in [group.rank() == 0, group.rank() == 1] {
            if sends {
                endpoint.send(other, 1, &vec![1; bytes]).expect("sent");
            } else {
                let mut into = vec![0; bytes];
                endpoint.receive(Source::Peer(other), TagMatch::exactly(1), &mut into).expect("received");
            }
        }
        group.barrier();
        if group.rank() == 0 {
            send_all(&endpoint, group, other, bytes);
        } else {
            receive_all(&endpoint, group, other, bytes, polls);
        }
        group.barrier();
    });
    results.reports.iter().flatten().for_each(|line| println!("{bytes} B, receiver polls {polls}: {line}"));
}

#[test]
fn short_messages_into_a_receiver_that_only_makes_progress() {
    flood(test_name!(), 4096, true);
}

#[test]
fn short_messages_into_a_receiver_that_does_nothing() {
    flood(test_name!(), 4096, false);
}

#[test]
fn messages_of_64_kib_into_a_receiver_that_only_makes_progress() {
    flood(test_name!(), 65_536, true);
}

#[test]
fn messages_of_64_kib_into_a_receiver_that_does_nothing() {
    flood(test_name!(), 65_536, false);
}

#[test]
fn large_messages_into_a_receiver_that_only_makes_progress() {
    flood(test_name!(), 500_000, true);
}

#[test]
fn large_messages_into_a_receiver_that_does_nothing() {
    flood(test_name!(), 500_000, false);
}
