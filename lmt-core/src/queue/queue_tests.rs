use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use super::test_support::pass_by_every_way;
use super::*;
use crate::base::sync::AtomicU64;
use crate::memory::shared_memory::{AttachError, SharedMemory};
use crate::queue::drain::{Arrival, Drain};
use crate::queue::ring::{Claimed, Claimer, Line, Ring};
use proptest::prelude::*;

fn inbox(cells: u32) -> (InboxReceiver, OwnedFd) {
    InboxReceiver::create(Geometry::new(cells, 256, 8).unwrap()).unwrap()
}

fn join(fd: &OwnedFd, me: u16) -> InboxSender {
    InboxSender::attach(fd.try_clone().unwrap(), me).unwrap()
}

#[test]
fn every_length_arrives_whole_by_every_way() {
    let (mut receiver, fd) = inbox(8);
    let mut sender = join(&fd, 3);
    for bytes in 0..=256 {
        pass_by_every_way(&mut sender, &mut receiver, 3, bytes);
    }
    let too_long = sender.send(Envelope::default(), Payload::Bytes(&[0; 257]));
    assert_eq!(too_long.unwrap_err(), SendError::TooLong { bytes: 257, most_bytes: 256 });
}

#[test]
fn a_full_inbox_says_so_and_takes_messages_again() {
    let (mut receiver, fd) = inbox(8);
    let mut sender = join(&fd, 0);
    let mut sent = 0u64;
    let mut received = 0u64;
    for _ in 0..50 {
        let before = sent;
        loop {
            match sender.send(Envelope { tag: sent, ..Default::default() }, Payload::Bytes(&[])) {
                Ok(_) => sent += 1,
                Err(full) => break assert_eq!(full, SendError::Full { wake: false }),
            }
        }
        assert!(sent - before >= 6, "usable_cells() promises six");
        while let Some(message) = receiver.poll() {
            assert_eq!(message.tag(), received);
            received += 1;
        }
        assert_eq!(received, sent);
    }
}

#[test]
fn a_forgotten_delivery_comes_again() {
    let (mut receiver, fd) = inbox(4);
    let _ = join(&fd, 0).send(Envelope { tag: 9, ..Default::default() }, Payload::Bytes(&[1])).unwrap();
    std::mem::forget(receiver.poll().unwrap());
    assert_eq!(receiver.poll().unwrap().tag(), 9);
    assert!(receiver.poll().is_none());
}

#[test]
fn the_doorbell_is_wanted_once_for_each_sleep() {
    let (mut receiver, fd) = inbox(8);
    let mut sender = join(&fd, 0);
    let mut send = || sender.send(Envelope::default(), Payload::Bytes(&[])).unwrap().wake;
    assert!(!send());
    assert!(!receiver.prepare_sleep(), "a message is there");
    assert!(receiver.poll().is_some());
    assert!(receiver.prepare_sleep());
    assert_eq!((send(), send()), (true, false));
    assert!(receiver.poll().is_some());
    assert!(receiver.poll().is_some());
    assert!(receiver.prepare_sleep());
    receiver.cancel_sleep();
    assert!(!send());
}

#[test]
fn credits_are_the_peers_own() {
    let (mut receiver, fd) = inbox(4);
    let credit = Credit { drained_cells: 1, released_bytes: 2, released_messages: 3 };
    join(&fd, 7).store_credit(credit);
    assert_eq!(receiver.credit(7), Some(credit));
    assert_eq!(receiver.credit(6), Some(Credit::default()));
    assert_eq!(receiver.credit(8), None);
    receiver.clear_credit(7);
    assert_eq!(receiver.credit(7), Some(Credit::default()));
}

#[test]
fn what_is_no_inbox_is_refused() {
    let (_receiver, fd) = inbox(4);
    let wrong = |result: Result<InboxSender, AttachError>| match result {
        Err(AttachError::WrongContent { what }) => what,
        other => panic!("{other:?}"),
    };
    assert!(wrong(InboxSender::attach(fd, 8)).contains("number"));
    let (_zeros, fd) = SharedMemory::create("a test", "none", 1 << 16, false).unwrap();
    assert!(wrong(InboxSender::attach(fd, 0)).contains("no inbox"));
    // The right header, and less memory than it says.
    let (receiver, real) = inbox(4);
    let mut header = [0; 64];
    nix::sys::uio::pread(&real, &mut header, 0).unwrap();
    let (_short, fd) =
        SharedMemory::create("a test", "none", receiver.geometry().bytes() - 4096, false).unwrap();
    nix::sys::uio::pwrite(&fd, &header, 0).unwrap();
    assert!(wrong(InboxSender::attach(fd.try_clone().unwrap(), 0)).contains("fit"));
    nix::sys::uio::pwrite(&fd, &u64::MAX.to_ne_bytes(), 8).unwrap();
    assert!(wrong(InboxSender::attach(fd, 0)).contains("impossible"));
}

#[test]
fn impossible_geometries_are_refused() {
    for (cells, cell_bytes, peers) in [
        (0, 64, 1),
        (2, 64, 1),
        (12, 64, 1),
        (1 << 17, 64, 1),
        (4, 0, 1),
        (4, 65, 1),
        (4, 1 << 21, 1),
        (4, 64, 0),
        (4, 64, 1 << 16),
    ] {
        assert!(Geometry::new(cells, cell_bytes, peers).is_err(), "{cells} {cell_bytes} {peers}");
    }
    assert!(Geometry::new(1 << 16, 1 << 20, 65535).is_ok());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Garbage over the whole segment, again and again, while both ends work:
    /// no panic, no hang, no access outside.
    #[test]
    fn garbage_in_shared_memory_harms_nobody(
        seed in any::<u64>(),
        mode in 0u8..3,
    ) {
        let (mut receiver, fd) = inbox(8);
        let mut senders = [join(&fd, 0), join(&fd, 5)];
        let bytes = receiver.geometry().bytes();
        let began = Instant::now();
        let mut random = seed | 1;
        let mut next = move || {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random
        };
        for round in 0..60u64 {
            // Whole random, small plausible numbers, or a few bits flipped.
            let mut image = vec![0; bytes];
            nix::sys::uio::pread(&fd, &mut image, 0).unwrap();
            for word in image.as_chunks_mut::<8>().0 {
                let noise = match mode {
                    0 => next(),
                    1 => (next() & 7) << 24 | next() & 0x3_07_03,
                    _ if next() & 15 == 0 => u64::from_ne_bytes(*word) ^ 1 << (next() & 63),
                    _ => u64::from_ne_bytes(*word),
                };
                *word = noise.to_ne_bytes();
            }
            nix::sys::uio::pwrite(&fd, &image, 0).unwrap();
            for sender in &mut senders {
                let _ = sender.send(Envelope::default(), Payload::Bytes(&[7; 256][..(round * 5) as usize % 257]));
            }
            for _ in 0..20 {
                if let Some(message) = receiver.poll() {
                    prop_assert!(usize::from(message.sender()) < 8 && message.bytes() <= 256);
                    message.copy_to(&mut [0; 256]);
                }
            }
            receiver.prepare_sleep();
            receiver.release_dead(5);
            receiver.credit(3);
        }
        prop_assert!(began.elapsed() < Duration::from_secs(20));
    }
}

/// One step of some process, in the interleavings below.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// The sender goes one step on in its message, starting one if idle.
    Sender(usize),
    Poll,
    PollThoroughly,
    /// The sender dies where it is, is released, and another takes its number.
    Kill(usize),
}

struct HeapRing {
    claims: Vec<AtomicU64>,
    lines: Vec<Line>,
    hint: AtomicU64,
    sleeping: AtomicU64,
}

impl HeapRing {
    fn new(slots: usize) -> Self {
        let line = || Line { words: std::array::from_fn(|_| AtomicU64::new(0)) };
        Self {
            claims: (0..slots).map(|_| AtomicU64::new(0)).collect(),
            lines: (0..slots).map(|_| line()).collect(),
            hint: AtomicU64::new(0),
            sleeping: AtomicU64::new(0),
        }
    }

    fn ring(&self) -> Ring<'_> {
        Ring { claims: &self.claims, lines: &self.lines, tail_hint: &self.hint, sleeping: &self.sleeping }
    }
}

/// A sender between two steps.
enum Doing {
    Nothing,
    Looked(u64),
    Claimed(Claimed),
    Hinted(Claimed),
}

struct World {
    memory: HeapRing,
    drain: Drain,
    senders: Vec<(Claimer, Doing)>,
    /// Sent and received so far, by sender.
    sent: Vec<u64>,
    received: Vec<u64>,
}

impl World {
    fn new(slots: usize, lazy: usize, senders: usize) -> Self {
        Self {
            memory: HeapRing::new(slots),
            drain: Drain::new(slots, lazy),
            senders: (0..senders).map(|n| (Claimer::new(n as u16), Doing::Nothing)).collect(),
            sent: vec![0; senders],
            received: vec![0; senders],
        }
    }

    /// One step; false when the ring was full.
    fn step_sender(&mut self, n: usize) -> bool {
        let ring = self.memory.ring();
        let (claimer, doing) = &mut self.senders[n];
        *doing = match std::mem::replace(doing, Doing::Nothing) {
            Doing::Nothing => Doing::Looked(claimer.start(&ring)),
            Doing::Looked(start) => match claimer.take(&ring, start) {
                Ok(claimed) => Doing::Claimed(claimed),
                Err(_) => return false,
            },
            Doing::Claimed(claimed) => {
                claimer.store_hint(&ring, &claimed);
                Doing::Hinted(claimed)
            }
            Doing::Hinted(claimed) => {
                claimer.write_words(&ring, &claimed, &[self.sent[n]]);
                claimer.publish(&ring, claimed, 0);
                self.sent[n] += 1;
                Doing::Nothing
            }
        };
        true
    }

    fn poll(&mut self, thoroughly: bool) -> bool {
        let ring = self.memory.ring();
        let found: Option<Arrival> = if thoroughly {
            self.drain.find_past_stalled(&ring)
        } else if self.drain.is_empty(&ring) {
            None
        } else {
            self.drain.find(&ring)
        };
        let Some(arrival) = found else {
            return false;
        };
        let n = usize::from(arrival.publish.owner());
        let value = ring.line(arrival.position).words[1].load(std::sync::atomic::Ordering::Relaxed);
        assert_eq!(value, self.received[n], "lost, repeated or out of order");
        self.received[n] += 1;
        self.drain.consume(&ring, arrival);
        true
    }

    fn kill(&mut self, n: usize) {
        self.senders[n] = (Claimer::new(n as u16), Doing::Nothing);
        self.drain.release_dead(&self.memory.ring(), n as u16);
    }

    /// All but those that stopped (at most as many as leave a slot) get
    /// a message through, whatever went before.
    fn check_progress(&mut self, stopped: usize) {
        for n in stopped..self.senders.len() {
            while !matches!(self.senders[n].1, Doing::Nothing) {
                self.step_sender(n);
            }
        }
        for n in stopped..self.senders.len() {
            let goal = self.sent[n] + 2;
            let mut steps = 0;
            while self.sent[n] < goal {
                if !self.step_sender(n) {
                    while self.poll(true) {}
                }
                steps += 1;
                assert!(steps < 500, "sender {n} is blocked: {:?}", self.drain);
            }
        }
        while self.poll(true) {}
        assert_eq!(self.received, self.sent, "{:?}", self.drain);
    }
}

#[test]
fn polls_of_one_line_alone_are_followed_by_one_that_passes_over_who_has_stopped() {
    let mut world = World::new(8, 2, 2);
    // One claims and stops; the other's message is behind it.
    (0..2).for_each(|_| assert!(world.step_sender(0)));
    (0..4).for_each(|_| assert!(world.step_sender(1)));
    let polls = (1..).find(|_| world.poll(false)).expect("it is found");
    assert_eq!((polls, world.received[1]), (1024, 1));
}

#[test]
fn what_is_published_after_any_number_of_empty_polls_is_found_by_the_next() {
    let mut world = World::new(4, 1, 1);
    for polls in 0..1100 {
        (0..polls).for_each(|_| assert!(!world.poll(false)));
        (0..4).for_each(|_| assert!(world.step_sender(0)));
        assert!(world.poll(false), "after {polls} polls");
    }
}

fn steps(senders: usize) -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        12 => (0..senders).prop_map(Step::Sender),
        4 => Just(Step::Poll),
        3 => Just(Step::PollThoroughly),
        1 => (0..senders).prop_map(Step::Kill),
    ];
    proptest::collection::vec(step, 0..400)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    /// Any interleaving of steps of five senders, of which any stop or die
    /// anywhere: nothing published is lost, repeated or out of order, and the
    /// living go on.
    #[test]
    fn any_interleaving_keeps_what_is_promised(
        steps in steps(5),
        four_slots in any::<bool>(),
        lazy in 0usize..2,
    ) {
        let slots = if four_slots { 4 } else { 8 };
        let mut world = World::new(slots, lazy * slots / 4, 5);
        for step in steps {
            match step {
                Step::Sender(n) => { world.step_sender(n); }
                Step::Poll => { world.poll(false); }
                Step::PollThoroughly => { world.poll(true); }
                Step::Kill(n) => world.kill(n),
            }
        }
        // Senders 0 to 2 stop forever where they are; three of four slots at most.
        world.check_progress(3);
        for n in 0..5 {
            world.kill(n);
        }
        world.check_progress(0);
        // Every slot is back: after a lap, the ring takes a message in each.
        let mut claimer = Claimer::new(0);
        let ring = world.memory.ring();
        let count = (0..slots + 1).take_while(|_| {
            let start = claimer.start(&ring);
            claimer.take(&ring, start).is_ok()
        }).count();
        prop_assert_eq!(count, slots);
    }
}
