//! Turns among transfers, with a mechanism of which only one transfer moves.

use super::*;
use crate::buffer::{Access, Segment};
use crate::mechanism::{Abilities, Cookie, Fault, Hello, Interval, Lmt, PeerFacts, Plan, Step};
use crate::rendezvous::MechanismTag;
use crate::selection::{LONG_WINDOW_BYTES, STREAM_OF_WINDOW_BYTES, STREAMS_AT_ONCE};
use crate::test_peer::meet;
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

type Log = Arc<std::sync::Mutex<Vec<Model>>>;

/// Moves all that it may with each step, and keeps which models were asked for.
struct Asked {
    name: &'static str,
    models: &'static [Model],
    log: Log,
}

impl Lmt for Asked {
    type Peer = ();
    type Transfer = ();

    fn name(&self) -> &'static str {
        self.name
    }
    fn models(&self) -> &'static [Model] {
        self.models
    }
    fn hello(&mut self) -> Result<Hello, Unavailable> {
        Ok(Hello::default())
    }
    fn probe(&mut self, _: &PeerFacts, _: Hello) -> Result<((), Abilities), Unavailable> {
        Ok(((), Abilities { read: true, write: true, cooperate: true }))
    }
    fn prepare(&mut self, (): &mut (), plan: &Plan, _: &Buffer) -> Result<((), Cookie), Fault> {
        self.log.lock().unwrap().push(plan.model);
        Ok(((), Cookie::empty()))
    }
    fn start(&mut self, (): &mut (), (): &mut (), _: &Cookie, _: Interval) -> Result<(), Fault> {
        Ok(())
    }
    fn step(&mut self, (): &mut (), (): &mut (), _: &mut Buffer, bytes: u64) -> Result<Step, Fault> {
        Ok(Step { bytes, done: false })
    }
    fn finish(&mut self, (): &mut (), (): ()) {}
}

/// Sends windows of messages of a length to one peer, who receives all by itself but
/// `singles` of each window, of which this end copies `part_bytes`.
struct Windows {
    transfers: Transfers,
    memory: Vec<u8>,
    singles: usize,
    part_bytes: u64,
    /// What comes from the peer during each.
    received_bytes: u64,
    log: Log,
}

impl Windows {
    fn new(bytes: usize, singles: usize) -> Self {
        let log = Log::default();
        let mut mechanisms = Mechanisms::new();
        for (name, models) in [("copy", &[Model::Both, Model::Get][..]), ("flow", &[Model::Stream])] {
            mechanisms.register(Asked { name, models, log: Arc::clone(&log) });
        }
        meet(&mut mechanisms, 0);
        let (transfers, part_bytes) = (Transfers::new(mechanisms), bytes as u64 / 2);
        Self { transfers, memory: vec![0; bytes], singles, part_bytes, received_bytes: 0, log }
    }

    fn begin(&mut self) -> SendId {
        let choice = |name, model| crate::rendezvous::Choice { mechanism: MechanismTag::of(name), model };
        let ways = [choice("copy", Model::Both), choice("flow", Model::Stream), choice("copy", Model::Get)];
        #[allow(unsafe_code)]
        // SAFETY: the mechanisms of this test touch no buffer.
        let buffer = unsafe { Buffer::new(&[Segment::of(&self.memory)], Access::Read) }.unwrap();
        self.transfers.send(0, buffer, &ways.into_iter().collect(), 0)
    }

    /// Helps with a message that is under way.
    fn help(&mut self, send_id: SendId) {
        let receive_id = ReceiveId(send_id.0);
        let (interval, shared, cookie) = (None, false, Cookie::empty());
        let cts = Cts { send_id, receive_id, attempt: 0, interval, shared, cookie };
        self.transfers.packet(0, &Packet::Cts(cts)).expect("it was announced");
        assert!(self.transfers.step(self.part_bytes), "the sender copies");
    }

    /// The models of the messages of one window.
    fn window(&mut self, messages: usize) -> Vec<Model> {
        let sends: Vec<SendId> = (0..messages).map(|_| self.begin()).collect();
        self.transfers.window(0).received_bytes += self.received_bytes;
        for (number, id) in sends.into_iter().enumerate() {
            if number < self.singles {
                self.help(id);
            }
            let done = Packet::Done(Done::new(TransferKey::Send(id), 0, false));
            self.transfers.packet(0, &done).expect("it is over");
        }
        while self.transfers.pop_ended().is_some() {}
        std::mem::take(&mut *self.log.lock().unwrap())
    }
}

fn count(models: &[Model], model: Model) -> usize {
    models.iter().filter(|other| **other == model).count()
}

/// Who receives as much as it sends cannot help: its messages of a window are soon
/// announced for the receiver alone, but for one now and then; one by one they never are,
/// and that it helps with those tells nothing of a window.
#[test]
fn a_sender_that_could_not_help_with_a_window_seldom_offers_to() {
    // The first ones of a window are no window yet.
    let single = STREAMS_AT_ONCE as usize;
    let mut windows = Windows::new(BYTES as usize, single);
    assert_eq!(windows.window(64), [Model::Both; 64], "nothing is known yet");
    let later: Vec<Model> = (0..20).flat_map(|_| windows.window(64)).collect();
    let both = count(&later, Model::Both);
    assert!((20 * single..20 * (single + 2)).contains(&both), "{both} of {}", 20 * 64);
    assert_eq!(count(&later, Model::Get), later.len() - both, "streams are the last way");
    assert!((0..50).all(|_| windows.window(1) == [Model::Both]));
}

/// Where two send each other windows, long messages take the stream instead, from where
/// more is under way than caches hold.
#[test]
fn long_messages_of_windows_both_ways_take_a_stream() {
    let mut windows = Windows::new(LONG_WINDOW_BYTES as usize / 2, 1);
    assert_eq!(windows.window(16), [Model::Both; 16], "nothing is known yet");
    let later: Vec<Model> = (0..20).flat_map(|_| windows.window(16)).collect();
    assert_eq!(count(&later, Model::Stream), 0, "who receives nothing may compute: that moves no stream");
    windows.received_bytes = 16 * LONG_WINDOW_BYTES;
    windows.window(16);
    let later: Vec<Model> = (0..20).flat_map(|_| windows.window(16)).collect();
    let both = count(&later, Model::Both);
    assert!((20..20 * 2).contains(&both), "{both} of {}", 20 * 16);
    assert_eq!(count(&later, Model::Stream), later.len() - both);
    windows.transfers.set_crowded(true);
    windows.singles = 0;
    assert_eq!(windows.window(16), [Model::Get; 16], "both ends of a stream want a core at once");
}

#[test]
fn shorter_messages_and_the_first_ones_of_the_first_long_window_take_no_stream() {
    let first = (LONG_WINDOW_BYTES / STREAM_OF_WINDOW_BYTES) as usize - 1;
    for (bytes, is_long) in [(STREAM_OF_WINDOW_BYTES - 1, false), (STREAM_OF_WINDOW_BYTES, true)] {
        let mut windows = Windows::new(bytes as usize, 1);
        windows.received_bytes = 32 * bytes;
        let mut streams = |messages: usize| count(&windows.window(messages), Model::Stream);
        assert_eq!(streams(32), 0, "nothing is known of the first one");
        let later: Vec<usize> = (0..4).map(|_| streams(32)).collect();
        let all_but_the_first = if is_long { 31 } else { 0 };
        assert_eq!(later.iter().max(), Some(&all_but_the_first), "of messages of {bytes} bytes: {later:?}");
        let behind_one = (0..8).map(|_| (streams(1), streams(32)).1).max();
        assert_eq!(behind_one, Some(if is_long { 32 - first } else { 0 }), "behind one alone");
    }
}

/// A small part is what is left to a busy sender, too.
#[test]
fn a_sender_that_copies_little_of_its_messages_counts_as_busy() {
    for (divisor, is_busy) in [(3, false), (5, true)] {
        let mut windows = Windows::new(BYTES as usize, 64);
        windows.part_bytes = BYTES / divisor;
        windows.window(64);
        windows.singles = 0;
        assert_eq!(windows.window(64).contains(&Model::Get), is_busy, "a part of 1/{divisor}");
    }
}
