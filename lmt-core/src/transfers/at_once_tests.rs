//! Messages that their receiver copies in one call, between two of [`Transfers`].

use std::sync::{Arc, Mutex};

use super::*;
use crate::buffer::{Access, Segment};
use crate::mechanism::{
    Abilities, Cookie, Fault, Hello, Interval, Lmt, PeerFacts, Plan, Role, Step, Unavailable,
};
use crate::mechanisms::Mechanisms;
use crate::rendezvous::{Candidates, Choice, Incoming, MechanismTag, Packet, TransferError, TransferKey};
use crate::test_peer::meet;
use crate::transfers::Ended;

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
        let cookie = if plan.role == Role::Sender { Cookie::new(&[7]).unwrap() } else { Cookie::empty() };
        Ok((plan.role, cookie))
    }
    fn start(&mut self, (): &mut (), _: &mut Role, _: &Cookie, _: Interval) -> Result<(), Fault> {
        Ok(())
    }
    fn step(&mut self, (): &mut (), _: &mut Role, _: &mut Buffer, bytes: u64) -> Result<Step, Fault> {
        Ok(Step { bytes, done: true })
    }
    fn finish(&mut self, (): &mut (), _: Role) {}
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
            mechanisms.register(Reads { name: "first", can: Arc::clone(&first) });
            let can = Arc::new(Mutex::new(Can { at_once: false, prepare: true }));
            mechanisms.register(Reads { name: "second", can });
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
fn a_receiver_that_can_copies_without_a_transfer_of_its_own() {
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
