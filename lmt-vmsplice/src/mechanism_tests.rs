//! Two endpoints in one process, so that a test decides who acts when and what
//! arrives.
#![allow(unsafe_code)] // Buffers are lent.

use lmt_core::buffer::{Access, Segment};
use lmt_core::identity::EndpointId;

use super::*;

const BYTES: usize = 100_000;

fn facts() -> PeerFacts {
    let process = Arc::new(PeerProcess::new(std::process::id() as i32, None));
    PeerFacts { id: EndpointId::from_bytes([0; 16]), process, probe_address: 0, nonce: [0; 16] }
}

/// A sender and a receiver that know each other.
struct Pair<G: Giving> {
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

impl<G: Giving> Pair<G> {
    fn new() -> Self {
        // Pipes smaller than the messages.
        let config = Config { max_pipe_bytes: 1 << 14, call_bytes: 5000 };
        let (mut sender, mut receiver) = (Pipes::with_config(config), Pipes::with_config(config));
        let (to, abilities) = sender.probe(&facts(), receiver.hello().unwrap()).unwrap();
        assert!(abilities.cooperate && !abilities.read && !abilities.write);
        let (from, _) = receiver.probe(&facts(), sender.hello().unwrap()).unwrap();
        Self { sender, to, receiver, from }
    }

    /// A message of bytes `value`, prepared by both, started by none.
    fn prepare(&mut self, value: u8) -> Message {
        let (mut bytes, mut found) = (vec![value; BYTES], vec![0; BYTES]);
        let plan = |role| Plan { role, model: Model::Cooperative, interval: whole(BYTES) };
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
        while let Some(note) = self.sender.parcel(&mut self.to) {
            self.receiver.take_parcel(&mut self.from, note);
            notes += 1;
        }
        notes
    }

    /// As [`Self::hand_over`], where the kernel does not pass the descriptors.
    fn lose_descriptors(&mut self) -> usize {
        let mut notes = 0;
        while let Some(mut note) = self.sender.parcel(&mut self.to) {
            note.descriptors.clear();
            self.receiver.take_parcel(&mut self.from, note);
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

mod cases {
    use super::*;

    pub fn messages_arrive_in_whatever_order_they_are_matched(mut pair: Pair<impl Giving>) {
        let [mut first, mut second, mut third, fourth] = [1, 2, 3, 4].map(|value| pair.prepare(value));
        assert_eq!(pair.hand_over(), 1, "one pipe for all");
        for message in [&mut third, &mut first] {
            pair.start_receiver(message);
            pair.start_sender(message);
        }
        assert_eq!(pair.send(&mut first), idle(), "the third was matched first");
        // Taken back before it was matched.
        pair.finish_sender(fourth);
        pair.drive(third);
        pair.start_receiver(&mut second);
        pair.start_sender(&mut second);
        pair.drive(first);
        pair.drive(second);
        assert_eq!(pair.hand_over(), 0, "the same pipe served them");
    }

    pub fn sides_that_start_in_different_orders_go_on(mut pair: Pair<impl Giving>) {
        let (mut first, mut second) = (pair.prepare(1), pair.prepare(2));
        pair.hand_over();
        pair.start_sender(&mut first);
        pair.start_sender(&mut second);
        pair.start_receiver(&mut second);
        pair.start_receiver(&mut first);
        assert!(pair.send(&mut first).unwrap().bytes > 0);
        assert_eq!(pair.send(&mut second), idle());
        assert_eq!(pair.receive(&mut second), idle(), "its bytes come later");
        pair.drive_begun(first);
        pair.drive(second);
    }

    pub fn a_cookie_may_come_before_the_pipe(mut pair: Pair<impl Giving>) {
        let mut message = pair.begin(1);
        assert!(pair.send(&mut message).unwrap().bytes > 0);
        assert_eq!(pair.receive(&mut message), idle());
        assert_eq!(pair.hand_over(), 1);
        assert!(pair.receive(&mut message).unwrap().bytes > 0);
        pair.drive_begun(message);
    }

    pub fn a_lost_descriptor_demotes_and_the_next_message_gets_another_pipe(mut pair: Pair<impl Giving>) {
        let mut message = pair.begin(1);
        assert_eq!(pair.lose_descriptors(), 1);
        assert_eq!(demotion(pair.receive(&mut message)), (Errno::EMFILE, false));
        // The sender has not begun when it hears of that.
        pair.finish(message);
        let mut message = pair.begin(2);
        assert_eq!(pair.receive(&mut message), idle(), "its own pipe is still on its way");
        assert_eq!(pair.hand_over(), 1);
        pair.drive(message);
    }

    pub fn descriptors_that_are_always_lost_demote_for_good(mut pair: Pair<impl Giving>) {
        for times in 1..=MISSING_FOR_GOOD {
            let mut message = pair.begin(1);
            pair.send(&mut message).unwrap();
            assert_eq!(pair.lose_descriptors(), 1);
            assert_eq!(demotion(pair.receive(&mut message)), (Errno::EMFILE, times == MISSING_FOR_GOOD));
            pair.finish(message);
        }
    }

    pub fn a_receiver_that_gives_up_in_the_middle_leaves_nothing_behind(mut pair: Pair<impl Giving>) {
        let mut message = pair.begin(1);
        assert!(pair.send(&mut message).unwrap().bytes > 0);
        pair.hand_over();
        assert!(pair.receive(&mut message).unwrap().bytes > 0);
        assert!(pair.send(&mut message).unwrap().bytes > 0, "there are pages in the pipe");
        let outlet = pair.to.outgoing.pipe().unwrap().outlet().unwrap();
        pair.finish(message);
        assert_eq!(sys::read(outlet.as_fd(), &mut [0; 64]), Ok(0), "the pages were taken back");
        let next = pair.begin(2);
        assert_eq!(pair.hand_over(), 1, "a fresh pipe");
        pair.drive(next);
    }

    pub fn a_receiver_that_gives_up_before_it_began_leaves_nothing_behind(mut pair: Pair<impl Giving>) {
        for sender_first in [true, false] {
            let mut message = pair.begin(1);
            pair.send(&mut message).unwrap();
            pair.hand_over();
            pair.receiver.finish(&mut pair.from, message.into);
            let mut next = pair.prepare(2);
            pair.start_receiver(&mut next);
            if sender_first {
                pair.sender.finish(&mut pair.to, message.out);
                assert_eq!(pair.receive(&mut next), idle());
            } else {
                assert_eq!(pair.receive(&mut next), idle(), "bytes of the other are not taken for its own");
                pair.sender.finish(&mut pair.to, message.out);
            }
            pair.start_sender(&mut next);
            pair.drive(next);
        }
    }

    pub fn a_sender_that_gives_up_ends_the_receiver_where_it_was(mut pair: Pair<impl Giving>) {
        let mut message = pair.begin(1);
        let given = pair.send(&mut message).unwrap().bytes;
        pair.hand_over();
        let mut data = lend(&mut message.found, Access::Write);
        let step = pair.receiver.step(&mut pair.from, &mut message.into, &mut data, 1000).unwrap();
        assert_eq!(step, Step { bytes: 1000, done: false });
        assert!(given > 1000);
        let Message { out, into, mut bytes, mut found, .. } = message;
        pair.sender.finish(&mut pair.to, out);
        bytes.fill(9);
        let mut into = into;
        let mut data = lend(&mut found, Access::Write);
        let end = pair.receiver.step(&mut pair.from, &mut into, &mut data, u64::MAX);
        assert_eq!(demotion(end), (Errno::EPIPE, false));
        drop(data);
        assert!(found[..1000].iter().all(|&byte| byte == 1) && found[1000..].iter().all(|&byte| byte == 0));
        pair.receiver.finish(&mut pair.from, into);
        let next = pair.begin(2);
        pair.drive(next);
    }

    pub fn a_message_behind_one_that_was_given_up_goes_on(mut pair: Pair<impl Giving>) {
        let (mut first, mut second) = (pair.begin(1), pair.begin(2));
        pair.send(&mut first).unwrap();
        pair.hand_over();
        assert!(pair.receive(&mut first).unwrap().bytes > 0);
        pair.send(&mut first).unwrap();
        assert_eq!(pair.send(&mut second), idle());
        pair.sender.finish(&mut pair.to, first.out);
        assert!(pair.send(&mut second).unwrap().bytes > 0);
        // The new pipe is there before the word that the first has failed.
        assert_eq!(pair.hand_over(), 1);
        let mut data = lend(&mut first.found, Access::Write);
        let end = pair.receiver.step(&mut pair.from, &mut first.into, &mut data, u64::MAX);
        assert_eq!(demotion(end), (Errno::EPIPE, false));
        pair.receiver.finish(&mut pair.from, first.into);
        pair.drive_begun(second);
    }

    pub fn a_truncated_message_leaves_an_empty_pipe(mut pair: Pair<impl Giving>) {
        for bytes in [1, 4096, 70_001, 0] {
            let mut message = pair.prepare(1);
            let agreed = whole(bytes);
            pair.receiver.start(&mut pair.from, &mut message.into, &message.cookie, agreed).unwrap();
            pair.sender.start(&mut pair.to, &mut message.out, &Cookie::empty(), agreed).unwrap();
            pair.hand_over();
            let mut received = 0;
            loop {
                pair.send(&mut message).unwrap();
                let step = pair.receive(&mut message).unwrap();
                received += step.bytes;
                if step.done {
                    break;
                }
            }
            assert_eq!(received, bytes as u64);
            assert!(message.found[..bytes].iter().all(|&byte| byte == 1));
            assert!(message.found[bytes..].iter().all(|&byte| byte == 0));
            pair.finish(message);
        }
        let message = pair.begin(2);
        assert_eq!(pair.hand_over(), 0, "the same pipe");
        pair.drive(message);
    }

    pub fn cookies_that_cannot_be_demote(mut pair: Pair<impl Giving>) {
        let mut message = pair.prepare(1);
        for bytes in [&[][..], &[1; 7], &[1; 9], &[1; 96]] {
            let cookie = Cookie::new(bytes).unwrap();
            let started = pair.receiver.start(&mut pair.from, &mut message.into, &cookie, whole(BYTES));
            assert!(matches!(started, Err(Fault::Demote { .. })), "{started:?}");
        }
        pair.start_receiver(&mut message);
        let mut twice = pair.prepare(1);
        let started = pair.receiver.start(&mut pair.from, &mut twice.into, &message.cookie, whole(BYTES));
        assert!(matches!(started, Err(Fault::Demote { .. })), "{started:?}");
        pair.receiver.finish(&mut pair.from, twice.into);
        pair.start_sender(&mut message);
        pair.drive(message);
        for bytes in [&b""[..], &[0; 4], &[1; 5]] {
            let hello = Hello { bytes: bytes.to_vec(), descriptors: Vec::new() };
            pair.receiver.probe(&facts(), hello).unwrap_err();
        }
    }

    pub fn memory_that_cannot_be_reached_demotes_where_it_begins(mut pair: Pair<impl Giving>) {
        // The second half of either buffer lies where nothing is mapped.
        let half = BYTES / 2;
        let bad = Segment { address: 4096, bytes: half };
        for sender_is_bad in [true, false] {
            let mut message = pair.begin(1);
            let Message { bytes, found, .. } = &mut message;
            let (good_out, good_in) = (Segment::of_mut(bytes), Segment::of_mut(found));
            let halves = |good: Segment, is_bad: bool| match is_bad {
                true => vec![Segment { bytes: half, ..good }, bad],
                false => vec![good],
            };
            // SAFETY: only the kernel looks at the bad half, and refuses it.
            let mut source = unsafe { Buffer::new(&halves(good_out, sender_is_bad), Access::Read) }.unwrap();
            // SAFETY: the same.
            let mut target = unsafe { Buffer::new(&halves(good_in, !sender_is_bad), Access::Write) }.unwrap();
            let (mut sent, mut received, mut sent_all) = (0, 0, false);
            let fault = loop {
                if !sent_all {
                    match pair.sender.step(&mut pair.to, &mut message.out, &mut source, 3000) {
                        Ok(step) => (sent, sent_all) = (sent + step.bytes, step.done),
                        Err(fault) => break fault,
                    }
                }
                pair.hand_over();
                match pair.receiver.step(&mut pair.from, &mut message.into, &mut target, 3000) {
                    Ok(step) => received += step.bytes,
                    Err(fault) => break fault,
                }
            };
            assert!(matches!(fault, Fault::Demote { errno: libc::EFAULT, for_good: false, .. }), "{fault:?}");
            // The kernel may stop up to a page early, never late.
            let front = if sender_is_bad { sent } else { received };
            assert!((half as u64 - 4096..=half as u64).contains(&front), "{front} of {half}");
            drop((source, target));
            assert!(message.found[..received as usize].iter().all(|&byte| byte == 1));
            pair.finish(message);
        }
        let next = pair.begin(2);
        pair.drive(next);
    }

    pub fn a_forgotten_peer_gives_its_descriptors_back(mut pair: Pair<impl Giving>) {
        let mut message = pair.begin(1);
        pair.send(&mut message).unwrap();
        pair.hand_over();
        let outlet = pair.to.outgoing.pipe().unwrap().outlet().unwrap();
        pair.sender.finish(&mut pair.to, message.out);
        drop(pair.to);
        assert_eq!(sys::read(outlet.as_fd(), &mut [0; 64]), Ok(0), "no write end is left, and no byte");
        let (read, write) = nix::unistd::pipe().unwrap();
        let note = crate::wire::PipeNote { pipe: 9 };
        pair.from.incoming.take_note(Hello { bytes: note.as_bytes().to_vec(), descriptors: vec![read] });
        nix::unistd::write(&write, &[0]).unwrap();
        drop(pair.from);
        assert_eq!(nix::unistd::write(&write, &[0]), Err(Errno::EPIPE), "no read end is left");
    }

    pub fn a_buffer_that_is_too_short_demotes(mut pair: Pair<impl Giving>) {
        let mut message = pair.begin(1);
        let mut short = [7; 10];
        let mut data = lend(&mut short, Access::Write);
        assert_eq!(pair.sender.step(&mut pair.to, &mut message.out, &mut data, 100).unwrap().bytes, 10);
        let end = pair.sender.step(&mut pair.to, &mut message.out, &mut data, 100);
        assert_eq!(demotion(end), (Errno::EINVAL, false));
        pair.hand_over();
        let mut small = [0; 4];
        let mut data = lend(&mut small, Access::Write);
        assert_eq!(pair.receiver.step(&mut pair.from, &mut message.into, &mut data, 100).unwrap().bytes, 4);
        let end = pair.receiver.step(&mut pair.from, &mut message.into, &mut data, 100);
        assert_eq!(demotion(end), (Errno::EINVAL, false));
        drop(data);
        assert_eq!(small, [7; 4]);
    }
}

impl<G: Giving> Pair<G> {
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
    drop(pair.sender.parcel(&mut pair.to));
    pair.from.incoming = Incoming::default();
    // Until the pipe is full.
    while pair.send(&mut message).is_ok_and(|step| step.bytes > 0) {}
    let mut ends = (0..STEPS_BETWEEN_LOOKS).map(|_| pair.send(&mut message));
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
    assert_eq!(pair.receive(&mut message), Err(Fault::PeerDead));
}
