//! Turns among transfers, with a mechanism of which only one transfer moves.

use super::*;
use crate::buffer::{Access, Segment};
use crate::identity::EndpointId;
use crate::mechanism::{Abilities, Cookie, Fault, Hello, Interval, Lmt, PeerFacts, Plan, Step};
use crate::process::PeerProcess;
use crate::rendezvous::MechanismTag;
use std::sync::Arc;

const BYTES: u64 = 100;

/// The transfer of this number, counted by `prepare`, is the one that moves.
struct OneMoves {
    which: usize,
    prepared: usize,
}

impl Lmt for OneMoves {
    type Peer = ();
    type Transfer = usize;

    fn name(&self) -> &'static str {
        "one-moves"
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

/// So many receives under way, of which number `which` can move.
fn under_way(receives: u64, which: usize, memory: &mut [u8]) -> Transfers {
    let mut mechanisms = Mechanisms::new();
    mechanisms.register(OneMoves { which, prepared: 0 });
    let facts = PeerFacts {
        id: EndpointId::from_bytes([1; 16]),
        process: Arc::new(PeerProcess::new(1, None)),
        probe_address: 0,
        nonce: [0; 16],
    };
    let hellos = mechanisms.hellos();
    mechanisms.probe(0, &facts, hellos);
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
    let mut transfers = under_way(50, 40, &mut memory);
    assert!(transfers.step(1 << 20), "one of 50 can move");
    assert!(matches!(transfers.pop_ended(), Some(Ended::Receive { token: 40, result: Ok(_) })));
    assert!(!transfers.step(1 << 20), "none of the others can");
}

#[test]
fn of_very_many_each_is_looked_at_before_it_is_said_that_none_moves() {
    let mut memory = [0; BYTES as usize];
    let mut transfers = under_way(200, 180, &mut memory);
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
    let mut transfers = under_way(0, 0, &mut memory);
    let facts = PeerFacts {
        id: EndpointId::from_bytes([2; 16]),
        process: Arc::new(PeerProcess::new(1, None)),
        probe_address: 0,
        nonce: [0; 16],
    };
    let hellos = transfers.mechanisms().hellos();
    transfers.mechanisms().probe(1, &facts, hellos);
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

/// Moves a byte with each step, and keeps which models were asked for.
struct Asked(Arc<std::sync::Mutex<Vec<Model>>>);

impl Lmt for Asked {
    type Peer = ();
    type Transfer = ();

    fn name(&self) -> &'static str {
        "asked"
    }
    fn models(&self) -> &'static [Model] {
        &[Model::Both, Model::Get]
    }
    fn hello(&mut self) -> Result<Hello, Unavailable> {
        Ok(Hello::default())
    }
    fn probe(&mut self, _: &PeerFacts, _: Hello) -> Result<((), Abilities), Unavailable> {
        Ok(((), Abilities { read: true, write: true, ..Abilities::default() }))
    }
    fn prepare(&mut self, (): &mut (), plan: &Plan, _: &Buffer) -> Result<((), Cookie), Fault> {
        self.0.lock().unwrap().push(plan.model);
        Ok(((), Cookie::empty()))
    }
    fn start(&mut self, (): &mut (), (): &mut (), _: &Cookie, _: Interval) -> Result<(), Fault> {
        Ok(())
    }
    fn step(&mut self, (): &mut (), (): &mut (), _: &mut Buffer, _: u64) -> Result<Step, Fault> {
        Ok(Step { bytes: 1, done: false })
    }
    fn finish(&mut self, (): &mut (), (): ()) {}
}

/// Who receives as much as it sends cannot help: its messages of a window are soon
/// announced for the receiver alone, but for one now and then; one by one they never are,
/// and that it helps with those tells nothing of a window.
#[test]
fn a_sender_that_could_not_help_with_a_window_seldom_offers_to() {
    let asked = Arc::default();
    let mut mechanisms = Mechanisms::new();
    mechanisms.register(Asked(Arc::clone(&asked)));
    let facts = PeerFacts {
        id: EndpointId::from_bytes([1; 16]),
        process: Arc::new(PeerProcess::new(1, None)),
        probe_address: 0,
        nonce: [0; 16],
    };
    let hellos = mechanisms.hellos();
    mechanisms.probe(0, &facts, hellos);
    let mut transfers = Transfers::new(mechanisms);
    let mechanism = MechanismTag::of("asked");
    let choice = |mechanism, model| crate::rendezvous::Choice { mechanism, model };
    let ways = [
        choice(mechanism, Model::Both),
        choice(MechanismTag::of("other"), Model::Stream),
        choice(mechanism, Model::Get),
    ];
    let candidates: Candidates = ways.into_iter().collect();
    let memory = [0; BYTES as usize];
    // The first ones of a window are no window yet.
    let single = STREAMS_AT_ONCE as usize;
    let mut window = |messages: usize| {
        let mut begin = || {
            #[allow(unsafe_code)]
            // SAFETY: the mechanism of this test touches no buffer.
            let buffer = unsafe { Buffer::new(&[Segment::of(&memory)], Access::Read) }.unwrap();
            transfers.send(0, buffer, &candidates, 0)
        };
        let sends: Vec<SendId> = (0..messages).map(|_| begin()).collect();
        for (number, id) in sends.into_iter().enumerate() {
            if number < single {
                let receive_id = ReceiveId(id.0);
                let (interval, shared, cookie) = (None, false, Cookie::empty());
                let cts = Cts { send_id: id, receive_id, attempt: 0, interval, shared, cookie };
                transfers.packet(0, &Packet::Cts(cts)).expect("it was announced");
                assert!(transfers.step(1), "the sender copies");
            }
            let done = Packet::Done(Done { to: TransferKey::Send(id), attempt: 0, shared: false });
            transfers.packet(0, &done).expect("it is over");
        }
        while transfers.pop_ended().is_some() {}
        let models: Vec<Model> = std::mem::take(&mut *asked.lock().unwrap());
        models.iter().filter(|model| **model == Model::Both).count()
    };
    assert_eq!(window(64), 64, "nothing is known yet");
    let later: usize = (0..20).map(|_| window(64)).sum();
    assert!((20 * single..20 * (single + 2)).contains(&later), "{later} of {}", 20 * 64);
    assert!((0..50).all(|_| window(1) == 1));
}
