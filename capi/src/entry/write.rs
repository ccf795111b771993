//! Answers of unknown length, as snprintf(3) gives them.

use std::ffi::c_char;

use crate::border::{Place, Places};
use crate::code::lmt_code::LMT_ERR_TOO_SHORT;
use crate::error::Error;

fn too_short(given: usize, needed: usize, what: &str) -> Error {
    Error::new(
        LMT_ERR_TOO_SHORT,
        format!("there is room for {given} {what} and {needed} are needed; pass room for as many"),
    )
}

/// Writes values and how many there are; nothing but the number if there is too
/// little room. `what` they are is for the sentence.
pub fn list<T: Copy>(
    values: &[T],
    what: &str,
    room: Places<'_, T>,
    count: Place<'_, usize>,
) -> Result<(), Error> {
    count.write(values.len());
    if room.count() < values.len() {
        return Err(too_short(room.count(), values.len(), what));
    }
    for (at, value) in values.iter().enumerate() {
        room.write(at, *value);
    }
    Ok(())
}

/// Writes a text with a zero behind it, as much as there is room for; and its
/// length without the zero.
pub fn text(text: &str, room: Places<'_, c_char>, length: Place<'_, usize>) -> Result<(), Error> {
    length.write(text.len());
    // The zero is always written where there is room for one.
    let kept = text.len().min(room.count().saturating_sub(1));
    for (at, byte) in text.as_bytes()[..kept].iter().enumerate() {
        room.write(at, *byte as c_char);
    }
    room.write(kept, 0);
    if room.count() <= text.len() {
        return Err(too_short(room.count(), text.len() + 1, "bytes, one for the zero at the end,"));
    }
    Ok(())
}

#[cfg(test)]
#[path = "write_tests.rs"]
mod tests;
