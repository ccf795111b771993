use std::cell::RefCell;
use std::sync::Arc;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::*;
use crate::claims::tests::{own_process, process_of};
use crate::process::PeerProcess;

const KIB: u64 = 1 << 10;
const WHOLE: Interval = Interval { start: 0, end: 256 * KIB };
/// Half, and a page for the head start.
const MIDDLE: u64 = 128 * KIB + 4096;
const THERE: Told = Told([7, 4096]);

/// A sending endpoint, what it keeps of its receiver, and what that keeps of it.
struct Ends {
    claims: Claims,
    receiver: PeerClaims,
    sender: PeerClaims,
}

fn ends_with(process_of_sender: Arc<PeerProcess>) -> Ends {
    let mut claims = Claims::default();
    let mut receiver = PeerClaims::new(own_process());
    let mut sender = PeerClaims::new(process_of_sender);
    claims.introduce(&mut receiver);
    sender.take(receiver.to_hand_over().expect("there is memory"));
    Ends { claims, receiver, sender }
}

fn ends() -> Ends {
    ends_with(own_process())
}

impl Ends {
    fn open(&mut self) -> Opened {
        self.claims.open(&self.receiver, WHOLE).expect("a line is free")
    }

    fn join(&self, name: u32) -> Option<Joined<'_>> {
        self.sender.join(name, WHOLE, Sharing::default(), THERE)
    }
}

/// Copies what the sender may, once; how many bytes.
fn help(claims: &Claims, opened: &mut Opened) -> u64 {
    let Some(part) = claims.next_part_of(opened, u64::MAX) else { return 0 };
    claims.copied(opened, part.bytes());
    part.bytes()
}

#[test]
fn both_copy_each_its_side_and_no_packet_is_needed() {
    let mut ends = ends();
    let mut opened = ends.open();
    assert_eq!(ends.claims.begun(&mut opened), None, "nobody has come");
    assert_eq!(ends.claims.next_part_of(&mut opened, u64::MAX), None, "nothing is known of the receiver");
    let joined = ends.join(opened.name()).expect("it is open");
    assert_eq!(ends.claims.begun(&mut opened), Some(THERE));
    let (opened, parts) = (RefCell::new(opened), RefCell::new(Vec::new()));
    let met = joined.bring_in(|part| {
        parts.borrow_mut().push(part);
        help(&ends.claims, &mut opened.borrow_mut());
        true
    });
    let copied_by_sender = 256 * KIB - MIDDLE;
    assert_eq!(met, Some(Met { copied_by_sender, sender_knows: true }));
    assert_eq!(parts.into_inner(), [Interval { start: 0, end: MIDDLE }]);
    let mut opened = opened.into_inner();
    assert_eq!(ends.claims.begun(&mut opened), None);
    assert!(opened.is_over() && ends.claims.leave(&mut opened));
    ends.claims.shut(opened);
}

#[test]
fn a_receiver_whose_sender_computes_copies_all() {
    let mut ends = ends();
    let mut opened = ends.open();
    let mut bytes = 0;
    let met = ends.join(opened.name()).expect("it is open").bring_in(|part| {
        assert_eq!(part.start, bytes, "in order");
        bytes = part.end;
        true
    });
    assert_eq!((met, bytes), (Some(Met { copied_by_sender: 0, sender_knows: true }), WHOLE.end));
    assert!(ends.claims.leave(&mut opened), "it is told by the line");
    ends.claims.shut(opened);
}

#[test]
fn a_sender_that_has_left_is_told_by_a_packet() {
    let mut ends = ends();
    let mut opened = ends.open();
    assert!(!ends.claims.leave(&mut opened));
    let mut parts = 0;
    let met = ends.join(opened.name()).expect("it is open").bring_in(|_| {
        parts += 1;
        true
    });
    assert_eq!((met, parts), (Some(Met { copied_by_sender: 0, sender_knows: false }), 1));
    ends.claims.shut(opened);
}

#[test]
fn what_a_sender_gives_up_its_receiver_copies() {
    let mut ends = ends();
    let mut opened = ends.open();
    let joined = ends.join(opened.name()).expect("it is open");
    let part = ends.claims.next_part_of(&mut opened, u64::MAX).expect("its side");
    assert!(!ends.claims.leave(&mut opened), "it has failed");
    let mut parts = Vec::new();
    let met = joined.bring_in(|part| {
        parts.push(part);
        true
    });
    assert_eq!(met, Some(Met { copied_by_sender: 0, sender_knows: false }));
    assert_eq!(parts, [Interval { start: 0, end: MIDDLE }, part]);
    ends.claims.shut(opened);
}

#[test]
fn what_a_dead_sender_had_claimed_its_receiver_copies() {
    let mut sleeper = std::process::Command::new("sleep").arg("600").spawn().expect("a process");
    let mut ends = ends_with(process_of(sleeper.id() as i32));
    let mut opened = ends.open();
    let joined = ends.join(opened.name()).expect("it is open");
    let part = ends.claims.next_part_of(&mut opened, u64::MAX).expect("its side");
    kill(Pid::from_raw(sleeper.id() as i32), Signal::SIGKILL).expect("it lives");
    sleeper.wait().expect("it ends");
    let mut last = None;
    let met = joined.bring_in(|part| {
        last = Some(part);
        true
    });
    assert_eq!(met.map(|met| met.copied_by_sender), Some(0));
    assert_eq!(last, Some(part));
}

#[test]
fn a_receiver_that_cannot_copy_leaves_nobody_copying() {
    let mut ends = ends();
    let mut opened = ends.open();
    let joined = ends.join(opened.name()).expect("it is open");
    assert!(help(&ends.claims, &mut opened) > 0);
    assert_eq!(joined.bring_in(|_| false), None);
    assert_eq!(ends.claims.next_part_of(&mut opened, u64::MAX), None);
    assert!(opened.is_over() && !ends.claims.leave(&mut opened), "a packet tells");
    ends.claims.shut(opened);
}

#[test]
fn what_was_shut_is_not_joined_any_more() {
    let mut ends = ends();
    let opened = ends.open();
    let name = opened.name();
    ends.claims.shut(opened);
    assert!(ends.join(name).is_none());
    let mut next = ends.open();
    assert_ne!(next.name(), name);
    assert!(ends.join(name).is_none(), "the line is another message's");
    assert_eq!(ends.claims.begun(&mut next), None, "what was said of the other counts for none");
    assert!(ends.join(next.name()).is_some());
    ends.claims.shut(next);
}

/// A receiver that is no longer heard of finds its claims refused, and does not disturb the
/// message that has the line now.
#[test]
fn a_receiver_that_was_shut_out_harms_no_other_message() {
    let mut ends = ends();
    let opened = ends.open();
    let name = opened.name();
    let Ends { claims, receiver, sender } = &mut ends;
    let stale = sender.join(name, WHOLE, Sharing::default(), THERE).expect("it is open");
    claims.shut(opened);
    let mut next = claims.open(receiver, WHOLE).expect("a line is free");
    assert_eq!(next.name() >> 24, name >> 24, "the same line");
    assert_eq!(stale.bring_in(|_| true), None);
    assert_eq!(claims.begun(&mut next), None);
    assert!(!next.is_over());
    claims.shut(next);
}

#[test]
fn names_that_cannot_be_are_not_joined() {
    let mut ends = ends();
    let opened = ends.open();
    for name in [0, 1, opened.name() & !MARK, opened.name() ^ 1, MARK | 63 << LINE_SHIFT, u32::MAX] {
        assert!(ends.join(name).is_none(), "{name:#x}");
    }
    let far = Told([1 << Told::BITS, 0]);
    assert!(ends.sender.join(opened.name(), WHOLE, Sharing::default(), far).is_none());
    ends.claims.shut(opened);
}

#[test]
fn lines_run_out_and_come_back() {
    let mut ends = ends();
    let all: Vec<Opened> = (0..LINES).map(|_| ends.open()).collect();
    assert!(ends.claims.open(&ends.receiver, WHOLE).is_none());
    all.into_iter().for_each(|opened| ends.claims.shut(opened));
    assert!(ends.claims.open(&ends.receiver, WHOLE).is_some());
}

#[test]
fn a_peer_that_was_not_introduced_is_opened_nothing() {
    let mut ends = ends();
    let stranger = PeerClaims::new(own_process());
    assert!(ends.claims.open(&stranger, WHOLE).is_none());
    assert!(stranger.join(MARK, WHOLE, Sharing::default(), THERE).is_none(), "it knows no lines");
}
