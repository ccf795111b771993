//! The door as the connector's handler: what a peer leaves when it ends.

use super::*;
use crate::connect::{Closed, Handler, Waker};
use crate::mechanism::{
    Abilities, Cookie, Fault, Hello, Interval, Lmt, Model, PeerFacts, Plan, Step, Unavailable,
};
use crate::rendezvous::SendId;
use crate::selection::Taken;
use crate::test_peer::facts;

/// A mechanism that can do all with everybody, as far as probing goes.
struct Willing;

impl Lmt for Willing {
    type Peer = ();
    type Transfer = ();

    fn name(&self) -> &'static str {
        "willing"
    }

    fn models(&self) -> &'static [Model] {
        &[Model::Get]
    }

    fn hello(&mut self) -> Result<Hello, Unavailable> {
        Ok(Hello::default())
    }

    fn probe(&mut self, _facts: &PeerFacts, _hello: Hello) -> Result<((), Abilities), Unavailable> {
        Ok(((), Abilities { read: true, write: true, cooperate: true }))
    }

    fn prepare(&mut self, _peer: &mut (), _plan: &Plan, _data: &Buffer) -> Result<((), Cookie), Fault> {
        Ok(((), Cookie::empty()))
    }

    fn start(&mut self, _: &mut (), _: &mut (), _: &Cookie, _: Interval) -> Result<(), Fault> {
        Ok(())
    }

    fn step(&mut self, _: &mut (), _: &mut (), _: &mut Buffer, _: u64) -> Result<Step, Fault> {
        Ok(Step { bytes: 0, done: false })
    }

    fn finish(&mut self, _peer: &mut (), _transfer: ()) {}
}

struct Deaf;

impl Port for Deaf {
    fn send_packet(&mut self, _to: PeerId, _packet: &[u8]) -> Result<(), PortFull> {
        Err(PortFull)
    }
}

fn group() -> EndpointId {
    let mut bytes = [0; 16];
    crate::random::fill(&mut bytes).expect("random bytes");
    EndpointId::from_bytes(bytes)
}

fn door() -> (Door, EndpointId) {
    let group = group();
    let mut mechanisms = Mechanisms::new();
    mechanisms.register(Willing);
    (Door::new(group.member(1), Config::default(), mechanisms).expect("a door"), group.member(2))
}

/// A peer comes and is probed; its mechanisms are those of this door.
fn come(door: &mut Door, id: EndpointId) -> Vec<u8> {
    let greeting = door.inner.hello(id).expect("room for a peer");
    door.inner.probe(&facts(id), greeting, Waker::of_nobody()).expect("it is willing")
}

fn works(door: &Door, peer: PeerId) -> bool {
    door.standings(peer).iter().any(|(_, standing)| standing.ours.read)
}

#[test]
fn a_peer_that_comes_again_in_the_same_batch_keeps_its_new_probes() {
    let (mut door, id) = door();
    let peer = PeerId::first(0);
    let report = come(&mut door, id);
    let taken = |door: &Door| door.explain(peer, &Message::of_bytes(1)).expect("it is known").taken;
    assert_eq!(taken(&door), Taken::Unknown, "its report is not here");
    door.inner.established(facts(id), report);
    assert!(door.is_connected(peer) && works(&door, peer));
    assert!(door.knows(peer) && !door.knows(PeerId::first(1)));
    assert_eq!(taken(&door), Taken::By { mechanism: "willing".into(), model: Model::Get });

    door.inner.closed(id, Closed::Goodbye);
    assert_eq!(door.peer_error(peer), Some(&PeerError::Dead { id }));
    assert!(!works(&door, peer), "the old one's probes are forgotten");
    let report = come(&mut door, id);
    door.progress(&mut Deaf).expect("no fork here");
    assert!(works(&door, peer), "the new one's probes are kept");
    door.inner.established(facts(id), report);
    door.progress(&mut Deaf).expect("no fork here");
    assert!(door.is_connected(peer) && works(&door, peer));

    // The same for an attempt that fails.
    door.inner.closed(id, Closed::Died);
    let _report = come(&mut door, id);
    door.inner.failed(id, PeerError::Unreachable { id, waited_ms: 1 });
    assert_eq!(door.peer_error(peer), Some(&PeerError::Unreachable { id, waited_ms: 1 }));
    let report = come(&mut door, id);
    door.inner.established(facts(id), report);
    door.progress(&mut Deaf).expect("no fork here");
    assert!(door.is_connected(peer) && works(&door, peer));
}

#[test]
fn a_peer_that_comes_again_may_send_before_its_report_is_here() {
    let (mut door, id) = door();
    let peer = PeerId::first(0);
    let report = come(&mut door, id);
    door.inner.established(facts(id), report);
    door.inner.closed(id, Closed::Goodbye);
    let mut packet = [0; PACKET_MAX_BYTES];
    let bytes = 1 + Packet::Cancel { send_id: SendId(0) }.encode(&mut packet[1..]);
    let error = door.on_packet(peer, &packet[..bytes]).expect_err("the peer is gone");
    assert!(error.to_string().contains("died"), "{error}");
    let _report = come(&mut door, id);
    door.on_packet(peer, &packet[..bytes]).expect("the peer has come again");
}
