//! Answers of unknown length, as snprintf(3) gives them.

use std::ffi::c_char;
use std::mem::MaybeUninit;

use crate::border::answer;
use crate::code::lmt_code::LMT_ERR_TOO_SHORT;
use crate::error::Error;

fn too_short(given: usize, needed: usize) -> Error {
    Error::new(LMT_ERR_TOO_SHORT, format!("there is room for {given} and {needed} are needed; pass as much"))
}

/// Writes values and how many there are; nothing but the number if there is too
/// little room.
pub fn list<T: Copy>(
    values: &[T],
    room: &mut [MaybeUninit<T>],
    count: Option<&mut MaybeUninit<usize>>,
) -> Result<(), Error> {
    answer(count, values.len());
    if room.len() < values.len() {
        return Err(too_short(room.len(), values.len()));
    }
    for (place, value) in room.iter_mut().zip(values) {
        place.write(*value);
    }
    Ok(())
}

/// Writes a text with a zero behind it, as much as there is room for; and its
/// length without the zero.
pub fn text(
    text: &str,
    room: &mut [MaybeUninit<c_char>],
    length: Option<&mut MaybeUninit<usize>>,
) -> Result<(), Error> {
    answer(length, text.len());
    // The zero is always written where there is room for one.
    let kept = text.len().min(room.len().saturating_sub(1));
    let bytes = text.as_bytes()[..kept].iter().copied().chain([0]);
    for (place, byte) in room.iter_mut().zip(bytes) {
        place.write(byte as c_char);
    }
    if room.len() <= text.len() {
        return Err(too_short(room.len(), text.len() + 1));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(of: &str, room: usize) -> (Result<(), Error>, Vec<u8>, usize) {
        let mut places = vec![MaybeUninit::new(b'x' as c_char); room];
        let mut length = MaybeUninit::new(0);
        let result = text(of, &mut places, Some(&mut length));
        // Each was initialized above.
        let bytes = places.iter().map(|place| read(place) as u8).collect();
        (result, bytes, read(&length))
    }

    fn read<T: Copy>(place: &MaybeUninit<T>) -> T {
        #[allow(unsafe_code)] // Reads what the test has initialized.
        // SAFETY: made by `MaybeUninit::new`, and only written since.
        unsafe {
            place.assume_init()
        }
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
        let mut places = [MaybeUninit::new(0); 3];
        let mut count = MaybeUninit::new(0);
        assert!(list(&[1, 2, 3, 4], &mut places, Some(&mut count)).is_err());
        assert_eq!((read(&count), read(&places[0])), (4, 0));
        assert_eq!(list(&[1, 2], &mut places, None), Ok(()));
        assert_eq!(places.map(|place| read(&place)), [1, 2, 0]);
    }
}
