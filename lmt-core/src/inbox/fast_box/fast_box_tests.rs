use std::os::fd::OwnedFd;

use super::PIECE_BYTES;
use crate::inbox::test_support::{pass_by_every_way, pattern};
use crate::inbox::{Envelope, Geometry, INLINE_BYTES, InboxReceiver, InboxSender, Payload, SendError};
use crate::shared_memory::{AttachError, SharedMemory};

fn inbox(boxes: usize) -> (InboxReceiver, OwnedFd) {
    let (mut receiver, fd) = InboxReceiver::create(Geometry::new(8, 256, 8).unwrap()).unwrap();
    receiver.allow_boxes(boxes);
    (receiver, fd)
}

fn join(receiver: &mut InboxReceiver, fd: &OwnedFd, me: u16) -> InboxSender {
    let mut sender = InboxSender::attach(fd.try_clone().unwrap(), me).unwrap();
    if let Some(fast_box) = receiver.open_box(me) {
        sender.use_box(fast_box).unwrap();
    }
    sender
}

fn send(sender: &mut InboxSender, tag: u64, data: &[u8]) -> Result<(), SendError> {
    sender.send(Envelope { kind: 1, aux: 9, tag }, Payload::Bytes(data)).map(|_| ())
}

#[test]
fn every_length_arrives_whole_by_every_way() {
    let (mut receiver, fd) = inbox(1);
    let mut sender = join(&mut receiver, &fd, 3);
    assert_eq!(sender.most_bytes(), PIECE_BYTES);
    for bytes in (0..=300).chain(PIECE_BYTES - 65..=PIECE_BYTES) {
        pass_by_every_way(&mut sender, &mut receiver, 3, bytes);
    }
    let too_long = send(&mut sender, 0, &[0; PIECE_BYTES + 1]);
    let (bytes, most_bytes) = (PIECE_BYTES as u64 + 1, PIECE_BYTES);
    assert_eq!(too_long.unwrap_err(), SendError::TooLong { bytes, most_bytes });
}

#[test]
fn a_full_box_says_so_and_takes_messages_again() {
    let (mut receiver, fd) = inbox(1);
    let mut sender = join(&mut receiver, &fd, 0);
    let (mut sent, mut received) = (0u64, 0u64);
    for round in 0..40u64 {
        let length = [8, INLINE_BYTES, INLINE_BYTES + 1, 2000][round as usize % 4];
        let mut once = 0;
        while send(&mut sender, sent, &pattern(length)).is_ok() {
            (sent, once) = (sent + 1, once + 1);
            assert!(once <= 64, "more lines than there are");
        }
        assert!(once >= 16, "only {once} messages fitted, of lines that were given back");
        let take = if round % 3 == 0 { sent - received } else { 40 };
        for _ in 0..take {
            let message = receiver.poll().expect("what was sent");
            assert_eq!(message.tag(), received);
            received += 1;
        }
    }
}

#[test]
fn only_so_many_have_a_box_and_the_inbox_serves_the_others() {
    let (mut receiver, fd) = inbox(2);
    let mut senders: Vec<InboxSender> = (0..4).map(|me| join(&mut receiver, &fd, me)).collect();
    let boxed: Vec<bool> = senders.iter().map(InboxSender::has_box).collect();
    assert_eq!(boxed, [true, true, false, false]);
    // All send as much as fits in turn; none is kept waiting by the others.
    for tag in 0..2 {
        for sender in &mut senders {
            send(sender, tag, &[1; 100]).unwrap();
        }
    }
    let mut last = [None; 4];
    for n in 0..8 {
        let message = receiver.poll_thoroughly().expect("what was sent");
        let seen = &mut last[usize::from(message.sender())];
        assert_eq!(message.tag(), seen.map_or(0, |tag: u64| tag + 1), "out of order");
        *seen = Some(message.tag());
        if n == 2 {
            assert!(last[0].is_some() && last[1].is_some(), "one box keeps the other waiting");
            assert!(last[2].is_some(), "the boxes keep the inbox waiting");
        }
    }
    assert!(receiver.poll_thoroughly().is_none());
    // A box that is given up can be another's; what was in it is gone.
    send(&mut senders[0], 7, &[]).unwrap();
    assert!(receiver.holds_messages_of(0));
    receiver.close_box(0);
    assert!(!receiver.holds_messages_of(0) && !receiver.has_box(0));
    send(&mut senders[0], 8, &[]).unwrap();
    let mut third = join(&mut receiver, &fd, 2);
    assert!(third.has_box());
    send(&mut third, 9, &[]).unwrap();
    let message = receiver.poll_thoroughly().unwrap();
    assert_eq!((message.sender(), message.tag()), (2, 9));
    drop(message);
    assert!(receiver.poll_thoroughly().is_none());
}

#[test]
fn a_message_in_a_box_keeps_its_owner_awake_and_one_that_comes_wakes_it() {
    let (mut receiver, fd) = inbox(1);
    let mut sender = join(&mut receiver, &fd, 0);
    send(&mut sender, 0, &[]).unwrap();
    assert!(!receiver.prepare_sleep());
    drop(receiver.poll().unwrap());
    assert!(receiver.prepare_sleep());
    let piece = sender.send_piece(Envelope::default(), Payload::Bytes(&[]), false).unwrap();
    assert!(!piece.wake, "a piece that is not the last wakes nobody");
    let last = sender.send_piece(Envelope::default(), Payload::Bytes(&[]), true).unwrap();
    assert!(last.wake);
}

#[test]
fn a_sender_that_connects_anew_goes_on_in_the_same_box() {
    let (mut receiver, fd) = inbox(1);
    for tag in 0..200 {
        let mut sender = join(&mut receiver, &fd, 5);
        assert!(sender.has_box());
        send(&mut sender, tag, &pattern(tag as usize)).unwrap();
        let message = receiver.poll().expect("what was sent");
        let mut got = vec![0; tag as usize];
        message.copy_to(&mut got);
        assert_eq!((message.tag(), got), (tag, pattern(tag as usize)));
    }
}

/// A peer can write anything into its box: that harms its own messages only.
#[test]
fn garbage_in_a_box_is_dropped_and_read_nowhere_else() {
    let (mut receiver, _fd) = inbox(1);
    let fast_box = receiver.open_box(0).unwrap();
    let bytes = 8192 + 512 * 4096;
    let memory = SharedMemory::attach(fast_box, bytes, bytes).unwrap();
    let line = |number: u64, length_and_aux: u64| {
        let words = [(number + 1) << 8 | 1, length_and_aux, 3];
        for (at, word) in words.into_iter().enumerate() {
            let offset = 4096 + (number as usize % 64) * 64 + at * 8;
            // SAFETY: within the mapping, in one of the 64 lines.
            #[allow(unsafe_code)]
            let target = unsafe { memory.base().add(offset) }.cast::<u64>();
            // SAFETY: as above; aligned; nobody else uses the memory meanwhile.
            #[allow(unsafe_code)]
            unsafe {
                target.write(word);
            }
        }
    };
    line(0, u64::MAX);
    line(1, PIECE_BYTES as u64 + 1);
    line(2, PIECE_BYTES as u64);
    let message = receiver.poll().expect("the one that is possible");
    assert_eq!(message.bytes(), PIECE_BYTES);
    drop(message);
    assert_eq!(receiver.malformed_messages(), 2);
    assert!(receiver.poll().is_none());
    // A number that is not the next one's is not there.
    line(5, 8);
    assert!(receiver.poll().is_none());
}

#[test]
fn what_is_no_box_is_refused() {
    let (mut receiver, fd) = inbox(1);
    let mut sender = join(&mut receiver, &fd, 0);
    assert!(matches!(sender.use_box(fd), Err(AttachError::WrongSize { .. })));
    let (_memory, empty) = SharedMemory::create("a test", "none", 8192 + 512 * 4096, false).unwrap();
    assert!(matches!(sender.use_box(empty), Err(AttachError::WrongContent { .. })));
}
