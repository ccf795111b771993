//! What stands in its sender's place.

use lmt_core::buffer::Access;

use super::tests::{LAYOUT, Message, REPEATED_BYTES, interval, owned, pair, plan};
use super::*;
use crate::receiver::Receiving;
use crate::slot::IN_PLACE;
use crate::sys::Emptying;
use crate::sys::tests::lend;

/// Sends a message that says always the same from one end to the other; whether it stands.
fn pass_again(rings: &mut [PairRing; 2], from: usize) -> bool {
    let stood = rings[from].standing.stands();
    let mut message = Message::new(rings, 0, 0, 32 | 10 | from as u64).expect("there is a slot");
    for _ in 0..20 {
        message.send(rings, u64::MAX);
        message.receive(rings, u64::MAX);
    }
    assert!(message.is_over());
    stood && rings[from].standing.stands()
}

/// What stands takes no cell, even beside messages that have taken all.
#[test]
fn what_stands_takes_no_cells() {
    let mut rings = pair();
    let before = owned(&rings);
    assert!((0..10).any(|_| pass_again(&mut rings, 0) & pass_again(&mut rings, 1)));
    rings.iter_mut().for_each(PairRing::reap);
    let held = [rings[0].held_cells, rings[1].held_cells];
    let taken: Vec<u8> = std::mem::take(&mut rings[0].own).into();
    rings[0].returned_cells = 0;
    for _ in 0..10 {
        assert!(pass_again(&mut rings, 0) && pass_again(&mut rings, 1));
        rings.iter_mut().for_each(PairRing::reap);
    }
    rings[0].own.extend(taken);
    assert_eq!((owned(&rings), [rings[0].held_cells, rings[1].held_cells]), (before, held));
}

/// Whether the next message that says the same would go by the first end's place, as it may
/// with so many bytes.
fn would_stand(rings: &mut [PairRing; 2], sent: &mut [u8], most_bytes: u64) -> bool {
    let ring = &mut rings[0];
    let all = interval(REPEATED_BYTES);
    lend(&mut [sent], Access::Read, |data| {
        (0..100).any(|_| ring.begins_standing(data, &plan(all), most_bytes))
    })
}

/// The place is the next message's only when its receiver has closed, whether its sender gave it
/// up or all of it.
#[test]
fn a_place_is_written_again_when_its_receiver_has_closed() {
    for sent_bytes in [1, u64::MAX] {
        let mut rings = pair();
        assert!((0..10).any(|_| pass_again(&mut rings, 0)));
        let mut first = Message::new(&mut rings, 0, 0, 32 | 10).expect("there is a slot");
        first.receive(&mut rings, 1);
        first.send(&mut rings, sent_bytes);
        first.stop_sending(&mut rings);
        let mut sent = first.sent.clone();
        assert!(!would_stand(&mut rings, &mut sent, u64::MAX), "it is still read");
        for _ in 0..3 {
            first.receive(&mut rings, u64::MAX);
        }
        assert!(first.is_over());
        assert!(!would_stand(&mut rings, &mut sent, REPEATED_BYTES - 1), "this side wants none so long");
        assert!(would_stand(&mut rings, &mut sent, u64::MAX));
    }
}

/// So is it where no receiver came: the message had no slot yet, or is taken back.
#[test]
fn a_place_that_nobody_reads_is_free_at_once() {
    for flags in [32 | 8, 32 | 10] {
        let mut rings = pair();
        assert!((0..10).any(|_| pass_again(&mut rings, 0)));
        let mut message = Message::new(&mut rings, 0, 0, flags).expect("there is a slot");
        assert!(rings[0].standing.is_under_way());
        message.stop_sending(&mut rings);
        assert!(!rings[0].standing.is_under_way(), "{flags}");
    }
}

/// Without memory for its place a message goes through cells, and none is looked for again.
#[test]
fn what_finds_no_memory_for_its_place_does_not_stand() {
    let mut standing = Standing::default();
    standing.is_without_memory();
    let mut rings = pair();
    rings[0].standing = standing;
    let mut sent = vec![1; REPEATED_BYTES as usize];
    assert!(!would_stand(&mut rings, &mut sent, u64::MAX));
}

/// A sender that says more than its place holds.
#[test]
fn what_cannot_stand_in_a_place_is_garbage() {
    let most = u64::from(LAYOUT.standing_bytes);
    for (total, produced, is_right) in
        [(most, most, true), (2 * most, most, true), (2 * most, 2 * most, false)]
    {
        let [liar, mut ring] = pair();
        let slot = liar.sending_slot(0).expect("it is there");
        slot.open(1, IN_PLACE, 63, total);
        slot.publish(produced);
        let mut receiving = Receiving::start(&ring, 0, 1, interval(total), Emptying::Cached).unwrap();
        let mut got = vec![0; total as usize];
        let step = lend(&mut [&mut got], Access::Write, |data| receiving.step(&mut ring, data, u64::MAX));
        assert_eq!(step.is_ok(), is_right, "{total}, {produced}");
    }
}

/// A receiver that says it has read more than there is.
#[test]
fn a_place_read_beyond_its_message_is_garbage() {
    let mut rings = pair();
    assert!((0..10).any(|_| pass_again(&mut rings, 0)));
    let mut message = Message::new(&mut rings, 0, 0, 32 | 10).expect("there is a slot");
    let slot = message.slot.expect("it has one");
    let line = rings[1].receiving_slot(slot).expect("it is there");
    assert!(line.is_in_place() && line.attach(message.tag));
    line.empty(0, true);
    let ring = &mut rings[0];
    let sending = message.sending.as_mut().expect("it is sent");
    let step = lend(&mut [&mut message.sent], Access::Read, |data| sending.step(ring, data, 1));
    assert!(step.is_err(), "{step:?}");
}
