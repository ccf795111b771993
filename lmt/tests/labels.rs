//! Labels beside the tag, reported ends, and messages of peers that nobody named.
#![allow(unsafe_code)] // Lends memory by address.

use std::time::{Duration, Instant};

use lmt::buffer::{Access, Buffer, Segment};
use lmt::{
    Completion, Endpoint, Engine, Label, OperationError, PeerId, SendMode, Source, Space, TagMatch, Wanted,
};

const TIME_LIMIT: Duration = Duration::from_secs(20);

fn engine() -> Engine {
    Endpoint::builder().build_engine().expect("an engine")
}

/// Two engines of one process; the first knows the second.
fn pair() -> (Engine, Engine, PeerId) {
    let (mut one, two) = (engine(), engine());
    let peer = one.insert_peer(&two.address().clone()).expect("room for a peer");
    (one, two, peer)
}

fn lent(bytes: &[u8]) -> Buffer {
    // SAFETY: the tests keep the bytes until the operation has ended.
    unsafe { Buffer::new(&[Segment::of(bytes)], Access::Read) }.expect("a buffer")
}

fn lent_mut(bytes: &mut [u8]) -> Buffer {
    // SAFETY: the tests keep the bytes, untouched, until the operation has ended.
    unsafe { Buffer::new(&[Segment::of_mut(bytes)], Access::Write) }.expect("a buffer")
}

/// The next report of `of`, while the other makes progress too.
fn next(of: &mut Engine, other: &mut Engine) -> Completion {
    let start = Instant::now();
    loop {
        if let Some(completion) = of.next_completion() {
            return completion;
        }
        of.progress().expect("this is no child");
        other.progress().expect("this is no child");
        assert!(start.elapsed() < TIME_LIMIT, "nothing was reported in time");
    }
}

fn space(number: u8) -> Space {
    Space::new(number).expect("there are four")
}

fn any(number: u8) -> Wanted {
    Wanted { space: space(number), tags: TagMatch::any() }
}

#[test]
fn a_message_is_received_in_its_space_with_its_number() {
    let (mut one, mut two, peer) = pair();
    two.accept_unnamed_peers();
    // In a cell, in pieces, announced.
    for bytes in [8, 20_000, 3 << 20] {
        let text: Vec<u8> = (0..bytes).map(|at| (at % 251) as u8).collect();
        let (mut first, mut second) = (vec![0; bytes], vec![0; bytes]);
        let elsewhere = two.receive(Source::Any, any(1), lent_mut(&mut first)).expect("posted");
        let here = two.receive(Source::Any, any(2), lent_mut(&mut second)).expect("posted");
        assert_eq!((two.report(elsewhere, [1, 0, 0]), two.report(here, [2, 0, 0])), (None, None));
        let label = Label { tag: 9, space: space(2), immediate: Some(u32::MAX - 1) };
        let send = one.send(peer, label, lent(&text), SendMode::Standard).expect("begun");
        let told_at_once = one.report(send, [3, 0, 0]);
        let received = next(&mut two, &mut one);
        let status = received.result.expect("it is received");
        assert_eq!((received.token[0], status.tag, status.bytes), (2, 9, bytes as u64));
        assert_eq!(status.immediate, Some(u32::MAX - 1));
        assert!(second == text);
        if told_at_once.is_none() {
            assert_eq!(next(&mut one, &mut two).token[0], 3);
        }
        two.cancel(elsewhere).expect("this is no child");
        let taken_back = next(&mut two, &mut one);
        assert_eq!(taken_back.result, Err(Box::new(OperationError::Cancelled)));
    }
}

#[test]
fn an_unexpected_message_keeps_space_and_number_through_probes() {
    let (mut one, mut two, peer) = pair();
    two.accept_unnamed_peers();
    for bytes in [0, 100, 20_000, 3 << 20] {
        let text = vec![7; bytes];
        let label = Label { tag: 1 << 63, space: space(3), immediate: Some(5) };
        let send = one.send(peer, label, lent(&text), SendMode::Standard).expect("begun");
        let told_at_once = one.report(send, [1, 0, 0]);
        let start = Instant::now();
        let message = loop {
            assert_eq!(two.probe(Source::Any, any(0)).expect("no child"), None, "another space");
            if let Some(found) = two.probe(Source::Any, any(3)).expect("no child") {
                assert_eq!((found.tag, found.bytes, found.immediate), (1 << 63, bytes as u64, Some(5)));
            }
            if let Some(message) = two.matched_probe(Source::Any, any(3)).expect("no child") {
                break message;
            }
            one.progress().expect("no child");
            assert!(start.elapsed() < TIME_LIMIT);
        };
        assert_eq!(message.status().immediate, Some(5));
        let mut into = vec![0; bytes];
        let receive = two.receive_matched(message, lent_mut(&mut into)).expect("begun");
        let status = match two.report(receive, [2, 0, 0]) {
            Some(result) => result,
            None => next(&mut two, &mut one).result,
        };
        assert_eq!(status.expect("it is received").immediate, Some(5));
        assert!(into == text);
        if told_at_once.is_none() {
            assert_eq!(next(&mut one, &mut two).token[0], 1);
        }
    }
}

#[test]
fn a_message_to_oneself_has_a_label_too() {
    let mut engine = engine();
    let myself = engine.insert_peer(&engine.address().clone()).expect("room for a peer");
    let label = Label { tag: 4, space: space(1), immediate: Some(6) };
    for bytes in [3, 1 << 20] {
        let (text, mut into) = (vec![1; bytes], vec![0; bytes]);
        let send = engine.send(myself, label, lent(&text), SendMode::Standard).expect("begun");
        let receive = engine.receive(Source::Any, any(1), lent_mut(&mut into)).expect("begun");
        let status = engine.report(receive, [1, 0, 0]).expect("it was there").expect("and is received");
        assert_eq!((status.tag, status.immediate, status.bytes), (4, Some(6), bytes as u64));
        assert!(engine.report(send, [2, 0, 0]).expect("it has ended").is_ok());
        assert!(into == text);
    }
}

#[test]
fn who_was_not_named_is_heard_only_if_asked_for() {
    let (mut one, mut two, peer) = pair();
    let mut into = [0; 5];
    let receive = two.receive(Source::Any, TagMatch::any(), lent_mut(&mut into)).expect("posted");
    assert_eq!(two.report(receive, [1, 0, 0]), None);
    one.send(peer, 1, lent(b"hello"), SendMode::Standard).expect("begun");
    let start = Instant::now();
    while start.elapsed() < Duration::from_millis(300) {
        one.progress().expect("no child");
        two.progress().expect("no child");
    }
    assert_eq!(two.next_completion(), None);
    let known = two.insert_peer(&one.address().clone()).expect("room for a peer");
    assert_eq!(next(&mut two, &mut one).result.expect("it is received").peer, known);
    assert_eq!(&into, b"hello");
}

/// Takes the next message that arrives at one of the engines, while all make
/// progress.
fn take_next(engines: &mut [&mut Engine], of: usize, space: Space) -> lmt::Message {
    let start = Instant::now();
    loop {
        if let Some(message) = engines[of].take_arrival(space) {
            return message;
        }
        engines.iter_mut().for_each(|engine| {
            engine.progress().expect("this is no child");
        });
        assert!(start.elapsed() < TIME_LIMIT, "nothing arrived in time");
    }
}

#[test]
fn messages_are_taken_as_they_arrive_in_each_sender_s_order() {
    let in_small_cells = || {
        let small = |config: &mut lmt::Config| {
            // Other than the default, so that no built-in rule announces what is shorter.
            (config.eager_max_bytes, config.inbox_eager_max_bytes) = (255 << 10, 255 << 10);
            (config.cell_bytes, config.inbox_cells, config.fast_boxes) = (4096, 16, 0);
            // In pieces, and not by one copy of the receiver's.
        };
        Endpoint::builder().configure(small).build_engine().expect("an engine")
    };
    let (mut one, mut two, mut three) = (in_small_cells(), in_small_cells(), in_small_cells());
    two.accept_unnamed_peers();
    let address = two.address().clone();
    let (from_one, from_three) = (one.insert_peer(&address), three.insert_peer(&address));
    let (from_one, from_three) = (from_one.expect("room for a peer"), from_three.expect("room for a peer"));
    let send = |engine: &mut Engine, peer, tag, bytes: &[u8]| {
        let label = Label { tag, space: space(2), immediate: None };
        engine.send(peer, label, lent(bytes), SendMode::Standard).expect("begun");
    };
    for (engine, peer) in [(&mut one, from_one), (&mut three, from_three)] {
        send(engine, peer, 0, b"met");
        assert_eq!(take_next(&mut [engine, &mut two], 1, space(2)).status().tag, 0);
    }
    // Of the first a part is here, and its sender makes no progress.
    let (long, announced) = (vec![1; 200_000], vec![2; 3 << 20]);
    send(&mut one, from_one, 1, &long);
    send(&mut one, from_one, 2, &announced);
    let found = two.probe(Source::Any, any(2)).expect("no child").expect("its first part is here");
    assert_eq!((found.tag, found.bytes), (1, 200_000));
    assert_eq!(two.take_arrival(space(1)).map(|message| message.status()), None, "another space");
    send(&mut three, from_three, 3, b"in between");
    let between = take_next(&mut [&mut two, &mut three], 0, space(2));
    assert_eq!((between.status().tag, between.status().bytes), (3, 10));
    for (tag, bytes) in [(1, &long), (2, &announced)] {
        let message = take_next(&mut [&mut one, &mut two], 1, space(2));
        assert_eq!((message.status().tag, message.status().bytes), (tag, bytes.len() as u64));
        let mut into = vec![0; bytes.len()];
        let receive = two.receive_matched(message, lent_mut(&mut into)).expect("begun");
        let end = two.report(receive, [tag, 0, 0]).unwrap_or_else(|| next(&mut two, &mut one).result);
        assert!(end.is_ok() && into == *bytes);
    }
    assert!(two.take_arrival(space(2)).is_none());
}
