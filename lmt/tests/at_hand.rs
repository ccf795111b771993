//! Short messages that are announced, for their receivers have them in their caches.

mod common;

use std::time::Duration;

use common::{LIMIT, check, idle, join, join_plain, pattern};
use lmt::mechanisms::Counters;
use lmt::{Endpoint, OperationError, PeerId, Source, TagMatch};
use lmt_conformance::group::{Group, Test};
use lmt_conformance::test_name;

const BYTES: usize = 16 << 10;
const TAG: u64 = 3;

/// Where single copies are fast, whatever this machine is.
fn test(name: &str) -> Test {
    test_where(name, "fast")
}

fn test_where(name: &str, single_copy: &str) -> Test {
    let test = common::configured_by(&common::folder(name), Test::new(name, 2).time_limit(LIMIT));
    test.env("LMT_SINGLE_COPY", single_copy)
}

/// By one copy, and in cells.
fn counters(endpoint: &Endpoint, peer: PeerId) -> (Counters, u64) {
    let all = endpoint.counters(peer);
    let cma = all.iter().find(|(name, _)| *name == "cma").map(|(_, counters)| *counters).unwrap_or_default();
    (cma, endpoint.eager_counters(peer).sent.messages)
}

/// Messages to and fro from the same memory, of which nobody changes anything meanwhile.
fn ping_pong(endpoint: &Endpoint, group: &Group, peer: PeerId, messages: u64) {
    ping_pong_of(endpoint, group, peer, messages, BYTES, |_| ());
}

/// The same with messages of so many bytes, which are changed in this way before they are sent.
fn ping_pong_of(
    endpoint: &Endpoint,
    group: &Group,
    peer: PeerId,
    messages: u64,
    bytes: usize,
    change: impl Fn(&mut [u8]),
) {
    let (mut data, mut into) = (pattern(group.rank().into(), bytes), vec![0; bytes]);
    let mut expected = pattern(u64::from(1 - group.rank()), bytes);
    let mut send = || {
        change(&mut data);
        endpoint.send(peer, TAG, &data).expect("the peer is there");
    };
    for _ in 0..messages {
        if group.rank() == 0 {
            send();
        }
        let status = endpoint.receive(Source::Peer(peer), TagMatch::exactly(TAG), &mut into);
        assert_eq!(status.expect("the peer is there").bytes, bytes as u64);
        if group.rank() == 1 {
            send();
        }
    }
    (0..messages).for_each(|_| change(&mut expected));
    assert!(into == expected, "{bytes} bytes");
}

/// How many go so the machine's load decides; some do. All are counted once.
#[test]
fn untouched_messages_are_copied_once() {
    test(test_name!()).run(|group| {
        let (endpoint, peers) = join_plain(group);
        let peer = peers[1 - group.rank() as usize];
        ping_pong(&endpoint, group, peer, 1000);
        let (cma, eager) = counters(&endpoint, peer);
        assert!(cma.sent.messages >= 2, "the first two are announced to see how that is: {cma:?}");
        assert_eq!(cma.sent.messages + eager, 1000);
        assert_eq!(cma.sent.bytes, cma.sent.messages * BYTES as u64);
    });
}

/// Longer ones than such as are at hand go in cells where the application uses its buffers in between.
#[test]
fn buffers_in_use_go_in_cells() {
    test(test_name!()).run(|group| {
        let (endpoint, peers) = join_plain(group);
        let peer = peers[1 - group.rank() as usize];
        for bytes in [128 << 10, 512 << 10] {
            let before = counters(&endpoint, peer).1;
            ping_pong_of(&endpoint, group, peer, 200, bytes, change);
            let eager = counters(&endpoint, peer).1 - before;
            assert!(eager >= 150, "of 200 messages of {bytes} bytes {eager} went in cells");
        }
        let told = endpoint.explain(peer, 512 << 10).expect("it is known").to_string();
        assert!(told.contains("up to 524288 bytes goes in cells if the application uses"), "{told}");
    });
}

/// What has another value each time.
fn change(data: &mut [u8]) {
    data.iter_mut().for_each(|byte| *byte = byte.wrapping_add(1));
}

#[test]
fn who_says_how_long_buffers_in_use_go_in_cells_has_it() {
    test(test_name!()).env("LMT_IN_USE_EAGER_MAX", "0 B").run(|group| {
        let (endpoint, peers) = join_plain(group);
        let peer = peers[1 - group.rank() as usize];
        ping_pong_of(&endpoint, group, peer, 100, 256 << 10, change);
        assert_eq!(counters(&endpoint, peer).1, 0);
    });
}

/// Whoever names another way has it.
#[test]
fn a_named_mechanism_is_taken_all_the_same() {
    test(test_name!()).env("LMT_MECHANISM", "cma").run(|group| {
        let (endpoint, peers) = join_plain(group);
        let peer = peers[1 - group.rank() as usize];
        ping_pong_of(&endpoint, group, peer, 100, 64 << 10, |_| ());
        assert_eq!(counters(&endpoint, peer).1, 0);
    });
}

/// Wherever their lines are, cells are faster then.
#[test]
fn where_single_copies_are_slow_all_go_in_cells() {
    test_where(test_name!(), "slow").run(|group| {
        let (endpoint, peers) = join_plain(group);
        let peer = peers[1 - group.rank() as usize];
        ping_pong(&endpoint, group, peer, 100);
        assert_eq!(counters(&endpoint, peer), (Counters::default(), 100));
    });
}

#[test]
fn who_wants_none_so_has_none() {
    test(test_name!()).run(|group| {
        let (endpoint, peers) = join(group, |config| config.at_hand_min_bytes = config.eager_max_bytes + 1);
        let peer = peers[1 - group.rank() as usize];
        ping_pong(&endpoint, group, peer, 100);
        assert_eq!(counters(&endpoint, peer), (Counters::default(), 100));
    });
}

/// Of lengths about the least and the most, changed and read each time, one by one and
/// several at once, awaited and not: all arrive, whole and in order.
#[test]
fn all_arrive_whole_and_in_order() {
    const SIZES: [usize; 7] = [100, 12_287, 12_288, 16_384, 20_001, 32_768, 32_769];
    let bytes_of = |n: u64| SIZES[(n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33) as usize % SIZES.len()];
    test(test_name!()).run(move |group| {
        let (endpoint, peers) = join_plain(group);
        let peer = peers[1 - group.rank() as usize];
        let (mut data, mut into) = (vec![0; 1 << 16], vec![0; 1 << 16]);
        for n in 0..3000 {
            let bytes = bytes_of(n);
            if group.rank() == 0 {
                data[..bytes].copy_from_slice(&pattern(n, bytes));
                if n % 7 == 0 {
                    let (one, two) = data[..bytes].split_at(bytes / 2);
                    endpoint.scope(|scope| {
                        let first = scope.send(peer, TAG, one).expect("begun");
                        let second = scope.send(peer, TAG, two).expect("begun");
                        second.wait().and(first.wait()).expect("the peer is there");
                    });
                } else {
                    endpoint.send(peer, TAG, &data[..bytes]).expect("the peer is there");
                }
                data[..bytes].fill(0xee);
            } else {
                if n % 11 == 0 {
                    idle(&endpoint, Duration::from_micros(200));
                }
                let mut at = 0;
                for part in if n % 7 == 0 { vec![bytes / 2, bytes - bytes / 2] } else { vec![bytes] } {
                    let status = endpoint.receive(Source::Any, TagMatch::exactly(TAG), &mut into[at..]);
                    assert_eq!(status.expect("the peer is there").bytes, part as u64, "message {n}");
                    at += part;
                }
                check(n, &into[..bytes]);
            }
        }
    });
}

/// Both send before they receive: as messages in cells do, each gets away while the other
/// looks for its own.
#[test]
fn two_that_send_first_do_not_wait_for_each_other() {
    test(test_name!()).run(|group| {
        let (endpoint, peers) = join_plain(group);
        let (rank, peer) = (u64::from(group.rank()), peers[1 - group.rank() as usize]);
        let mut into = vec![0; BYTES];
        for round in 0..200 {
            let data = pattern(2 * round + rank, BYTES);
            for tag in 0..3 {
                endpoint.send(peer, tag, &data).expect("the peer is there");
            }
            // Behind what was kept for them.
            for tag in [2, 0, 1] {
                let status = endpoint.receive(Source::Peer(peer), TagMatch::exactly(tag), &mut into);
                assert_eq!(status.expect("the peer is there").bytes, BYTES as u64);
                check(2 * round + 1 - rank, &into);
            }
        }
        // Each counts once, whoever has copied it.
        let (cma, eager) = counters(&endpoint, peer);
        let received = cma.received.messages + endpoint.eager_counters(peer).received.messages;
        assert_eq!((cma.sent.messages + eager, received), (600, 600));
    });
}

/// Longer ones too, of which the receiver would keep none: those stay in cells.
#[test]
fn nor_do_two_that_send_long_messages_in_cells() {
    const LONG: usize = 512 << 10;
    test(test_name!()).run(|group| {
        let (endpoint, peers) = join(group, |config| {
            (config.eager_max_bytes, config.boxless_eager_max_bytes) = (1 << 20, 1 << 20);
        });
        let (rank, peer) = (u64::from(group.rank()), peers[1 - group.rank() as usize]);
        let mut into = vec![0; LONG];
        for round in 0..20 {
            endpoint.send(peer, TAG, &pattern(2 * round + rank, LONG)).expect("the peer is there");
            let status = endpoint.receive(Source::Peer(peer), TagMatch::exactly(TAG), &mut into);
            assert_eq!(status.expect("the peer is there").bytes, LONG as u64);
            check(2 * round + 1 - rank, &into);
        }
    });
}

/// The receiver keeps no more of them than of those in cells; who sends more waits for it,
/// and all it was given room for is given back.
#[test]
fn what_nobody_receives_is_bounded() {
    const KEPT: u64 = 64 << 10;
    test(test_name!()).run(|group| {
        let (endpoint, peers) = join(group, |config| config.unexpected_max_bytes = KEPT);
        let peer = peers[1 - group.rank() as usize];
        let mut into = vec![0; BYTES];
        for round in 0..20 {
            if group.rank() == 0 {
                for n in 0..20 {
                    endpoint.send(peer, TAG, &pattern(round * 20 + n, BYTES)).expect("the peer is there");
                }
            } else {
                idle(&endpoint, Duration::from_millis(5));
                for n in 0..20 {
                    let status = endpoint.receive(Source::Peer(peer), TagMatch::exactly(TAG), &mut into);
                    assert_eq!(status.expect("the peer is there").bytes, BYTES as u64);
                    check(round * 20 + n, &into);
                }
            }
        }
    });
}

#[test]
fn a_shorter_buffer_gets_the_beginning_and_says_so() {
    test(test_name!()).run(|group| {
        let (endpoint, peers) = join_plain(group);
        let peer = peers[1 - group.rank() as usize];
        for n in 0..20 {
            if group.rank() == 0 {
                endpoint.send(peer, TAG, &pattern(n, BYTES)).expect("the peer is there");
                continue;
            }
            let mut into = vec![0; 1000 * (n as usize % 2) + 200];
            let result = endpoint.receive(Source::Peer(peer), TagMatch::exactly(TAG), &mut into);
            let Err(OperationError::Truncated { message_bytes, received_bytes, .. }) = result else {
                panic!("{result:?}")
            };
            assert_eq!((message_bytes, received_bytes), (BYTES as u64, into.len() as u64));
            check(n, &into);
        }
    });
}

/// Who ends without having looked takes nobody with it.
#[test]
fn a_peer_that_goes_before_it_has_looked_is_told_of_or_has_the_message() {
    test(test_name!()).run(|group| {
        let (endpoint, peers) = join_plain(group);
        let peer = peers[1 - group.rank() as usize];
        if group.rank() == 1 {
            ping_pong(&endpoint, group, peer, 10);
            endpoint.receive(Source::Peer(peer), TagMatch::exactly(TAG + 1), &mut []).expect("it is there");
            return;
        }
        ping_pong(&endpoint, group, peer, 10);
        endpoint.send(peer, TAG + 1, &[]).expect("the peer is there");
        let data = pattern(1, BYTES);
        let gone = (0..1000).find_map(|_| endpoint.send(peer, TAG, &data).err());
        assert!(matches!(gone, Some(OperationError::Peer(_))), "{gone:?}");
    });
}
