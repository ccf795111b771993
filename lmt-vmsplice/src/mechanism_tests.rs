//! Two endpoints in one process, so that a test decides who acts when and what
//! arrives.
#![allow(unsafe_code)] // Buffers are lent.

use lmt_core::buffer::{Access, Segment};
use lmt_core::identity::EndpointId;

use super::*;
use crate::faults::MISSING_FOR_GOOD;

const BYTES: usize = 100_000;

fn facts() -> PeerFacts {
    let process = Arc::new(PeerProcess::new(std::process::id() as i32, None));
    PeerFacts { id: EndpointId::from_bytes([0; 16]), process, probe_address: 0, nonce: [0; 16] }
}

/// A sender and a receiver that know each other.
struct Pair<G: PipeWrite> {
    sender: Pipes<G>,
    to: PipePeer,
    receiver: Pipes<G>,
    from: PipePeer,
}

/// Both sides of a message, and their memory.
struct Message {
    out: PipeTransfer,
    into: PipeTransfer,
    cookie: Cookie,
    bytes: Vec<u8>,
    found: Vec<u8>,
}

fn lend(bytes: &mut [u8], access: Access) -> Buffer {
    // SAFETY: every test keeps the bytes until its buffers are gone.
    unsafe { Buffer::new(&[Segment::of_mut(bytes)], access) }.unwrap()
}

fn whole(bytes: usize) -> Interval {
    Interval { start: 0, end: bytes as u64 }
}

impl<G: PipeWrite> Pair<G> {
    fn new() -> Self {
        // Pipes smaller than the messages.
        let config = Config { max_pipe_bytes: 1 << 14, call_bytes: 5000 };
        let (mut sender, mut receiver) = (Pipes::with_config(config), Pipes::with_config(config));
        let (to, abilities) =
            sender.probe(&facts(), receiver.hello().unwrap()).and_then(Probed::reached).unwrap();
        assert!(abilities.cooperate && !abilities.read && !abilities.write);
        let (from, _) = receiver.probe(&facts(), sender.hello().unwrap()).and_then(Probed::reached).unwrap();
        Self { sender, to, receiver, from }
    }

    /// A message of bytes `value`, prepared by both, started by none.
    fn prepare(&mut self, value: u8) -> Message {
        let (mut bytes, mut found) = (vec![value; BYTES], vec![0; BYTES]);
        let plan = |role| Plan::new(role, Model::Cooperative, whole(BYTES));
        let data = lend(&mut bytes, Access::Read);
        let (out, cookie) = self.sender.prepare(&mut self.to, &plan(Role::Sender), &data).unwrap();
        let data = lend(&mut found, Access::Write);
        let (into, back) = self.receiver.prepare(&mut self.from, &plan(Role::Receiver), &data).unwrap();
        assert!(cookie.as_bytes().len() <= 8 && back.as_bytes().is_empty());
        Message { out, into, cookie, bytes, found }
    }

    fn start_sender(&mut self, message: &mut Message) {
        self.sender.start(&mut self.to, &mut message.out, &Cookie::empty(), whole(BYTES)).unwrap();
    }

    fn start_receiver(&mut self, message: &mut Message) {
        self.receiver.start(&mut self.from, &mut message.into, &message.cookie, whole(BYTES)).unwrap();
    }

    fn begin(&mut self, value: u8) -> Message {
        let mut message = self.prepare(value);
        self.start_receiver(&mut message);
        self.start_sender(&mut message);
        message
    }

    /// Hands over what the sender has for the receiver; returns how many notes.
    fn hand_over(&mut self) -> usize {
        let mut notes = 0;
        while let Some(note) = self.sender.oob_message(&mut self.to) {
            self.receiver.take_oob_message(&mut self.from, note);
            notes += 1;
        }
        notes
    }

    /// As [`Self::hand_over`], where the kernel does not pass the descriptors.
    fn lose_descriptors(&mut self) -> usize {
        let mut notes = 0;
        while let Some(mut note) = self.sender.oob_message(&mut self.to) {
            note.descriptors.clear();
            self.receiver.take_oob_message(&mut self.from, note);
            notes += 1;
        }
        notes
    }

    fn send(&mut self, message: &mut Message) -> Result<Step, Fault> {
        let mut data = lend(&mut message.bytes, Access::Read);
        self.sender.step(&mut self.to, &mut message.out, &mut data, u64::MAX)
    }

    fn receive(&mut self, message: &mut Message) -> Result<Step, Fault> {
        let mut data = lend(&mut message.found, Access::Write);
        self.receiver.step(&mut self.from, &mut message.into, &mut data, u64::MAX)
    }

    fn finish_sender(&mut self, message: Message) {
        self.sender.finish(&mut self.to, message.out);
    }

    /// Ends both sides.
    fn finish(&mut self, message: Message) {
        self.receiver.finish(&mut self.from, message.into);
        self.sender.finish(&mut self.to, message.out);
    }

    /// Brings a started message to its end and checks it.
    fn drive(&mut self, mut message: Message) {
        let (mut sent, mut received, mut sent_all) = (0, 0, false);
        for _ in 0..10 * BYTES {
            if !sent_all {
                let step = self.send(&mut message).unwrap();
                (sent, sent_all) = (sent + step.bytes, step.done);
            }
            self.hand_over();
            let step = self.receive(&mut message).unwrap();
            received += step.bytes;
            if step.done {
                assert_eq!((sent, received, sent_all), (BYTES as u64, BYTES as u64, true));
                assert!(message.found == message.bytes);
                // DONE: the sender may write its memory again.
                self.finish(message);
                return;
            }
        }
        panic!("not done: {sent} sent, {received} received");
    }
}

fn idle() -> Result<Step, Fault> {
    Ok(Step { bytes: 0, done: false })
}

/// The errno of a demotion, and whether it is for good.
fn demotion(result: Result<Step, Fault>) -> (Errno, bool) {
    let Err(Fault::Demote { errno, for_good, .. }) = result else { panic!("not demoted: {result:?}") };
    (Errno::from_raw(errno), for_good)
}

/// Runs a test with both ways.
macro_rules! both_ways {
    ($($test:ident)+) => {
        $(#[test]
        fn $test() {
            cases::$test(Pair::<ByVmsplice>::new());
            cases::$test(Pair::<ByWritev>::new());
        })+
    };
}

both_ways!(
    messages_arrive_in_whatever_order_they_are_matched
    sides_that_start_in_different_orders_go_on
    a_cookie_may_come_before_the_pipe
    a_lost_descriptor_demotes_and_the_next_message_gets_another_pipe
    descriptors_that_are_always_lost_demote_for_good
    a_receiver_that_gives_up_in_the_middle_leaves_nothing_behind
    a_receiver_that_gives_up_before_it_began_leaves_nothing_behind
    a_sender_that_gives_up_ends_the_receiver_where_it_was
    a_message_behind_one_that_was_given_up_goes_on
    a_truncated_message_leaves_an_empty_pipe
    cookies_that_cannot_be_demote
    memory_that_cannot_be_reached_demotes_where_it_begins
    a_forgotten_peer_gives_its_descriptors_back
    a_buffer_that_is_too_short_demotes
);

#[path = "mechanism_cases.rs"]
mod cases;
#[path = "mechanism_random_tests.rs"]
mod random;

impl<G: PipeWrite> Pair<G> {
    /// As `drive`, of a message of which something has moved.
    fn drive_begun(&mut self, mut message: Message) {
        let mut sent_all = false;
        for _ in 0..10 * BYTES {
            sent_all = sent_all || self.send(&mut message).unwrap().done;
            self.hand_over();
            if self.receive(&mut message).unwrap().done {
                assert!(message.found == message.bytes);
                self.finish(message);
                return;
            }
        }
        panic!("not done");
    }
}

#[test]
fn a_trial_without_descriptors_is_made_again_and_a_forbidden_one_is_not() {
    let failed = |errno: Errno| Err(Unavailable { errno: errno as i32, sentence: "refused".to_owned() });
    let mut pipes = Vmsplice::new();
    for errno in [Errno::EMFILE, Errno::ENFILE, Errno::ENOMEM] {
        pipes.remember(&failed(errno));
        assert_eq!(pipes.trial, None, "{errno}");
    }
    pipes.hello().unwrap();
    assert!(matches!(pipes.trial, Some(Ok(1..))));
    for errno in [Errno::EPERM, Errno::ENOSYS] {
        let mut pipes = Vmsplice::new();
        pipes.remember(&failed(errno));
        assert_eq!(pipes.hello().unwrap_err().errno, errno as i32, "kept");
    }
}

/// A dead process, by its pidfd.
fn dead_process() -> Arc<PeerProcess> {
    let mut child = std::process::Command::new("/bin/true").spawn().unwrap();
    // SAFETY: takes numbers only.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, child.id(), 0) };
    assert!(fd >= 0);
    // SAFETY: it was just made, and nobody else has it.
    let fd = unsafe { <std::os::fd::OwnedFd as std::os::fd::FromRawFd>::from_raw_fd(fd as i32) };
    let pid = child.id() as i32;
    child.wait().unwrap();
    Arc::new(PeerProcess::new(pid, Some(fd)))
}

#[test]
fn a_dead_receiver_at_a_full_pipe_is_found_without_a_signal() {
    let mut pair = Pair::<ByVmsplice>::new();
    pair.to.process = dead_process();
    let mut message = pair.begin(1);
    drop(pair.sender.oob_message(&mut pair.to));
    pair.from.incoming = Incoming::default();
    // Until the pipe is full.
    while pair.send(&mut message).is_ok_and(|step| step.bytes > 0) {}
    let mut ends = (0..STEPS_BETWEEN_CHECKS).map(|_| pair.send(&mut message));
    assert_eq!(ends.find(Result::is_err), Some(Err(Fault::PeerDead)));
}

#[test]
fn a_dead_sender_in_the_middle_is_found_at_the_end_of_the_pipe() {
    let mut pair = Pair::<ByWritev>::new();
    let mut message = pair.begin(1);
    pair.send(&mut message).unwrap();
    pair.hand_over();
    assert!(pair.receive(&mut message).unwrap().bytes > 0);
    pair.from.process = dead_process();
    pair.to.outgoing = Outgoing::default();
    // The step that finds the end may be one that has nothing to say yet.
    let end = pair.receive(&mut message).and_then(|_| pair.receive(&mut message));
    assert_eq!(end, Err(Fault::PeerDead));
}

mod keys {
    use lmt_core::config_key::Value;
    use lmt_core::mechanism::Settings;

    use crate::{KEYS, Vmsplice};

    #[test]
    fn every_key_is_a_field_and_what_is_set_holds() {
        let mut pipes = Vmsplice::new();
        for key in KEYS {
            let value = pipes.get(key.name).unwrap_or_else(|| panic!("{}", key.name));
            key.check(&value).unwrap();
            pipes.set(key.name, value).unwrap();
        }
        let unlimited = pipes.trial();
        pipes.set("max_pipe_bytes", Value::Number(8192)).unwrap();
        pipes.set("call_bytes", Value::Number(5000)).unwrap();
        assert_eq!(pipes.config.call_bytes, 5000);
        // Where pipes work at all, no larger one is asked for from now on.
        if unlimited.is_ok() {
            assert_eq!(pipes.trial(), Ok(8192));
        }
        assert!(pipes.set("pipe_bytes", Value::Number(1)).is_err());
    }
}
