#![allow(unsafe_code)] // Calls what takes pointers.

use super::*;
use crate::code::lmt_code::{self, LMT_ERR_INVALID, LMT_ERR_NULL};

fn code<T>(result: Result<T, Error>) -> lmt_code {
    result.err().expect("this must fail").code
}

#[test]
fn null_is_found_out_where_there_is_to_be_something() {
    // SAFETY: NULL is allowed.
    assert_eq!(code(unsafe { bytes(std::ptr::null(), 1, "data") }), LMT_ERR_NULL);
    // SAFETY: NULL is allowed.
    assert_eq!(unsafe { bytes(std::ptr::null(), 0, "data") }.map(<[u8]>::len), Ok(0));
    // SAFETY: NULL is allowed.
    assert_eq!(code(unsafe { bytes_mut(std::ptr::null_mut(), 1, "into") }), LMT_ERR_NULL);
    // SAFETY: NULL is allowed.
    assert_eq!(code(unsafe { Places::<u64>::new(std::ptr::null_mut(), 1, "list") }), LMT_ERR_NULL);
    // SAFETY: NULL is allowed.
    assert_eq!(code(unsafe { Place::<u64>::new(std::ptr::null_mut(), "count") }), LMT_ERR_NULL);
    // SAFETY: NULL is allowed.
    assert_eq!(code(unsafe { value::<u64>(std::ptr::null(), "key") }), LMT_ERR_NULL);
    // SAFETY: NULL is allowed.
    assert_eq!(code(unsafe { text(std::ptr::null(), "key") }), LMT_ERR_NULL);
    // SAFETY: NULL is allowed.
    assert_eq!(code(unsafe { lend(std::ptr::null(), 1, Access::Read) }), LMT_ERR_NULL);
    // SAFETY: NULL is allowed.
    let nothing = unsafe { lend(std::ptr::null(), 0, Access::Write) }.expect("no bytes need no memory");
    assert_eq!(nothing.total_bytes(), 0);
    assert_eq!(code(there(None::<&u8>, "status")), LMT_ERR_NULL);
}

#[test]
fn impossible_lengths_and_addresses_are_found_out() {
    let words = [0u64; 2];
    let pointer = words.as_ptr();
    // SAFETY: so many are refused before anything is read.
    assert_eq!(code(unsafe { values(pointer, usize::MAX, "list") }), LMT_ERR_INVALID);
    // SAFETY: so many are refused before anything is read.
    assert_eq!(code(unsafe { bytes(pointer.cast(), usize::MAX, "data") }), LMT_ERR_INVALID);
    let askew = pointer.cast::<u8>().wrapping_add(1).cast::<u64>();
    // SAFETY: what is misaligned is refused before anything is read.
    assert_eq!(code(unsafe { values(askew, 1, "list") }), LMT_ERR_INVALID);
    // SAFETY: what is misaligned is refused before anything is read.
    assert_eq!(code(unsafe { value(askew, "key") }), LMT_ERR_INVALID);
    // SAFETY: what is misaligned is refused, and nothing is written.
    assert_eq!(code(unsafe { Place::new(askew.cast_mut(), "count") }), LMT_ERR_INVALID);
    // SAFETY: what is misaligned is refused, and nothing is written.
    assert_eq!(code(unsafe { Place::wanted(askew.cast_mut(), "count") }), LMT_ERR_INVALID);
    // SAFETY: no such memory is lent; it is refused.
    assert_eq!(code(unsafe { lend(pointer.cast(), usize::MAX, Access::Read) }), LMT_ERR_INVALID);
}

#[test]
fn places_may_overlap_or_be_missing_and_end_where_they_end() {
    let mut words = [0u64; 3];
    let pointer = words.as_mut_ptr();
    // SAFETY: of the three words only the places use any until they are gone.
    let two = unsafe { Places::new(pointer, 2, "list") }.expect("places");
    // SAFETY: as above; that it is the second of those does no harm.
    let last = unsafe { Place::new(pointer.wrapping_add(1), "count") }.expect("a place");
    (0..3).for_each(|at| two.write(at, 7));
    last.write(8);
    two.write(0, 9);
    // SAFETY: NULL is allowed.
    let none = unsafe { Place::<u64>::wanted(std::ptr::null_mut(), "status") }.expect("none is wanted");
    none.write(1);
    assert_eq!(words, [9, 8, 0]);
}

#[test]
fn lists_of_segments_become_one_buffer() {
    let mut memory = [0u8; 64];
    for count in [0, 1, FEW, FEW + 1, 64] {
        let list: Vec<libc::iovec> = memory
            .iter_mut()
            .take(count)
            .map(|byte| libc::iovec { iov_base: (&raw mut *byte).cast(), iov_len: 1 })
            .collect();
        // SAFETY: the memory outlives the buffer, and nobody uses it meanwhile.
        let buffer = unsafe { lend_segments(list.as_ptr(), count, Access::Write) }.expect("a buffer");
        assert_eq!(buffer.total_bytes(), count as u64);
    }
    let bad = libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 1 };
    for count in [1, FEW + 1] {
        let list = vec![bad; count];
        // SAFETY: NULL is refused.
        assert_eq!(code(unsafe { lend_segments(list.as_ptr(), count, Access::Read) }), LMT_ERR_NULL);
    }
}

#[test]
fn texts_are_utf_8() {
    // SAFETY: it ends with a zero.
    assert_eq!(unsafe { text(c"key".as_ptr(), "key") }, Ok("key"));
    // SAFETY: it ends with a zero.
    assert_eq!(code(unsafe { text(c"\xff".as_ptr(), "key") }), LMT_ERR_INVALID);
}
