//! The device layer as the connector's handler: what a peer leaves when it ends.

use super::*;
use crate::connect::{Closed, Handler, Waker};
use crate::mechanism::test_peer::facts;
use crate::mechanism::{Description, Lmt};
use crate::rendezvous::SendId;
use crate::selection::Taken;
use crate::vocabulary::model::Model;
use crate::vocabulary::peer_facts::{Abilities, Hello, PeerFacts, Probed, Unavailable};
use crate::vocabulary::transfer::{Cookie, Fault, Interval, Plan, Step};

/// A mechanism that can do all with everybody, as far as probing goes.
struct Willing;

impl Lmt for Willing {
    type Peer = ();
    type Transfer = ();

    fn description(&self) -> Description {
        Description::new("willing", &[Model::Get])
    }

    fn probe(&mut self, _facts: &PeerFacts, _hello: Hello) -> Result<Probed<()>, Unavailable> {
        Ok(Probed::new((), Abilities { read: true, write: true, cooperate: true }))
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

impl PacketTransport for Deaf {
    fn send_packet(&mut self, _to: PeerId, _packet: &[u8]) -> Result<(), TransportFull> {
        Err(TransportFull)
    }
}

fn group() -> EndpointId {
    let mut bytes = [0; 16];
    crate::base::random::fill(&mut bytes).expect("random bytes");
    EndpointId::from_bytes(bytes)
}

fn layer() -> (DeviceLayer, EndpointId) {
    let group = group();
    let mut mechanisms = Mechanisms::new();
    mechanisms.register(Willing);
    (DeviceLayer::new(group.member(1), Config::default(), mechanisms).expect("a layer"), group.member(2))
}

/// A peer comes and is probed; its mechanisms are those of this device layer.
fn come(layer: &mut DeviceLayer, id: EndpointId) -> Vec<u8> {
    let greeting = layer.inner.hello(id).expect("room for a peer");
    layer.inner.probe(&facts(id), greeting, Waker::of_nobody()).expect("it is willing")
}

fn works(layer: &DeviceLayer, peer: PeerId) -> bool {
    layer.mechanism_status(peer).iter().any(|(_, standing)| standing.ours.read)
}

#[test]
fn a_peer_that_comes_again_in_the_same_batch_keeps_its_new_probes() {
    let (mut layer, id) = layer();
    let peer = PeerId::first(0);
    let report = come(&mut layer, id);
    let taken = |layer: &DeviceLayer| layer.explain(peer, &Message::of_bytes(1)).expect("it is known").taken;
    assert_eq!(taken(&layer), Taken::Unknown, "its report is not here");
    layer.inner.established(facts(id), report);
    assert!(layer.is_connected(peer) && works(&layer, peer));
    assert!(layer.knows(peer) && !layer.knows(PeerId::first(1)));
    assert_eq!(taken(&layer), Taken::By { mechanism: "willing".into(), model: Model::Get });

    layer.inner.closed(id, Closed::Goodbye);
    assert_eq!(layer.peer_error(peer), Some(&PeerError::Dead { id }));
    assert!(!works(&layer, peer), "the old one's probes are forgotten");
    let report = come(&mut layer, id);
    layer.progress(&mut Deaf).expect("no fork here");
    assert!(works(&layer, peer), "the new one's probes are kept");
    layer.inner.established(facts(id), report);
    layer.progress(&mut Deaf).expect("no fork here");
    assert!(layer.is_connected(peer) && works(&layer, peer));

    // The same for an attempt that fails.
    layer.inner.closed(id, Closed::Died);
    let _report = come(&mut layer, id);
    layer.inner.failed(id, PeerError::Unreachable { id, waited_ms: 1 });
    assert_eq!(layer.peer_error(peer), Some(&PeerError::Unreachable { id, waited_ms: 1 }));
    let report = come(&mut layer, id);
    layer.inner.established(facts(id), report);
    layer.progress(&mut Deaf).expect("no fork here");
    assert!(layer.is_connected(peer) && works(&layer, peer));
}

#[test]
fn a_peer_that_comes_again_may_send_before_its_report_is_here() {
    let (mut layer, id) = layer();
    let peer = PeerId::first(0);
    let report = come(&mut layer, id);
    layer.inner.established(facts(id), report);
    layer.inner.closed(id, Closed::Goodbye);
    let mut packet = [0; PACKET_MAX_BYTES];
    let bytes = 1 + Packet::Cancel { send_id: SendId(0) }.encode(&mut packet[1..]);
    let error = layer.on_packet(peer, &packet[..bytes]).expect_err("the peer is gone");
    assert!(error.to_string().contains("died"), "{error}");
    let _report = come(&mut layer, id);
    layer.on_packet(peer, &packet[..bytes]).expect("the peer has come again");
}
