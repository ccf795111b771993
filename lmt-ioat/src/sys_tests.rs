use super::*;

fn lent(memory: &mut [u8], access: Access) -> Mapped {
    let segment = Segment::of_mut(memory);
    // SAFETY: the tests use the piece only while they leave the memory alone,
    // and it outlives the piece.
    unsafe { Mapped::new(segment, access) }
}

fn pattern(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at * 31 + at / 251) as u8).collect()
}

#[test]
fn no_more_is_copied_than_both_have_and_nothing_into_what_is_lent_for_reading() {
    let (mut source, mut target) = (pattern(100), vec![0; 50]);
    let from = lent(&mut source, Access::Read);
    assert_eq!(copy_mapped(from, lent(&mut target, Access::Write), u64::MAX, Distance::Away), 50);
    assert_eq!(copy_mapped(from, lent(&mut target, Access::Write), 7, Distance::Near), 7);
    assert_eq!(target[..], source[..50]);
    let mut other = vec![9; 50];
    assert_eq!(copy_mapped(from, lent(&mut other, Access::Read), 7, Distance::Near), 0);
    assert_eq!(other, [9; 50]);
}

#[test]
fn adjacent_pieces_become_one_segment() {
    let mut memory = vec![0; 100];
    let whole = lent(&mut memory, Access::Write);
    let piece = |from: u64, bytes| whole.advanced(from).unwrap().shortened(bytes);
    let buffer = as_buffer(&[piece(0, 10), piece(10, 20), piece(40, 5)], Access::Write);
    let sizes: Vec<usize> = buffer.segments().iter().map(|segment| segment.bytes).collect();
    assert_eq!(sizes, [30, 5]);
    let read_only = lent(&mut memory, Access::Read);
    assert_eq!(as_buffer(&[read_only], Access::Write).total_bytes(), 0);
}

#[test]
fn populating_changes_no_byte() {
    let mut memory = pattern(100_000);
    let piece = &mut memory[777..90_001];
    populate(Segment::of_mut(piece));
    assert_eq!(memory, pattern(100_000));
    // Not mapped: refused, and nothing else happens.
    populate(Segment { address: 4096, bytes: 1 });
}
