//! What send and receive promise, between real processes.

mod common;

use std::time::{Duration, Instant};

use common::{LIMIT, check, idle, join, join_plain, pattern, receive_and_check, until};
use lmt::{Config, Endpoint, OperationError, PeerId, Source, Status, TagMatch};
use lmt_conformance::{group, test_name};
use std::io::{IoSlice, IoSliceMut};

const SIZES: [usize; 13] = [0, 1, 7, 8, 40, 41, 4095, 4096, 4097, 65_535, 65_536, 100_000, 1 << 20];

/// Other than the default, so that it is this test's word and no rule of a machine's ends
/// cells earlier.
fn long_eager(config: &mut Config) {
    config.eager_max_bytes = 65_535;
}

/// Every size, expected and unexpected, in both directions.
fn all_sizes(endpoint: &Endpoint, peers: &[PeerId], rank: u32, barrier: impl Fn()) {
    let other = peers[1 - rank as usize];
    for sender in 0..2 {
        for (turn, &bytes) in SIZES.iter().enumerate() {
            let seed = turn as u64 + 100 * u64::from(sender);
            // Expected: the receive is there first.
            if rank == sender {
                barrier();
                endpoint.send(other, seed, &pattern(seed, bytes)).expect("sent");
            } else {
                let mut into = vec![0; bytes];
                endpoint.scope(|scope| {
                    let receive = scope.receive(Source::Peer(other), TagMatch::exactly(seed), &mut into);
                    barrier();
                    let status = receive.expect("posted").wait().expect("received");
                    assert_eq!((status.bytes, status.tag), (bytes as u64, seed));
                });
                check(seed, &into);
            }
            // Unexpected: it has arrived, or at least its announcement.
            if rank == sender {
                let data = pattern(seed + 1, bytes);
                endpoint.scope(|scope| {
                    let send = scope.send(other, seed, &data).expect("begun");
                    idle(endpoint, Duration::from_millis(3));
                    barrier();
                    assert_eq!(send.wait().expect("sent").bytes, bytes as u64);
                });
            } else {
                idle(endpoint, Duration::from_millis(3));
                barrier();
                receive_and_check(endpoint, other, seed, seed + 1, bytes);
            }
        }
    }
}

/// By either built-in order, whichever this machine's is.
#[test]
fn every_size_arrives_whole_however_fast_single_copies_are() {
    for speed in ["fast", "slow"] {
        let test = group::Test::new(test_name!(), 2).time_limit(LIMIT).env("LMT_SINGLE_COPY", speed);
        test.run(|group| {
            let (endpoint, peers) = join_plain(group);
            all_sizes(&endpoint, &peers, group.rank(), || group.barrier());
        });
    }
}

#[test]
fn every_size_arrives_whole_in_several_cells() {
    group::run(test_name!(), 2, LIMIT, |group| {
        let (endpoint, peers) = join(group, long_eager);
        all_sizes(&endpoint, &peers, group.rank(), || group.barrier());
    });
}

#[test]
fn sides_with_different_sizes_understand_each_other() {
    group::run(test_name!(), 2, LIMIT, |group| {
        let first = group.rank() == 0;
        let (endpoint, peers) = join(group, move |config| {
            config.eager_max_bytes = if first { 65_536 } else { 1000 };
            config.cell_bytes = if first { 8192 } else { 512 };
            config.inbox_cells = if first { 8 } else { 256 };
            config.unexpected_max_bytes = if first { 65_536 } else { 1 << 20 };
        });
        all_sizes(&endpoint, &peers, group.rank(), || group.barrier());
        // Many more than fit, so that every byte of credit must come back.
        let other = peers[1 - group.rank() as usize];
        for turn in 0..300_u64 {
            let bytes = (turn as usize * 977) % 66_000;
            if first == (turn % 2 == 0) {
                endpoint.send(other, turn, &pattern(turn, bytes)).expect("sent");
            } else {
                receive_and_check(&endpoint, other, turn, turn, bytes);
            }
        }
        for turn in 0..300_u64 {
            let bytes = (turn as usize * 977) % 66_000;
            if first {
                endpoint.send(other, 7, &pattern(turn, bytes)).expect("sent");
            } else {
                receive_and_check(&endpoint, other, 7, turn, bytes);
            }
        }
        group.barrier();
    });
}

/// A message of several cells whose receive is posted while its parts arrive:
/// the inbox is too small for all of it.
#[test]
fn a_message_is_matched_while_it_arrives() {
    group::run(test_name!(), 2, LIMIT, |group| {
        let (endpoint, peers) = join(group, |config| {
            config.eager_max_bytes = 1 << 20;
            config.inbox_cells = 8;
        });
        for turn in 0..40_u64 {
            let bytes = 300_000 + turn as usize;
            if group.rank() == 0 {
                endpoint.send(peers[1], turn, &pattern(turn, bytes)).expect("sent");
            } else {
                let source = Source::Peer(peers[0]);
                until(&endpoint, "the beginning", || {
                    endpoint.probe(source, TagMatch::any()).expect("no fork").is_some()
                });
                let found = endpoint.probe(source, TagMatch::any()).expect("no fork").expect("it was there");
                assert_eq!((found.bytes, found.tag), (bytes as u64, turn));
                if turn % 3 == 0 {
                    // Cut in the middle of a part.
                    let mut into = vec![0x5a; 10_001];
                    let (short, guard) = into.split_at_mut(10_000);
                    let ended = endpoint.receive(source, TagMatch::exactly(turn), short);
                    assert!(
                        matches!(ended, Err(OperationError::Truncated { received_bytes: 10_000, .. })),
                        "{ended:?}"
                    );
                    assert_eq!(guard, [0x5a]);
                    check(turn, short);
                } else {
                    receive_and_check(&endpoint, peers[0], turn, turn, bytes);
                }
            }
        }
        group.barrier();
    });
}

/// The longest eager messages are as long as all the room for unexpected ones.
#[test]
fn one_long_eager_message_fits_when_nothing_else_waits() {
    group::run(test_name!(), 2, LIMIT, |group| {
        let (endpoint, peers) = join(group, |config| {
            config.eager_max_bytes = 1 << 20;
            config.unexpected_max_bytes = 65_536;
        });
        for turn in 0..20 {
            if group.rank() == 0 {
                endpoint.send(peers[1], turn, &pattern(turn, 1 << 20)).expect("sent");
            } else {
                receive_and_check(&endpoint, peers[0], turn, turn, 1 << 20);
            }
        }
        group.barrier();
    });
}

/// Short messages that nobody wants fill the room for unexpected ones; the one
/// that a receive waits for must come through all the same.
#[test]
fn a_wanted_message_passes_a_full_unexpected_queue() {
    group::run(test_name!(), 2, LIMIT, |group| {
        let (endpoint, peers) = join(group, |config| config.unexpected_max_bytes = 65_536);
        let data = pattern(1, 4000);
        let mut into = vec![vec![0; 4000]; 100];
        if group.rank() == 0 {
            endpoint.scope(|scope| {
                let sends: Vec<_> =
                    (0..100).map(|_| scope.send(peers[1], 1, &data).expect("begun")).collect();
                scope.send(peers[1], 2, &data).expect("begun").wait().expect("sent");
                scope.wait_all(sends).into_iter().for_each(|end| assert!(end.is_ok(), "{end:?}"));
            });
        } else {
            receive_and_check(&endpoint, peers[0], 2, 1, 4000);
            for one in &mut into {
                endpoint.receive(Source::Any, TagMatch::any(), one).expect("received");
                check(1, one);
            }
        }
        group.barrier();
    });
}

#[test]
fn masks_and_sources_select_messages() {
    group::run(test_name!(), 3, LIMIT, |group| {
        let (endpoint, peers) = join_plain(group);
        let me = u64::from(group.rank());
        if me != 0 {
            for tag in [0x10, 0x21, u64::MAX, 0x12] {
                endpoint.send(peers[0], tag, &[me as u8, tag as u8]).expect("sent");
            }
            group.barrier();
            return;
        }
        let receive = |source, tag, ignore| {
            let mut into = [0; 2];
            let status = endpoint.receive(source, TagMatch { tag, ignore }, &mut into).expect("received");
            assert_eq!(into[1], status.tag as u8);
            assert_eq!(peers[into[0] as usize], status.peer);
            (into[0], status.tag)
        };
        assert_eq!(receive(Source::Peer(peers[2]), 0x20, 0xf), (2, 0x21));
        assert_eq!(receive(Source::Peer(peers[1]), u64::MAX, 0), (1, u64::MAX));
        assert_eq!(receive(Source::Peer(peers[1]), 0x1f, 0xf), (1, 0x10));
        assert_eq!(receive(Source::Peer(peers[1]), 0x1f, 0xf), (1, 0x12));
        assert_eq!(receive(Source::Peer(peers[2]), 0, u64::MAX), (2, 0x10));
        let mut rest: Vec<_> = (0..3).map(|_| receive(Source::Any, 0, u64::MAX)).collect();
        rest.sort_unstable();
        assert_eq!(rest, [(1, 0x21), (2, 0x12), (2, u64::MAX)]);
        group.barrier();
    });
}

/// Short, long and synchronous messages between a pair are matched in order.
#[test]
fn a_pair_keeps_order() {
    group::run(test_name!(), 2, LIMIT, |group| {
        let (endpoint, peers) = join(group, |config| config.eager_max_bytes = 8192);
        let sizes = [10, 100_000, 0, 4096, 6000, 300_000, 41, 8192, 9000];
        let messages: Vec<_> = (0..200_u64).map(|n| pattern(n, sizes[n as usize % sizes.len()])).collect();
        if group.rank() == 0 {
            endpoint.scope(|scope| {
                let begin = |(n, data): (usize, &'static [u8])| match n % 7 {
                    3 => scope.send_synchronous(peers[1], 5, data).expect("begun"),
                    _ => scope.send(peers[1], 5, data).expect("begun"),
                };
                let data: &'static [Vec<u8>] = Vec::leak(messages);
                let sends = data.iter().map(Vec::as_slice).enumerate().map(begin).collect();
                scope.wait_all(sends).into_iter().for_each(|end| assert!(end.is_ok(), "{end:?}"));
            });
        } else {
            for turn in 0..200_u64 {
                let tags = if turn % 2 == 0 { TagMatch::exactly(5) } else { TagMatch::any() };
                let mut into = vec![0; 300_000];
                let status = endpoint.receive(Source::Any, tags, &mut into).expect("received");
                assert_eq!(status.bytes as usize, sizes[turn as usize % sizes.len()], "message {turn}");
                check(turn, &into[..status.bytes as usize]);
            }
        }
        group.barrier();
    });
}

#[test]
fn probes_show_and_take_messages() {
    group::run(test_name!(), 2, LIMIT, |group| {
        let (endpoint, peers) = join(group, long_eager);
        for (turn, &bytes) in [0, 5, 5000, 60_000, 400_000].iter().enumerate() {
            let tag = turn as u64;
            if group.rank() == 0 {
                endpoint.send(peers[1], tag, &pattern(1, bytes)).expect("sent");
                endpoint.send(peers[1], tag, &pattern(2, bytes)).expect("sent");
                continue;
            }
            let mut message = None;
            until(&endpoint, "a message", || {
                message = endpoint.matched_probe(Source::Any, TagMatch::exactly(tag)).expect("no fork");
                message.is_some()
            });
            let message = message.expect("it was found");
            assert_eq!(
                message.status(),
                Status { peer: peers[0], tag, bytes: bytes as u64, immediate: None }
            );
            assert_eq!(endpoint.probe(Source::Any, TagMatch::exactly(99)), Ok(None));
            // What is taken is out of matching: a receive gets the second.
            if bytes <= 60_000 {
                receive_and_check(&endpoint, peers[0], tag, 2, bytes);
            }
            let mut into = vec![0; bytes];
            assert_eq!(endpoint.receive_matched(message, &mut into).expect("received").bytes, bytes as u64);
            check(1, &into);
            if bytes > 60_000 {
                receive_and_check(&endpoint, peers[0], tag, 2, bytes);
            }
        }
        group.barrier();
    });
}

#[test]
fn a_message_of_another_endpoint_is_refused() {
    let (one, two) = (Endpoint::new().expect("made"), Endpoint::new().expect("made"));
    let myself = one.insert_peer(&one.address()).expect("a peer");
    one.send(myself, 1, b"abc").expect("sent");
    let message = one.matched_probe(Source::Any, TagMatch::any()).expect("no fork").expect("there");
    let ended = two.receive_matched(message, &mut [0; 3]);
    assert_eq!(ended, Err(OperationError::ForeignMessage));
}

/// More than goes in cells on any machine, in whatever state buffers are.
const ANNOUNCED_BYTES: usize = 2_000_000;

#[test]
fn operations_can_be_cancelled_until_they_are_matched() {
    group::run(test_name!(), 2, LIMIT, |group| {
        let (endpoint, peers) = join_plain(group);
        let long = pattern(3, ANNOUNCED_BYTES);
        if group.rank() == 0 {
            // Queued: the peer is not connected yet.
            endpoint.scope(|scope| {
                let short = scope.send(peers[1], 1, b"short").expect("begun");
                let announced = scope.send(peers[1], 1, &long).expect("begun");
                let synchronous = scope.send_synchronous(peers[1], 1, b"x").expect("begun");
                assert_eq!(announced.cancel(), Err(OperationError::Cancelled));
                assert_eq!(short.cancel(), Err(OperationError::Cancelled));
                assert_eq!(synchronous.cancel(), Err(OperationError::Cancelled));
            });
            endpoint.send(peers[1], 2, b"connected").expect("sent");
            endpoint.receive(Source::Any, TagMatch::exactly(3), &mut []).expect("received");
            // Announced, and unexpected over there: the peer forgets it.
            endpoint.scope(|scope| {
                let announced = scope.send(peers[1], 4, &long).expect("begun");
                idle(&endpoint, Duration::from_millis(20));
                assert_eq!(announced.cancel(), Err(OperationError::Cancelled));
                let synchronous = scope.send_synchronous(peers[1], 4, b"x").expect("begun");
                idle(&endpoint, Duration::from_millis(20));
                assert_eq!(synchronous.cancel(), Err(OperationError::Cancelled));
            });
            endpoint.send(peers[1], 7, &[]).expect("sent");
            group.barrier();
            // Too late: it is matched.
            endpoint.scope(|scope| {
                let send = scope.send(peers[1], 5, &long).expect("begun");
                endpoint.progress().expect("no fork here");
                group.barrier();
                endpoint.receive(Source::Any, TagMatch::exactly(6), &mut []).expect("received");
                assert_eq!(send.cancel().expect("too late").bytes, ANNOUNCED_BYTES as u64);
            });
        } else {
            let mut into = [0; 9];
            endpoint.receive(Source::Any, TagMatch::exactly(2), &mut into).expect("received");
            assert_eq!(&into, b"connected");
            // Receives: posted, and cancelled before anything comes.
            let mut unused = [0; 4];
            endpoint.scope(|scope| {
                let any = scope.receive(Source::Any, TagMatch::any(), &mut unused).expect("posted");
                assert_eq!(any.cancel(), Err(OperationError::Cancelled));
            });
            endpoint.send(peers[0], 3, &[]).expect("sent");
            endpoint.receive(Source::Any, TagMatch::exactly(7), &mut []).expect("received");
            for tag in [1, 4] {
                let left = endpoint.probe(Source::Any, TagMatch::exactly(tag));
                assert_eq!(left, Ok(None), "all was taken back");
            }
            group.barrier();
            let mut into = vec![0; ANNOUNCED_BYTES];
            endpoint.scope(|scope| {
                let receive = scope.receive(Source::Any, TagMatch::exactly(5), &mut into).expect("posted");
                group.barrier();
                // The announcement was sent before the barrier, and is matched now.
                idle(&endpoint, Duration::from_millis(5));
                endpoint.send(peers[0], 6, &[]).expect("sent");
                receive.wait().expect("received");
            });
            check(3, &into);
        }
        group.barrier();
    });
}

#[test]
fn a_synchronous_send_completes_when_matched() {
    group::run(test_name!(), 2, LIMIT, |group| {
        let (endpoint, peers) = join_plain(group);
        for (turn, bytes) in [0, 8, 4096, 500_000].into_iter().enumerate() {
            let tag = turn as u64;
            if group.rank() == 0 {
                let data = pattern(tag, bytes);
                endpoint.scope(|scope| {
                    let mut send = scope.send_synchronous(peers[1], tag, &data).expect("begun");
                    let end = Instant::now() + Duration::from_millis(30);
                    while Instant::now() < end {
                        send = send.test().expect_err("nobody has matched it");
                    }
                    group.barrier();
                    send.wait().expect("matched");
                });
            } else {
                idle(&endpoint, Duration::from_millis(30));
                group.barrier();
                receive_and_check(&endpoint, peers[0], tag, tag, bytes);
            }
        }
        group.barrier();
    });
}

#[test]
fn too_long_messages_are_cut_and_reported() {
    group::run(test_name!(), 2, LIMIT, |group| {
        let (endpoint, peers) = join(group, long_eager);
        // (message, buffer): a line, a cell, several cells, announced.
        let cases = [(40, 0), (40, 39), (4096, 100), (50_000, 4097), (60_000, 59_999), (1 << 20, 12_345)];
        for (turn, (bytes, room)) in cases.into_iter().cycle().take(2 * cases.len()).enumerate() {
            let (tag, early) = (turn as u64, turn < cases.len());
            if group.rank() == 0 {
                group.barrier();
                endpoint.send(peers[1], tag, &pattern(tag, bytes)).expect("a cut message was sent");
                continue;
            }
            let mut into = vec![0xc3; room + 64];
            let (short, guard) = into.split_at_mut(room);
            let ended = endpoint.scope(|scope| {
                if early {
                    let receive = scope.receive(Source::Any, TagMatch::exactly(tag), short).expect("posted");
                    group.barrier();
                    return receive.wait();
                }
                group.barrier();
                idle(&endpoint, Duration::from_millis(20));
                scope.receive(Source::Any, TagMatch::exactly(tag), short).expect("posted").wait()
            });
            let peer = peers[0];
            let (message_bytes, received_bytes) = (bytes as u64, room as u64);
            assert_eq!(
                ended,
                Err(OperationError::Truncated { peer, tag, message_bytes, received_bytes, immediate: None })
            );
            assert!(guard.iter().all(|b| *b == 0xc3), "bytes past the buffer of {room} were written");
            check(tag, &into[..room]);
        }
        group.barrier();
    });
}

#[test]
fn segments_on_both_sides_make_one_message() {
    group::run(test_name!(), 2, LIMIT, |group| {
        let (endpoint, peers) = join(group, long_eager);
        for (turn, bytes) in [0_usize, 30, 100, 5000, 60_000, 700_000].into_iter().enumerate() {
            let tag = turn as u64;
            let data = pattern(tag, bytes);
            if group.rank() == 0 {
                let pieces: Vec<_> = data.chunks(bytes / 7 + 1).map(IoSlice::new).collect();
                endpoint.send_segments(peers[1], tag, &pieces).expect("sent");
            } else {
                // Every second piece of a larger memory, so that gaps show.
                let piece = bytes / 11 + 1;
                let mut memory = vec![0x77; 2 * (bytes + 2 * piece)];
                let mut segments: Vec<_> = memory.chunks_mut(piece).step_by(2).map(IoSliceMut::new).collect();
                let status = endpoint.receive_segments(Source::Any, TagMatch::exactly(tag), &mut segments);
                assert_eq!(status.expect("received").bytes, bytes as u64);
                let (mut got, mut gaps) = (Vec::new(), Vec::new());
                for (n, chunk) in memory.chunks(piece).enumerate() {
                    if n % 2 == 0 { got.extend_from_slice(chunk) } else { gaps.extend_from_slice(chunk) }
                }
                check(tag, &got[..bytes]);
                assert!(gaps.iter().chain(&got[bytes..]).all(|b| *b == 0x77));
            }
        }
        group.barrier();
    });
}

/// By a mechanism whose sender begins at once, what is received late must not
/// hold what is received first back; nor may a window of messages both ways, of
/// which one end has done its part.
#[test]
fn streams_are_received_in_any_order_and_both_ways_at_once() {
    const BYTES: usize = 1 << 20;
    let results = group::run(test_name!(), 2, LIMIT, |group| {
        let (endpoint, peers) = join(group, |config| config.mechanisms = Some(vec!["ring".to_owned()]));
        let me = group.rank() as usize;
        let other = peers[1 - me];
        let data = pattern(1, BYTES);
        if me == 0 {
            endpoint.scope(|scope| {
                let sends: Vec<_> = (0..8).map(|tag| scope.send(other, tag, &data).expect("begun")).collect();
                for send in sends {
                    send.wait().expect("sent");
                }
            });
        } else {
            (0..8).rev().for_each(|tag| receive_and_check(&endpoint, other, tag, 1, BYTES));
        }
        let mut buffers = vec![vec![0; BYTES]; 24];
        for window in 0..4 {
            // Each end in turn has much more to send than the other.
            let sent = if window % 2 == me { 24 } else { 8 };
            let into = &mut buffers[..32 - sent];
            endpoint.scope(|scope| {
                let receive = |into| scope.receive(Source::Peer(other), TagMatch::exactly(9), into);
                let receives: Vec<_> = into.iter_mut().map(|into| receive(into).expect("posted")).collect();
                let sends: Vec<_> = (0..sent).map(|_| scope.send(other, 9, &data).expect("begun")).collect();
                for request in receives.into_iter().chain(sends) {
                    request.wait().expect("it ends");
                }
            });
            for buffer in into {
                assert!(*buffer == data, "window {window} arrives whole");
                buffer.fill(0);
            }
        }
        group.barrier();
    });
    results.reports.iter().flatten().for_each(|line| println!("{line}"));
}
