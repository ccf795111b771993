//! Messages that were taken and dropped, peers that are removed in the middle,
//! endpoints that are closed with everything in flight.

mod common;

use std::time::Duration;

use lmt::{Endpoint, OperationError, Source, TagMatch};
use lmt_conformance::{group, test_name};

const LIMIT: Duration = Duration::from_secs(60);

/// Dropping a message that was taken out of matching ends its sender's
/// operation, whatever its length.
#[test]
fn a_dropped_message_is_discarded() {
    group::Test::new(test_name!(), 2).time_limit(LIMIT).run(|group| {
        let (endpoint, peers) = common::join_plain(group);
        if group.rank() == 0 {
            for bytes in [0, 100, 1 << 20] {
                endpoint.send_synchronous(peers[1], 1, &vec![7; bytes]).expect("it ends with the drop");
            }
            endpoint.send(peers[1], 2, b"after").expect("the peer lives");
        } else {
            for _ in 0..3 {
                let message = loop {
                    let found = endpoint.matched_probe(Source::Any, TagMatch::exactly(1));
                    if let Some(message) = found.expect("no forked child") {
                        break message;
                    }
                };
                drop(message);
            }
            let mut text = [0; 5];
            endpoint.receive(Source::Any, TagMatch::exactly(2), &mut text).expect("the peer lives");
            assert_eq!(&text, b"after");
        }
        group.barrier();
    });
}

/// A peer that may be copying is not removed before it has done: else the
/// memory would be free while it is in use.
#[test]
fn a_peer_in_the_middle_of_a_transfer_is_not_removed() {
    group::Test::new(test_name!(), 2).time_limit(LIMIT).run(|group| {
        let (endpoint, peers) = common::join_plain(group);
        let data = vec![7; 1 << 20];
        if group.rank() == 0 {
            endpoint.send(peers[1], 0, b"connected").expect("the peer lives");
            endpoint.scope(|scope| {
                let send = scope.send(peers[1], 1, &data).expect("begun");
                let refused = endpoint.remove_peer(peers[1]);
                assert!(
                    matches!(refused, Err(OperationError::PeerBusy { operations: 1, .. })),
                    "{refused:?}"
                );
                group.barrier();
                send.wait().expect("it is received");
            });
            endpoint.remove_peer(peers[1]).expect("nothing is in flight");
        } else {
            let mut into = vec![0; 1 << 20];
            endpoint.receive(Source::Any, TagMatch::exactly(0), &mut into).expect("the peer lives");
            group.barrier();
            endpoint.receive(Source::Peer(peers[0]), TagMatch::any(), &mut into).expect("the peer lives");
            assert_eq!(into, data);
        }
        group.barrier();
    });
}

/// Where both ends see in memory that a message is whole, a receiver that has it
/// may be gone before its sender looks: the message arrived all the same,
/// whosever memory it went through.
#[test]
fn a_message_is_sent_when_its_receiver_left_before_the_sender_looked() {
    for first in [0, 1] {
        group::Test::new(test_name!(), 2).time_limit(LIMIT).run(|group| {
            let endpoint = Endpoint::builder()
                .id(group.id().member(group.rank()))
                .mechanisms(&["ring"])
                .configure(|config| config.eager_max_bytes = 0)
                .build()
                .expect("an endpoint");
            let peer = endpoint.insert_peer(&group.address(1 - group.rank())).expect("there is room");
            let data = common::pattern(1, 256 << 10);
            let mut into = vec![0; data.len()];
            let mut receive = |tag| {
                let found = endpoint.receive(Source::Peer(peer), TagMatch::exactly(tag), &mut into);
                found.expect("the peer lives");
                assert_eq!(into, data);
            };
            // Who sends first has the ring in its pool.
            for sender in [first, 1 - first] {
                if group.rank() == sender {
                    endpoint.send(peer, 0, &data).expect("the peer lives");
                } else {
                    receive(0);
                }
            }
            if group.rank() == 0 {
                endpoint.scope(|scope| {
                    let send = scope.send(peer, 1, &data).expect("begun");
                    // All of it stands in cells after this.
                    for _ in 0..100 {
                        endpoint.progress().expect("no forked child");
                    }
                    group.barrier();
                    group.barrier();
                    send.wait().expect("it was received");
                });
                let by_ring = endpoint.counters(peer).into_iter().find(|(name, _)| *name == "ring");
                assert!(by_ring.is_some_and(|(_, ring)| ring.messages > 0), "{by_ring:?}");
            } else {
                group.barrier();
                receive(1);
                endpoint.close().expect("no forked child");
                group.barrier();
            }
        });
    }
}
