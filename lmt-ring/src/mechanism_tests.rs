use lmt_core::buffer::{Access, Buffer};
use lmt_core::identity::EndpointId;
use lmt_core::process::PeerProcess;

use super::*;

const MIB: u64 = 1 << 20;

fn facts() -> PeerFacts {
    let process = Arc::new(PeerProcess::new(std::process::id() as i32, None));
    PeerFacts { id: EndpointId::from_bytes([7; 16]), process, probe_address: 0, nonce: [0; 16] }
}

/// This side, and what it knows of a peer.
fn met() -> (Ring, RingPeer) {
    let (mut ring, mut other) = (Ring::default(), Ring::default());
    let (peer, _) = ring.probe(&facts(), other.hello().expect("a pool")).expect("it is of this version");
    (ring, peer)
}

fn interval(bytes: u64) -> Interval {
    Interval { start: 0, end: bytes }
}

/// Announces a message; with whether its receiver is told that it is among many.
fn announce(ring: &mut Ring, peer: &mut RingPeer, bytes: u64) -> (RingTransfer, bool) {
    let (role, model) = (Role::Sender, Model::Stream);
    let plan = Plan::new(role, model, interval(bytes));
    let (transfer, cookie) = ring.prepare(peer, &plan, &Buffer::empty(Access::Read)).expect("slots are free");
    (transfer, Where::read(&cookie).expect("it is a ring's").is_among_many)
}

/// Caches hold no eight messages of 1 MiB together, and behind a window that was as long a core's
/// own cache holds no third one.
#[test]
fn of_many_bytes_on_their_way_the_receiver_is_told() {
    let (mut ring, mut peer) = met();
    for (messages, untold) in [(12, 7), (12, 2), (4, 2), (4, 4), (1, 1), (12, 7), (1, 1), (7, 7), (7, 2)] {
        let messages: Vec<_> = (0..messages).map(|_| announce(&mut ring, &mut peer, MIB)).collect();
        let told: Vec<bool> = messages.iter().map(|(_, told)| *told).collect();
        assert_eq!(told, [vec![false; untold], vec![true; messages.len() - untold]].concat());
        messages.into_iter().for_each(|(transfer, _)| ring.finish(&mut peer, transfer));
        assert_eq!(peer.outgoing.bytes(), 0);
    }
    assert!(announce(&mut ring, &mut peer, 8 * MIB).1, "it is as long alone");
}

/// Many short ones stay in the last cache, whatever a peer says.
#[test]
fn a_receiver_judges_by_the_length_too() {
    let ring = Ring::default();
    let cases = [
        (8 * MIB, false, false, true),
        (8 * MIB - 1, false, false, false),
        (MIB / 2, false, true, true),
        (MIB / 2 - 1, false, true, false),
        (MIB / 8, true, false, true),
    ];
    for (bytes, goes_past, told, is_past) in cases {
        assert_eq!(ring.is_past(interval(bytes), goes_past, told), is_past, "{bytes} bytes, {told}");
    }
}

#[test]
fn what_is_read_at_once_goes_through_the_caches_unless_it_is_long() {
    assert!(!may_go_past(2 * MIB - 1) && may_go_past(2 * MIB));
}
