#![allow(unsafe_code)] // Makes places of memory of its own.

use super::*;

fn places<T>(room: &mut [T]) -> Places<'_, T> {
    // SAFETY: the memory is borrowed for as long as the places live, and of its length.
    unsafe { Places::new(room.as_mut_ptr(), room.len(), "room") }.expect("places")
}

fn place<T>(of: &mut T) -> Place<'_, T> {
    // SAFETY: the memory is borrowed for as long as the place lives.
    unsafe { Place::new(of, "place") }.expect("a place")
}

fn written(of: &str, room: usize) -> (Result<(), Error>, Vec<u8>, usize) {
    let mut bytes = vec![b'x' as c_char; room];
    let mut length = 0;
    let result = text(of, places(&mut bytes), place(&mut length));
    (result, bytes.into_iter().map(|byte| byte as u8).collect(), length)
}

#[test]
fn a_text_is_cut_and_its_length_told() {
    let (result, bytes, length) = written("four", 6);
    assert_eq!((result, bytes.as_slice(), length), (Ok(()), &b"four\0x"[..], 4));
    let (result, bytes, length) = written("four", 4);
    assert_eq!(result.map_err(|error| error.code), Err(LMT_ERR_TOO_SHORT));
    assert_eq!((bytes.as_slice(), length), (&b"fou\0"[..], 4));
    let (result, _, length) = written("four", 0);
    assert!(result.is_err_and(|error| error.sentence.contains("5 are needed")) && length == 4);
}

#[test]
fn a_list_that_does_not_fit_is_counted_only() {
    let (mut room, mut count) = ([0; 3], 0);
    assert!(list(&[1, 2, 3, 4], "numbers", places(&mut room), place(&mut count)).is_err());
    assert_eq!((count, room), (4, [0; 3]));
    assert_eq!(list(&[1, 2], "numbers", places(&mut room), place(&mut count)), Ok(()));
    assert_eq!((count, room), (2, [1, 2, 0]));
}
