use std::fs::File;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;

use crate::memory::shared_memory::{AttachError, SharedMemory};
use crate::queue::fast_box::PIECE_BYTES;
use crate::queue::fast_box::cell_ownership::HANDOFF_CELLS;
use crate::queue::fast_box::memory::{CELLS, LINE_BUFFER_BYTES, LINES};
use crate::queue::fast_box::place::{HANDOFF_CELL_BYTES, HANDOFF_CELL_STRIDE_BYTES, IN_LINE_BUFFER, Part};
use crate::queue::test_support::{pass_by_every_way, pattern};
use crate::queue::{Envelope, Geometry, INLINE_BYTES, InboxReceiver, InboxSender, Payload, Piece, SendError};

/// Of a box's memory.
const BOX_BYTES: usize = 184320 + CELLS * 4096 + 64 * HANDOFF_CELL_STRIDE_BYTES;

pub(super) fn inbox(boxes: usize) -> (InboxReceiver, OwnedFd) {
    let (mut receiver, fd) = InboxReceiver::create(Geometry::new(8, 256, 8).unwrap()).unwrap();
    receiver.allow_fast_boxes(boxes);
    (receiver, fd)
}

pub(super) fn join(receiver: &mut InboxReceiver, fd: &OwnedFd, me: u16) -> InboxSender {
    let mut sender = InboxSender::attach(fd.try_clone().unwrap(), me).unwrap();
    if let Some(fast_box) = receiver.open_fast_box(me).unwrap() {
        sender.use_fast_box(fast_box).unwrap();
    }
    sender
}

fn send(sender: &mut InboxSender, tag: u64, data: &[u8]) -> Result<(), SendError> {
    sender.send(Envelope { kind: 1, aux: 9, tag }, Payload::Bytes(data)).map(|_| ())
}

#[test]
fn a_box_is_handed_over_until_its_sender_is_connected_and_a_later_one_is_another() {
    let (mut receiver, _fd) = inbox(1);
    let open = |receiver: &mut InboxReceiver| {
        let file = File::from(receiver.open_fast_box(3).unwrap().unwrap());
        file.metadata().unwrap().ino()
    };
    let first = open(&mut receiver);
    assert_eq!(open(&mut receiver), first, "all attempts have the same");
    receiver.fast_box_sent(3);
    receiver.fast_box_sent(4);
    assert!(receiver.has_fast_box(3));
    assert_ne!(open(&mut receiver), first);
    assert!(receiver.open_fast_box(4).unwrap().is_none(), "there may be one");
}

/// Whichever of several boxes it lies in, or in the inbox.
#[test]
fn idle_polls_see_what_has_come() {
    for boxes in 0..5 {
        let (mut receiver, fd) = inbox(boxes);
        let mut senders: Vec<InboxSender> = (0..4).map(|me| join(&mut receiver, &fd, me)).collect();
        for round in 0..200 {
            // None are before a thorough look.
            let polls = (1..).find(|_| receiver.poll().is_none() && receiver.idle_polls() > 10);
            assert!(polls.is_some_and(|polls| polls < 20), "{polls:?}");
            (0..round % 7).for_each(|_| assert!(receiver.is_idle()));
            let from = round % senders.len();
            send(&mut senders[from], round as u64, b"12345678").unwrap();
            // A poll looks at two boxes, and at one more box by each poll.
            let idle = (0..).take_while(|_| receiver.is_idle()).count();
            assert!(idle <= boxes.saturating_sub(2), "{idle} polls saw nothing in {boxes} boxes");
            receiver.count_idle((round % 7 + idle) as u32);
            let found = (0..=boxes).find_map(|_| receiver.poll().map(|found| (found.sender(), found.tag())));
            assert_eq!(found, Some((from as u16, round as u64)));
        }
    }
}

/// Prefetching is no idle poll's work.
#[test]
fn no_poll_is_idle_while_line_buffers_are_asked_for() {
    let (mut receiver, fd) = inbox(1);
    let mut sender = join(&mut receiver, &fd, 0);
    let polls_after = |receiver: &mut InboxReceiver, sender: &mut InboxSender, bytes: usize| {
        send(sender, 0, &vec![1; bytes]).unwrap();
        assert!(receiver.poll().is_some() && receiver.poll().is_none());
        receiver.idle_polls()
    };
    assert!(polls_after(&mut receiver, &mut sender, INLINE_BYTES) > 0);
    assert_eq!(polls_after(&mut receiver, &mut sender, INLINE_BYTES + 1), 0);
    for _ in 1..LINES {
        assert_eq!(polls_after(&mut receiver, &mut sender, INLINE_BYTES), 0);
    }
    assert!(polls_after(&mut receiver, &mut sender, INLINE_BYTES) > 0);
}

#[test]
fn every_length_arrives_whole_by_every_way() {
    let (mut receiver, fd) = inbox(1);
    let mut sender = join(&mut receiver, &fd, 3);
    assert_eq!(sender.most_bytes(), PIECE_BYTES);
    for bytes in (0..=LINE_BUFFER_BYTES + 70).chain(PIECE_BYTES - 65..=PIECE_BYTES) {
        pass_by_every_way(&mut sender, &mut receiver, 3, bytes);
    }
    let too_long = send(&mut sender, 0, &[0; PIECE_BYTES + 1]);
    let (bytes, most_bytes) = (PIECE_BYTES as u64 + 1, PIECE_BYTES);
    assert_eq!(too_long.unwrap_err(), SendError::TooLong { bytes, most_bytes });
}

/// As many line buffers as there are, of either length, hold their messages at the same time.
#[test]
fn no_annex_reaches_into_another() {
    let (mut receiver, fd) = inbox(1);
    let mut sender = join(&mut receiver, &fd, 0);
    let message = |tag: u64| vec![tag as u8; [128, 129, LINE_BUFFER_BYTES][tag as usize % 3]];
    for begin in [0, LINES as u64] {
        let tags = begin..begin + LINES as u64;
        tags.clone().for_each(|tag| send(&mut sender, tag, &message(tag)).expect("there is a line"));
        for tag in tags {
            let delivery = receiver.poll().expect("what was sent");
            let mut got = vec![0; delivery.bytes()];
            delivery.copy_to(&mut got);
            assert!(got == message(tag), "{tag}");
        }
    }
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
            assert!(once <= LINES, "more lines than there are");
        }
        let room = if length > LINE_BUFFER_BYTES { CELLS } else { LINES };
        assert!(once >= room / 4, "only {once} messages fitted, of lines that were given back");
        let take = if round % 3 == 0 { sent - received } else { (sent - received) * 5 / 8 };
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
    let fast_box_present: Vec<bool> = senders.iter().map(InboxSender::has_fast_box).collect();
    assert_eq!(fast_box_present, [true, true, false, false]);
    // All send as much as fits in turn; none is kept waiting by the others.
    for tag in 0..2 {
        for sender in &mut senders {
            send(sender, tag, &[1; 100]).unwrap();
        }
    }
    let mut last = [None; 4];
    for n in 0..8 {
        let message = receiver.poll_all().expect("what was sent");
        let seen = &mut last[usize::from(message.sender())];
        assert_eq!(message.tag(), seen.map_or(0, |tag: u64| tag + 1), "out of order");
        *seen = Some(message.tag());
        if n == 2 {
            assert!(last[0].is_some() && last[1].is_some(), "one box keeps the other waiting");
            assert!(last[2].is_some(), "the boxes keep the inbox waiting");
        }
    }
    assert!(receiver.poll_all().is_none());
    // A box that is given up can be another's; what was in it is gone.
    send(&mut senders[0], 7, &[]).unwrap();
    assert!(receiver.holds_messages_of(0));
    receiver.close_fast_box(0);
    assert!(!receiver.holds_messages_of(0) && !receiver.has_fast_box(0));
    send(&mut senders[0], 8, &[]).unwrap();
    assert!(!join(&mut receiver, &fd, 2).has_fast_box(), "for one connection the answer stays the same");
    receiver.close_fast_box(2);
    let mut third = join(&mut receiver, &fd, 2);
    assert!(third.has_fast_box());
    send(&mut third, 9, &[]).unwrap();
    let message = receiver.poll_all().unwrap();
    assert_eq!((message.sender(), message.tag()), (2, 9));
    drop(message);
    assert!(receiver.poll_all().is_none());
}

/// Neither a box nor the inbox is ever empty: one of three messages is the inbox's, whichever has
/// messages first.
#[test]
fn one_box_and_the_inbox_take_turns() {
    for first in [0, 1] {
        let (mut receiver, fd) = inbox(1);
        let mut senders = [join(&mut receiver, &fd, 0), join(&mut receiver, &fd, 1)];
        assert!(receiver.has_fast_box(0) && !receiver.has_fast_box(1));
        let mut got = [0_usize; 2];
        for round in 0..300 {
            for one in [first, 1 - first] {
                while send(&mut senders[one], one as u64, b"x").is_ok() {}
                if round == 0 {
                    break;
                }
            }
            let delivery = receiver.poll().expect("both are full");
            got[usize::from(delivery.sender())] += 1;
        }
        assert!((got[1] * 2).abs_diff(got[0]) <= 4, "{first}: {got:?}");
    }
}

#[test]
fn a_message_in_a_box_keeps_its_owner_awake_and_one_that_comes_wakes_it() {
    let (mut receiver, fd) = inbox(1);
    let mut sender = join(&mut receiver, &fd, 0);
    send(&mut sender, 0, &[]).unwrap();
    assert!(!receiver.prepare_sleep());
    drop(receiver.poll().unwrap());
    assert!(receiver.prepare_sleep());
    let piece = sender.send_piece(Envelope::default(), Payload::Bytes(&[]), Piece::Next).unwrap();
    assert!(!piece.wake, "a piece that is not the last wakes nobody");
    let last = sender.send_piece(Envelope::default(), Payload::Bytes(&[]), Piece::Last).unwrap();
    assert!(last.wake);
}

#[test]
fn a_sender_that_connects_anew_goes_on_in_the_same_box() {
    let (mut receiver, fd) = inbox(1);
    for tag in 0..200 {
        let mut sender = join(&mut receiver, &fd, 5);
        assert!(sender.has_fast_box());
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
    let fast_box = receiver.open_fast_box(0).unwrap().unwrap();
    let memory = SharedMemory::attach(fast_box, BOX_BYTES, BOX_BYTES).unwrap();
    let line = |number: u64, length_and_aux: u64| {
        let words = [(number + 1) << 8 | 1, length_and_aux, 3];
        for (at, word) in words.into_iter().enumerate() {
            let offset = 4096 + (number as usize % LINES) * 64 + at * 8;
            // SAFETY: within the mapping, in one of the lines.
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
    assert!(matches!(sender.use_fast_box(fd), Err(AttachError::WrongSize { .. })));
    let (_memory, empty) = SharedMemory::create("a test", "none", BOX_BYTES, false).unwrap();
    assert!(matches!(sender.use_fast_box(empty), Err(AttachError::WrongContent { .. })));
}

/// Two endpoints' inboxes that share the cells of the first one's box.
struct Pair {
    receivers: [InboxReceiver; 2],
    senders: [InboxSender; 2],
}

impl Pair {
    fn new() -> Self {
        let ((mut one, to_one), (mut two, to_two)) = (inbox(1), inbox(1));
        let mut senders = [join(&mut two, &to_two, 0), join(&mut one, &to_one, 0)];
        senders[0].share_handoff_cells(&mut one, 0, true);
        senders[1].share_handoff_cells(&mut two, 0, false);
        Self { receivers: [one, two], senders }
    }

    /// Sends a message from one to the other as the engine does, in pieces.
    fn send(&mut self, from: usize, data: &[u8]) -> Vec<u64> {
        let (mut sent, total) = (0, data.len() as u64);
        let mut pieces = Vec::new();
        while sent < total {
            let bytes = self.senders[from].piece_bytes(sent, total, PIECE_BYTES as u64);
            let piece = match (sent, sent + bytes == total) {
                (0, true) => Piece::Whole,
                (0, false) => Piece::First,
                (_, false) => Piece::Next,
                (_, true) => Piece::Last,
            };
            let part = &data[sent as usize..(sent + bytes) as usize];
            let envelope = Envelope { kind: 1, aux: 0, tag: sent };
            let _ = self.senders[from].send_piece(envelope, Payload::Bytes(part), piece).unwrap();
            sent += bytes;
            pieces.push(bytes);
        }
        assert!(pieces.len() as u64 <= self.senders[from].max_pieces(total, PIECE_BYTES as u64));
        pieces
    }

    fn receive(&mut self, at: usize, bytes: usize) -> Vec<u8> {
        let mut got = vec![0xAA; bytes];
        let mut arrived = 0;
        while arrived < bytes {
            let message = self.receivers[at].poll().expect("what was sent");
            assert_eq!(message.tag(), arrived as u64);
            arrived += message.copy_to(&mut got[arrived..]);
        }
        got
    }
}

#[test]
fn messages_of_every_length_go_to_and_fro_through_cells_that_change_their_owner() {
    let mut pair = Pair::new();
    let lengths = (1..=200).chain((200..40_000).step_by(331)).chain([
        PIECE_BYTES - 1,
        PIECE_BYTES + 1,
        HANDOFF_CELL_BYTES - 1,
        HANDOFF_CELL_BYTES,
        HANDOFF_CELL_BYTES + 1,
        HANDOFF_CELL_BYTES + INLINE_BYTES,
        HANDOFF_CELL_BYTES + INLINE_BYTES + 1,
        2 * HANDOFF_CELL_BYTES + 4096 + 8,
    ]);
    for (round, bytes) in lengths.enumerate() {
        let data = pattern(bytes);
        for from in [round % 2, 1 - round % 2] {
            pair.send(from, &data);
            assert_eq!(pair.receive(1 - from, bytes), data, "{bytes} bytes");
        }
    }
    assert_eq!(pair.receivers[0].malformed_messages() + pair.receivers[1].malformed_messages(), 0);
}

/// The same pattern at this place of a page; and where it begins.
fn pattern_at(place: usize, bytes: usize) -> (Vec<u8>, Range<usize>) {
    let mut memory = vec![0; bytes + 2 * 4096];
    let begin = memory.as_ptr().align_offset(4096) + place;
    memory[begin..begin + bytes].copy_from_slice(&pattern(bytes));
    (memory, begin..begin + bytes)
}

#[test]
fn each_piece_fills_a_cell() {
    let mut pair = Pair::new();
    let cell = HANDOFF_CELL_BYTES as u64;
    for (from, bytes, pieces) in [
        (0, 2 * cell + 4096, &[cell, cell, 4096][..]),
        (1, cell, &[cell]),
        (0, cell - 1, &[cell - 1]),
        // What is left may fit its line.
        (1, cell + 1, &[cell, 1]),
        (1, 4096, &[4096]),
        (0, PIECE_BYTES as u64, &[PIECE_BYTES as u64]),
    ] {
        let (memory, message) = pattern_at(0, bytes as usize);
        assert_eq!(pair.send(from, &memory[message]), pieces, "{bytes} bytes");
        assert_eq!(pair.receive(1 - from, bytes as usize), pattern(bytes as usize));
    }
}

/// Each piece begins where it does in a line.
#[test]
fn messages_stand_in_their_cells_as_in_their_buffers() {
    let mut pair = Pair::new();
    let bytes = 3 * HANDOFF_CELL_BYTES;
    for (from, place) in [(0, 0), (1, 16), (1, 1), (0, 4096 - 48), (0, 4095)] {
        let (memory, message) = pattern_at(place, bytes);
        assert_eq!(pair.send(from, &memory[message]), [HANDOFF_CELL_BYTES as u64; 3]);
        assert!(pair.receive(1 - from, bytes) == pattern(bytes), "{place}");
    }
}

/// Wherever in a line a message begins: there are no more pieces than are counted on, and no cell
/// is lost.
#[test]
fn messages_of_many_cells_arrive_from_every_place_of_a_line() {
    let mut pair = Pair::new();
    let most = 256 << 10;
    let (mut memory, all) = pattern_at(0, most + 64);
    for place in 0..64 {
        memory[all.start + place..all.start + place + most].copy_from_slice(&pattern(most));
        for bytes in [(128 << 10) - 1, 128 << 10, (128 << 10) + 1, 131_110, 200_000, most - 1, most] {
            let message = all.start + place..all.start + place + bytes;
            for from in [0, 1] {
                pair.send(from, &memory[message.clone()]);
                assert!(pair.receive(1 - from, bytes) == memory[message.clone()], "{place}, {bytes}");
                assert!(pair.receivers[1 - from].poll().is_none());
            }
        }
    }
    // Each has as many cells as at first, or they are the other's.
    let mut cells = 0;
    for from in [0, 1] {
        while pair.senders[from].piece_bytes(0, 20_000, PIECE_BYTES as u64) == HANDOFF_CELL_BYTES as u64 {
            send(&mut pair.senders[from], 0, &pattern(LINE_BUFFER_BYTES + 1)).unwrap();
            cells += 1;
        }
    }
    assert_eq!(cells, HANDOFF_CELLS);
}

/// No message reaches into what stands beside it.
#[test]
fn messages_under_way_stand_beside_each_other() {
    let mut pair = Pair::new();
    let bytes = 3 * HANDOFF_CELL_BYTES;
    let places = [16, 0, 63, 32, 33, 1];
    let messages = places.map(|place| pattern_at(place, bytes));
    // Into cells that stand in another order than they were taken in at first.
    for (from, order) in [(0, [0, 1, 2, 3, 4, 5]), (1, [5, 3, 1, 0, 2, 4])] {
        for at in order {
            let (memory, message) = &messages[at];
            pair.send(from, &memory[message.clone()]);
        }
        for at in order {
            assert!(pair.receive(1 - from, bytes) == pattern(bytes), "{}", places[at]);
        }
    }
}

/// Into memory that ends before the message does, or behind it.
#[test]
fn what_is_longer_than_its_buffer_arrives_as_far_as_there_is_room() {
    let mut pair = Pair::new();
    let whole = pattern(HANDOFF_CELL_BYTES);
    for room in [10, HANDOFF_CELL_BYTES - 1, HANDOFF_CELL_BYTES, 40_000] {
        for by_buffer in [false, true] {
            let (memory, message) = pattern_at(0, HANDOFF_CELL_BYTES);
            assert_eq!(pair.send(0, &memory[message]).len(), 1);
            let mut got = vec![0xAA; room];
            let delivery = pair.receivers[1].poll().expect("what was sent");
            let fits = room.min(HANDOFF_CELL_BYTES);
            let bytes = if by_buffer {
                crate::memory::buffer::lend_mut(&mut got, |buffer| delivery.copy_to_buffer(buffer, 0))
            } else {
                delivery.copy_to(&mut got)
            };
            assert_eq!(bytes, fits);
            assert!(got[..fits] == whole[..fits] && got[fits..].iter().all(|byte| *byte == 0xAA));
        }
    }
}

/// No cell is lost by what is longer than one.
#[test]
fn what_is_longer_than_a_cell_is_refused() {
    let mut pair = Pair::new();
    let ((memory, message), other) = (pattern_at(16, HANDOFF_CELL_BYTES), pattern(8));
    let one = &memory[message];
    for _ in 0..2 * HANDOFF_CELLS {
        let payload = Payload::Two(one, &other);
        let sent = pair.senders[0].send_piece(Envelope::default(), payload, Piece::Whole);
        assert!(matches!(sent, Err(SendError::TooLong { .. })));
    }
    assert_eq!(pair.send(0, one).len(), 1, "there are cells");
    assert!(pair.receive(1, HANDOFF_CELL_BYTES) == one);
}

/// Packets of the rendezvous go ahead of a message that waits for room.
#[test]
fn a_message_between_the_pieces_of_another_has_a_cell_of_its_own() {
    let mut pair = Pair::new();
    let (data, between) = (pattern(20_000), pattern(LINE_BUFFER_BYTES + 1));
    for from in [0, 1, 0, 1] {
        let mut sent = 0;
        for piece in [Piece::First, Piece::Last] {
            let sender = &mut pair.senders[from];
            let bytes = sender.piece_bytes(sent, 20_000, PIECE_BYTES as u64) as usize;
            let part = &data[sent as usize..sent as usize + bytes];
            let _ = sender.send_piece(Envelope::default(), Payload::Bytes(part), piece).unwrap();
            let _ = sender.send(Envelope::default(), Payload::Bytes(&between)).unwrap();
            sent += bytes as u64;
        }
        assert_eq!(sent, 20_000);
        let (mut got, mut others) = (Vec::new(), 0);
        for _ in 0..4 {
            let message = pair.receivers[1 - from].poll().expect("what was sent");
            let mut bytes = vec![0; message.bytes()];
            message.copy_to(&mut bytes);
            if bytes == between { others += 1 } else { got.extend(bytes) }
        }
        assert_eq!((got == data, others), (true, 2));
    }
    // No cell is lost.
    for from in [0, 1] {
        let has_cell = |pair: &mut Pair| {
            pair.senders[from].piece_bytes(0, 20_000, PIECE_BYTES as u64) == HANDOFF_CELL_BYTES as u64
        };
        let mut cells = 0;
        while has_cell(&mut pair) {
            send(&mut pair.senders[from], 0, &between).unwrap();
            cells += 1;
        }
        assert_eq!(cells, HANDOFF_CELLS / 2);
    }
}

/// Who only receives has all cells in the end, and the sender goes on without.
#[test]
fn one_way_traffic_goes_on_without_cells_and_finds_them_again() {
    let mut pair = Pair::new();
    let data = pattern(20_000);
    for _ in 0..3 * HANDOFF_CELLS {
        pair.send(0, &data);
        assert_eq!(pair.receive(1, data.len()), data);
    }
    let without = pair.send(0, &data);
    assert_eq!(without[0], PIECE_BYTES as u64, "no cell is left");
    assert_eq!(pair.receive(1, data.len()), data);
    for from in [1, 0] {
        assert_eq!(pair.send(from, &data)[0], HANDOFF_CELL_BYTES as u64, "a cell came back with a message");
        assert_eq!(pair.receive(1 - from, data.len()), data);
    }
}

/// What a peer says of cells harms its own messages only.
#[test]
fn a_peer_that_names_cells_that_are_not_there_or_not_its_own_is_not_followed() {
    let (mut receiver, fd) = inbox(1);
    let (mut other, to_other) = inbox(1);
    let fast_box = receiver.open_fast_box(0).unwrap().unwrap();
    let memory = SharedMemory::attach(fast_box, BOX_BYTES, BOX_BYTES).unwrap();
    let line = |number: u64, bytes: u64, place: u64| {
        for (at, word) in [(number + 1) << 8 | 1, bytes, 3, place].into_iter().enumerate() {
            let offset = 4096 + number as usize * 64 + at * 8;
            // SAFETY: within the mapping, in one of the lines.
            #[allow(unsafe_code)]
            let target = unsafe { memory.base().add(offset) }.cast::<u64>();
            // SAFETY: as above; aligned; nobody else uses the memory meanwhile.
            #[allow(unsafe_code)]
            unsafe {
                target.write(word);
            }
        }
    };
    let part = Part { cell: 1, offset: 0 };
    // Without a pair there are no such cells.
    line(0, 100, part.to_word());
    assert!(receiver.poll().is_none());
    let mut sender = join(&mut other, &to_other, 0);
    sender.share_handoff_cells(&mut receiver, 0, true);
    line(1, HANDOFF_CELL_STRIDE_BYTES as u64 + 1, part.to_word());
    line(2, 100, Part { offset: HANDOFF_CELL_STRIDE_BYTES as u32 - 99, ..part }.to_word());
    line(3, 100, Part { cell: HANDOFF_CELLS as u8, ..part }.to_word());
    line(4, 100, 1);
    line(5, LINE_BUFFER_BYTES as u64 + 1, IN_LINE_BUFFER);
    assert!(receiver.poll().is_none());
    assert_eq!(receiver.malformed_messages(), 6);
    // A cell of this process's own, and one twice: it is held once all the same.
    (6..9).for_each(|number| line(number, 100, Part { cell: 40 * (number as u8 % 2), ..part }.to_word()));
    for _ in 6..9 {
        assert_eq!(receiver.poll().expect("it is possible").bytes(), 100);
    }
    let mut peer = join(&mut receiver, &fd, 0);
    peer.share_handoff_cells(&mut other, 0, false);
    for round in 0..=HANDOFF_CELLS / 2 {
        let data = pattern(1000 + round as usize);
        send(&mut sender, 0, &data).unwrap();
    }
    for round in 0..=HANDOFF_CELLS / 2 {
        let data = pattern(1000 + round as usize);
        let mut got = vec![0; data.len()];
        assert_eq!(other.poll().expect("what was sent").copy_to(&mut got), data.len());
        assert_eq!(got, data);
    }
}
