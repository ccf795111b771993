//! Messages to oneself, peers that are not named, not connected, or come again,
//! and what is unknown.

mod common;

use std::time::Duration;

use common::{LIMIT, check, idle, join, join_plain, pattern, receive_and_check};
use lmt::{Config, Endpoint, OperationError, PeerId, Source, Status, TagMatch};
use lmt_conformance::{group, test_name};

#[test]
fn an_endpoint_sends_to_itself() {
    let endpoint = Endpoint::new().expect("made");
    let me = endpoint.insert_peer(&endpoint.address()).expect("a peer");
    let eager = endpoint.config().eager_max_bytes as usize;
    for bytes in [0, 1, 40, eager, eager + 1, 200_000] {
        let (data, mut into) = (pattern(1, bytes), vec![0; bytes]);
        for synchronous in [false, true] {
            for receive_first in [false, true] {
                into.fill(0);
                endpoint.scope(|scope| {
                    let tags = TagMatch::exactly(4);
                    let begin = || match synchronous {
                        true => scope.send_synchronous(me, 4, &data).expect("begun"),
                        false => scope.send(me, 4, &data).expect("begun"),
                    };
                    // The borrow of one iteration ends with the scope.
                    let (send, receive) = if receive_first {
                        let receive = scope.receive(Source::Peer(me), tags, &mut into).expect("posted");
                        (begin(), receive)
                    } else {
                        let mut send = begin();
                        if synchronous || bytes > eager {
                            send = send.test().expect_err("it is not matched");
                        }
                        assert_eq!(
                            endpoint.probe(Source::Any, tags).expect("no fork").map(|s| s.bytes),
                            Some(bytes as u64)
                        );
                        (send, scope.receive(Source::Any, tags, &mut into).expect("posted"))
                    };
                    assert_eq!(
                        receive.wait().expect("received"),
                        Status { peer: me, tag: 4, bytes: bytes as u64, immediate: None }
                    );
                    send.wait().expect("sent");
                });
                check(1, &into);
            }
        }
        if bytes > 0 {
            let mut short = vec![9; bytes];
            let ended = endpoint.scope(|scope| {
                let send = scope.send(me, 4, &data).expect("begun");
                let cut = endpoint.receive(Source::Any, TagMatch::any(), &mut short[..bytes - 1]);
                send.wait().expect("sent");
                cut
            });
            assert!(matches!(ended, Err(OperationError::Truncated { .. })), "{ended:?}");
            assert_eq!(short[bytes - 1], 9);
        }
    }
    endpoint.scope(|scope| {
        let data = [1; 10];
        let data: &'static [u8] = Vec::leak(data.to_vec());
        let send = scope.send_synchronous(me, 4, data).expect("begun");
        assert_eq!(send.cancel(), Err(OperationError::Cancelled));
    });
    assert_eq!(endpoint.probe(Source::Any, TagMatch::any()), Ok(None));
}

#[test]
fn as_many_sends_wait_as_the_configuration_allows() {
    group::run(test_name!(), 2, LIMIT, |group| {
        let (endpoint, peers) = join(group, |config| config.pending_max_messages = 5);
        if group.rank() == 0 {
            endpoint.scope(|scope| {
                let sends: Vec<_> = (0..5).map(|n| scope.send(peers[1], n, b"wait").expect("room")).collect();
                let sixth = scope.send(peers[1], 5, b"wait").map(|_| ());
                assert_eq!(sixth, Err(OperationError::WouldBlock { id: group.address(1).id(), pending: 5 }));
                scope.wait_all(sends).into_iter().for_each(|end| assert!(end.is_ok(), "{end:?}"));
            });
            endpoint.send(peers[1], 5, b"wait").expect("there is room again");
        } else {
            for tag in 0..6 {
                endpoint.receive(Source::Any, TagMatch::exactly(tag), &mut [0; 4]).expect("received");
            }
        }
        group.barrier();
    });
}

#[test]
fn messages_of_an_unnamed_peer_wait_until_it_is_named() {
    group::run(test_name!(), 2, LIMIT, |group| {
        let id = group.id().member(group.rank());
        let change = |config: &mut Config| config.eager_max_bytes = 65_536;
        let endpoint = Endpoint::builder().id(id).configure(change).build().expect("made");
        let sizes = [10, 50_000, 300_000, 0, 4096, 100];
        if group.rank() == 0 {
            let to = endpoint.insert_peer(&group.address(1)).expect("a peer");
            let data: Vec<_> = sizes.iter().zip(0..).map(|(bytes, n)| pattern(n, *bytes)).collect();
            endpoint.scope(|scope| {
                let sends = data.iter().map(|d| scope.send(to, 1, d).expect("begun")).collect();
                scope.wait_all(sends).into_iter().for_each(|end| assert!(end.is_ok(), "{end:?}"));
            });
        } else {
            let mut into = vec![vec![0; 300_000]; sizes.len()];
            let (posted, late) = into.split_at_mut(3);
            endpoint.scope(|scope| {
                let post = |buffer| scope.receive(Source::Any, TagMatch::any(), buffer).expect("posted");
                let mut first: Vec<_> = posted.iter_mut().map(Vec::as_mut_slice).map(post).collect();
                idle(&endpoint, Duration::from_millis(100));
                assert_eq!(endpoint.probe(Source::Any, TagMatch::any()), Ok(None));
                first = first.into_iter().map(|r| r.test().expect_err("nobody is named")).collect();
                let from = endpoint.insert_peer(&group.address(0)).expect("a peer");
                first.extend(late.iter_mut().map(Vec::as_mut_slice).map(post));
                for (end, bytes) in scope.wait_all(first).into_iter().zip(sizes) {
                    assert_eq!(end, Ok(Status { peer: from, tag: 1, bytes: bytes as u64, immediate: None }));
                }
            });
            into.iter().zip(sizes).zip(0..).for_each(|((data, bytes), n)| check(n, &data[..bytes]));
        }
        group.barrier();
    });
}

#[test]
fn waits_for_any_and_all() {
    group::run(test_name!(), 3, LIMIT, |group| {
        let (endpoint, peers) = join_plain(group);
        let me = group.rank() as usize;
        let mut into = vec![vec![0; 20_000]; 6];
        if me == 0 {
            endpoint.scope(|scope| {
                let post = |(n, buffer)| {
                    scope.receive(Source::Peer(peers[n % 2 + 1]), TagMatch::any(), buffer).expect("posted")
                };
                let mut requests: Vec<_> =
                    into.iter_mut().map(Vec::as_mut_slice).enumerate().map(post).collect();
                group.barrier();
                let mut seen = 0;
                while let Some((_, end)) = scope.wait_any(&mut requests) {
                    assert_eq!(end.expect("received").bytes, 20_000);
                    seen += 1;
                }
                assert_eq!(seen, 6);
                assert!(scope.wait_any(&mut requests).is_none());
            });
        } else {
            group.barrier();
            for n in 0..3 {
                endpoint.send(peers[0], n, &pattern(n, 20_000)).expect("sent");
            }
        }
        group.barrier();
    });
}

#[test]
fn what_is_unknown_is_said_to_be() {
    use lmt::buffer::{Access, Buffer};
    use lmt::{RequestId, SendMode};
    let mut engine = Endpoint::builder().build_engine().expect("made");
    let many = Endpoint::new().expect("made");
    let foreign = (0..3)
        .map(|_| many.insert_peer(&Endpoint::new().expect("made").address()).expect("a peer"))
        .last()
        .expect("three");
    let empty = |access| Buffer::empty(access);
    let send = engine.send(foreign, 0, empty(Access::Read), SendMode::Standard);
    assert_eq!(send, Err(OperationError::UnknownPeer));
    let receive = engine.receive(Source::Peer(foreign), TagMatch::any(), empty(Access::Write));
    assert_eq!(receive, Err(OperationError::UnknownPeer));
    let receive = engine.receive(Source::Any, TagMatch::any(), empty(Access::Read));
    assert_eq!(receive, Err(OperationError::ReadOnlyBuffer));
    for raw in [0, 7, u64::MAX, 1 << 32] {
        let request = RequestId::from_raw(raw);
        assert_eq!(engine.test(request), Some(Err(OperationError::UnknownRequest)));
        assert_eq!(engine.wait(request), Err(OperationError::UnknownRequest));
        engine.cancel(request).expect("harmless");
        assert_eq!(engine.wait_any([request], None), Ok(Some(0)));
    }
    assert!(engine.peer_id(foreign).is_none());
    assert!(engine.mechanism_status(foreign).iter().all(|(_, s)| format!("{s:?}").len() > 1));
    // A result can be taken once.
    let own = engine.address().clone();
    let me = engine.insert_peer(&own).expect("a peer");
    let done = engine.send(me, 0, empty(Access::Read), SendMode::Standard).expect("begun");
    assert!(engine.wait(done).is_ok());
    assert_eq!(engine.wait(done), Err(OperationError::UnknownRequest));
}

/// One side is connected a moment before the other, and writes at once.
#[test]
fn the_first_message_is_never_lost() {
    group::run(test_name!(), 2, LIMIT, |group| {
        for turn in 0..150 {
            let member = |rank| group.id().member(100 + 2 * turn + rank);
            let endpoint = Endpoint::builder().id(member(group.rank())).build().expect("made");
            let other = lmt::Address::abstract_socket(member(1 - group.rank()));
            let other = endpoint.insert_peer(&other).expect("a peer");
            let mut into = [0; 5];
            group.barrier();
            endpoint.scope(|scope| {
                let receive = scope.receive(Source::Peer(other), TagMatch::any(), &mut into).expect("posted");
                if turn % 3 != group.rank() {
                    let send = scope.send(other, 1, b"first").expect("begun");
                    send.wait().expect("sent");
                } else if turn % 2 == 0 {
                    idle(&endpoint, Duration::from_millis(1));
                }
                if turn % 3 != 1 - group.rank() {
                    receive.wait().expect("received");
                }
            });
            group.barrier();
        }
    });
}

/// An endpoint ends and another takes its place under the same address.
#[test]
fn a_peer_may_come_again() {
    group::run(test_name!(), 2, LIMIT, |group| {
        let swap = |endpoint: &Endpoint, other: PeerId, seed: u64| {
            for (turn, bytes) in [10, 4096, 100_000].into_iter().cycle().take(300).enumerate() {
                let seed = seed << 32 | turn as u64;
                if group.rank() == 0 {
                    endpoint.send(other, 1, &pattern(seed, bytes)).expect("sent");
                } else {
                    receive_and_check(endpoint, other, 1, seed, bytes);
                }
            }
        };
        if group.rank() == 0 {
            let (endpoint, peers) = join_plain(group);
            for turn in 0..5 {
                group.barrier();
                let other = endpoint.insert_peer(&group.address(1)).expect("a peer");
                assert_eq!(other, peers[1]);
                swap(&endpoint, other, turn);
                let gone = endpoint.receive(Source::Peer(other), TagMatch::any(), &mut []);
                assert!(matches!(gone, Err(OperationError::Peer(lmt::PeerError::Dead { .. }))), "{gone:?}");
                assert!(endpoint.send(other, 1, b"x").is_err());
                group.barrier();
            }
        } else {
            for turn in 0..5 {
                let (endpoint, peers) = join_plain(group);
                group.barrier();
                swap(&endpoint, peers[0], turn);
                drop(endpoint);
                group.barrier();
            }
        }
    });
}
