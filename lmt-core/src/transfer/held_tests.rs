//! Starts that wait for the CTS before them.

use std::sync::{Arc, Mutex};

use super::*;
use crate::mechanism::test_peer::meet;
use crate::mechanism::{Description, Lmt};
use crate::memory::buffer::{Access, Segment};
use crate::vocabulary::identity::MechanismTag;
use crate::vocabulary::peer_facts::{Abilities, Hello, PeerFacts, Probed};
use crate::vocabulary::transfer::{Fault, Plan, Step};
use Call::{Finish, Prepare, Start};

const BYTES: usize = 100;

const NAME: &str = "watched";

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Call {
    Prepare(usize),
    Start(usize),
    Finish(usize),
}

type Log = Arc<Mutex<Vec<Call>>>;

/// Keeps what is asked of it, with the number of the transfer.
struct WaitTarget {
    prepared: usize,
    log: Log,
}

impl WaitTarget {
    fn note(&self, call: Call) {
        self.log.lock().unwrap().push(call);
    }
}

impl Lmt for WaitTarget {
    type Peer = ();
    type Transfer = usize;

    fn description(&self) -> Description {
        Description::new(NAME, &[Model::Both, Model::Get])
    }
    fn probe(&mut self, _: &PeerFacts, _: Hello) -> Result<Probed<()>, Unavailable> {
        Ok(Probed::new((), Abilities { read: true, write: true, cooperate: false }))
    }
    fn prepare(&mut self, (): &mut (), _: &Plan, _: &Buffer) -> Result<(usize, Cookie), Fault> {
        self.prepared += 1;
        self.note(Prepare(self.prepared));
        Ok((self.prepared, Cookie::empty()))
    }
    fn start(&mut self, (): &mut (), number: &mut usize, _: &Cookie, _: Interval) -> Result<(), Fault> {
        self.note(Start(*number));
        Ok(())
    }
    fn step(&mut self, (): &mut (), _: &mut usize, _: &mut Buffer, bytes: u64) -> Result<Step, Fault> {
        Ok(Step { bytes, done: false })
    }
    fn finish(&mut self, (): &mut (), number: usize) {
        self.note(Finish(number));
    }
}

struct Receives {
    transfers: Transfers,
    memory: [u8; BYTES],
    log: Log,
}

impl Receives {
    fn new() -> Self {
        let (mut mechanisms, log) = (Mechanisms::new(), Log::default());
        mechanisms.register(WaitTarget { prepared: 0, log: Arc::clone(&log) });
        meet(&mut mechanisms, 0);
        meet(&mut mechanisms, 1);
        Self { transfers: Transfers::new(mechanisms), memory: [0; BYTES], log }
    }

    /// A receive of this token has matched a message.
    fn matched(&mut self, peer: PeerKey, model: Model, total_bytes: u64, token: u64) {
        #[allow(unsafe_code)]
        // SAFETY: the mechanism of this test touches no buffer.
        let buffer = unsafe { Buffer::new(&[Segment::of_mut(&mut self.memory)], Access::Write) }.unwrap();
        let (mechanism, cookie) = (MechanismTag::of(NAME), Cookie::empty());
        let rts = Rts { send_id: SendId(token), total_bytes, attempt: 0, mechanism, model, cookie };
        self.transfers.matched(peer, &rts, buffer, token);
    }

    fn calls(&self) -> Vec<Call> {
        std::mem::take(&mut *self.log.lock().unwrap())
    }

    fn send_packets(&mut self) -> usize {
        std::iter::from_fn(|| self.transfers.pop_packet()).count()
    }
}

#[test]
fn a_cts_goes_out_before_its_message_is_started() {
    let mut receives = Receives::new();
    receives.matched(0, Model::Both, BYTES as u64, 1);
    assert_eq!(receives.calls(), [Prepare(1)]);
    assert!(receives.transfers.is_active(), "nobody may sleep over it");
    assert!(matches!(receives.transfers.pop_packet(), Some((0, Packet::Cts(_)))));
    assert_eq!(receives.calls(), []);
    assert_eq!(receives.transfers.pop_packet(), None);
    assert_eq!(receives.calls(), [Start(1)]);
    assert_eq!(receives.transfers.active(), 1);
    // What waits for no CTS is started at once.
    receives.matched(0, Model::Get, BYTES as u64, 2);
    assert_eq!(receives.calls(), [Prepare(2), Start(2)]);
}

/// Several cells are taken before packets are sent.
#[test]
fn what_comes_behind_a_held_start_is_done_in_its_place() {
    let mut receives = Receives::new();
    receives.matched(0, Model::Both, BYTES as u64, 1);
    // It ends at once, and the next takes its slot.
    receives.matched(0, Model::Get, 0, 2);
    let ended = receives.transfers.pop_ended();
    assert!(matches!(ended, Some(Ended::Receive { token: 2, result: Ok(_) })), "{ended:?}");
    receives.matched(0, Model::Get, BYTES as u64, 3);
    assert_eq!(receives.calls(), [Prepare(1), Prepare(2), Start(2)]);
    assert_eq!(receives.send_packets(), 2, "a CTS and a DONE");
    assert_eq!(receives.calls(), [Start(1)]);
    assert_eq!(receives.transfers.active(), 2);
    assert!(receives.transfers.pop_ended().is_none());
}

#[test]
fn a_start_is_not_held_longer_than_its_message_lives() {
    let mut receives = Receives::new();
    receives.matched(0, Model::Both, BYTES as u64, 1);
    receives.transfers.peer_dead(0);
    assert_eq!(receives.calls(), [Prepare(1), Finish(1)]);
    assert!(matches!(receives.transfers.pop_ended(), Some(Ended::Receive { token: 1, result: Err(_) })));
    // In its slot.
    receives.matched(1, Model::Both, BYTES as u64, 2);
    assert_eq!(receives.send_packets(), 1, "the CTS of the dead one is forgotten");
    assert_eq!(receives.calls(), [Prepare(2), Start(2)], "once, and for itself");
    assert!(!receives.transfers.is_active() || receives.transfers.active() == 1);
}
