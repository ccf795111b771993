//! Turns among transfers, with a mechanism of which only one transfer moves.

use super::*;
use crate::mechanism::test_peer::meet;
use crate::mechanism::{Description, Lmt};
use crate::memory::buffer::{Access, Segment};
use crate::rendezvous::Choice;
use crate::vocabulary::identity::MechanismTag;
use crate::vocabulary::peer_facts::{Abilities, Hello, PeerFacts, Probed};
use crate::vocabulary::transfer::{Cookie, Fault, Interval, Plan, Step};

const BYTES: u64 = 100;

/// The transfer of this number, counted by `prepare`, is the one that moves.
struct OneMoves {
    which: usize,
    prepared: usize,
}

impl Lmt for OneMoves {
    type Peer = ();
    type Transfer = usize;

    fn description(&self) -> Description {
        Description::new("one-moves", &[Model::Get])
    }
    fn probe(&mut self, _: &PeerFacts, _: Hello) -> Result<Probed<()>, Unavailable> {
        Ok(Probed::new((), Abilities { read: true, ..Abilities::default() }))
    }
    fn prepare(&mut self, (): &mut (), _: &Plan, _: &Buffer) -> Result<(usize, Cookie), Fault> {
        self.prepared += 1;
        Ok((self.prepared - 1, Cookie::empty()))
    }
    fn start(&mut self, (): &mut (), _: &mut usize, _: &Cookie, _: Interval) -> Result<(), Fault> {
        Ok(())
    }
    fn step(&mut self, (): &mut (), number: &mut usize, _: &mut Buffer, _: u64) -> Result<Step, Fault> {
        let moves = *number == self.which;
        Ok(Step { bytes: if moves { BYTES } else { 0 }, done: moves })
    }
    fn finish(&mut self, (): &mut (), _: usize) {}
}

/// So many receives in flight, of which number `which` can move.
fn in_flight(receives: u64, which: usize, memory: &mut [u8]) -> Transfers {
    let mut mechanisms = Mechanisms::new();
    mechanisms.register(OneMoves { which, prepared: 0 });
    meet(&mut mechanisms, 0);
    let mut transfers = Transfers::new(mechanisms);
    for number in 0..receives {
        #[allow(unsafe_code)]
        // SAFETY: the mechanism of this test touches no buffer.
        let buffer = unsafe { Buffer::new(&[Segment::of_mut(memory)], Access::Write) }.unwrap();
        let rts = Rts {
            send_id: SendId(number),
            total_bytes: BYTES,
            attempt: 0,
            mechanism: MechanismTag::of("one-moves"),
            model: Model::Get,
            cookie: Cookie::empty(),
        };
        transfers.matched(0, &rts, buffer, number);
    }
    assert_eq!(transfers.active(), receives as usize);
    transfers
}

#[test]
fn those_that_stand_still_are_passed_over() {
    let mut memory = [0; BYTES as usize];
    let mut transfers = in_flight(50, 40, &mut memory);
    assert!(transfers.step(1 << 20), "one of 50 can move");
    assert!(matches!(transfers.pop_ended(), Some(Ended::Receive { token: 40, result: Ok(_) })));
    assert!(!transfers.step(1 << 20), "none of the others can");
}

#[test]
fn of_very_many_each_is_looked_at_before_it_is_said_that_none_moves() {
    let mut memory = [0; BYTES as usize];
    let mut transfers = in_flight(200, 180, &mut memory);
    for call in 0..3 {
        assert!(transfers.step(1 << 20), "not all were looked at after call {call}");
    }
    assert!(matches!(transfers.pop_ended(), Some(Ended::Receive { token: 180, result: Ok(_) })));
    let calls = (0..10).take_while(|_| transfers.step(1 << 20)).count();
    assert_eq!(calls, 3, "199 are four calls' worth");
}

/// Announced to be read, and not done: peers are counted, not messages.
#[test]
fn readers_are_the_peers_that_may_be_reading() {
    let mut memory = [0; BYTES as usize];
    let mut transfers = in_flight(0, 0, &mut memory);
    meet(transfers.mechanisms(), 1);
    let mechanism = MechanismTag::of("one-moves");
    let candidates: Candidates =
        [crate::rendezvous::Choice { mechanism, model: Model::Get }].into_iter().collect();
    let mut send = |transfers: &mut Transfers, peer| {
        #[allow(unsafe_code)]
        // SAFETY: the mechanism of this test touches no buffer.
        let buffer = unsafe { Buffer::new(&[Segment::of_mut(&mut memory)], Access::Read) }.unwrap();
        transfers.send(peer, buffer, &candidates, 0)
    };
    let others = |transfers: &Transfers| [0, 1, 7].map(|peer| transfers.other_readers(peer));
    assert_eq!(others(&transfers), [0, 0, 0]);
    let first: Vec<SendId> = (0..16).map(|_| send(&mut transfers, 0)).collect();
    assert_eq!(others(&transfers), [0, 1, 1], "16 messages to one peer are one reader");
    send(&mut transfers, 1);
    assert_eq!(others(&transfers), [1, 1, 2]);
    for (left, id) in first.into_iter().enumerate() {
        assert_eq!(others(&transfers), [1, 1, 2], "{left} of 16 are done");
        transfers.packet(0, &Packet::CancelReply { send_id: id, cancelled: true }).expect_err("nobody asked");
        transfers.cancel(id);
        transfers.packet(0, &Packet::CancelReply { send_id: id, cancelled: true }).expect("asked");
    }
    assert_eq!(others(&transfers), [1, 0, 1]);
    transfers.peer_dead(1);
    assert_eq!(others(&transfers), [0, 0, 0]);
}

#[test]
fn where_processes_outnumber_cpus_one_end_copies_and_behind_many_streams_are_last() {
    let order = |order: [(u32, Model); 3], in_flight| {
        let choice = |(tag, model)| Choice { mechanism: MechanismTag(tag), model };
        let candidates: Candidates = order.into_iter().map(choice).collect();
        let changed = when_oversubscribed(&candidates, in_flight);
        changed.as_slice().iter().map(|choice| choice.model).collect::<Vec<Model>>()
    };
    let both_first = [(1, Model::Both), (2, Model::Stream), (1, Model::Get)];
    assert_eq!(order(both_first, 0), [Model::Get, Model::Stream, Model::Both]);
    assert_eq!(order(both_first, MANY_IN_FLIGHT), [Model::Get, Model::Both, Model::Stream]);
    let stream_first = [(2, Model::Stream), (1, Model::Both), (1, Model::Get)];
    assert_eq!(order(stream_first, MANY_IN_FLIGHT - 1), [Model::Stream, Model::Both, Model::Get]);
    assert_eq!(order(stream_first, 64), [Model::Both, Model::Get, Model::Stream]);
}
