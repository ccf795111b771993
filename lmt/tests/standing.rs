//! Messages that say the same again and again: only what has changed is written, and each
//! comes as it was sent.

mod common;

use common::{join_plain, pattern};
use lmt::{Endpoint, PeerId, Source, TagMatch};
use lmt_conformance::group::{Group, Test};
use lmt_conformance::test_name;

/// By cells, and beyond them by a mechanism.
const SIZES: [usize; 6] = [4096, 10_000, 64 << 10, 200_000, 400_000, 1 << 20];
const ROUNDS: u64 = 40;

fn test(name: &str) -> Test {
    let test = Test::new(name, 2).time_limit(common::LIMIT);
    common::configured_by(&common::folder(name), test)
}

fn partner(group: &Group, peers: &[PeerId]) -> PeerId {
    peers[1 - group.rank() as usize]
}

/// Sends and receives one message at the same time; both of this tag.
fn exchange(endpoint: &Endpoint, peer: PeerId, tag: u64, data: &[u8], into: &mut [u8]) {
    endpoint.scope(|scope| {
        let received = scope.receive(Source::Peer(peer), TagMatch::exactly(tag), into).expect("begun");
        let sent = scope.send(peer, tag, data).expect("begun");
        assert_eq!(received.wait().expect("it is sent").bytes, data.len() as u64);
        sent.wait().expect("it is received");
    });
}

/// Every third message differs from the one before it, in a byte anywhere or in all of them.
#[test]
fn each_comes_as_it_was_sent_however_much_of_it_has_changed() {
    test(test_name!()).run(|group| {
        let (endpoint, peers) = join_plain(group);
        let (me, peer) = (u64::from(group.rank()), partner(group, &peers));
        for (number, bytes) in SIZES.into_iter().enumerate() {
            let message = |sender: u64, round: u64| {
                let mut data = pattern(sender * 100 + round / 12, bytes);
                let change = (round % 12 / 3) as usize;
                data[bytes * change / 4 + 3] ^= change as u8;
                data
            };
            let mut into = vec![0; bytes];
            for round in 0..ROUNDS {
                exchange(&endpoint, peer, number as u64, &message(me, round), &mut into);
                assert!(into == message(1 - me, round), "{bytes} bytes, round {round}");
            }
        }
        group.barrier();
    });
}

/// What did not change was not written, and the endpoint says so.
#[test]
fn what_stood_is_counted_and_told() {
    test(test_name!()).run(|group| {
        let (endpoint, peers) = join_plain(group);
        let peer = partner(group, &peers);
        let data = pattern(u64::from(group.rank()), 64 << 10);
        let mut into = vec![0; data.len()];
        (0..ROUNDS).for_each(|_| exchange(&endpoint, peer, 1, &data, &mut into));
        assert!(into == pattern(u64::from(1 - group.rank()), 64 << 10));
        let counted = endpoint.eager_counters(peer);
        assert!(counted.standing_bytes >= (ROUNDS - 8) * (64 << 10), "{counted:?}");
        assert!(counted.standing_bytes < counted.sent.bytes, "the first were written");
        let told = endpoint.explain(peer, 64 << 10).expect("it is known").to_string();
        assert!(told.contains("were not written, since an earlier message had said the same"), "{told}");
        group.barrier();
    });
}

/// What the ring's messages stood, of as many as are sent: so short that they stand wherever
/// the peer's core is.
fn standing_in_the_ring(name: &str, standing_bytes: &str) {
    let test = test(name).env("LMT_EAGER_MAX", "0").env("LMT_MECHANISM", "ring");
    test.env("LMT_RING_STANDING_BYTES", standing_bytes).run(|group| {
        const BYTES: usize = 150_000;
        let (endpoint, peers) = join_plain(group);
        let (me, peer) = (u64::from(group.rank()), partner(group, &peers));
        let (mut data, mut other) = (pattern(me, BYTES), pattern(1 - me, BYTES));
        let mut into = vec![0; BYTES];
        for round in 0..ROUNDS {
            if round > ROUNDS / 2 {
                data[round as usize * 1000] ^= 1;
                other[round as usize * 1000] ^= 1;
            }
            exchange(&endpoint, peer, 1, &data, &mut into);
            assert!(into == other, "round {round}");
        }
        let (_, counted) =
            endpoint.counters(peer).into_iter().find(|(name, _)| *name == "ring").expect("it is there");
        assert_eq!(counted.sent.messages, ROUNDS);
        let least = (ROUNDS - 10) * BYTES as u64;
        assert_eq!(counted.standing_bytes > least, standing_bytes != "0", "{counted:?}");
        group.barrier();
    });
}

#[test]
fn the_ring_keeps_what_is_sent_again() {
    standing_in_the_ring(test_name!(), "160 KiB");
}

#[test]
fn the_ring_keeps_nothing_where_it_is_told_so() {
    standing_in_the_ring(test_name!(), "0");
}

/// Without the key nothing stands.
#[test]
fn who_wants_none_of_it_has_none() {
    test(test_name!()).env("LMT_STANDING_BYTES", "0").run(|group| {
        let (endpoint, peers) = join_plain(group);
        let peer = partner(group, &peers);
        let data = pattern(1, 64 << 10);
        let mut into = vec![0; data.len()];
        (0..ROUNDS).for_each(|_| exchange(&endpoint, peer, 1, &data, &mut into));
        assert_eq!(endpoint.eager_counters(peer).standing_bytes, 0);
        group.barrier();
    });
}

/// One side's messages stand, the other's change: the latter never lack cells, nor are they
/// announced, though nothing but messages brings cells back otherwise.
#[test]
fn who_sends_what_stands_gives_cells_back() {
    test(test_name!()).run(|group| {
        let (endpoint, peers) = join_plain(group);
        let peer = partner(group, &peers);
        let changes = group.rank() == 1;
        let mut data = pattern(u64::from(group.rank()), 64 << 10);
        let mut into = vec![0; data.len()];
        for round in 0..20 * ROUNDS {
            if changes {
                data[..8].copy_from_slice(&round.to_ne_bytes());
            }
            exchange(&endpoint, peer, 1, &data, &mut into);
        }
        let counted = endpoint.eager_counters(peer);
        assert_eq!(counted.sent.messages, 20 * ROUNDS, "none was announced: {counted:?}");
        assert_eq!(counted.standing_bytes == 0, changes, "{counted:?}");
        group.barrier();
    });
}
