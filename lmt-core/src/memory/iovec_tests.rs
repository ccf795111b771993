#![allow(unsafe_code)] // A buffer is lent.

use super::*;
use crate::memory::buffer::{Access, Segment};

#[test]
fn lists_go_on_where_the_last_ended_and_stop_at_bytes_and_slots() {
    let memory = [0u8; 100];
    let base = Segment::of(&memory).address;
    let piece = |offset, bytes| Segment { address: base + offset, bytes };
    let segments = [piece(0, 10), piece(20, 0), piece(30, 10), piece(50, 50)];
    // SAFETY: the memory outlives the buffer and is only read.
    let buffer = unsafe { Buffer::new(&segments, Access::Read) }.unwrap();
    let mut at = Cursor::at(&segments, 4);
    let mut slots = [EMPTY; 2];
    let mut next = |max_bytes| {
        let filled = of_buffer(&mut slots, &buffer, &mut at, max_bytes);
        let entry = |slot: &libc::iovec| (slot.iov_base.addr() - base, slot.iov_len);
        (filled.bytes, slots[..filled.entries].iter().map(entry).collect::<Vec<_>>())
    };
    assert_eq!(next(9), (9, vec![(4, 6), (30, 3)]));
    assert_eq!(next(u64::MAX), (57, vec![(33, 7), (50, 50)]));
    assert_eq!(next(5), (0, vec![]));
}
