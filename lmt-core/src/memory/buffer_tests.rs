use super::*;
#[cfg(not(loom))]
use crate::base::test_alone;

#[test]
fn pieces_cut_a_range_out_of_several_segments() {
    let (mut a, mut b) = ([1u8, 2, 3], [4u8, 5]);
    let list = [Segment::of_mut(&mut a), Segment::default(), Segment::of_mut(&mut b)];
    // SAFETY: both arrays live, unborrowed, until the end of the test.
    let mut buffer = unsafe { Buffer::new(&list, Access::Write) }.unwrap();
    assert_eq!(buffer.total_bytes(), 5);
    let mut out = [0; 4];
    assert_eq!(buffer.read_at(2, &mut out), 3);
    assert_eq!(out, [3, 4, 5, 0]);
    assert_eq!(buffer.write_at(2, &[7, 8, 9, 10]), 3);
    assert_eq!(buffer.pieces(1..4).map(|s| s.bytes).collect::<Vec<_>>(), [2, 1]);
    assert_eq!((a, b), ([1, 2, 7], [8, 9]));
}

#[test]
fn parts_are_taken_off_the_front() {
    let (mut a, mut b) = ([0u8; 3], [0u8; 2]);
    let list = [Segment::of_mut(&mut a), Segment::of_mut(&mut b)];
    // SAFETY: both arrays live, unborrowed, until the end of the test.
    let mut rest = unsafe { Buffer::new(&list, Access::Write) }.unwrap();
    let mut parts = [0, 1, 3, 7].map(|bytes| rest.split_front(bytes));
    assert_eq!(parts.each_ref().map(Buffer::total_bytes), [0, 1, 3, 1]);
    assert_eq!((rest.total_bytes(), rest.write_at(0, &[9])), (0, 0));
    for (part, with) in parts.iter_mut().zip(1..) {
        assert_eq!(part.write_at(0, &[with; 8]) as u64, part.total_bytes());
    }
    assert_eq!((a, b), ([2, 3, 3], [3, 4]));
}

#[test]
fn a_segment_past_the_address_space_is_refused() {
    let list = [Segment { address: usize::MAX - 3, bytes: 8 }];
    // SAFETY: the constructor refuses the list before it is used.
    let error = unsafe { Buffer::new(&list, Access::Read) }.unwrap_err();
    assert!(error.to_string().contains("segment 0"));
}

#[test]
fn a_buffer_lent_for_reading_is_never_written() {
    let mut a = [1u8; 4];
    // SAFETY: the array outlives the buffer and nobody else touches it.
    let mut buffer = unsafe { Buffer::new(&[Segment::of_mut(&mut a)], Access::Read) }.unwrap();
    assert_eq!(buffer.write_at(0, &[9; 4]), 0);
}

#[test]
fn a_slice_is_a_buffer_for_the_length_of_a_call() {
    let mut slice = [0u8; 4];
    let written = lend_mut(&mut slice, |buffer| buffer.write_at(1, &[7, 8, 9, 10]));
    assert_eq!((written, slice), (3, [0, 7, 8, 9]));
    assert_eq!(lend_mut(&mut [], |buffer| buffer.write_at(0, &[1])), 0);
    let unwound = std::panic::catch_unwind(|| lend_mut(&mut [0], |_| panic!("as the test wants it")));
    assert!(unwound.is_err());
}

/// One that is kept would be written behind the slice's end.
#[test]
#[cfg(not(loom))]
#[cfg_attr(miri, ignore = "starts a process")]
fn who_keeps_such_a_buffer_ends_the_process() {
    use std::os::unix::process::ExitStatusExt;
    let name = "memory::buffer::tests::who_keeps_such_a_buffer_ends_the_process";
    let Some(ended) = test_alone::run(name) else {
        let mut slice = [0u8; 4];
        let kept = lend_mut(&mut slice, |buffer| std::mem::replace(buffer, Buffer::empty(Access::Write)));
        std::process::exit(kept.total_bytes() as i32);
    };
    assert_eq!(ended.status.signal(), Some(libc::SIGABRT), "{ended:?}");
}
