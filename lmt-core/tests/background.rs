//! Mechanisms that work in the background: how they wake their endpoint, and
//! that they are quiet before a peer is told goodbye.
#![cfg(not(loom))]

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use lmt_core::buffer::{Access, Buffer, Segment};
use lmt_core::config::Config;
use lmt_core::doorbell::Doorbell;
use lmt_core::endpoint::{Engine, PeerId, SendMode, Source, TagMatch};
use lmt_core::identity::EndpointId;
use lmt_core::mechanism::Mechanisms;
use lmt_core::mechanism::*;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

/// Called when a transfer is finished.
type Finished = Arc<Mutex<Box<dyn FnMut() + Send>>>;

/// A mechanism whose copies never end by themselves.
struct Endless {
    doorbell: Arc<Mutex<Option<Doorbell>>>,
    started: Arc<Mutex<bool>>,
    finished: Finished,
}

impl Endless {
    fn new() -> Self {
        Self {
            doorbell: Arc::default(),
            started: Arc::default(),
            finished: Arc::new(Mutex::new(Box::new(|| {}))),
        }
    }
}

impl Lmt for Endless {
    type Peer = ();
    type Transfer = bool;

    fn description(&self) -> Description {
        Description::new("endless", &[Model::Get])
    }

    fn probe(&mut self, _: &PeerFacts, _: Hello) -> Result<Probed<()>, Unavailable> {
        Ok(Probed::new((), Abilities { read: true, write: false, cooperate: false }))
    }

    fn prepare(&mut self, _: &mut (), plan: &Plan, _: &Buffer) -> Result<(bool, Cookie), Fault> {
        Ok((plan.role == Role::Receiver, Cookie::empty()))
    }

    fn start(&mut self, _: &mut (), _: &mut bool, _: &Cookie, _: Interval) -> Result<(), Fault> {
        *self.started.lock().unwrap() = true;
        Ok(())
    }

    fn step(&mut self, _: &mut (), _: &mut bool, _: &mut Buffer, _: u64) -> Result<Step, Fault> {
        Ok(Step { bytes: 0, done: false })
    }

    fn finish(&mut self, _: &mut (), copies_here: bool) {
        if copies_here {
            (self.finished.lock().unwrap())();
        }
    }

    fn background(&mut self) -> Option<&mut dyn Background> {
        Some(self)
    }
}

impl Background for Endless {
    fn take_doorbell(&mut self, doorbell: &Doorbell) {
        *self.doorbell.lock().unwrap() = Some(doorbell.clone());
    }
}

fn engine(mechanism: Endless) -> Engine {
    let id = EndpointId::from_bytes(lmt_core::random::bytes().expect("random bytes"));
    let config = Config { eager_max_bytes: 0, close_timeout_ms: 1, ..Config::default() };
    let mut mechanisms = Mechanisms::new();
    mechanisms.register(mechanism);
    Engine::new(id, config, mechanisms).expect("an endpoint can be made")
}

fn is_readable(engine: &Engine) -> bool {
    let mut fds = [PollFd::new(engine.wait_descriptor(), PollFlags::POLLIN)];
    poll(&mut fds, PollTimeout::ZERO).expect("poll") > 0
}

#[test]
fn a_mechanisms_bell_wakes_its_endpoint() {
    let mechanism = Endless::new();
    let doorbell = Arc::clone(&mechanism.doorbell);
    let mut engine = engine(mechanism);
    assert!(engine.prepare_to_sleep().unwrap());
    assert!(!is_readable(&engine));
    doorbell.lock().unwrap().as_ref().expect("every mechanism is given the doorbell").ring();
    assert!(is_readable(&engine));
    engine.woken();
    assert!(!is_readable(&engine), "a ring that was heard is heard for ever");
}

/// Lends memory to an operation of a test.
fn lend(memory: &mut [u8], access: Access) -> Buffer {
    // SAFETY: the memory is alone in the test, which keeps it until the
    // endpoints are gone; nothing is ever copied.
    unsafe { Buffer::new(&[Segment::of_mut(memory)], access) }.unwrap()
}

#[test]
fn a_goodbye_is_said_when_nothing_copies_any_more() {
    let (mut source, mut target) = (vec![1u8; 9000], vec![0u8; 9000]);
    let sender = Arc::new(Mutex::new(engine(Endless::new())));
    let mechanism = Endless::new();
    let (started, finished) = (Arc::clone(&mechanism.started), Arc::clone(&mechanism.finished));
    let mut receiver = engine(mechanism);
    let peer: PeerId = sender.lock().unwrap().insert_peer(receiver.address()).unwrap();
    receiver.insert_peer(sender.lock().unwrap().address()).unwrap();
    let into = lend(&mut target, Access::Write);
    receiver.receive(Source::Any, TagMatch::any(), into).unwrap();
    let out = lend(&mut source, Access::Read);
    let request = sender.lock().unwrap().send(peer, 1, out, SendMode::Standard).unwrap();
    let until = Instant::now() + Duration::from_secs(20);
    while !*started.lock().unwrap() {
        assert!(Instant::now() < until, "the transfer never began");
        sender.lock().unwrap().progress().unwrap();
        receiver.progress().unwrap();
    }
    let seen = Arc::new(Mutex::new(None));
    let (other, found) = (Arc::clone(&sender), Arc::clone(&seen));
    *finished.lock().unwrap() = Box::new(move || {
        let mut sender = other.lock().unwrap();
        // As often as it takes to look at the sockets.
        for _ in 0..5000 {
            sender.progress().unwrap();
        }
        *found.lock().unwrap() = Some(sender.is_done(request));
    });
    receiver.close().unwrap();
    assert_eq!(*seen.lock().unwrap(), Some(false), "the sender was told while its memory was being read");
    while !sender.lock().unwrap().is_done(request) {
        assert!(Instant::now() < until, "the goodbye was never said");
        sender.lock().unwrap().progress().unwrap();
    }
}

/// An answer that is written before a copy wakes its peer behind that copy.
#[test]
fn a_peer_that_sleeps_is_woken_by_an_answer_though_something_else_is_being_copied() {
    let (mut source, mut target) = (vec![1u8; 9000], vec![0u8; 9000]);
    let mut sender = engine(Endless::new());
    let mechanism = Endless::new();
    let started = Arc::clone(&mechanism.started);
    let mut receiver = engine(mechanism);
    let peer = sender.insert_peer(receiver.address()).unwrap();
    receiver.insert_peer(sender.address()).unwrap();
    receiver.receive(Source::Any, TagMatch::exactly(1), lend(&mut target, Access::Write)).unwrap();
    let (out, again) = (lend(&mut source, Access::Read), lend(&mut source, Access::Read));
    sender.send(peer, 1, out, SendMode::Standard).unwrap();
    let unmatched = sender.send(peer, 2, again, SendMode::Standard).unwrap();
    let until = Instant::now() + Duration::from_secs(20);
    while !*started.lock().unwrap() {
        assert!(Instant::now() < until, "the transfer never began");
        sender.progress().unwrap();
        receiver.progress().unwrap();
    }
    sender.cancel(unmatched).unwrap();
    while !sender.prepare_to_sleep().unwrap() {
        assert!(Instant::now() < until, "there is always something to do");
        sender.woken();
        sender.progress().unwrap();
    }
    assert!(!is_readable(&sender) && !sender.is_done(unmatched));
    receiver.progress().unwrap();
    assert!(is_readable(&sender), "nobody has rung");
    sender.woken();
    sender.progress().unwrap();
    assert!(sender.is_done(unmatched), "the message was taken back");
    for mut engine in [sender, receiver] {
        engine.close().unwrap();
    }
}
