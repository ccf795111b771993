//! Messages with which the sender helps before it hears of their receiver, between two of
//! [`Transfers`].

use std::sync::{Arc, Mutex};

use super::super::{Ended, Receipt};
use super::*;
use crate::buffer::{Access, Segment};
use crate::mechanism::{
    Abilities, Fault, Hello, Interval, Lines, Lmt, Meeting, PeerFacts, Plan, Role, Unavailable,
};
use crate::mechanisms::Mechanisms;
use crate::rendezvous::{Cts, Demote, Done, Incoming, MechanismTag, Packet, Received, Rts, TransferError};
use crate::test_peer::meet;

const BYTES: u64 = 256 << 10;
const TOKEN: u64 = 77;
/// As the two know each other.
const PEER: PeerKey = 0;

/// What the two ends share, and what was asked of them.
#[derive(Debug, Default)]
struct Line {
    opens: bool,
    /// The receiver expects no help.
    alone: bool,
    /// Whether a receiver meets the sender, and whether that finds the sender there.
    meets: bool,
    /// The sender has claimed a part, and is still to copy it: so many looks long.
    waits: u32,
    /// Each step of a receiver stands still.
    stands_still: bool,
    has_left: bool,
    /// The receiver has said that it has all.
    ended: bool,
    started: u32,
    held: i32,
    fails: bool,
}

struct Meets(Arc<Mutex<Line>>);

impl Lmt for Meets {
    type Peer = ();
    type Transfer = Plan;

    fn name(&self) -> &'static str {
        "meets"
    }
    fn models(&self) -> &'static [Model] {
        &[Model::Both]
    }
    fn hello(&mut self) -> Result<Hello, Unavailable> {
        Ok(Hello::default())
    }
    fn probe(&mut self, _: &PeerFacts, _: Hello) -> Result<((), Abilities), Unavailable> {
        Ok(((), Abilities { read: true, write: true, cooperate: false }))
    }
    fn prepare(&mut self, (): &mut (), plan: &Plan, _: &Buffer) -> Result<(Plan, Cookie), Fault> {
        self.0.lock().unwrap().held += 1;
        Ok((*plan, Cookie::empty()))
    }
    fn start(&mut self, (): &mut (), _: &mut Plan, _: &Cookie, _: Interval) -> Result<(), Fault> {
        let mut line = self.0.lock().unwrap();
        // In the general way its ends share another line.
        (line.started, line.has_left) = (line.started + 1, false);
        Ok(())
    }
    fn step(&mut self, (): &mut (), plan: &mut Plan, _: &mut Buffer, bytes: u64) -> Result<Step, Fault> {
        let mut line = self.0.lock().unwrap();
        if line.fails {
            let sentence = "as the test wants it".to_owned();
            return Err(Fault::Demote { errno: libc::EPERM, for_good: false, sentence });
        }
        match plan.role {
            Role::Receiver if line.stands_still => Ok(Step { bytes: 0, done: false }),
            Role::Receiver if line.waits > 0 => {
                line.waits -= 1;
                Ok(Step { bytes: 0, done: false })
            }
            Role::Receiver => Ok(Step { bytes: bytes.min(plan.interval.bytes()), done: true }),
            Role::Sender => Ok(Step { bytes: 0, done: line.ended }),
        }
    }
    fn expects_nobody(&mut self, (): &mut (), _: u64) -> bool {
        self.0.lock().unwrap().alone
    }
    fn get_at_once(&mut self, (): &mut (), _: &Cookie, _: &mut Buffer, _: u64) -> Option<Lines> {
        Some(Lines::Elsewhere)
    }
    fn open(&mut self, (): &mut (), _plan: &Plan, data: &Buffer, cookie: &mut Cookie) -> Option<Plan> {
        let mut line = self.0.lock().unwrap();
        line.held += i32::from(line.opens);
        (line.has_left, line.ended) = (false, false);
        *cookie = Cookie::new(&[7]).unwrap();
        let whole = Interval { start: 0, end: data.total_bytes() };
        line.opens.then_some(Plan::new(Role::Sender, Model::Both, whole))
    }
    fn meet(&mut self, (): &mut (), plan: &Plan, remote: &Cookie, _: &mut Buffer) -> Option<Meeting<Plan>> {
        assert_eq!((remote.as_bytes(), plan.interval.bytes()), (&[7][..], BYTES));
        let mut line = self.0.lock().unwrap();
        if line.waits > 0 {
            line.held += 1;
            return Some(Meeting::GoesOn(*plan));
        }
        line.ended = line.meets && !line.has_left;
        line.meets.then_some(Meeting::Done { copied_by_sender: 100, sender_knows: line.ended })
    }
    fn leave(&mut self, (): &mut (), plan: &mut Plan) -> bool {
        let mut line = self.0.lock().unwrap();
        if plan.role == Role::Sender {
            line.has_left = true;
            return line.ended;
        }
        line.ended = !line.has_left;
        line.ended
    }
    fn finish(&mut self, (): &mut (), _: Plan) {
        self.0.lock().unwrap().held -= 1;
    }
}

/// One process of two peers.
fn side_of(line: &Arc<Mutex<Line>>) -> Transfers {
    let mut mechanisms = Mechanisms::new();
    mechanisms.register(Meets(Arc::clone(line)));
    meet(&mut mechanisms, PEER);
    meet(&mut mechanisms, 1);
    let mut side = Transfers::new(mechanisms);
    side.set_may_meet();
    side
}

/// A sender, a receiver, and their memory.
struct Two {
    a: Transfers,
    b: Transfers,
    line: Arc<Mutex<Line>>,
    memory: Vec<u8>,
}

impl Two {
    fn new() -> Self {
        let line = Arc::new(Mutex::new(Line { opens: true, meets: true, ..Line::default() }));
        let (a, b) = (side_of(&line), side_of(&line));
        let mut two = Self { a, b, line, memory: vec![0; BYTES as usize] };
        // As if buffers were left alone: nobody writes so many bytes between two calls.
        for _ in 0..8 {
            two.a.begins(1 << 50);
            two.a.ends(1 << 50);
        }
        assert!(two.a.are_left_alone());
        two
    }

    fn line(&self) -> std::sync::MutexGuard<'_, Line> {
        self.line.lock().unwrap()
    }

    #[allow(unsafe_code)]
    fn buffer(&mut self, access: Access) -> Buffer {
        // SAFETY: the mechanism of this test touches no buffer.
        unsafe { Buffer::new(&[Segment::of_mut(&mut self.memory)], access) }.unwrap()
    }

    /// Sends a message; its announcement.
    fn send(&mut self) -> Rts {
        let choice = Choice { mechanism: MechanismTag::of("meets"), model: Model::Both };
        let buffer = self.buffer(Access::Read);
        let id = self.a.send(PEER, buffer, &[choice].into_iter().collect(), TOKEN);
        assert_eq!(self.a.token_of(id), Some(TOKEN));
        match self.a.pop_packet() {
            Some((PEER, Packet::Rts(rts))) => rts,
            other => panic!("{other:?}"),
        }
    }

    /// Meets the sender of the message, if the receiver can.
    fn meet(&mut self, rts: &Rts) -> Option<Received> {
        let mut buffer = self.buffer(Access::Write);
        self.b.get_at_once(PEER, rts, &mut buffer, Receipt::Awaited)
    }

    /// Has the receiver take the general way.
    fn matched(&mut self, rts: &Rts) {
        let buffer = self.buffer(Access::Write);
        self.b.matched(PEER, rts, buffer, 5);
    }

    /// Lets packets and copies go on until nothing moves; what the sender has heard.
    fn settle(&mut self) -> Vec<Packet> {
        let mut heard = Vec::new();
        for _ in 0..20 {
            while let Some((_, packet)) = self.b.pop_packet() {
                assert_eq!(self.a.packet(PEER, &packet), Ok(Incoming::Handled));
                heard.push(packet);
            }
            while let Some((_, packet)) = self.a.pop_packet() {
                assert_eq!(self.b.packet(PEER, &packet), Ok(Incoming::Handled));
            }
            self.b.step(1 << 20);
            self.a.step(1 << 20);
        }
        heard
    }

    /// What has become of the send; all it took is free again.
    fn ended(&mut self) -> Result<(), TransferError> {
        match self.a.pop_ended() {
            Some(Ended::Send { token: TOKEN, result, kept_bytes: 0 }) => {
                assert_eq!((self.a.sends_to(PEER), self.a.other_readers(1)), (0, 0));
                assert!(!self.a.is_active() && self.a.pop_ended().is_none(), "a send ends once");
                assert_eq!(self.line().held, 0, "each is finished");
                result
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_receiver_that_meets_its_sender_needs_no_packet() {
    let mut two = Two::new();
    for _ in 0..3 {
        let rts = two.send();
        assert!(two.a.is_active() && two.a.active() == 1, "it helps");
        assert!(!two.a.step(1 << 20), "nobody has come");
        let received = two.meet(&rts).expect("it can");
        assert_eq!((received.total_bytes, received.received_bytes), (BYTES, BYTES));
        assert!(two.a.step(1 << 20), "it sees the end");
        assert_eq!(two.ended(), Ok(()));
        assert_eq!(two.settle(), []);
    }
    let of = |side: &Transfers| side.standings().counters(PEER).next().unwrap().1;
    let (sent, received) = (of(&two.a), of(&two.b));
    assert_eq!((sent.messages, sent.sent.messages, sent.sent.bytes), (3, 3, 3 * BYTES));
    assert_eq!((received.messages, received.received.messages, received.met), (3, 3, 3));
    assert_eq!((received.bytes, received.peer_bytes), (3 * (BYTES - 100), 300));
    assert_eq!(two.line().started, 0);
}

#[test]
fn who_uses_its_buffers_or_sends_more_than_one_call_copies_opens_nothing() {
    let mut two = Two::new();
    two.memory.resize((Transfers::MEETING_BYTES + 1) as usize, 0);
    two.send();
    let mut touched = Two::new();
    touched.a = side_of(&touched.line);
    assert!(!touched.a.are_left_alone(), "nothing is known yet");
    touched.send();
    let mut cannot = Two::new();
    cannot.line().opens = false;
    cannot.send();
    // Who does not step whenever it waits.
    let mut seldom = Two::new();
    seldom.a.may_meet = false;
    seldom.send();
    for two in [two, touched, cannot, seldom] {
        assert!(!two.a.is_active(), "it waits for an answer");
    }
}

#[test]
fn a_receiver_that_cannot_meet_its_sender_takes_the_general_way() {
    for is_cut in [false, true] {
        let mut two = Two::new();
        two.line().meets = false;
        let rts = two.send();
        if is_cut {
            two.memory.truncate(100);
        } else {
            assert!(two.meet(&rts).is_none());
        }
        two.matched(&rts);
        let heard = two.settle();
        assert!(matches!(heard[..], [Packet::Cts(Cts { attempt: 0, .. })]), "{heard:?}");
        assert_eq!(two.line().started, 2);
        assert_eq!(two.ended(), Ok(()), "it has seen the end");
        assert!(matches!(two.b.pop_ended(), Some(Ended::Receive { token: 5, result: Ok(_) })));
        let sent = two.a.standings().counters(PEER).next().unwrap().1;
        assert_eq!(sent.messages, 1);
    }
}

#[test]
fn who_expects_no_help_copies_at_once_whether_opened_or_not() {
    for opens in [false, true] {
        let mut two = Two::new();
        (two.line().opens, two.line().alone) = (opens, true);
        let rts = two.send();
        let received = two.meet(&rts).expect("it can");
        assert_eq!((received.total_bytes, received.received_bytes), (BYTES, BYTES));
        assert!(matches!(two.settle()[..], [Packet::Done(Done { attempt: 0, .. })]));
        assert_eq!((two.ended(), two.line().started), (Ok(()), 0));
        let counters = two.b.standings().counters(PEER).next().unwrap().1;
        assert_eq!((counters.messages, counters.bytes, counters.peer_bytes, counters.met), (1, BYTES, 0, 0));
        two.memory.resize((Transfers::MEETING_BYTES + 1) as usize, 0);
        let rts = two.send();
        assert!(two.meet(&rts).is_none(), "too long for one call");
    }
}

/// No honest peer announces a short message so.
#[test]
fn a_message_that_is_only_kept_is_not_met() {
    let mut two = Two::new();
    let rts = Rts { short: true, ..two.send() };
    let mut buffer = two.buffer(Access::Write);
    assert!(two.b.get_at_once(PEER, &rts, &mut buffer, Receipt::Kept).is_none());
    assert!(!two.line().ended);
}

#[test]
fn a_short_buffer_does_not_meet() {
    let mut two = Two::new();
    let rts = two.send();
    two.memory.truncate(100);
    assert!(two.meet(&rts).is_none());
    assert!(!two.line().ended);
}

#[test]
fn a_message_that_fails_at_its_receiver_becomes_a_transfer() {
    let mut two = Two::new();
    let rts = two.send();
    let remaining = Interval { start: 0, end: BYTES };
    let Rts { send_id, .. } = rts;
    let receive_id = crate::rendezvous::ReceiveId(0);
    let demote =
        Demote { send_id, receive_id, attempt: 0, remaining, errno: 1, for_good: false, shared: true };
    assert_eq!(two.a.packet(PEER, &Packet::Demote(demote)), Ok(Incoming::Handled));
    assert!(matches!(two.ended(), Err(TransferError::NoMechanism { .. })), "there is no other way");
    assert!(matches!(two.a.pop_packet(), Some((PEER, Packet::GiveUp(_)))));
}

#[test]
fn a_sender_that_sleeps_or_fails_has_left_and_is_told_by_a_packet() {
    for fails in [false, true] {
        let mut two = Two::new();
        let rts = two.send();
        if fails {
            two.line().fails = true;
            two.a.step(1 << 20);
        } else {
            two.a.rest();
        }
        assert!(two.line().has_left && !two.a.is_active(), "only packets wake a sleeper");
        let standing = two.a.standings().standings(PEER).next().unwrap().1;
        assert!(standing.ours.write && standing.reason.is_none(), "it failed once");
        two.meet(&rts).expect("it can");
        assert!(matches!(two.settle()[..], [Packet::Done(Done { attempt: 0, .. })]));
        assert_eq!(two.ended(), Ok(()));
    }
}

#[test]
fn a_sender_that_finds_the_end_before_it_sleeps_is_done() {
    let mut two = Two::new();
    let rts = two.send();
    two.meet(&rts).expect("it can");
    assert!(two.a.rest(), "who waits for it is to look");
    assert_eq!(two.ended(), Ok(()));
    two.send();
    assert!(!two.a.rest());
}

#[test]
fn a_dead_receiver_may_have_said_that_it_has_all() {
    for met in [true, false] {
        let mut two = Two::new();
        let rts = two.send();
        if met {
            two.meet(&rts).expect("it can");
        }
        two.a.peer_dead(1);
        assert!(two.a.pop_ended().is_none(), "another peer's death");
        two.a.peer_dead(PEER);
        assert!(!two.a.step(1 << 20));
        assert_eq!(two.ended(), if met { Ok(()) } else { Err(TransferError::PeerDead) });
    }
}

#[test]
fn what_was_not_matched_is_taken_back_and_what_was_goes_on() {
    for cancelled in [true, false] {
        let mut two = Two::new();
        let rts = two.send();
        two.a.cancel(rts.send_id);
        assert_eq!(two.a.pop_packet(), Some((PEER, Packet::Cancel { send_id: rts.send_id })));
        if !cancelled {
            two.meet(&rts).expect("it can");
        }
        let reply = Packet::CancelReply { send_id: rts.send_id, cancelled };
        assert_eq!(two.a.packet(PEER, &reply), Ok(Incoming::Handled));
        two.a.step(1 << 20);
        assert_eq!(two.ended(), if cancelled { Err(TransferError::Cancelled) } else { Ok(()) });
    }
}

#[test]
fn a_sender_that_is_at_its_part_is_waited_for_as_by_any_transfer() {
    for dies in [false, true] {
        let mut two = Two::new();
        let rts = two.send();
        two.line().waits = 3;
        assert!(two.meet(&rts).is_none());
        two.matched(&rts);
        assert_eq!(two.b.active(), 1);
        assert_eq!(two.b.pop_packet(), None, "no answer is needed");
        if dies {
            two.b.peer_dead(PEER);
            let ended = two.b.pop_ended();
            assert!(
                matches!(ended, Some(Ended::Receive { token: 5, result: Err(TransferError::PeerDead) })),
                "{ended:?}"
            );
            assert_eq!(two.line().held, 1, "the sender's");
            continue;
        }
        assert_eq!(two.settle(), []);
        assert_eq!(two.ended(), Ok(()));
        let Some(Ended::Receive { token: 5, result: Ok(received) }) = two.b.pop_ended() else {
            panic!("it is there");
        };
        assert_eq!((received.received_bytes, received.truncated), (BYTES, false));
        let received = two.b.standings().counters(PEER).next().unwrap().1;
        assert_eq!((received.messages, received.met, received.bytes), (1, 1, BYTES));
    }
}

#[test]
fn a_message_that_fails_when_it_was_met_goes_another_way() {
    let mut two = Two::new();
    let rts = two.send();
    two.line().waits = 3;
    assert!(two.meet(&rts).is_none());
    two.matched(&rts);
    two.line().fails = true;
    two.b.step(1 << 20);
    assert!(matches!(two.b.pop_packet(), Some((PEER, Packet::Demote(Demote { attempt: 0, .. })))));
}

#[test]
fn a_receiver_that_meets_nobody_is_opened_messages_more_and_more_seldom() {
    let mut two = Two::new();
    two.line().meets = false;
    let mut opened = 0;
    for _ in 0..200 {
        let rts = two.send();
        opened += u32::from(two.a.is_active());
        two.matched(&rts);
        two.settle();
        assert_eq!(two.ended(), Ok(()));
        two.b.pop_ended().expect("it is there");
    }
    assert!((2..10).contains(&opened), "{opened}");
}

/// Others' turns do not keep it from seeing that its receiver waits.
#[test]
fn one_that_was_opened_has_turns_beside_other_transfers() {
    let mut two = Two::new();
    let rts = two.send();
    // A message that comes in, and never gets further.
    two.line().meets = false;
    let other = Rts { send_id: SendId(3), cookie: Cookie::empty(), ..rts };
    let buffer = two.buffer(Access::Write);
    two.a.matched(1, &other, buffer, 9);
    while two.a.pop_packet().is_some() {}
    two.line().meets = true;
    two.meet(&rts).expect("it can");
    two.line().stands_still = true;
    let turns = (0..=2 * TURNS_BETWEEN).position(|_| {
        two.a.step(1 << 20);
        matches!(two.a.pop_ended(), Some(Ended::Send { token: TOKEN, result: Ok(()), .. }))
    });
    assert!(turns.is_some_and(|turns| turns <= TURNS_BETWEEN as usize), "{turns:?}");
    assert_eq!(two.a.active(), 1, "the other is still under way");
}
