//! Messages that stand in a box, through both ends.

use super::PIECE_BYTES;
use super::holdings::PAIR_CELLS;
use super::tests::Pair;
use crate::config::STANDING_MOST_BYTES;
use crate::inbox::test_support::pattern;
use crate::inbox::{Cut, Envelope, Payload, Piece, SendError};

/// A message of so many bytes that is like no other, and its place in a line `behind` its begin.
fn message(bytes: usize, seed: usize, behind: usize) -> (Vec<u8>, std::ops::Range<usize>) {
    let mut memory = vec![0; bytes + 128];
    let begin = memory.as_ptr().align_offset(64) + behind;
    memory[begin..begin + bytes].copy_from_slice(&pattern(bytes));
    memory[begin] = seed as u8;
    memory[begin + bytes - 1] ^= seed as u8;
    (memory, begin..begin + bytes)
}

impl Pair {
    /// Sends a message both ways, and looks whether it comes as it is.
    fn pass(&mut self, from: usize, data: &[u8], cut: Cut) {
        self.send_cut(from, data, cut);
        assert!(self.receive(1 - from, data.len()) == data, "{} bytes by {cut:?}", data.len());
    }

    /// Whether the last message from there took no cell.
    fn last_stands(&self, from: usize) -> bool {
        // Nobody lacks cells who needs none.
        !self.senders[from].lacks_pair_cells(u64::MAX)
    }
}

#[test]
fn what_is_sent_again_stands_and_comes_as_it_is_with_every_change() {
    let mut pair = Pair::with_standing(STANDING_MOST_BYTES);
    for behind in [0, 16, 63] {
        for bytes in
            [4096, 5000, 16 << 10, (16 << 10) + 1, (16 << 10) + 40, 20_000, (64 << 10) + 24, (128 << 10) + 8]
        {
            for (from, cut) in [(0, Cut::Growing), (1, Cut::Cells)] {
                let (mut memory, all) = message(bytes, bytes / 1000 + behind + from, behind);
                let stands = (0..10_000).any(|_| {
                    pair.pass(from, &memory[all.clone()], cut);
                    pair.last_stands(from)
                });
                assert!(stands, "{bytes} bytes, {behind} behind");
                // Behind the words by which it is known.
                for at in [300, 2048, 4095, bytes / 2, bytes - 1] {
                    memory[all.start + at] ^= 0x55;
                    pair.pass(from, &memory[all.clone()], cut);
                    pair.pass(from, &memory[all.clone()], cut);
                }
                // All of it.
                memory[all.start + 300..all.end].iter_mut().for_each(|byte| *byte = !*byte);
                pair.pass(from, &memory[all.clone()], cut);
                pair.pass(from, &memory[all.clone()], cut);
            }
        }
    }
}

#[test]
fn without_room_nothing_stands() {
    for standing_bytes in [0, 4000] {
        let mut pair = Pair::with_standing(standing_bytes);
        let data = pattern(16 << 10);
        for _ in 0..20 {
            pair.pass(0, &data, Cut::Growing);
            pair.pass(1, &data, Cut::Growing);
            assert!(!pair.last_stands(0));
        }
    }
}

/// What a reader has not read yet is not written over: the message that has changed goes as
/// others do.
#[test]
fn what_is_not_read_yet_stays_as_it_was_sent() {
    let mut pair = Pair::with_standing(STANDING_MOST_BYTES);
    let mut data = pattern(64 << 10);
    (0..6).for_each(|_| pair.pass(0, &data, Cut::Growing));
    assert!(pair.last_stands(0));
    let mut sent = Vec::new();
    for round in 0..12 {
        if round % 3 == 2 {
            data[40_000] ^= 1;
        }
        pair.send_cut(0, &data, Cut::Growing);
        sent.push(data.clone());
    }
    for one in sent {
        assert!(pair.receive(1, one.len()) == one);
    }
}

/// Many that say the same stand in one place, however many of them are under way.
#[test]
fn a_window_of_what_says_the_same_needs_no_cells() {
    let mut pair = Pair::with_standing(STANDING_MOST_BYTES);
    let data = pattern(64 << 10);
    for _ in 0..10 {
        for _ in 0..40 {
            pair.send_cut(0, &data, Cut::Cells);
        }
        for _ in 0..40 {
            assert!(pair.receive(1, data.len()) == data);
        }
    }
    assert!(pair.last_stands(0));
}

/// Who sends what stands gives back the cells that it does not need; so the other one, whose
/// messages change, never lacks any.
#[test]
fn who_needs_no_cells_gives_them_back() {
    let mut pair = Pair::with_standing(STANDING_MOST_BYTES);
    let stands = pattern(64 << 10);
    let mut changes = pattern(64 << 10);
    for round in 0..20 * PAIR_CELLS as usize {
        changes[..8].copy_from_slice(&round.to_ne_bytes());
        pair.pass(1, &changes, Cut::Cells);
        assert!(!pair.last_stands(1));
        assert!(!pair.senders[1].lacks_pair_cells(64 << 10), "in round {round}");
        pair.pass(0, &stands, Cut::Cells);
    }
    assert!(pair.last_stands(0));
}

/// Messages that stand and others by turns, some of the latter between the pieces of the former.
#[test]
fn messages_of_all_kinds_take_turns() {
    let mut pair = Pair::with_standing(100_000);
    let data: Vec<_> = [4096, 9000, 16 << 10, 40_000, 64 << 10, 90_000].map(pattern).into();
    let mut changes = pattern(30_000);
    for round in 0..400_usize {
        for from in [0, 1] {
            let one = &data[round * (from + 1) % data.len()];
            pair.pass(from, one, if round % 5 == 0 { Cut::Cells } else { Cut::Growing });
            pair.pass(from, &one[..one.len() - round % 3], Cut::Growing);
            changes[round * 71 % 30_000] ^= 1;
            pair.pass(from, &changes, Cut::Growing);
            pair.pass(from, &data[0], Cut::Growing);
        }
    }
}

/// A piece that was made to stand is sent next or forgotten: what goes then, as long as it, says
/// something else.
#[test]
fn a_piece_that_was_not_sent_is_not_taken_for_another() {
    let mut pair = Pair::with_standing(STANDING_MOST_BYTES);
    let data = pattern(4096);
    (0..6).for_each(|_| pair.pass(0, &data, Cut::Growing));
    let sender = &mut pair.senders[0];
    let bytes = sender.piece_bytes(0, 4096, PIECE_BYTES as u64, Some(&data), Cut::Growing);
    assert_eq!(bytes, 4096);
    let other = vec![7; 4096];
    for one in [other.as_slice(), &data] {
        let _ = sender.send_piece(Envelope::default(), Payload::Bytes(one), Piece::Whole).unwrap();
    }
    assert!(pair.receive(1, 4096) == other);
    assert!(pair.receive(1, 4096) == data);
}

/// Without a line nothing is compared or written; a packet that finds the first free one says
/// what it is to say, and the message stands behind it.
#[test]
fn what_finds_no_line_stands_once_there_is_one() {
    let mut pair = Pair::with_standing(STANDING_MOST_BYTES);
    let data = pattern(16_384 + 200);
    (0..6).for_each(|_| pair.pass(0, &data, Cut::Growing));
    assert!(pair.last_stands(0));
    let sender = &mut pair.senders[0];
    let first = sender.piece_bytes(0, 16_584, PIECE_BYTES as u64, Some(&data), Cut::Cells) as usize;
    assert_eq!(first, data.len());
    let mut lines = 0;
    while sender.send(Envelope::default(), Payload::Bytes(b"short")).is_ok() {
        lines += 1;
    }
    let counted = sender.standing_bytes();
    sender.piece_bytes(0, 16_584, PIECE_BYTES as u64, Some(&data), Cut::Cells);
    let full = sender.send_piece(Envelope::default(), Payload::Bytes(&data[..3072]), Piece::First);
    assert!(matches!(full, Err(SendError::Full { .. })));
    assert_eq!(sender.standing_bytes(), counted);
    (0..lines).for_each(|_| assert_eq!(pair.receivers[1].poll().expect("it was sent").bytes(), 5));
    let words = [0x0123_4567_89AB_CDEF; 25];
    let packet = Payload::Words(&words, 200);
    let _ = pair.senders[0].send(Envelope::default(), packet).unwrap();
    let mut got = [0; 200];
    assert_eq!(pair.receivers[1].poll().expect("it was sent").copy_to(&mut got), 200);
    assert!(got.chunks(8).all(|word| word == words[0].to_le_bytes()));
    pair.pass(0, &data, Cut::Growing);
    assert_eq!(pair.senders[0].standing_bytes(), counted + data.len() as u64);
}

/// Who connects anew knows nothing of what stands in the box, and changes nothing of it before
/// the reader has read all that came before.
#[test]
fn who_connects_anew_spoils_nothing_that_is_not_read() {
    let mut pair = Pair::with_standing(STANDING_MOST_BYTES);
    let (data, other) = (pattern(64 << 10), vec![9; 64 << 10]);
    (0..6).for_each(|_| pair.pass(0, &data, Cut::Cells));
    (0..3).for_each(|_| drop(pair.send_cut(0, &data, Cut::Cells)));
    pair.connect_anew(STANDING_MOST_BYTES);
    (0..8).for_each(|_| drop(pair.send_cut(0, &other, Cut::Cells)));
    (0..3).for_each(|_| assert!(pair.receive(1, data.len()) == data));
    (0..8).for_each(|_| assert!(pair.receive(1, other.len()) == other));
    let stands = (0..1000).any(|_| {
        pair.pass(0, &other, Cut::Cells);
        pair.last_stands(0)
    });
    assert!(stands);
}
