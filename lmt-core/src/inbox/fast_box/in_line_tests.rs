//! Messages that go by the fewest steps: in their lines, straight from and to where they are.

use super::memory::LINES;
use super::tests::{inbox, join};
use crate::inbox::test_support::pattern;
use crate::inbox::{Envelope, Header, INLINE_BYTES, InboxReceiver, InboxSender, Payload, Polled, Sent};

const ENVELOPE: Envelope = Envelope { kind: 1, aux: 0x8765_4321, tag: 0xfedc_ba98_7654_3210 };

fn send_in_line(sender: &mut InboxSender, data: &[u8]) -> bool {
    sender.send_in_line(ENVELOPE, data).is_some_and(|Sent { wake }| !wake)
}

/// What came in a line, in as many bytes as there is room for.
fn take(receiver: &mut InboxReceiver, room: usize, takes: bool) -> Result<(Header, Vec<u8>), usize> {
    let mut into = vec![0xAA; room + 8];
    match receiver.poll_in_line(|_| takes, &mut into[..room]) {
        Some(Polled::Taken(header)) => {
            assert!(into[header.bytes..].iter().all(|byte| *byte == 0xAA), "written past the message");
            into.truncate(header.bytes);
            Ok((header, into))
        }
        Some(Polled::There(delivery)) => {
            let bytes = delivery.bytes();
            std::mem::forget(delivery);
            Err(bytes)
        }
        None => panic!("nothing came"),
    }
}

#[test]
fn every_length_arrives_whole_and_takes_the_place_of_the_general_way() {
    let (mut receiver, fd) = inbox(1);
    let mut sender = join(&mut receiver, &fd, 3);
    for round in 0..3 * LINES {
        let data = pattern(round % (INLINE_BYTES + 1));
        // Each end by either way.
        if round % 2 == 0 {
            assert!(send_in_line(&mut sender, &data));
        } else {
            assert!(sender.send(ENVELOPE, Payload::Bytes(&data)).is_ok());
        }
        if round % 3 == 0 {
            let delivery = receiver.poll().expect("what was sent");
            let mut got = vec![0; data.len()];
            assert_eq!(delivery.copy_to(&mut got), data.len());
            assert_eq!(got, data);
            continue;
        }
        let (header, got) = take(&mut receiver, data.len(), true).expect("it lies in its line");
        assert_eq!((header.sender, header.kind, header.aux, header.tag), (3, 1, ENVELOPE.aux, ENVELOPE.tag));
        assert_eq!(got, data);
    }
    assert!(receiver.poll_in_line(|_| true, &mut []).is_none());
}

#[test]
fn what_does_not_lie_in_a_line_goes_and_comes_by_the_general_way() {
    let (mut receiver, fd) = inbox(1);
    let mut sender = join(&mut receiver, &fd, 0);
    let long = pattern(INLINE_BYTES + 1);
    assert!(!send_in_line(&mut sender, &long));
    assert!(receiver.poll().is_none(), "nothing was sent");
    assert!(sender.send(ENVELOPE, Payload::Bytes(&long)).is_ok());
    assert_eq!(take(&mut receiver, 100, true).err(), Some(long.len()));
    let mut got = vec![0; long.len()];
    receiver.poll().expect("what was left").copy_to(&mut got);
    assert_eq!(got, long);
    // A sender without a box.
    let mut other = join(&mut receiver, &fd, 1);
    assert!(!send_in_line(&mut other, &[1]));
    assert!(other.send(ENVELOPE, Payload::Bytes(&[1])).is_ok());
    assert_eq!(take(&mut receiver, 100, true).err(), Some(1));
}

#[test]
fn what_is_not_taken_or_does_not_fit_is_left_for_the_next_look() {
    let (mut receiver, fd) = inbox(1);
    let mut sender = join(&mut receiver, &fd, 0);
    for data in [pattern(9), pattern(3)] {
        assert!(send_in_line(&mut sender, &data));
    }
    for _ in 0..5 {
        assert_eq!(take(&mut receiver, 9, false).err(), Some(9));
        assert_eq!(take(&mut receiver, 8, true).err(), Some(9));
    }
    assert_eq!(take(&mut receiver, 9, true).expect("it fits").1, pattern(9));
    assert_eq!(take(&mut receiver, 9, true).expect("it fits").1, pattern(3));
}

#[test]
fn a_full_box_takes_no_line_until_some_are_given_back() {
    let (mut receiver, fd) = inbox(1);
    let mut sender = join(&mut receiver, &fd, 0);
    let sent = (0..2 * LINES).filter(|_| send_in_line(&mut sender, &[7; 8])).count();
    assert_eq!(sent, LINES);
    for _ in 0..LINES {
        assert_eq!(take(&mut receiver, 8, true).expect("what was sent").1, [7; 8]);
    }
    assert!(receiver.poll().is_none());
    assert!(send_in_line(&mut sender, &[8]));
}

/// How many messages came of each of `boxes` senders with a box, and of one without, while those
/// of `ready` never run dry: bit k for number k.
fn come(boxes: usize, ready: u32, polls: usize) -> Vec<usize> {
    let (mut receiver, fd) = inbox(boxes);
    let mut senders: Vec<_> = (0..=boxes as u16).map(|me| join(&mut receiver, &fd, me)).collect();
    let mut came = vec![0; senders.len()];
    let mut fill = |number: usize| {
        let sent = senders[number].send(ENVELOPE, Payload::Bytes(&[0; 8]));
        assert!(sent.is_ok(), "there is room for two");
    };
    let is_ready = |number: &usize| ready >> number & 1 == 1;
    for number in (0..=boxes).filter(is_ready) {
        fill(number);
        fill(number);
    }
    for _ in 0..polls {
        let mut into = [0; 8];
        let number = match receiver.poll_in_line(|_| true, &mut into) {
            Some(Polled::Taken(header)) => header.sender,
            Some(Polled::There(delivery)) => delivery.sender(),
            // A poll looks at two boxes.
            None => continue,
        };
        came[usize::from(number)] += 1;
        fill(usize::from(number));
    }
    came
}

/// Whichever boxes never run dry, and whether or not the inbox does: each has its turn.
#[test]
fn nobody_is_kept_waiting_by_messages_in_lines() {
    for boxes in 1..=6 {
        for ready in 1_u32..1 << (boxes + 1) {
            let polls = 40 * (boxes + 1);
            let came = come(boxes, ready, polls);
            let least = polls / ready.count_ones() as usize / 5;
            let starved = (0..=boxes).find(|number| ready >> number & 1 == 1 && came[*number] < least);
            assert_eq!(starved, None, "of {boxes} boxes, {ready:b} ready: {came:?}");
        }
    }
}
