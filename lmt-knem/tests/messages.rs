//! One side of a message at a time, as the rendezvous would drive it.
#![cfg(not(loom))]
#![allow(missing_docs)]

use std::sync::Arc;

use knem_stand_in::Options;
use lmt_core::buffer::{Access, Buffer, Segment};
use lmt_core::identity::EndpointId;
use lmt_core::mechanism::*;
use lmt_core::process::PeerProcess;
use lmt_knem::ioctl::PinCacheConfig;
use lmt_knem::{Driver, KnemIoctl, KnemPeer};

fn facts() -> PeerFacts {
    PeerFacts {
        id: EndpointId::from_bytes([1; 16]),
        process: Arc::new(PeerProcess::new(std::process::id() as i32, None)),
        probe_address: 0,
        nonce: [0; 16],
    }
}

/// Memory that a test keeps for as long as its process.
fn memory(bytes: usize, fill: impl Fn(usize) -> u8) -> &'static mut [u8] {
    Box::leak((0..bytes).map(fill).collect())
}

fn lend(memory: &mut [u8], access: Access) -> Buffer {
    // SAFETY: it is never freed, and the tests look at it only when nothing
    // copies.
    unsafe { Buffer::new(&[Segment::of_mut(memory)], access) }.unwrap()
}

fn plan(role: Role, model: Model, start: u64, end: u64) -> Plan {
    Plan::new(role, model, Interval { start, end })
}

/// Two instances that have probed each other.
fn pair() -> Option<[(KnemIoctl, KnemPeer); 2]> {
    let mut ends = [KnemIoctl::new(), KnemIoctl::new()];
    let hellos = match [ends[0].hello(), ends[1].hello()] {
        [Ok(first), Ok(second)] => [second, first],
        [refused, _] => {
            let why = refused.map_or_else(|error| error.to_string(), |_| "only one can be opened".into());
            lmt_conformance::require::skipped("knem-ioctl", &why);
            return None;
        }
    };
    let mut hellos = hellos.into_iter();
    Some(ends.map(|mut end| {
        let (peer, abilities) =
            end.probe(&facts(), hellos.next().unwrap()).and_then(Probed::reached).unwrap();
        assert_eq!(abilities, Abilities { read: true, write: true, cooperate: false });
        (end, peer)
    }))
}

#[test]
fn both_models_move_any_part_of_a_message() {
    knem_stand_in::for_test(Options::default());
    let Some([(mut sender, mut to), (mut receiver, mut from)]) = pair() else { return };
    for (model, start, end) in
        [(Model::Get, 0, 9000), (Model::Put, 0, 9000), (Model::Get, 100, 8000), (Model::Put, 4097, 4098)]
    {
        let (out, into) = (memory(9000, |at| (at % 251) as u8), memory(9000, |_| 9));
        let (source, mut target) = (lend(out, Access::Read), lend(into, Access::Write));
        let mut source = source;
        let sending = plan(Role::Sender, model, start, end);
        let receiving = plan(Role::Receiver, model, start, end);
        let (mut send, sent) = sender.prepare(&mut to, &sending, &source).unwrap();
        let (mut receive, received) = receiver.prepare(&mut from, &receiving, &target).unwrap();
        let travels = if model == Model::Get { &sent } else { &received };
        assert_eq!(travels.as_bytes().len(), if start == 0 { 8 } else { 16 });
        // The receiver has less room than the sender has bytes.
        let interval = Interval { start, end: end - 1 };
        let mut moved = 0;
        loop {
            let step = if model == Model::Get {
                if moved == 0 {
                    receiver.start(&mut from, &mut receive, &sent, interval).unwrap();
                }
                receiver.step(&mut from, &mut receive, &mut target, 1000).unwrap()
            } else {
                if moved == 0 {
                    sender.start(&mut to, &mut send, &received, interval).unwrap();
                }
                sender.step(&mut to, &mut send, &mut source, 1000).unwrap()
            };
            moved += step.bytes;
            if step.done {
                break;
            }
            assert_eq!(step.bytes, 1000);
        }
        assert_eq!(moved, interval.bytes());
        sender.finish(&mut to, send);
        receiver.finish(&mut from, receive);
        for (at, byte) in into.iter().enumerate() {
            let arrived = (start..end - 1).contains(&(at as u64));
            assert_eq!(*byte, if arrived { (at % 251) as u8 } else { 9 }, "byte {at}");
        }
    }
}

#[test]
fn cookies_that_lie_or_are_stale_demote() {
    knem_stand_in::for_test(Options::default());
    let Some([(mut sender, mut to), (mut receiver, mut from)]) = pair() else { return };
    let (out, into) = (memory(5000, |_| 1), memory(9000, |_| 9));
    let source = lend(out, Access::Read);
    let mut target = lend(into, Access::Write);
    let sending = plan(Role::Sender, Model::Get, 0, 5000);
    let receiving = plan(Role::Receiver, Model::Get, 0, 9000);
    let (send, good) = sender.prepare(&mut to, &sending, &source).unwrap();
    let mut begin = |receiver: &mut KnemIoctl, cookie: &Cookie, interval| {
        let (mut transfer, _) = receiver.prepare(&mut from, &receiving, &target).unwrap();
        let started = receiver.start(&mut from, &mut transfer, cookie, interval);
        let step = started.and_then(|()| receiver.step(&mut from, &mut transfer, &mut target, 10));
        receiver.finish(&mut from, transfer);
        step
    };
    let whole = Interval { start: 0, end: 5000 };
    assert_eq!(begin(&mut receiver, &good, whole), Ok(Step { bytes: 10, done: false }));
    for interval in [
        Interval { start: 0, end: 5001 },
        Interval { start: 5000, end: 5001 },
        Interval { start: u64::MAX - 1, end: u64::MAX },
    ] {
        let step = begin(&mut receiver, &good, interval);
        assert!(matches!(step, Err(Fault::Demote { for_good: false, .. })), "{step:?}");
    }
    for at in 0..8 {
        let mut bytes: [u8; 8] = good.as_bytes().try_into().unwrap();
        bytes[at] ^= 0x40;
        let step = begin(&mut receiver, &Cookie::new(&bytes).unwrap(), whole);
        assert!(matches!(step, Err(Fault::Demote { .. })), "{step:?}");
    }
    let late = [good.as_bytes(), &1u64.to_be_bytes()].concat();
    for bad in [Cookie::empty(), Cookie::new(&[1; 9]).unwrap(), Cookie::new(&late).unwrap()] {
        let step = begin(&mut receiver, &bad, whole);
        assert!(matches!(step, Err(Fault::Demote { .. })), "{step:?}");
    }
    sender.finish(&mut to, send);
    // The driver gives the number to the next region.
    let (again, fresh) = sender.prepare(&mut to, &sending, &source).unwrap();
    let step = begin(&mut receiver, &good, whole);
    assert!(
        matches!(&step, Err(Fault::Demote { sentence, .. }) if sentence.contains("not registered")),
        "{step:?}"
    );
    assert_eq!(begin(&mut receiver, &fresh, whole), Ok(Step { bytes: 10, done: false }));
    sender.finish(&mut to, again);
}

#[test]
fn greetings_that_lie_are_refused_and_peers_that_left_are_forgotten() {
    knem_stand_in::for_test(Options::default());
    let Some([(mut one, _kept), (mut other, peer)]) = pair() else { return };
    let mut lies = one.hello().unwrap();
    lies.bytes[9] ^= 1;
    let refused = other.probe(&facts(), lies).and_then(Probed::reached).unwrap_err();
    assert!(refused.sentence.contains("other bytes"), "{refused}");
    for cut in [0, 8, 24, 30] {
        let mut short = one.hello().unwrap();
        short.bytes.truncate(cut);
        assert!(other.probe(&facts(), short).and_then(Probed::reached).is_err());
    }
    let mut none = one.hello().unwrap();
    none.descriptors.clear();
    assert!(other.probe(&facts(), none).and_then(Probed::reached).is_err());
    let owner = one.driver().unwrap().owner();
    let hello = one.hello().unwrap();
    let (again, _) = other.probe(&facts(), hello).and_then(Probed::reached).unwrap();
    drop(peer);
    let probe = lmt_knem::RegionCookie::new(owner, 0, 1);
    let _hello = other.hello().unwrap();
    assert!(other.driver().unwrap().region_bytes(&probe).is_ok(), "the peer is still there");
    drop(again);
    let _hello = other.hello().unwrap();
    let gone = other.driver().unwrap().region_bytes(&probe);
    assert!(matches!(gone, Err(lmt_knem::KnemError::UnknownOwner)), "{gone:?}");
}

#[test]
fn an_honest_peer_survives_greetings_in_its_name() {
    knem_stand_in::for_test(Options::default());
    let Some([(mut one, mut to), (mut other, mut from)]) = pair() else { return };
    let out = memory(100, |at| at as u8);
    let source = lend(out, Access::Read);
    let (send, cookie) = one.prepare(&mut to, &plan(Role::Sender, Model::Get, 0, 100), &source).unwrap();
    let mut arrives = |other: &mut KnemIoctl| {
        let into = memory(100, |_| 0);
        let mut target = lend(into, Access::Write);
        let receiving = plan(Role::Receiver, Model::Get, 0, 100);
        let (mut receive, _) = other.prepare(&mut from, &receiving, &target).unwrap();
        other.start(&mut from, &mut receive, &cookie, receiving.interval).unwrap();
        let step = other.step(&mut from, &mut receive, &mut target, u64::MAX).unwrap();
        other.finish(&mut from, receive);
        step.done && into[99] == 99
    };
    // Its own greeting, spoilt.
    let mut lies = one.hello().unwrap();
    lies.bytes[9] ^= 1;
    assert!(other.probe(&facts(), lies).and_then(Probed::reached).is_err());
    assert!(arrives(&mut other), "a probe that failed was the end of it");
    // Another process greets with its name, and a table and region of its own.
    let mut liar = KnemIoctl::new();
    let mut hello = liar.hello().unwrap();
    let name = hello.bytes.len() - 16..;
    hello.bytes[name.clone()].copy_from_slice(&one.hello().unwrap().bytes[name]);
    let elsewhere = PeerFacts { process: Arc::new(PeerProcess::new(1, None)), ..facts() };
    let refused = other.probe(&elsewhere, hello).and_then(Probed::reached).unwrap_err();
    assert!(refused.sentence.contains("another process"), "{refused}");
    assert!(arrives(&mut other));
    // It greets again, well, and leaves the second greeting's peer.
    let (again, _) = other.probe(&facts(), one.hello().unwrap()).and_then(Probed::reached).unwrap();
    drop(again);
    let _hello = other.hello().unwrap();
    assert!(arrives(&mut other), "the first greeting's peer is still there");
    one.finish(&mut to, send);
}

#[test]
fn a_peer_that_is_not_reached_may_copy_all_the_same() {
    knem_stand_in::for_test(Options::default());
    let Some([(mut sender, _unused), (mut receiver, mut from)]) = pair() else { return };
    let mut blind = sender.probe(&facts(), Hello::default()).unwrap().peer;
    let out = memory(100, |at| at as u8);
    let source = lend(out, Access::Read);
    let (mut send, cookie) =
        sender.prepare(&mut blind, &plan(Role::Sender, Model::Get, 0, 100), &source).unwrap();
    let refused = sender.start(&mut blind, &mut send, &cookie, Interval { start: 0, end: 100 });
    assert!(matches!(refused, Err(Fault::Demote { for_good: true, .. })), "{refused:?}");
    let into = memory(100, |_| 0);
    let mut target = lend(into, Access::Write);
    let receiving = plan(Role::Receiver, Model::Get, 0, 100);
    let (mut receive, _) = receiver.prepare(&mut from, &receiving, &target).unwrap();
    receiver.start(&mut from, &mut receive, &cookie, receiving.interval).unwrap();
    assert_eq!(receiver.step(&mut from, &mut receive, &mut target, u64::MAX).unwrap().bytes, 100);
    assert_eq!(into[99], 99);
}

#[test]
fn messages_from_kept_regions_carry_what_is_there_now() {
    knem_stand_in::for_test(Options::default());
    let Some([_, (mut receiver, _)]) = pair() else { return };
    let keeping = PinCacheConfig { max_regions: 8, max_bytes: 1 << 20 };
    let (mut sender, kept) = KnemIoctl::keeping(keeping);
    let hello = sender.hello().unwrap();
    let (mut from, _) = receiver.probe(&facts(), hello).and_then(Probed::reached).unwrap();
    let (mut to, _) = sender.probe(&facts(), receiver.hello().unwrap()).and_then(Probed::reached).unwrap();
    let base = memory(3 * 4096, |_| 0);
    let first = base.as_ptr().addr().next_multiple_of(4096) - base.as_ptr().addr();
    let page = &mut base[first..first + 4096];
    let mut deliver = |sender: &mut KnemIoctl, page: &mut [u8], byte: u8| {
        page.fill(byte);
        let into = memory(4096, |_| 0);
        let (source, mut target) = (lend(page, Access::Read), lend(into, Access::Write));
        let (send, cookie) =
            sender.prepare(&mut to, &plan(Role::Sender, Model::Get, 0, 4096), &source).unwrap();
        let receiving = plan(Role::Receiver, Model::Get, 0, 4096);
        let (mut receive, _) = receiver.prepare(&mut from, &receiving, &target).unwrap();
        receiver.start(&mut from, &mut receive, &cookie, receiving.interval).unwrap();
        receiver.step(&mut from, &mut receive, &mut target, u64::MAX).unwrap();
        receiver.finish(&mut from, receive);
        sender.finish(&mut to, send);
        (into[0], into[4095])
    };
    for byte in 1..4 {
        assert_eq!(deliver(&mut sender, page, byte), (byte, byte));
    }
    // Other pages come in their place, and the driver's owner is told of it.
    let (address, bytes) = (page.as_ptr().addr(), page.len());
    let renew = |page: &mut [u8]| {
        // SAFETY: whole pages of the test's own; they become zeros.
        let given_back = unsafe { libc::madvise(page.as_mut_ptr().cast(), page.len(), libc::MADV_DONTNEED) };
        assert_eq!(given_back, 0);
    };
    sender.driver().unwrap().forget_range(address, bytes);
    renew(page);
    assert_eq!(deliver(&mut sender, page, 7), (7, 7));
    // As where the mechanism is registered, and its driver out of reach.
    let teller = kept.clone();
    std::thread::spawn(move || teller.forget_range(address, bytes)).join().unwrap();
    renew(page);
    assert_eq!(deliver(&mut sender, page, 6), (6, 6));
    // Untold it shows why keeping is off unless asked for.
    renew(page);
    assert_eq!(deliver(&mut sender, page, 8), (6, 6), "if this fails, the driver pins no pages");
}

#[test]
fn where_there_is_no_device_it_is_said_why() {
    if knem_stand_in::for_test(Options::default().open_error(nix::errno::Errno::ENOENT)) {
        let reason = KnemIoctl::new().hello().unwrap_err();
        assert!(reason.errno == libc::ENOENT && reason.sentence.contains("not loaded"), "{reason}");
        assert_eq!(lmt_knem::Knem::open().unwrap().driver(), "user");
    } else {
        lmt_conformance::require::skipped("knem-ioctl", "only a stand-in can be absent here");
    }
}
