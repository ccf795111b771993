use super::super::buffer::Segment;
use super::*;

/// Copies between two lists of pieces of these lengths, and notes what was copied where.
fn copies(role: Role, near: &[usize], far: &[u64], max_bytes: u64) -> (u64, Vec<(usize, usize)>) {
    let base = 1 << 20;
    let starts = near.iter().scan(base, |at, bytes| Some(std::mem::replace(at, *at + bytes + 1)));
    let segments: Vec<_> =
        near.iter().zip(starts).map(|(&bytes, address)| Segment { address, bytes }).collect();
    let access = if role == Role::Receiver { Access::Write } else { Access::Read };
    // SAFETY: nothing touches the memory: `copy` only notes what it is told.
    #[allow(unsafe_code)]
    let mut data = unsafe { Buffer::new(&segments, access) }.expect("they lie in the address space");
    let (mut pieces, mut noted) = (far.iter(), Vec::new());
    let mut at = std::ptr::without_provenance_mut::<u8>(16 << 20);
    let remote = |most: u64| {
        let bytes = *pieces.next()?;
        let piece = (at, bytes.min(most));
        at = at.wrapping_add(bytes as usize + 1);
        Some(piece)
    };
    let note = |one: PieceCopy| {
        noted.push((
            if role == Role::Receiver { one.target.addr() } else { one.source.addr() } - base,
            one.bytes,
        ));
        one.bytes != 13
    };
    (copy_mapped(role, &mut data, &mut Cursor::default(), max_bytes, remote, note), noted)
}

#[test]
fn pieces_of_both_sides_are_cut_where_either_ends() {
    for role in [Role::Sender, Role::Receiver] {
        let (bytes, noted) = copies(role, &[3, 0, 9], &[2, 10], 100);
        assert_eq!((bytes, noted), (12, vec![(0, 2), (2, 1), (5, 9)]));
    }
}

#[test]
fn it_ends_at_the_most_at_the_end_of_either_and_where_a_copy_fails() {
    assert_eq!(copies(Role::Sender, &[9], &[9], 4).0, 4);
    assert_eq!(copies(Role::Sender, &[9], &[9], 0), (0, vec![]));
    assert_eq!(copies(Role::Sender, &[9], &[5], 9).0, 5);
    assert_eq!(copies(Role::Sender, &[5], &[9], 9).0, 5);
    assert_eq!(copies(Role::Sender, &[9], &[5, 0, 4], 9).0, 5);
    assert_eq!(copies(Role::Sender, &[20, 13, 20], &[50], 50).0, 20);
}

#[test]
fn a_message_that_is_lent_for_reading_is_not_written() {
    let mut data = Buffer::empty(Access::Read);
    let remote = |most| Some((std::ptr::null_mut(), most));
    let copied = copy_mapped(Role::Receiver, &mut data, &mut Cursor::default(), 3, remote, |_| panic!());
    assert_eq!(copied, 0);
}
