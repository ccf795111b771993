//! The two parts together, through real shared memory, in one process.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::receiver::{Claims, Reception};
use super::sender::{Help, PeerClaims};
use super::*;
use crate::base::process::PeerProcess;
use crate::vocabulary::transfer::Interval;

const MIB: u64 = 1 << 20;

/// Where the two ends of a message of a MiB meet: half, and a page for the head start.
const MIDDLE: u64 = MIB / 2 + 4096;

const WHOLE: Interval = Interval { start: 0, end: MIB };

pub(super) fn own_process() -> Arc<PeerProcess> {
    Arc::new(PeerProcess::this())
}

pub(super) fn process_of(pid: i32) -> Arc<PeerProcess> {
    Arc::new(PeerProcess::new(pid, Some(crate::base::pidfd::pidfd_open(pid).expect("it lives"))))
}

/// A receiving endpoint, what it keeps of the sender, and the sender's part.
fn pair() -> (Claims, PeerClaims, PeerClaims) {
    let mut claims = Claims::default();
    let mut receiver = PeerClaims::new(own_process());
    let sender = introduced(&mut claims, own_process(), |descriptor| receiver.take(descriptor));
    (claims, sender, receiver)
}

/// A message that comes in.
fn received(claims: &mut Claims, sender: &mut PeerClaims) -> Reception {
    claims.receive(sender, WHOLE)
}

/// A sender in this process, which takes the descriptor.
fn introduced(claims: &mut Claims, process: Arc<PeerProcess>, take: impl FnOnce(OwnedFd)) -> PeerClaims {
    let mut sender = PeerClaims::new(process);
    claims.introduce(&mut sender);
    take(sender.take_pending_descriptor().expect("there is memory"));
    claims.introduce(&mut sender);
    assert!(sender.take_pending_descriptor().is_none(), "once");
    sender
}

fn receive_all(claims: &Claims, reception: &mut Reception) -> u64 {
    let mut bytes = 0;
    while let Some(part) = claims.next_part(reception, MIB).expect("honest") {
        reception.copied(part.bytes());
        bytes += part.bytes();
    }
    bytes
}

#[test]
fn each_end_copies_its_side_and_both_know_of_the_end() {
    let (mut claims, mut sender, receiver) = pair();
    let mut reception = received(&mut claims, &mut sender);
    let mut help = Help::new(&receiver, reception.name(), WHOLE, 32 << 10);
    assert_eq!(help.next_part(&receiver, 0), None, "it only looks");
    let first = claims.next_part(&mut reception, MIB).expect("honest").expect("its side");
    assert_eq!(first, Interval { start: 0, end: MIDDLE });
    reception.copied(100);
    let rest = claims.next_part(&mut reception, MIB).expect("honest");
    assert_eq!(rest, Some(Interval { start: 100, end: MIDDLE }), "the same part until it is copied");
    let second = help.next_part(&receiver, MIB).expect("its side");
    assert_eq!(second, Interval { start: MIDDLE, end: MIB });
    reception.copied(MIDDLE - 100);
    assert_eq!(claims.next_part(&mut reception, MIB), Ok(None));
    assert_eq!(claims.is_whole(&mut reception), Ok(false), "the sender copies");
    help.copied(&receiver, MIB);
    assert_eq!(claims.is_whole(&mut reception), Ok(true));
    assert_eq!(reception.copied_by_sender(), MIB - MIDDLE);
    assert!(claims.end(&mut reception));
    claims.finish(&sender, reception);
    assert_eq!(help.next_part(&receiver, MIB), None);
    assert!(help.is_over() && help.leave(&receiver));
}

#[test]
fn without_a_line_the_receiver_copies_all_and_the_sender_nothing() {
    let (mut claims, mut sender, receiver) = pair();
    let held: Vec<Reception> = (0..64).map(|_| received(&mut claims, &mut sender)).collect();
    assert!(
        held.iter().all(|reception| Help::new(&receiver, reception.name(), WHOLE, 1)
            .next_part(&receiver, 1)
            .is_some())
    );
    let mut reception = received(&mut claims, &mut sender);
    let mut help = Help::new(&receiver, reception.name(), WHOLE, 1);
    assert!(help.is_over());
    assert_eq!(help.next_part(&receiver, MIB), None);
    assert!(!help.leave(&receiver));
    assert_eq!(receive_all(&claims, &mut reception), MIB);
    assert_eq!(claims.is_whole(&mut reception), Ok(true));
    assert!(!claims.end(&mut reception));
    claims.finish(&sender, reception);
    // A process without a pidfd may hold a claim for ever: it is not asked.
    let (mut claims, ..) = pair();
    let mut nobody = introduced(&mut claims, Arc::new(PeerProcess::new(1, None)), drop);
    assert_eq!(received(&mut claims, &mut nobody).name(), Name::NONE);
}

/// The name goes out before the receiver has begun: what its sender copies till then counts.
#[test]
fn a_sender_may_be_done_before_its_receiver_begins() {
    let (mut claims, mut sender, receiver) = pair();
    let half = Interval { start: 0, end: MIB / 2 };
    let mut reception = claims.receive(&mut sender, half);
    let mut help = Help::new(&receiver, reception.name(), half, 1);
    while let Some(part) = help.next_part(&receiver, MIB) {
        assert!(part.end <= half.end);
        help.copied(&receiver, part.bytes());
    }
    let own = claims.next_part(&mut reception, MIB).unwrap();
    reception.copied(own.map_or(0, |part| part.bytes()));
    assert_eq!(claims.is_whole(&mut reception), Ok(true));
    assert!(reception.copied_by_sender() > 0);
    assert!(claims.end(&mut reception) && help.leave(&receiver));
    claims.finish(&sender, reception);
}

/// Who was not introduced knows no lines.
#[test]
fn a_stranger_is_not_expected() {
    let (mut claims, ..) = pair();
    let mut stranger = PeerClaims::new(own_process());
    let mut reception = received(&mut claims, &mut stranger);
    assert_eq!(reception.name(), Name::NONE);
    assert_eq!(receive_all(&claims, &mut reception), MIB);
    claims.finish(&stranger, reception);
}

/// 64 messages have ended and their senders have not looked: the lines are
/// theirs until they do.
#[test]
fn lines_are_used_again_when_their_senders_have_left() {
    let (mut claims, mut sender, receiver) = pair();
    let mut helps = Vec::new();
    for _ in 0..64 {
        let mut reception = received(&mut claims, &mut sender);
        let mut help = Help::new(&receiver, reception.name(), WHOLE, 1);
        assert!(help.next_part(&receiver, MIB).is_some());
        help.copied(&receiver, MIB);
        receive_all(&claims, &mut reception);
        assert_eq!(claims.is_whole(&mut reception), Ok(true));
        assert!(claims.end(&mut reception));
        claims.finish(&sender, reception);
        helps.push(help);
    }
    let name = |claims: &mut Claims, sender: &mut PeerClaims| {
        let reception = received(claims, sender);
        let name = reception.name();
        claims.finish(sender, reception);
        name
    };
    assert_eq!(name(&mut claims, &mut sender), Name::NONE);
    for help in &mut helps[10..30] {
        assert!(help.leave(&receiver));
    }
    assert_ne!(name(&mut claims, &mut sender), Name::NONE);
    for help in &mut helps[30..] {
        assert!(help.leave(&receiver), "an end stays to be read until it was");
    }
    assert!(helps[0].leave(&receiver));
}

/// Whoever finishes a message waits for what its sender has in flight, and does
/// not wait for the dead.
#[test]
fn a_claim_of_a_dead_sender_keeps_nobody() {
    let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("there is sleep");
    let (mut claims, _, receiver) = pair();
    let mut sender = introduced(&mut claims, process_of(child.id() as i32), drop);
    let mut reception = received(&mut claims, &mut sender);
    let mut help = Help::new(&receiver, reception.name(), WHOLE, 1);
    assert!(help.next_part(&receiver, MIB).is_some());
    receive_all(&claims, &mut reception);
    assert_eq!(claims.is_whole(&mut reception), Ok(false));
    assert!(!claims.is_quiescent(&sender, &mut reception), "the sender may be copying");
    kill(Pid::from_raw(child.id() as i32), Signal::SIGKILL).expect("it is ours");
    child.wait().expect("it is ours");
    assert!(claims.is_quiescent(&sender, &mut reception));
    claims.finish(&sender, reception);
}

/// Names that no receiver gave, with any numbers in them.
#[test]
fn lying_names_are_harmless() {
    let (mut claims, mut sender, receiver) = pair();
    let reception = received(&mut claims, &mut sender);
    let honest = reception.name();
    for bit in 0..64 {
        for number in [honest ^ 1 << bit, !honest ^ 1 << bit, 1 << bit, u64::MAX << bit] {
            let mut help = Help::new(&receiver, number, WHOLE, 1);
            while let Some(part) = help.next_part(&receiver, MIB) {
                assert!(part.start < part.end && part.end <= MIB, "{number:#x}: {part:?}");
                help.copied(&receiver, MIB);
            }
            help.leave(&receiver);
        }
    }
}
