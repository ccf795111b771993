//! Receives with less room than their messages have, beside others.

mod common;

use common::{check, join_plain, pattern};
use lmt::{OperationError, Source, TagMatch};
use lmt_conformance::group::Test;
use lmt_conformance::test_name;

/// So many messages each way at a time; every other one is cut.
const AT_ONCE: u64 = 6;
const ROUNDS: u64 = 1500;
const BYTES: usize = 150_000;

/// What is cut ends in the middle of a cell, in which its sender goes on; the others' bytes are
/// their own all the same. With few cells, so that each is used again at once.
#[test]
fn a_message_that_is_cut_spoils_no_other() {
    let test = Test::new(test_name!(), 2).time_limit(common::LIMIT);
    let test = common::configured_by(&common::folder(test_name!()), test)
        .env("LMT_EAGER_MAX", "0")
        .env("LMT_MECHANISM", "ring")
        .env("LMT_RING_RING_BYTES", "262144");
    test.run(|group| {
        let (endpoint, peers) = join_plain(group);
        let (me, peer) = (u64::from(group.rank()), peers[1 - group.rank() as usize]);
        let seed = |rank: u64, round: u64, at: u64| rank << 40 | round << 8 | at;
        let room =
            |round: u64, at: u64| if at.is_multiple_of(2) { BYTES } else { (round * 7919 % 40_000) as usize };
        for round in 0..ROUNDS {
            let out: Vec<Vec<u8>> =
                (0..AT_ONCE).map(|at| pattern(seed(me, round, at), BYTES - at as usize)).collect();
            let mut into: Vec<Vec<u8>> = (0..AT_ONCE).map(|at| vec![0; room(round, at)]).collect();
            endpoint.scope(|scope| {
                let tag = |at: usize| round * AT_ONCE + at as u64;
                let receives: Vec<_> = into
                    .iter_mut()
                    .enumerate()
                    .map(|(at, into)| {
                        scope.receive(Source::Peer(peer), TagMatch::exactly(tag(at)), into).expect("begun")
                    })
                    .collect();
                let sends: Vec<_> = out
                    .iter()
                    .enumerate()
                    .map(|(at, out)| scope.send(peer, tag(at), out).expect("begun"))
                    .collect();
                for (at, receive) in receives.into_iter().enumerate() {
                    let ended = receive.wait();
                    let is_cut = room(round, at as u64) < BYTES - at;
                    assert!(matches!(ended, Err(OperationError::Truncated { .. })) == is_cut, "{ended:?}");
                }
                for send in sends {
                    send.wait().expect("it is received");
                }
            });
            for (at, into) in (0..).zip(&into).filter(|(at, _)| at % 2 == 0) {
                check(seed(1 - me, round, at), &into[..BYTES - at as usize]);
            }
        }
        group.barrier();
    });
}
