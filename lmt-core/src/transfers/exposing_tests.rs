//! Messages of which there is no transfer while all goes well, between two of [`Transfers`].

use std::sync::{Arc, Mutex};

use super::*;
use crate::buffer::Segment;
use crate::mechanism::{Abilities, Fault, Hello, Interval, Lmt, PeerFacts, Plan, Role, Step, Unavailable};
use crate::mechanisms::Mechanisms;
use crate::rendezvous::{Cts, Incoming, MechanismTag, ReceiveId, TransferKey};
use crate::test_peer::meet;

const BYTES: u64 = 16 << 10;
const TOKEN: u64 = 77;
/// As the two know each other.
const PEER: PeerKey = 0;

/// What a mechanism's receiver does.
#[derive(Clone, Copy, Default)]
struct Can {
    at_once: bool,
    prepare: bool,
}

/// Tells its memory by a cookie; its copies move nothing.
struct Reads {
    name: &'static str,
    exposes: bool,
    can: Arc<Mutex<Can>>,
}

impl Lmt for Reads {
    type Peer = ();
    type Transfer = Role;

    fn name(&self) -> &'static str {
        self.name
    }
    fn models(&self) -> &'static [Model] {
        &[Model::Get]
    }
    fn hello(&mut self) -> Result<Hello, Unavailable> {
        Ok(Hello::default())
    }
    fn probe(&mut self, _: &PeerFacts, _: Hello) -> Result<((), Abilities), Unavailable> {
        Ok(((), Abilities { read: true, ..Abilities::default() }))
    }
    fn prepare(&mut self, (): &mut (), plan: &Plan, _: &Buffer) -> Result<(Role, Cookie), Fault> {
        if plan.role == Role::Receiver && !self.can.lock().unwrap().prepare {
            let sentence = "as the test wants it".to_owned();
            return Err(Fault::Demote { errno: libc::EPERM, for_good: false, sentence });
        }
        Ok((plan.role, Cookie::empty()))
    }
    fn start(&mut self, (): &mut (), _: &mut Role, _: &Cookie, _: Interval) -> Result<(), Fault> {
        Ok(())
    }
    fn step(&mut self, (): &mut (), _: &mut Role, _: &mut Buffer, bytes: u64) -> Result<Step, Fault> {
        Ok(Step { bytes, done: true })
    }
    fn finish(&mut self, (): &mut (), _: Role) {}
    fn expose(&mut self, (): &mut (), _: &Buffer, cookie: &mut Cookie) -> bool {
        *cookie = Cookie::new(&[7]).unwrap();
        self.exposes
    }
    fn get_at_once(&mut self, (): &mut (), remote: &Cookie, _: &mut Buffer, _: u64) -> bool {
        assert_eq!(remote.as_bytes(), [7]);
        self.can.lock().unwrap().at_once
    }
}

/// A sender, a receiver, and their memory.
struct Two {
    a: Transfers,
    b: Transfers,
    first: Arc<Mutex<Can>>,
    memory: Vec<u8>,
}

impl Two {
    fn new() -> Self {
        let first = Arc::new(Mutex::new(Can { at_once: true, prepare: true }));
        let side = || {
            let mut mechanisms = Mechanisms::new();
            mechanisms.register(Reads { name: "first", exposes: true, can: Arc::clone(&first) });
            let can = Arc::new(Mutex::new(Can { at_once: false, prepare: true }));
            mechanisms.register(Reads { name: "second", exposes: false, can });
            meet(&mut mechanisms, PEER);
            meet(&mut mechanisms, 1);
            Transfers::new(mechanisms)
        };
        Self { a: side(), b: side(), first, memory: vec![0; BYTES as usize] }
    }

    fn can(&self, at_once: bool, prepare: bool) {
        *self.first.lock().unwrap() = Can { at_once, prepare };
    }

    #[allow(unsafe_code)]
    fn buffer(&mut self, access: Access) -> Buffer {
        // SAFETY: the mechanisms of this test touch no buffer.
        unsafe { Buffer::new(&[Segment::of_mut(&mut self.memory)], access) }.unwrap()
    }

    fn candidates() -> Candidates {
        let choice = |name| Choice { mechanism: MechanismTag::of(name), model: Model::Get };
        [choice("first"), choice("second")].into_iter().collect()
    }

    /// Sends a message; its announcement.
    fn send(&mut self) -> Rts {
        let buffer = self.buffer(Access::Read);
        let id = self.a.send(PEER, buffer, &Self::candidates(), TOKEN);
        assert_eq!(self.a.token_of(id), Some(TOKEN));
        self.announced()
    }

    fn announced(&mut self) -> Rts {
        assert_eq!((self.a.active(), self.a.sends_to(PEER), self.a.other_readers(1)), (0, 1, 1));
        match self.a.pop_packet() {
            Some((PEER, Packet::Rts(rts))) => rts,
            other => panic!("{other:?}"),
        }
    }

    /// Copies the message at once, if the receiver can.
    fn get_at_once(&mut self, rts: &Rts) -> Option<Received> {
        let mut buffer = self.buffer(Access::Write);
        self.b.get_at_once(PEER, rts, &mut buffer)
    }

    /// Lets packets and copies go on until nothing moves; what the sender has heard.
    fn settle(&mut self) -> Vec<Packet> {
        let mut heard = Vec::new();
        loop {
            let mut moved = false;
            while let Some((_, packet)) = self.b.pop_packet() {
                assert_eq!(self.a.packet(PEER, &packet), Ok(Incoming::Handled));
                heard.push(packet);
                moved = true;
            }
            while let Some((_, packet)) = self.a.pop_packet() {
                assert_eq!(self.b.packet(PEER, &packet), Ok(Incoming::Handled));
                moved = true;
            }
            moved |= self.b.step(1 << 20);
            if !moved {
                return heard;
            }
        }
    }

    /// What has become of the send; all it took is free again.
    fn ended(&mut self) -> Result<(), TransferError> {
        match self.a.pop_ended() {
            Some(Ended::Send { token: TOKEN, result }) => {
                assert_eq!((self.a.sends_to(PEER), self.a.other_readers(1)), (0, 0));
                assert!(self.a.pop_ended().is_none(), "a send ends once");
                result
            }
            other => panic!("{other:?}"),
        }
    }
}

fn done(rts: &Rts) -> Packet {
    let to = TransferKey::Send(rts.send_id);
    Packet::Done(Done::new(to, 0, false))
}

#[test]
fn a_receiver_that_can_copies_without_a_transfer_on_either_side() {
    let mut two = Two::new();
    for _ in 0..3 {
        let rts = two.send();
        let received = two.get_at_once(&rts).expect("it can");
        assert_eq!((received.total_bytes, received.received_bytes), (BYTES, BYTES));
        assert_eq!(two.b.active(), 0);
        assert!(matches!(two.settle()[..], [Packet::Done(_)]));
        assert_eq!(two.ended(), Ok(()));
        assert_eq!(two.a.packet(PEER, &done(&rts)), Ok(Incoming::Handled), "what is stale is no news");
        assert!(two.a.pop_ended().is_none());
    }
    for (side, sent, received) in [(&two.a, 3, 0), (&two.b, 0, 3)] {
        let (_, counters) = side.standings().counters(PEER).find(|(name, _)| *name == "first").unwrap();
        assert_eq!(
            (counters.messages, counters.sent.messages, counters.received.messages),
            (3, sent, received)
        );
        assert_eq!(counters.bytes, received * BYTES);
    }
}

#[test]
fn a_short_buffer_gets_the_beginning() {
    let mut two = Two::new();
    let rts = two.send();
    two.memory.truncate(100);
    let received = two.get_at_once(&rts).expect("it can");
    assert_eq!((received.total_bytes, received.received_bytes, received.truncated), (BYTES, 100, true));
    two.settle();
    assert_eq!(two.ended(), Ok(()));
    let rts = two.send();
    two.memory.clear();
    assert!(two.get_at_once(&rts).is_none(), "there is nothing to copy");
}

#[test]
fn what_is_long_or_another_model_is_no_matter_of_one_call() {
    let mut two = Two::new();
    let rts = two.send();
    two.memory.resize(1 << 20, 0);
    assert!(two.get_at_once(&Rts { total_bytes: 1 << 20, ..rts }).is_none());
    for model in [Model::Put, Model::Both, Model::Stream, Model::Cooperative] {
        assert!(two.get_at_once(&Rts { model, ..rts }).is_none());
    }
    assert!(two.get_at_once(&Rts { mechanism: MechanismTag(1), ..rts }).is_none());
}

#[test]
fn a_receiver_that_cannot_copy_at_once_makes_a_transfer() {
    let mut two = Two::new();
    two.can(false, true);
    let rts = two.send();
    assert!(two.get_at_once(&rts).is_none());
    let buffer = two.buffer(Access::Write);
    two.b.matched(PEER, &rts, buffer, 5);
    assert!(matches!(two.settle()[..], [Packet::Done(_)]));
    assert_eq!(two.ended(), Ok(()));
    assert!(matches!(two.b.pop_ended(), Some(Ended::Receive { token: 5, result: Ok(_) })));
}

/// Begins a message whose receiver asks for the next way, up to that question.
fn demoted(two: &mut Two) -> Rts {
    two.can(false, false);
    let rts = two.send();
    let buffer = two.buffer(Access::Write);
    two.b.matched(PEER, &rts, buffer, 5);
    let Some((_, demote @ Packet::Demote(_))) = two.b.pop_packet() else { panic!("it cannot prepare") };
    assert_eq!(two.a.packet(PEER, &demote), Ok(Incoming::Handled));
    assert_eq!(two.a.token_of(rts.send_id), Some(TOKEN), "its name stays");
    rts
}

#[test]
fn a_message_that_cannot_go_so_becomes_a_transfer_by_the_next_way() {
    let mut two = Two::new();
    let rts = demoted(&mut two);
    two.a.cancel(rts.send_id); // It is matched.
    assert!(matches!(two.settle()[..], [Packet::Done(Done { attempt: 1, .. })]));
    assert_eq!(two.ended(), Ok(()));
    assert_eq!(two.a.token_of(rts.send_id), None);
    let (_, second) = two.a.standings().counters(PEER).find(|(name, _)| *name == "second").unwrap();
    assert_eq!(second.messages, 1);
}

#[test]
fn a_dead_peer_ends_what_was_announced_and_what_has_become_a_transfer() {
    let mut two = Two::new();
    demoted(&mut two);
    two.a.peer_dead(PEER);
    assert_eq!(two.ended(), Err(TransferError::PeerDead));

    let mut two = Two::new();
    let rts = two.send();
    two.a.peer_dead(1);
    assert!(two.a.pop_ended().is_none(), "another peer's death");
    two.a.peer_dead(PEER);
    assert_eq!(two.ended(), Err(TransferError::PeerDead));
    assert_eq!(two.a.packet(PEER, &done(&rts)), Ok(Incoming::Handled));
    assert!(two.a.pop_packet().is_none() && two.a.pop_ended().is_none());
}

#[test]
fn what_was_not_matched_is_taken_back_and_what_was_goes_on() {
    for found in [true, false] {
        let mut two = Two::new();
        let rts = two.send();
        let reply = Packet::CancelReply { send_id: rts.send_id, cancelled: found };
        assert!(two.a.packet(PEER, &reply).is_err(), "nobody asked");
        two.a.cancel(rts.send_id);
        two.a.cancel(rts.send_id);
        assert_eq!(two.a.pop_packet(), Some((PEER, Packet::Cancel { send_id: rts.send_id })));
        assert_eq!(two.a.pop_packet(), None, "it is asked once");
        assert_eq!(two.a.packet(PEER, &reply), Ok(Incoming::Handled));
        if found {
            assert_eq!(two.ended(), Err(TransferError::Cancelled));
        } else {
            assert!(two.a.pop_ended().is_none());
            assert_eq!(two.a.packet(PEER, &done(&rts)), Ok(Incoming::Handled));
            assert_eq!(two.ended(), Ok(()));
        }
    }
}

#[test]
fn who_is_not_its_receiver_or_says_what_cannot_be_is_not_heard() {
    let mut two = Two::new();
    let rts = two.send();
    assert!(matches!(two.a.packet(1, &done(&rts)), Err(ProtocolError::WrongPeer { .. })));
    let beyond = Rts { send_id: SendId(rts.send_id.0 + 9), ..rts };
    assert!(matches!(two.a.packet(PEER, &done(&beyond)), Err(ProtocolError::UnknownTransfer { .. })));
    let (send_id, receive_id) = (rts.send_id, ReceiveId(0));
    let (interval, shared, cookie) = (None, false, Cookie::empty());
    let cts = Packet::Cts(Cts { send_id, receive_id, attempt: 0, interval, shared, cookie });
    assert!(matches!(two.a.packet(PEER, &cts), Err(ProtocolError::OutOfPlace { .. })));
    let to = TransferKey::Send(send_id);
    let later = Packet::Done(Done { to, attempt: 1, shared: false });
    assert!(matches!(two.a.packet(PEER, &later), Err(ProtocolError::OutOfPlace { .. })));
    assert!(two.a.pop_ended().is_none());
    two.a.packet(PEER, &done(&rts)).expect("that is its answer");
    assert_eq!(two.ended(), Ok(()));
}
