//! What one call of progress takes in, and polls that are idle.
#![allow(unsafe_code)] // Lends memory by address.

use std::time::{Duration, Instant};

use lmt::buffer::{Access, Buffer, Segment};
use lmt::{Endpoint, Engine, Label, PeerId, RequestId, SendMode, Source, Space, TagMatch, Wanted};

const TIME_LIMIT: Duration = Duration::from_secs(20);
const SENDERS: usize = 7;

/// One that receives, and lets others run after each look that finds nothing; and its peers.
fn engines() -> (Engine, Vec<(Engine, PeerId)>) {
    let receiver =
        Endpoint::builder().configure(|config| config.spins = 1).build_engine().expect("an engine");
    let sender = |_| {
        let mut engine = Endpoint::builder().build_engine().expect("an engine");
        let peer = engine.insert_peer(&receiver.address().clone()).expect("room for a peer");
        (engine, peer)
    };
    let senders = (0..SENDERS).map(sender).collect();
    (receiver, senders)
}

fn send(sender: &mut (Engine, PeerId), tag: u64, text: &[u8]) -> RequestId {
    // SAFETY: the test keeps the bytes until the operation has ended.
    let buffer = unsafe { Buffer::new(&[Segment::of(text)], Access::Read) }.expect("a buffer");
    let label = Label { tag, ..Label::default() };
    sender.0.send(sender.1, label, buffer, SendMode::Standard).expect("begun")
}

fn receive(receiver: &mut Engine, tag: u64, into: &mut [u8]) -> RequestId {
    // SAFETY: the test keeps the bytes, untouched, until the operation has ended.
    let buffer = unsafe { Buffer::new(&[Segment::of_mut(into)], Access::Write) }.expect("a buffer");
    let wanted = Wanted { space: Space::FIRST, tags: TagMatch::exactly(tag) };
    receiver.receive(Source::Any, wanted, buffer).expect("posted")
}

/// A caller whose message is there gets it before it gives its core away, whoever else has sent
/// what it does not wait for yet.
#[test]
fn one_call_takes_what_all_have_sent_where_others_are_let_run_after_it() {
    let (mut receiver, mut senders) = engines();
    receiver.accept_unnamed_peers();
    let (texts, start) = ([[7_u8; 8]; SENDERS], Instant::now());
    for round in 0..20 {
        let mut into = [[0_u8; 8]; SENDERS];
        let wanted = into.iter_mut().enumerate();
        let receives: Vec<RequestId> =
            wanted.map(|(at, into)| receive(&mut receiver, at as u64, into)).collect();
        let sends: Vec<RequestId> =
            senders.iter_mut().enumerate().map(|(at, sender)| send(sender, at as u64, &texts[at])).collect();
        if round == 0 {
            // They connect first.
            while !receives.iter().all(|one| receiver.is_done(*one)) {
                receiver.progress().expect("this is no child");
                senders.iter_mut().for_each(|(sender, _)| drop(sender.progress()));
                assert!(start.elapsed() < TIME_LIMIT, "nothing arrived in time");
            }
        } else {
            receiver.progress().expect("this is no child");
        }
        for (at, one) in receives.iter().enumerate() {
            assert!(receiver.is_done(*one), "round {round}: the message of sender {at} was left");
            receiver.wait(*one).expect("it is received");
        }
        assert!(into == texts);
        for ((sender, _), one) in senders.iter_mut().zip(sends) {
            sender.wait(one).expect("it is sent");
        }
        receiver.progress().expect("this is no child");
    }
}

/// One that receives, with at most so many fast boxes, and so many that are connected with it.
fn connected(fast_boxes: u32, senders: usize) -> (Engine, Vec<(Engine, PeerId)>) {
    let mut receiver = Endpoint::builder()
        .configure(move |config| config.fast_boxes = fast_boxes)
        .build_engine()
        .expect("an engine");
    receiver.accept_unnamed_peers();
    let sender = |_| {
        let mut engine = Endpoint::builder().build_engine().expect("an engine");
        let peer = engine.insert_peer(&receiver.address().clone()).expect("room for a peer");
        (engine, peer)
    };
    let mut senders: Vec<(Engine, PeerId)> = (0..senders).map(sender).collect();
    let start = Instant::now();
    for sender in &mut senders {
        let mut into = [0; 8];
        let (receive, send) = (receive(&mut receiver, 0, &mut into), send(sender, 0, &[1; 8]));
        while !receiver.is_done(receive) || !sender.0.is_done(send) {
            receiver.progress().expect("this is no child");
            sender.0.progress().expect("this is no child");
            assert!(start.elapsed() < TIME_LIMIT, "they never connected");
        }
        receiver.wait(receive).expect("it is received");
        sender.0.wait(send).expect("it is sent");
    }
    (receiver, senders)
}

/// Polls until some may be idle; how many.
fn until_idle(receiver: &mut Engine) -> u32 {
    let start = Instant::now();
    loop {
        receiver.progress().expect("this is no child");
        let polls = receiver.idle_polls();
        if polls > 0 {
            return polls;
        }
        assert!(start.elapsed() < TIME_LIMIT, "no poll may be idle");
    }
}

/// Whether it lies in a fast box or in the inbox, and whoever has sent it.
#[test]
fn an_idle_poll_sees_what_has_come() {
    // Two engines: where more than there are CPUs are connected, no poll is idle.
    for fast_boxes in [16, 0] {
        let (mut receiver, mut senders) = connected(fast_boxes, 1);
        for round in 0..30 {
            let polls = until_idle(&mut receiver);
            for before in 0..polls.min(round) {
                assert!(receiver.is_idle(), "{before} of {polls}, {fast_boxes} fast boxes");
            }
            let from = [round as u8; 8];
            let sent = send(&mut senders[0], 1, &from);
            assert!(!receiver.is_idle(), "{fast_boxes} fast boxes");
            receiver.count_idle(polls.min(round));
            let mut into = [0; 8];
            let receive = receive(&mut receiver, 1, &mut into);
            receiver.wait(receive).expect("it is received");
            assert_eq!(into, from);
            senders[0].0.wait(sent).expect("it is sent");
        }
    }
}

/// Sends each of these, one behind the other.
fn send_all(sender: &mut (Engine, PeerId), messages: &[&[u8]]) {
    for (at, text) in messages.iter().enumerate() {
        let sent = send(sender, at as u64, text);
        sender.0.wait(sent).expect("it is sent");
    }
}

/// How many messages that no receive has got are there now; they are dropped.
fn unexpected(receiver: &mut Engine) -> usize {
    std::iter::from_fn(|| receiver.take_arrival(Space::FIRST)).count()
}

/// So that the line of the next stays with its sender.
#[test]
fn one_call_takes_one_message_where_no_receive_waits() {
    for fast_boxes in [16, 0] {
        let (mut receiver, mut senders) = connected(fast_boxes, 1);
        send_all(&mut senders[0], &[&[1; 8][..]; 3]);
        for call in 0..3 {
            receiver.progress().expect("this is no child");
            assert_eq!(unexpected(&mut receiver), 1, "call {call}, {fast_boxes} fast boxes");
        }
    }
}

#[test]
fn one_call_takes_messages_while_receives_wait() {
    for fast_boxes in [16, 0] {
        let (mut receiver, mut senders) = connected(fast_boxes, 1);
        let (mut first, mut second) = ([0; 8], [0; 8]);
        let receives = [receive(&mut receiver, 0, &mut first), receive(&mut receiver, 2, &mut second)];
        send_all(&mut senders[0], &[&[1; 8], &[2; 8], &[3; 8], &[4; 8]]);
        receiver.progress().expect("this is no child");
        assert!(receives.iter().all(|one| receiver.is_done(*one)), "{fast_boxes} fast boxes");
        assert_eq!(unexpected(&mut receiver), 1, "the last was taken, too: {fast_boxes} fast boxes");
        for one in receives {
            receiver.wait(one).expect("it is received");
        }
        assert!(first == [1; 8] && second == [3; 8]);
    }
}

/// And not the message behind it.
#[test]
fn one_call_takes_all_cells_of_a_message() {
    for fast_boxes in [16, 0] {
        let (mut receiver, mut senders) = connected(fast_boxes, 1);
        let (from, mut into) = (vec![5; 20_000], vec![0; 20_000]);
        let receive = receive(&mut receiver, 0, &mut into);
        send_all(&mut senders[0], &[&from, &[6; 8]]);
        receiver.progress().expect("this is no child");
        assert!(receiver.is_done(receive), "{fast_boxes} fast boxes");
        assert_eq!(unexpected(&mut receiver), 0, "{fast_boxes} fast boxes");
        receiver.wait(receive).expect("it is received");
        assert!(into == from);
    }
}
