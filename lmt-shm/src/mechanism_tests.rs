//! Two endpoints in one process, so that a test decides who acts when.
#![allow(unsafe_code)] // Buffers are lent.

use std::sync::Arc;

use lmt_core::buffer::{Access, Segment};
use lmt_core::identity::EndpointId;
use lmt_core::process::PeerProcess;
use std::sync::atomic::Ordering;

use super::*;

const BYTES: u64 = 3 * 4096 + 100;

fn config() -> Config {
    Config { buffer_bytes: 4096, pool_transfers: 4, ..Config::default() }
}

fn facts() -> PeerFacts {
    let process = Arc::new(PeerProcess::new(std::process::id() as i32, None));
    PeerFacts { id: EndpointId::from_bytes([0; 16]), process, probe_address: 0, nonce: [0; 16] }
}

/// A sender and a receiver that know each other.
struct Pair {
    sender: Shm,
    to: ShmPeer,
    receiver: Shm,
    from: ShmPeer,
}

impl Pair {
    fn new(config: Config) -> Self {
        Self::of(Shm::new(config).unwrap())
    }

    fn of(mut sender: Shm) -> Self {
        let mut receiver = Shm::new(super::Config::default()).unwrap();
        let (to, _) = sender.probe(&facts(), receiver.hello().unwrap()).and_then(Probed::reached).unwrap();
        let (from, _) = receiver.probe(&facts(), sender.hello().unwrap()).and_then(Probed::reached).unwrap();
        Self { sender, to, receiver, from }
    }

    /// Both sides of a transfer, started.
    fn begin(&mut self, data: &Buffer) -> (ShmTransfer, ShmTransfer) {
        let interval = Interval { start: 0, end: BYTES };
        let plan = |role| Plan::new(role, Model::Cooperative, interval);
        let (mut out, cookie) = self.sender.prepare(&mut self.to, &plan(Role::Sender), data).unwrap();
        let (mut into, back) = self.receiver.prepare(&mut self.from, &plan(Role::Receiver), data).unwrap();
        self.sender.start(&mut self.to, &mut out, &back, interval).unwrap();
        self.receiver.start(&mut self.from, &mut into, &cookie, interval).unwrap();
        (out, into)
    }

    fn send(&mut self, transfer: &mut ShmTransfer, data: &mut Buffer) -> Result<Step, Fault> {
        self.sender.step(&mut self.to, transfer, data, u64::MAX)
    }

    fn receive(&mut self, transfer: &mut ShmTransfer, data: &mut Buffer) -> Result<Step, Fault> {
        self.receiver.step(&mut self.from, transfer, data, u64::MAX)
    }

    fn drive(
        &mut self,
        out: &mut ShmTransfer,
        into: &mut ShmTransfer,
        source: &mut Buffer,
        target: &mut Buffer,
    ) {
        let (mut sent, mut received) = (0, 0);
        for _ in 0..100 {
            let there = self.send(out, source).unwrap();
            let here = self.receive(into, target).unwrap();
            sent += there.bytes;
            received += here.bytes;
            if there.done {
                assert_eq!((sent, received, here.done), (BYTES, BYTES, true));
                return;
            }
        }
        panic!("not done: {sent} sent, {received} received");
    }

    fn pool(&self) -> &Pool {
        self.sender.pool.as_ref().unwrap()
    }
}

fn lend(bytes: &mut [u8], access: Access) -> Buffer {
    // SAFETY: every test keeps the bytes until its buffers are gone.
    unsafe { Buffer::new(&[Segment::of_mut(bytes)], access) }.unwrap()
}

/// Every fault here is a demotion; says whether it is for good.
fn demoted(result: Result<Step, Fault>) -> bool {
    let Err(Fault::Demote { for_good, .. }) = result else { panic!("not demoted: {result:?}") };
    for_good
}

#[test]
fn the_receiver_of_an_aborted_transfer_gets_and_disturbs_nothing() {
    let mut pair = Pair::new(config());
    let (mut first, mut second, mut got, mut other) =
        ([1u8; BYTES as usize], [2u8; BYTES as usize], [0u8; BYTES as usize], [0u8; BYTES as usize]);
    let mut source = lend(&mut first, Access::Read);
    let mut target = lend(&mut got, Access::Write);
    let (mut out, mut into) = pair.begin(&source);
    pair.send(&mut out, &mut source).unwrap();
    assert_eq!(pair.receive(&mut into, &mut target).unwrap(), Step { bytes: 8192, done: false });
    assert_eq!(pair.send(&mut out, &mut source).unwrap(), Step { bytes: 8192, done: false });
    pair.sender.finish(&mut pair.to, out);
    let mut next = lend(&mut second, Access::Read);
    let mut target_2 = lend(&mut other, Access::Write);
    let (mut out_2, mut into_2) = pair.begin(&next);
    pair.send(&mut out_2, &mut next).unwrap();
    assert_eq!(pair.receive(&mut into, &mut target).unwrap(), Step { bytes: 0, done: false });
    pair.drive_rest(&mut out_2, &mut into_2, &mut next, &mut target_2);
    assert_eq!(other, second);
    assert_eq!((got[0], got[8191], got[8192]), (1, 1, 0));
}

impl Pair {
    /// As `drive`, of a transfer that has begun: only the end is looked at.
    fn drive_rest(
        &mut self,
        out: &mut ShmTransfer,
        into: &mut ShmTransfer,
        source: &mut Buffer,
        target: &mut Buffer,
    ) {
        for _ in 0..100 {
            let here = self.receive(into, target).unwrap();
            if self.send(out, source).unwrap().done {
                assert!(here.done);
                return;
            }
        }
        panic!("not done");
    }
}

#[test]
fn one_peer_holds_at_most_two_lanes_and_the_rest_waits() {
    let mut pair = Pair::new(config());
    let mut bytes = [7u8; BYTES as usize];
    let mut source = lend(&mut bytes, Access::Read);
    let mut transfers: Vec<_> = (0..3).map(|_| pair.begin(&source)).collect();
    for (out, _) in &mut transfers {
        assert_eq!(pair.send(out, &mut source).unwrap().bytes, 0);
    }
    let used = |pair: &Pair| 4 - pair.pool().free_lanes().0 - pair.pool().free_lanes().1;
    assert_eq!(used(&pair), 2);
    for (mut out, mut into) in transfers {
        let mut got = [0u8; BYTES as usize];
        let mut target = lend(&mut got, Access::Write);
        pair.drive(&mut out, &mut into, &mut source, &mut target);
        pair.sender.finish(&mut pair.to, out);
        pair.receiver.finish(&mut pair.from, into);
        assert_eq!(got, [7u8; BYTES as usize]);
    }
    assert_eq!(used(&pair), 0);
}

#[test]
fn a_pool_of_one_serves_two_peers_in_turn_and_gives_memory_back() {
    let small = Config { pool_transfers: 1, kept_transfers: 0, ..config() };
    let mut pair = Pair::new(small);
    let mut third = Shm::new(Config::default()).unwrap();
    let (mut to_third, _) =
        pair.sender.probe(&facts(), third.hello().unwrap()).and_then(Probed::reached).unwrap();
    assert_eq!(pair.pool().memory_bytes(), 0, "a silent peer takes no memory");
    assert_ne!(to_third.mailbox.index, pair.to.mailbox.index);
    let mut bytes = [7u8; BYTES as usize];
    let mut source = lend(&mut bytes, Access::Read);
    let (out, _into) = pair.begin(&source);
    let interval = Interval { start: 0, end: BYTES };
    let plan = Plan::new(Role::Sender, Model::Cooperative, interval);
    let (mut waits, _) = pair.sender.prepare(&mut to_third, &plan, &source).unwrap();
    pair.sender.start(&mut to_third, &mut waits, &Cookie::empty(), interval).unwrap();
    let mut filled = |pair: &mut Pair, waits: &mut ShmTransfer| {
        pair.sender.step(&mut to_third, waits, &mut source, u64::MAX).unwrap();
        matches!(&waits.side, Side::Sender { taken: Some(_), .. })
    };
    assert!(!filled(&mut pair, &mut waits));
    assert_eq!(pair.pool().memory_bytes(), 2 * 4096 + 2 * 4096, "two buffers, a mailbox, the words");
    pair.sender.finish(&mut pair.to, out);
    assert_eq!(pair.pool().memory_bytes(), 2 * 4096);
    assert!(filled(&mut pair, &mut waits));
    pair.sender.finish(&mut to_third, waits);
    drop(to_third);
    let mailbox = pair.pool().lease_mailbox().unwrap();
    assert_eq!(mailbox.index, 1, "a mailbox is used again");
}

#[test]
fn garbage_in_the_pool_ends_in_a_fault() {
    let mut bytes = [7u8; BYTES as usize];
    let mut source = lend(&mut bytes, Access::Write);
    for garbage in [1, 99 << 24, u64::MAX] {
        let mut pair = Pair::new(config());
        let (mut out, mut into) = pair.begin(&source);
        words(&pair.from.theirs, 0).unwrap().consumed.store(garbage, Ordering::Relaxed);
        assert!(demoted(pair.send(&mut out, &mut source)));
        let Side::AwaitingLane { tag, .. } = into.side else { panic!("{into:?}") };
        let slot = pair.from.theirs.word(0).unwrap();
        slot.store(tag.number() << 24 | garbage & 0xff_ffff, Ordering::Relaxed);
        match pair.receive(&mut into, &mut source) {
            // Lane 1 exists, and is empty; lane 0 is the right one.
            Ok(step) => assert_eq!(step, Step { bytes: 0, done: false }),
            result => assert!(demoted(result)),
        }
    }
}

#[test]
fn cookies_and_hellos_that_cannot_be_are_refused() {
    let mut pair = Pair::new(config());
    let mut bytes = [7u8; BYTES as usize];
    let source = lend(&mut bytes, Access::Write);
    let (_, mut into) = pair.begin(&source);
    let interval = Interval { start: 0, end: BYTES };
    let mut bad = vec![Cookie::empty(), Cookie::new(&[0xff; 16]).unwrap(), Cookie::new(&[0; 16]).unwrap()];
    bad.push(Cookie::new(WireCookie { tag: 1, mailbox: MAILBOXES, zero: 0 }.as_bytes()).unwrap());
    for cookie in bad {
        pair.receiver.start(&mut pair.from, &mut into, &cookie, interval).unwrap_err();
    }
    let good = pair.sender.hello().unwrap();
    for (at, value) in [(0, 9), (4, 1), (8, 0), (8, 3), (15, 0xff)] {
        let mut hello = Hello { bytes: good.bytes.clone(), descriptors: Vec::new() };
        hello.descriptors.push(good.descriptors[0].try_clone().unwrap());
        hello.bytes[at] = value;
        pair.receiver.probe(&facts(), hello).and_then(Probed::reached).unwrap_err();
    }
    let without = Hello { bytes: good.bytes, descriptors: Vec::new() };
    assert!(
        pair.receiver
            .probe(&facts(), without)
            .and_then(Probed::reached)
            .unwrap_err()
            .sentence
            .contains("no pool")
    );
}

mod keys {
    use lmt_core::config_key::Value;
    use lmt_core::mechanism::{Lmt, Settings};

    use crate::{Config, KEYS, Shm};

    #[test]
    fn every_key_is_a_field_and_its_default_is_allowed() {
        let mut shm = Shm::new(Config::default()).unwrap();
        for key in shm.keys() {
            let value = shm.get(key.name).unwrap_or_else(|| panic!("{}", key.name));
            key.check(&value).unwrap();
            shm.set(key.name, value).unwrap();
        }
        assert_eq!(shm.keys().len(), KEYS.len());
        assert_eq!(shm.config, Config::default());
        assert!(shm.set("buffer", Value::Number(1)).is_err());
    }

    /// The pool is made with what was set, though the mechanism was made before.
    #[test]
    fn what_is_set_is_the_pools_layout() {
        let mut shm = Shm::new(Config::default()).unwrap();
        shm.set("buffer_bytes", Value::Number(8192)).unwrap();
        shm.set("buffers", Value::Number(3)).unwrap();
        shm.set("pool_transfers", Value::Number(5)).unwrap();
        shm.hello().unwrap();
        let geometry = shm.pool().unwrap().geometry;
        assert_eq!((geometry.buffer_bytes, geometry.buffers, geometry.lanes), (8192, 3, 5));
        assert!(shm.set("buffers", Value::Number(4)).unwrap_err().contains("before"));
    }

    /// Keys are set one after the other: what is out of proportion in between
    /// is no matter, what is so in the end makes the mechanism unavailable.
    #[test]
    fn a_pool_too_large_is_refused_when_all_is_set() {
        let mut shm = Shm::new(Config::default()).unwrap();
        shm.set("buffer_bytes", Value::Number(1 << 24)).unwrap();
        shm.set("buffers", Value::Number(64)).unwrap();
        let why = shm.hello().unwrap_err();
        assert!(why.sentence.contains("at most 64 GiB"), "{}", why.sentence);
        shm.set("pool_transfers", Value::Number(1)).unwrap();
        shm.hello().unwrap();
    }
}
