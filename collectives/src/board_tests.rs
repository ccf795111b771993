use lmt_core::buffer::{Access, Segment};

use super::*;
use crate::call::Block;
use crate::layout::DEPTH;
use crate::words::Notice;

const LAYOUT: Layout = Layout { size: 3, slot_bytes: 128 };

fn memory(bytes: u64) -> Arc<SharedMemory> {
    let (memory, _fd) = SharedMemory::create("a test's board", "none", bytes as usize, true).expect("memory");
    Arc::new(memory)
}

/// One board for each rank.
fn boards() -> Vec<Board> {
    let memory = memory(LAYOUT.total_bytes());
    let board = |rank| Board::new(Arc::clone(&memory), LAYOUT, rank).expect("it fits");
    (0..LAYOUT.size).map(board).collect()
}

/// The board of rank 0 in memory in which every byte is this.
fn full_of(byte: u8) -> Board {
    let memory = memory(LAYOUT.total_bytes());
    let all = vec![byte; memory.len()];
    let bytes = all.len() as u64;
    assert_eq!(copy_shared(&memory, Direction::Put, 0, &mut reading(&all), 0, bytes), bytes);
    Board::new(memory, LAYOUT, 0).expect("it fits")
}

fn reading(slice: &[u8]) -> Buffer {
    // SAFETY: what it is given lives until the end of the test's statement, or longer.
    unsafe { Buffer::new(&[Segment::of(slice)], Access::Read) }.expect("a slice")
}

fn writing(slice: &mut [u8]) -> Buffer {
    // SAFETY: as above, and nobody else uses it meanwhile.
    unsafe { Buffer::new(&[Segment::of_mut(slice)], Access::Write) }.expect("a slice")
}

#[test]
fn memory_that_is_too_short_is_no_board() {
    let bytes = LAYOUT.total_bytes();
    assert!(Board::new(memory(bytes - 1), LAYOUT, 0).is_none());
    assert!(Board::new(memory(bytes), LAYOUT, 2).is_some());
    assert!(Board::new(memory(bytes), LAYOUT, 3).is_none(), "ranks count from 0");
    let larger = Layout { size: 4, ..LAYOUT };
    assert!(Board::new(memory(bytes), larger, 0).is_none());
}

#[test]
fn a_head_of_another_shape_is_not_sound() {
    let memory = memory(2 * LAYOUT.total_bytes());
    let board = |layout| Board::new(Arc::clone(&memory), layout, 0).expect("it fits");
    assert!(!board(LAYOUT).is_sound(), "nobody wrote it");
    board(LAYOUT).begin();
    assert!(board(LAYOUT).is_sound());
    assert!(!board(Layout { size: 4, ..LAYOUT }).is_sound());
    assert!(!board(Layout { slot_bytes: 64, ..LAYOUT }).is_sound());
}

#[test]
fn a_fresh_board_says_nothing_of_any_call() {
    let [board, ..] = &boards()[..] else { panic!("three boards") };
    for rank in 0..3 {
        for call in [0, 1, DEPTH, u32::MAX] {
            assert_eq!(board.point_of(rank, call), None, "call {call}");
            assert_eq!(board.arrival_of(rank, call, 1), None, "call {call}");
        }
        assert_eq!(board.ended_of(rank), 0);
    }
    assert_eq!((board.broken(), board.sleepers().count()), (0, 0));
}

#[test]
fn what_a_rank_says_is_its_own() {
    let boards = boards();
    let notice = Notice { call: [1, 2], regions: [(3, 4), (5, 6), (7, 8)] };
    for call in [0, 1, DEPTH - 1, u32::MAX] {
        boards[1].show(call, u64::MAX, &notice);
        boards[1].publish(call, 9);
        boards[1].publish_arrival(call, 2, true);
        let seen = &boards[2];
        assert_eq!((seen.point_of(1, call), seen.point_of(0, call)), (Some(9), None));
        assert_eq!((seen.signature_of(1, call), seen.notice_of(1, call)), (u64::MAX, notice));
        let rounds = [1, 2, 3].map(|round| seen.arrival_of(1, call, round));
        assert_eq!(rounds, [None, Some(true), None], "call {call}");
        let later = call.wrapping_add(DEPTH);
        assert_eq!((seen.point_of(1, later), seen.arrival_of(1, later, 2)), (None, None));
    }
}

#[test]
fn the_first_reason_stays() {
    let boards = boards();
    boards[1].break_for(5);
    boards[2].break_for(6);
    assert!(boards.iter().all(|board| board.broken() == 5));
}

#[test]
fn sleepers_are_the_others_that_sleep() {
    let boards = boards();
    let sleepers = |rank: usize| boards[rank].sleepers().collect::<Vec<_>>();
    boards[1].fall_asleep();
    boards[2].fall_asleep();
    assert_eq!((sleepers(0), sleepers(1)), (vec![1, 2], vec![2]));
    boards[2].wake_up();
    assert_eq!((sleepers(0), sleepers(2)), (vec![1], vec![1]));
    boards[1].wake_up();
    assert!(sleepers(0).is_empty());
}

#[test]
fn slots_end_where_they_end() {
    let boards = boards();
    let data: Vec<u8> = (1..=200).collect();
    for (call, begin) in [(0, 0), (1, 128), (2, 64), (3, 120)] {
        let past_caches = call % 2 == 0;
        let data: Vec<u8> = data.iter().map(|byte| byte ^ (call as u8) << 4).collect();
        boards.iter().for_each(|board| board.place_slot(call, begin));
        assert_eq!(boards[1].post(begin, 0, &reading(&data)), 128, "what does not fit is left out");
        assert_eq!(boards[0].post(begin, 0, &reading(&[0xff; 200])), 128);
        assert_eq!(boards[2].post(begin, 0, &reading(&[0xff; 200])), 128);
        let mut taken = [0; 200];
        assert_eq!(boards[2].take(1, call, 0, &mut writing(&mut taken), past_caches), 128);
        assert_eq!((&taken[..128], &taken[128..]), (&data[..128], &[0; 72][..]));
    }
    boards[1].place_slot(0, 64);
    assert_eq!(boards[1].post(64, 100, &reading(&data)), 28);
    let mut taken = [0; 200];
    assert_eq!(boards[0].take(1, 0, 90, &mut writing(&mut taken), false), 38);
    assert_eq!((&taken[10..38], taken[38]), (&data[..28], 0));
    for at in [128, 129, 1 << 40, u64::MAX] {
        assert_eq!(boards[1].post(64, at, &reading(&data)), 0, "at {at}");
        assert_eq!(boards[0].take(1, 0, at, &mut writing(&mut taken), false), 0, "at {at}");
    }
}

/// What is read of a rank's slot is its own memory, whatever it says.
#[test]
fn slots_that_begin_beyond_the_memory_are_empty() {
    let boards = boards();
    for (begin, bytes) in [(0, 128), (128, 128), (129, 127), (255, 1), (256, 0), (257, 0), (u64::MAX, 0)] {
        boards[1].place_slot(7, begin);
        let mut taken = [0; 200];
        assert_eq!(boards[0].take(1, 7, 0, &mut writing(&mut taken), true), bytes, "from {begin} on");
    }
}

#[test]
fn tables_say_what_each_rank_listed_in_each_call() {
    let boards = boards();
    let block = |rank: u32, call: u32, of: u32| Block {
        offset: u64::from(rank * 100 + call * 10 + of),
        bytes: u64::MAX - u64::from(of),
    };
    let each = || {
        let of = |rank, call| (0..3).map(move |of| (rank, call, of));
        (0..3).flat_map(move |rank| (5..5 + DEPTH).flat_map(move |call| of(rank, call)))
    };
    each().for_each(|(rank, call, of)| boards[rank as usize].show_block(call, of, block(rank, call, of)));
    for (rank, call, of) in each() {
        assert_eq!(boards[0].shown_block(rank, call, of), block(rank, call, of));
    }
}

/// Whatever others write: every word says something, or nothing.
#[test]
fn garbage_is_read_without_a_panic() {
    for byte in [0, 1, 0x55, 0x80, 0xff] {
        let board = full_of(byte);
        assert!(!board.is_sound());
        let word = u64::from_ne_bytes([byte; 8]);
        for call in [0, 1, word as u32, u32::MAX] {
            for rank in 0..3 {
                let point = board.point_of(rank, call);
                assert_eq!(point, (call == word as u32 && word != 0).then_some(word as u32));
                let _any = [1, 2, 7, 100].map(|round| board.arrival_of(rank, call, round));
                assert_eq!(board.signature_of(rank, call), word);
                assert_eq!(board.notice_of(rank, call).regions, [(word, word); 3]);
                assert_eq!(board.shown_block(rank, call, 2), Block { offset: word, bytes: word });
                assert_eq!(board.ended_of(rank), word as u32);
            }
        }
        assert_eq!(board.broken(), word);
        assert_eq!(board.sleepers().count(), if byte == 0 { 0 } else { 2 });
        board.wake_up();
        board.fall_asleep();
        board.break_for(1);
        assert_eq!(board.broken(), word.max(1));
    }
}
