//! What connecting many peers costs, where the policy counts processes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use nix::sys::eventfd::EventFd;

use super::*;
use crate::base::cpu_set::CpuSet;
use crate::endpoint::blocking_receive::Found;
use crate::endpoint::cells::kind;
use crate::endpoint::{Engine, PolledReceive};
use crate::mechanism::Mechanisms;
use crate::memory::buffer::{Access, Buffer, Segment};
use crate::queue::{Envelope, Geometry, Payload};
use crate::region::RegionTable;
use crate::requests::ids::PeerId;
use crate::requests::label::{Source, Space, TagMatch};
use crate::requests::options::SendMode;
use crate::requests::outcome::Started;
use crate::selection::{ByOrder, Decisions, Explanation, Message, Policy, Situation};
use crate::vocabulary::config::Config;
use crate::vocabulary::identity::{Address, MechanismTag, PeerKey};
use crate::vocabulary::peer_facts::Hello;

/// As many as are known, itself among them, is the longest eager message.
struct Counting(Arc<AtomicUsize>);

impl Policy for Counting {
    fn decide(&mut self, situation: &Situation<'_>) -> Decisions {
        self.0.fetch_add(1, Ordering::Relaxed);
        Decisions::new(situation.processes.len() as u64, |_| Vec::new())
    }

    fn counts_processes(&self) -> bool {
        true
    }

    fn explain(&self, situation: &Situation<'_>, message: &Message) -> Explanation {
        ByOrder::default().explain(situation, message)
    }
}

/// Processes that say all that one says who connects, and nothing after.
struct Fakes {
    group: EndpointId,
    inbox: OwnedFd,
    spare: EventFd,
    _kept: InboxReceiver,
}

impl Fakes {
    fn new(group: EndpointId, config: &Config) -> Self {
        let geometry = Geometry::new(config.inbox_cells, config.cell_bytes, config.max_peers).unwrap();
        let (kept, inbox) = InboxReceiver::create(geometry).unwrap();
        Self { group, inbox, spare: EventFd::new().unwrap(), _kept: kept }
    }

    fn greeting(&self, id: EndpointId) -> connect::Greeting {
        self.greeting_with(id, Vec::new())
    }

    fn greeting_with(&self, id: EndpointId, hellos: Vec<(MechanismTag, Hello)>) -> connect::Greeting {
        let table = RegionTable::create(id).unwrap();
        let copy = |fd: BorrowedFd<'_>| fd.try_clone_to_owned().unwrap();
        let greeting = Greeting {
            index: 0,
            unexpected_max_bytes: 1 << 20,
            cpus: CpuSet::EMPTY,
            inbox: copy(self.inbox.as_fd()),
            regions: copy(table.descriptor().as_fd()),
            fast_box: None,
            hellos,
        };
        let (bytes, descriptors) = greeting.encode();
        connect::Greeting { bytes, descriptors, lost_descriptors: 0 }
    }

    fn connect(&self, engine: &mut Engine, number: u32) {
        let id = self.group.member(number);
        let facts = crate::mechanism::test_peer::facts(id);
        let mut reception = Reception { traffic: &mut engine.traffic, inbox: &mut engine.inbox };
        reception.hello(id).unwrap();
        reception.probe(&facts, self.greeting(id), Waker::of_nobody()).unwrap();
        reception.established(facts, Vec::new());
    }
}

#[test]
fn many_peers_are_decided_for_once_each_and_anew_when_sent_to() {
    const PEERS: u32 = 200;
    let mut bytes = [0; 16];
    crate::base::random::fill(&mut bytes).unwrap();
    let group = EndpointId::from_bytes(bytes);
    let config = Config { inbox_cells: 1024, max_peers: PEERS + 1, ..Config::default() };
    let fakes = Fakes::new(group, &config);
    let decided = Arc::new(AtomicUsize::new(0));
    let decisions = || decided.load(Ordering::Relaxed);
    let policy = Box::new(Counting(decided.clone()));
    let mut engine =
        Engine::with_policy(group.member(0), config, Mechanisms::new(), policy).expect("an endpoint");
    for number in 1..=PEERS {
        fakes.connect(&mut engine, number);
    }
    assert_eq!(decisions(), PEERS as usize, "one for each that comes");

    let data = [7; 1];
    for _ in 0..2 {
        for number in 1..=PEERS {
            let peer = engine.insert_peer(&Address::abstract_socket(group.member(number))).unwrap();
            #[allow(unsafe_code)]
            // SAFETY: `data` lives to the end of the test and is not changed.
            let buffer = unsafe { Buffer::new(&[Segment::of(&data)], Access::Read) }.unwrap();
            let request = engine.send(peer, 1, buffer, SendMode::Standard).unwrap();
            assert!(matches!(engine.test(request), Some(Ok(_))), "it went in a cell");
            let longest = engine.traffic.peers[peer.index() as usize].eager_max_bytes;
            assert_eq!(longest, u64::from(PEERS) + 1, "that of the group as it is now");
        }
    }
    // The last to come was decided for with all the others there.
    assert_eq!(decisions(), 2 * PEERS as usize - 1, "one more for each that is sent to");

    let mut reception = Reception { traffic: &mut engine.traffic, inbox: &mut engine.inbox };
    for number in 1..=PEERS / 2 {
        reception.closed(group.member(number), Closed::Goodbye);
    }
    assert_eq!(decisions(), 2 * PEERS as usize - 1, "nothing is sent to those that are left");
}

/// An endpoint and its one peer.
fn connected() -> (Engine, PeerId, Fakes) {
    let mut bytes = [0; 16];
    crate::base::random::fill(&mut bytes).unwrap();
    let group = EndpointId::from_bytes(bytes);
    let config = Config::default();
    let fakes = Fakes::new(group, &config);
    let policy = Box::new(Counting(Arc::default()));
    let mut engine = Engine::with_policy(group.member(0), config, Mechanisms::new(), policy).unwrap();
    fakes.connect(&mut engine, 1);
    let peer = engine.insert_peer(&Address::abstract_socket(group.member(1))).unwrap();
    (engine, peer, fakes)
}

/// A message that was dropped is still to be answered, which nobody rings for.
#[test]
fn who_has_dropped_a_message_does_not_sleep_before_its_sender_is_answered() {
    let (mut engine, peer, _fakes) = connected();
    let key = PeerKey::from(peer.index());
    let (mut receiver, memory) = InboxReceiver::create(Geometry::new(16, 4096, 4).unwrap()).unwrap();
    let mut sender = InboxSender::attach(memory, key as u16).unwrap();
    let envelope = Envelope { kind: kind::EAGER, aux: 0, tag: 1 };
    let _sent = sender.send(envelope, Payload::Bytes(&[1])).unwrap();
    let next = receiver.next().expect("sent");
    engine.traffic.deliver(&mut receiver, next, None);
    assert!(engine.prepare_to_sleep().unwrap());
    drop(engine.take_arrival(Space::FIRST).expect("it came"));
    assert!(!engine.prepare_to_sleep().unwrap(), "there is something to do");
    assert!(engine.prepare_to_sleep().unwrap(), "once");
}

/// What another peer's greeting has had taken out of the inbox comes before what is there next: a
/// receive that is polled for is not to get that first.
#[test]
fn after_a_look_at_the_sockets_the_unexpected_queue_is_asked_again() {
    let (mut engine, peer, _fakes) = connected();
    let key = PeerKey::from(peer.index());
    let (mut receiver, memory) = InboxReceiver::create(Geometry::new(16, 4096, 4).unwrap()).unwrap();
    let mut sender = InboxSender::attach(memory, key as u16).unwrap();
    let _sent = sender.send(Envelope { kind: kind::EAGER, aux: 0, tag: 1 }, Payload::Bytes(&[])).unwrap();
    // As `Reception::probe` does for the other peer.
    assert!(engine.traffic.drain(&mut receiver));
    assert!(matches!(engine.poll_after_report(), Found::Something));
    let mut awaited =
        PolledReceive::new(Source::Peer(peer), TagMatch::exactly(1), Buffer::empty(Access::Write));
    assert!(!engine.poll_before_posting(&mut awaited).unwrap(), "what is unexpected is not polled for");
    assert!(
        matches!(engine.start_polled_receive(&mut awaited), Ok(Started::Done(status)) if status.tag == 1)
    );
}

/// Of a greeting's descriptors the first are what every connection needs, the
/// others the mechanisms'; so many of the last are lost.
#[test]
fn a_greeting_that_has_lost_descriptors_of_mechanisms_is_taken() {
    let fakes = Fakes::new(EndpointId::from_bytes([1; 16]), &Config::default());
    let tags = ["one", "two"].map(MechanismTag::of);
    let arrived = |lost_descriptors: usize, is_known: bool| {
        let hellos = tags.map(|tag| {
            let descriptors = vec![fakes.spare.as_fd().try_clone_to_owned().unwrap()];
            (tag, Hello { bytes: vec![7], descriptors })
        });
        let mut greeting = fakes.greeting_with(EndpointId::from_bytes([2; 16]), hellos.into());
        greeting.descriptors.truncate(greeting.descriptors.len() - lost_descriptors);
        greeting.lost_descriptors = if is_known { lost_descriptors } else { 0 };
        let taken = Greeting::decode(greeting).map_err(|wrong| wrong.to_string())?;
        Ok::<_, String>(taken.hellos.into_iter().map(|(tag, hello)| (tag, hello.descriptors.len())).collect())
    };
    for (lost, counts) in [(0, [1, 1]), (1, [1, 0]), (2, [0, 0])] {
        assert_eq!(arrived(lost, true), Ok(tags.into_iter().zip(counts).collect::<Vec<_>>()), "{lost}");
    }
    assert!(arrived(3, true).is_err_and(|said| said.contains("ulimit -n")));
    assert!(arrived(1, false).is_err_and(|said| said.contains("same version")), "it never had them");
}
