#![allow(unsafe_code)] // Lends fresh mappings to buffers.

use memmap2::MmapMut;

use super::*;

const PAGES: usize = 1100;

fn lend(memory: &mut MmapMut, access: Access) -> Buffer {
    let segment = Segment::of_mut(memory);
    // SAFETY: each test keeps the mapping until it has dropped the buffer, and
    // touches it through the buffer only.
    unsafe { Buffer::new(&[segment], access) }.unwrap()
}

fn whole(buffer: &Buffer) -> Interval {
    Interval { start: 0, end: buffer.total_bytes() }
}

fn resident_pages(buffer: &Buffer) -> usize {
    let pages = (0..buffer.total_bytes() / PAGE_BYTES).map(|page| page * PAGE_BYTES);
    pages.filter(|&at| buffer.pieces(at..at + 1).all(is_resident)).count()
}

#[test]
fn fresh_memory_is_there_afterwards_and_before_it_is_not() {
    // Huge pages would bring more than was asked for.
    let mut memory = MmapMut::map_anon(PAGES * PAGE_BYTES as usize).unwrap();
    let buffer = lend(&mut memory, Access::Write);
    let mut work = Prefault::worth_it(&buffer, whole(&buffer)).expect("nothing is there yet");
    assert!(work.step(&buffer));
    let first = resident_pages(&buffer);
    assert!((1..PAGES).contains(&first), "{first}");
    while work.step(&buffer) {}
    assert_eq!(resident_pages(&buffer), PAGES);
    assert!(Prefault::worth_it(&buffer, whole(&buffer)).is_none(), "it is all there");
}

#[test]
fn parts_that_are_short_or_not_to_be_written_are_left_alone() {
    let mut memory = MmapMut::map_anon(PAGES * PAGE_BYTES as usize).unwrap();
    let buffer = lend(&mut memory, Access::Read);
    assert!(Prefault::worth_it(&buffer, whole(&buffer)).is_none());
    drop(buffer);
    let buffer = lend(&mut memory, Access::Write);
    assert!(Prefault::worth_it(&buffer, Interval { start: 0, end: MIN_BYTES - 1 }).is_none());
    assert_eq!(resident_pages(&buffer), 0);
}

#[test]
fn only_the_part_asked_for_is_touched_and_bytes_stay() {
    let mut memory = MmapMut::map_anon(PAGES * PAGE_BYTES as usize).unwrap();
    memory[20 * PAGE_BYTES as usize] = 7;
    let buffer = lend(&mut memory, Access::Write);
    let part = Interval { start: 10 * PAGE_BYTES + 5, end: 1050 * PAGE_BYTES - 5 };
    let mut work = Prefault::worth_it(&buffer, part).unwrap();
    while work.step(&buffer) {}
    assert_eq!(resident_pages(&buffer), 1040);
    let mut byte = [0];
    buffer.read_at(20 * PAGE_BYTES, &mut byte);
    assert_eq!(byte, [7]);
}

#[test]
fn a_refusal_of_the_kernel_ends_it() {
    let memory = MmapMut::map_anon(PAGES * PAGE_BYTES as usize).unwrap();
    let mut read_only = memory.make_read_only().unwrap();
    let segment = Segment { address: read_only.as_ptr().expose_provenance(), bytes: read_only.len() };
    // SAFETY: nothing is ever written through this buffer: the kernel refuses
    // to make the pages writable, which is what is tested.
    let buffer = unsafe { Buffer::new(&[segment], Access::Write) }.unwrap();
    let mut work = Prefault::worth_it(&buffer, whole(&buffer)).unwrap();
    assert!(!work.step(&buffer));
    drop(buffer);
    let _ = &mut read_only;
}
