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

    fn join(&mut self, name: u32) -> Option<Joined> {
        let can_join = self.sender.can_join(name, THERE);
        let joined = self.sender.join(name, WHOLE, Sharing::default(), THERE);
        assert!(can_join || joined.is_none(), "{name:#x}");
        joined
    }

    /// Brings a message in by copies that go well; the parts that the receiver has copied.
    fn bring_in(&mut self, joined: &mut Joined) -> (Result<Coming, Lost>, Vec<Interval>) {
        let mut parts = Vec::new();
        let coming = joined.bring_in(&self.sender, |part| {
            parts.push(part);
            true
        });
        (coming, parts)
    }

    fn end(&mut self, mut joined: Joined) -> Result<bool, Lost> {
        let ended = joined.end(&mut self.sender);
        assert_eq!(joined.sender_knows(), ended == Ok(true));
        joined.finish(&self.sender);
        ended
    }
}

const FRONT: Interval = Interval { start: 0, end: MIDDLE };

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
    let mut joined = ends.join(opened.name()).expect("it is open");
    assert_eq!(ends.claims.begun(&mut opened), Some(THERE));
    assert!(help(&ends.claims, &mut opened) > 0);
    assert_eq!(ends.bring_in(&mut joined), (Ok(Coming::Whole), vec![FRONT]));
    assert_eq!(joined.copied_by_sender(), 256 * KIB - MIDDLE);
    assert_eq!(ends.end(joined), Ok(true));
    assert_eq!(ends.claims.begun(&mut opened), None);
    assert!(opened.is_over() && ends.claims.leave(&mut opened));
    ends.claims.shut(opened);
}

#[test]
fn a_receiver_whose_sender_computes_copies_all_and_soon_expects_nobody() {
    let mut ends = ends();
    for number in 0..3 {
        let mut opened = ends.open();
        let mut joined = ends.join(opened.name()).expect("it is open");
        let (coming, parts) = ends.bring_in(&mut joined);
        assert_eq!((coming, joined.copied_by_sender()), (Ok(Coming::Whole), 0));
        assert!(parts.windows(2).all(|pair| pair[0].end == pair[1].start), "in order");
        assert_eq!((parts[0].start, parts[parts.len() - 1].end), (0, WHOLE.end));
        assert_eq!(parts.len() == 1, number > 0, "{parts:?}");
        assert_eq!(ends.end(joined), Ok(true), "it is told by the line");
        assert!(ends.claims.leave(&mut opened));
        ends.claims.shut(opened);
    }
}

#[test]
fn a_sender_that_is_at_its_part_is_waited_for_between_other_things() {
    let mut ends = ends();
    let mut opened = ends.open();
    let mut joined = ends.join(opened.name()).expect("it is open");
    let part = ends.claims.next_part_of(&mut opened, u64::MAX).expect("its side");
    assert_eq!(ends.bring_in(&mut joined), (Ok(Coming::Waits), vec![FRONT]));
    assert_eq!(ends.bring_in(&mut joined), (Ok(Coming::Waits), vec![]));
    ends.claims.copied(&mut opened, part.bytes());
    assert_eq!(ends.bring_in(&mut joined), (Ok(Coming::Whole), vec![]));
    assert_eq!(ends.end(joined), Ok(true));
    assert!(ends.claims.leave(&mut opened));
    ends.claims.shut(opened);
}

#[test]
fn a_sender_that_has_left_is_told_by_a_packet() {
    let mut ends = ends();
    let mut opened = ends.open();
    assert!(!ends.claims.leave(&mut opened));
    let mut joined = ends.join(opened.name()).expect("it is open");
    assert_eq!(ends.bring_in(&mut joined), (Ok(Coming::Whole), vec![WHOLE]));
    assert_eq!(ends.end(joined), Ok(false));
    ends.claims.shut(opened);
}

#[test]
fn what_a_sender_gives_up_its_receiver_copies() {
    let mut ends = ends();
    let mut opened = ends.open();
    let mut joined = ends.join(opened.name()).expect("it is open");
    let part = ends.claims.next_part_of(&mut opened, u64::MAX).expect("its side");
    assert!(!ends.claims.leave(&mut opened), "it has failed");
    assert_eq!(ends.bring_in(&mut joined), (Ok(Coming::Whole), vec![FRONT, part]));
    assert_eq!((joined.copied_by_sender(), ends.end(joined)), (0, Ok(false)));
    ends.claims.shut(opened);
}

#[test]
fn what_a_dead_sender_had_claimed_its_receiver_copies() {
    let mut sleeper = std::process::Command::new("sleep").arg("600").spawn().expect("a process");
    let mut ends = ends_with(process_of(sleeper.id() as i32));
    let mut opened = ends.open();
    let mut joined = ends.join(opened.name()).expect("it is open");
    let part = ends.claims.next_part_of(&mut opened, u64::MAX).expect("its side");
    kill(Pid::from_raw(sleeper.id() as i32), Signal::SIGKILL).expect("it lives");
    sleeper.wait().expect("it ends");
    assert_eq!(ends.bring_in(&mut joined), (Ok(Coming::Whole), vec![FRONT, part]));
    assert_eq!(joined.copied_by_sender(), 0);
}

#[test]
fn a_receiver_that_cannot_copy_leaves_nobody_copying() {
    let mut ends = ends();
    let mut opened = ends.open();
    let mut joined = ends.join(opened.name()).expect("it is open");
    assert!(help(&ends.claims, &mut opened) > 0);
    assert_eq!(joined.bring_in(&ends.sender, |_| false), Err(Lost));
    joined.finish(&ends.sender);
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

/// A sender that ends a message by itself, since it hears no more of its receiver, may use
/// its memory at once: who is still there has no message, whatever it has copied, waits for
/// nobody, and does not disturb the message that has the line now.
#[test]
fn a_receiver_that_was_shut_out_has_no_message_and_harms_no_other() {
    for (has_all, sender_copies) in [(false, false), (true, false), (true, true)] {
        let mut ends = ends();
        let mut opened = ends.open();
        let name = opened.name();
        let mut joined = ends.join(name).expect("it is open");
        if sender_copies {
            ends.claims.next_part_of(&mut opened, u64::MAX).expect("its side");
        }
        if has_all && !sender_copies {
            assert_eq!(ends.bring_in(&mut joined).0, Ok(Coming::Whole));
        } else if has_all {
            assert_eq!(ends.bring_in(&mut joined).0, Ok(Coming::Waits));
        }
        ends.claims.shut(opened);
        let mut next = ends.open();
        assert_eq!(next.name() >> LINE_SHIFT, name >> LINE_SHIFT, "the same line");
        if has_all && !sender_copies {
            assert_eq!(joined.end(&mut ends.sender), Err(Lost));
        } else {
            assert_eq!(ends.bring_in(&mut joined).0, Err(Lost));
        }
        joined.finish(&ends.sender);
        assert_eq!(ends.claims.begun(&mut next), None);
        assert!(!next.is_over());
        ends.claims.shut(next);
    }
}

/// The sender's word for a message may be overwritten by that for the next one in the line:
/// who waits for the first goes by the name.
#[test]
fn a_word_of_another_message_is_not_waited_for() {
    let mut ends = ends();
    let mut opened = ends.open();
    let mut joined = ends.join(opened.name()).expect("it is open");
    assert!(help(&ends.claims, &mut opened) > 0);
    let words = joined.words(&ends.sender).expect("it is there");
    joined.front.close_there(words);
    assert!(joined.front.is_quiet(words) && joined.front.is_named(words));
    ends.claims.shut(opened);
    let mut next = ends.claims.open(&ends.receiver, WHOLE).expect("a line is free");
    let told = ends.sender.words(joined.line).expect("it is there");
    Front::new(next.helping.back.generation(), 1).tell(told, THERE);
    let mut other = Front::new(next.helping.back.generation(), joined.grain.units());
    assert_eq!(other.claim(told, |_| 1), Ok(1));
    assert!(help(&ends.claims, &mut next) > 0, "its word stands where the first one's stood");
    assert!(!joined.front.is_quiet(told) && !joined.front.is_named(told));
    joined.finish(&ends.sender);
    other.close_there(told);
    ends.claims.shut(next);
}

#[test]
fn names_that_cannot_be_are_not_joined() {
    let mut ends = ends();
    let opened = ends.open();
    for name in [0, 1, opened.name() & !MARK, opened.name() ^ 1, MARK | 63 << LINE_SHIFT, u32::MAX] {
        assert!(ends.join(name).is_none(), "{name:#x}");
    }
    let far = Told([1 << Told::BITS, 0]);
    assert!(!ends.sender.can_join(opened.name(), far));
    assert!(ends.sender.join(opened.name(), WHOLE, Sharing::default(), far).is_none());
    ends.claims.shut(opened);
}

#[test]
fn lines_run_out_before_those_for_receivers_do_and_come_back() {
    let mut ends = ends();
    let all: Vec<Opened> = (0..MOST_OPENED).map(|_| ends.open()).collect();
    assert!(ends.claims.open(&ends.receiver, WHOLE).is_none());
    let received = ends.claims.receive(&mut ends.receiver, WHOLE);
    assert_ne!(received.name(), u64::MAX, "there are lines left");
    ends.claims.finish(&ends.receiver, received);
    all.into_iter().for_each(|opened| ends.claims.shut(opened));
    assert!(ends.claims.open(&ends.receiver, WHOLE).is_some());
}

#[test]
fn a_peer_that_was_not_introduced_is_opened_nothing() {
    let mut ends = ends();
    let mut stranger = PeerClaims::new(own_process());
    assert!(ends.claims.open(&stranger, WHOLE).is_none());
    assert!(stranger.join(MARK, WHOLE, Sharing::default(), THERE).is_none(), "it knows no lines");
}
