//! A soak with random everything, checked against what MPI promises: each
//! message arrives once, whole, at a receive that accepts it, and of two
//! messages of one sender that the same receives accept the earlier one goes to
//! the receive that was posted earlier.
#![allow(unsafe_code)] // The engine below the safe interface is lent buffers.

mod common;

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use common::{Random, check, pattern};
use lmt::buffer::{Access, Buffer, Segment};
use lmt::{Endpoint, Engine, OperationError, PeerId, RequestId, SendMode, Source, TagMatch};
use lmt_conformance::group::{Group, Test};
use lmt_conformance::test_name;

const TIME: Duration = Duration::from_secs(4);
/// Tags with this bit say how many messages there were.
const END: u64 = 1 << 63;
/// The bits below are the class; those above, the message's number.
const CLASS: u64 = 0xff;
/// Longer than all messages.
const ROOM: usize = 400_000;

struct Receive {
    request: RequestId,
    serial: u64,
    source: Source,
    tags: TagMatch,
    into: Vec<u8>,
}

struct Send {
    request: RequestId,
    to: usize,
    _data: Vec<u8>,
}

struct Soak<'a> {
    group: &'a Group,
    engine: Engine,
    peers: Vec<PeerId>,
    random: Random,
    sends: Vec<Send>,
    receives: Vec<Receive>,
    next_serial: u64,
    /// Messages that went, or may have gone, to each rank.
    sent: Vec<u64>,
    /// Those of them that were cancelled, and so must not arrive.
    cancelled: Vec<u64>,
    got: Vec<u64>,
    /// How many each rank says it sent.
    announced: Vec<Option<u64>>,
    seen: HashSet<(usize, u64)>,
    /// For each sender and class: (message's number, receive's serial).
    order: HashMap<(usize, u64), Vec<(u64, u64)>>,
}

fn seed_of(from: usize, to: usize, number: u64) -> u64 {
    (from as u64) << 56 | (to as u64) << 48 | number
}

impl Soak<'_> {
    fn size(&mut self) -> usize {
        let scale = [1, 41, 4097, 30_000, ROOM as u64][self.random.below(5) as usize];
        self.random.below(scale) as usize
    }

    fn begin_send(&mut self) {
        let me = self.group.rank() as usize;
        let to = self.random.below(self.peers.len() as u64) as usize;
        let (bytes, class) = (self.size(), self.random.below(6));
        let number = self.sent[to];
        let data = pattern(seed_of(me, to, number), bytes);
        let mode = if self.random.below(8) == 0 { SendMode::Synchronous } else { SendMode::Standard };
        let (front, back) = data.split_at(bytes / 3);
        let segments = [Segment::of(front), Segment::of(back)];
        // SAFETY: the heap memory of `data` is kept in `sends`, unmoved, until
        // the request is done.
        let buffer = unsafe { Buffer::new(&segments, Access::Read) }.expect("a buffer");
        match self.engine.send(self.peers[to], number << 8 | class, buffer, mode) {
            Ok(request) => {
                self.sent[to] += 1;
                self.sends.push(Send { request, to, _data: data });
            }
            Err(OperationError::WouldBlock { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }

    fn post(&mut self, catch_all: bool) {
        let peers = self.peers.len() as u64;
        let any = catch_all || self.random.below(2) == 0;
        let source =
            if any { Source::Any } else { Source::Peer(self.peers[self.random.below(peers) as usize]) };
        // The number is never asked for, the class sometimes in part.
        let class_mask = [0, 1, 3, CLASS][self.random.below(4) as usize];
        let ignore = !END & !CLASS | if catch_all { CLASS } else { class_mask };
        let tags = TagMatch { tag: self.random.below(6), ignore };
        let mut into = vec![0xee; ROOM + 16];
        let (front, _guard) = into.split_at_mut(ROOM);
        // SAFETY: the heap memory of `into` is kept in `receives`, unmoved and
        // untouched, until the request is done.
        let buffer = unsafe { Buffer::new(&[Segment::of_mut(front)], Access::Write) }.expect("a buffer");
        let request = self.engine.receive(source, tags, buffer).expect("posted");
        let serial = self.next_serial;
        self.next_serial += 1;
        self.receives.push(Receive { request, serial, source, tags, into });
    }

    fn cancel_one(&mut self) {
        let at = self.random.next() as usize;
        if self.random.below(2) == 0 && !self.sends.is_empty() {
            let request = self.sends[at % self.sends.len()].request;
            self.engine.cancel(request).expect("no fork here");
        } else if !self.receives.is_empty() {
            let request = self.receives[at % self.receives.len()].request;
            self.engine.cancel(request).expect("no fork here");
        }
    }

    fn collect(&mut self) {
        self.engine.progress().expect("no fork here");
        for at in (0..self.sends.len()).rev() {
            if self.engine.is_done(self.sends[at].request) {
                let send = self.sends.swap_remove(at);
                match self.engine.test(send.request).expect("it is done") {
                    Ok(_) => {}
                    Err(OperationError::Cancelled) => {
                        self.cancelled[send.to] += 1;
                    }
                    Err(error) => panic!("{error}"),
                }
            }
        }
        for at in (0..self.receives.len()).rev() {
            if self.engine.is_done(self.receives[at].request) {
                let receive = self.receives.swap_remove(at);
                self.arrived(receive);
            }
        }
    }

    fn arrived(&mut self, receive: Receive) {
        let status = match self.engine.test(receive.request).expect("it is done") {
            Ok(status) => status,
            Err(OperationError::Cancelled) => return,
            Err(error) => panic!("{error}"),
        };
        let me = self.group.rank() as usize;
        let from = self.peers.iter().position(|p| *p == status.peer).expect("a known peer");
        let (number, class) = (status.tag >> 8, status.tag & CLASS);
        assert!(matches!(receive.source, Source::Any) || receive.source == Source::Peer(status.peer));
        assert_eq!((status.tag ^ receive.tags.tag) & !receive.tags.ignore, 0, "the tag must match");
        assert!(self.seen.insert((from, number)), "message {number} of {from} came twice");
        let bytes = status.bytes as usize;
        check(seed_of(from, me, number), &receive.into[..bytes]);
        assert!(receive.into[bytes..].iter().all(|b| *b == 0xee), "past the message nothing is written");
        self.order.entry((from, class)).or_default().push((number, receive.serial));
        self.got[from] += 1;
    }
}

/// Of two messages of one sender and class, every receive accepts both or none.
fn check_order(order: &HashMap<(usize, u64), Vec<(u64, u64)>>) {
    for ((from, class), pairs) in order {
        let mut pairs = pairs.clone();
        pairs.sort_unstable();
        let out_of_order = pairs.windows(2).find(|w| w[0].1 > w[1].1);
        assert_eq!(out_of_order, None, "sender {from}, class {class}: (message, receive) out of order");
    }
}

fn soak(group: &Group, seed: u64, change: fn(&mut lmt::Config)) {
    let builder = Endpoint::builder().id(group.id().member(group.rank())).configure(change);
    let mut engine = builder.build_engine().expect("made");
    let ranks = group.size() as usize;
    let peers: Vec<_> =
        (0..group.size()).map(|r| engine.insert_peer(&group.address(r)).expect("a peer")).collect();
    let mut soak = Soak {
        group,
        engine,
        peers,
        random: Random::new(seed + u64::from(group.rank())),
        sends: Vec::new(),
        receives: Vec::new(),
        next_serial: 0,
        sent: vec![0; ranks],
        cancelled: vec![0; ranks],
        got: vec![0; ranks],
        announced: vec![None; ranks],
        seen: HashSet::new(),
        order: HashMap::new(),
    };
    let end = Instant::now() + TIME;
    while Instant::now() < end {
        match soak.random.below(10) {
            0..4 if soak.sends.len() < 40 => soak.begin_send(),
            4..7 if soak.receives.len() < 12 => soak.post(false),
            7 if soak.receives.len() < 16 => soak.post(true),
            8 if soak.random.below(4) == 0 => soak.cancel_one(),
            _ => soak.collect(),
        }
    }
    finish(&mut soak);
    check_order(&soak.order);
    let (sent, cancelled) = (soak.sent.iter().sum::<u64>(), soak.cancelled.iter().sum::<u64>());
    let got: u64 = soak.got.iter().sum();
    assert!(sent > 50 && got > 50, "sent {sent}, got {got}");
    group.report(format!("sent {sent}, of which {cancelled} cancelled; got {got}"));
}

/// Everything is received, whatever order it comes in; then the numbers are
/// compared.
fn finish(soak: &mut Soak<'_>) {
    let mut told = false;
    let mut counts = Vec::new();
    let end = Instant::now() + Duration::from_secs(30);
    loop {
        if soak.receives.len() < 16 {
            soak.post(true);
        }
        soak.collect();
        if soak.sends.is_empty() && !told {
            told = true;
            for (to, peer) in soak.peers.iter().enumerate() {
                let count = Box::new((soak.sent[to] - soak.cancelled[to]).to_le_bytes());
                // SAFETY: the box is kept in `counts` until this function ends,
                // and 8 bytes are copied when the send completes.
                let buffer = unsafe { Buffer::new(&[Segment::of(&*count)], Access::Read) }.expect("a buffer");
                let request = soak.engine.send(*peer, END, buffer, SendMode::Standard).expect("begun");
                counts.push((count, request));
            }
        }
        for from in 0..soak.peers.len() {
            let source = Source::Peer(soak.peers[from]);
            if let Some(message) =
                soak.engine.matched_probe(source, TagMatch::exactly(END)).expect("no fork here")
            {
                let mut count = [0; 8];
                // SAFETY: `count` is on this frame until the wait has returned.
                let buffer = unsafe { Buffer::new(&[Segment::of_mut(&mut count)], Access::Write) };
                let request = soak.engine.receive_matched(message, buffer.expect("a buffer")).expect("begun");
                soak.engine.wait(request).expect("received");
                soak.announced[from] = Some(u64::from_le_bytes(count));
            }
        }
        let whole = soak.got.iter().zip(&soak.announced).all(|(got, said)| Some(*got) == *said);
        if whole && told && counts.iter().all(|(_, request)| soak.engine.is_done(*request)) {
            break;
        }
        assert!(
            Instant::now() < end,
            "got {:?} of {:?}, {} sends open, told {told}",
            soak.got,
            soak.announced,
            soak.sends.len()
        );
    }
    for receive in std::mem::take(&mut soak.receives) {
        soak.engine.cancel(receive.request).expect("no fork here");
        let ended = soak.engine.wait(receive.request);
        assert_eq!(ended.err(), Some(OperationError::Cancelled), "more arrived than was sent");
    }
    soak.group.barrier();
}

fn run(name: &str, mechanism: &str, change: fn(&mut lmt::Config)) {
    let seed = std::env::var("LMT_TEST_SEED").ok().and_then(|s| s.parse().ok());
    let seed = seed.unwrap_or_else(|| u64::from(std::process::id()));
    let test = Test::new(name, 3).time_limit(Duration::from_secs(60)).env("LMT_MECHANISM", mechanism);
    let results = test.env("LMT_TEST_SEED", &seed.to_string()).run(|group| {
        let seed = std::env::var("LMT_TEST_SEED").expect("set").parse().expect("a number");
        soak(group, seed, change);
    });
    println!("{mechanism}, seed {seed}: {:?}", results.reports);
}

#[test]
fn random_traffic_over_all_mechanisms() {
    run(test_name!(), "auto", |_| {});
}

#[test]
fn random_traffic_over_shared_memory() {
    run(test_name!(), "shm", |config| {
        config.inbox_cells = 8;
        config.eager_max_bytes = 20_000;
        config.unexpected_max_bytes = 65_536;
    });
}
