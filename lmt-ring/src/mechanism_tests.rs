use lmt_core::buffer::{Access, Buffer};
use lmt_core::identity::EndpointId;
use lmt_core::process::PeerProcess;

use super::*;

const MIB: u64 = 1 << 20;

/// This side, and what it knows of a peer.
fn connected() -> (Ring, RingPeer) {
    let (mut ring, mut other) = (Ring::default(), Ring::default());
    let process = Arc::new(PeerProcess::new(std::process::id() as i32, None));
    let facts = PeerFacts { id: EndpointId::from_bytes([7; 16]), process, probe_address: 0, nonce: [0; 16] };
    let (peer, _) = ring
        .probe(&facts, other.hello().expect("a pool"))
        .and_then(Probed::reached)
        .expect("it is of this version");
    (ring, peer)
}

/// Announces a message; with whether its receiver is told to copy it past its caches.
fn announce(ring: &mut Ring, peer: &mut RingPeer, bytes: u64) -> (RingTransfer, bool) {
    let plan = Plan::new(Role::Sender, Model::Stream, Interval { start: 0, end: bytes });
    let (transfer, cookie) = ring.prepare(peer, &plan, &Buffer::empty(Access::Read)).expect("slots are free");
    (transfer, Where::read(&cookie).expect("it is a ring's").past_caches)
}

#[test]
fn what_no_cache_holds_together_goes_past_the_caches() {
    let (mut ring, mut peer) = connected();
    for (messages, through) in [(12, 7), (1, 1), (7, 7), (12, 7)] {
        let (transfers, past): (Vec<_>, Vec<_>) =
            (0..messages).map(|_| announce(&mut ring, &mut peer, MIB)).unzip();
        assert_eq!(past, [vec![false; through], vec![true; messages - through]].concat());
        transfers.into_iter().for_each(|transfer| ring.finish(&mut peer, transfer));
        assert_eq!(peer.outgoing_bytes, 0, "an ended message counts no more");
    }
    assert!(announce(&mut ring, &mut peer, 8 * MIB).1, "it is as long alone");
}
