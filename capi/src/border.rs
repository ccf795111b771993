//! The border to C: what pointers lead to. All that can be checked is that a
//! pointer is not NULL where it must not be, and that lengths are possible; that it
//! leads to what its type says is the caller's promise.
#![allow(unsafe_code)] // Pointers of C become references, slices and buffers here.

use std::ffi::{CStr, c_char, c_void};
use std::mem::MaybeUninit;

use lmt::buffer::{Access, Buffer, Segment};

use crate::error::Error;

/// Segments of one message that are listed without an allocation.
const FEW: usize = 16;

/// An argument that must be there: a reference, or a place for an answer.
///
/// # Errors
/// It is NULL.
#[inline]
pub fn there<T>(pointer: Option<T>, name: &str) -> Result<T, Error> {
    pointer.ok_or_else(|| Error::null(name))
}

/// Writes an answer where there is a place for it.
#[inline]
pub fn answer<T>(place: Option<&mut MaybeUninit<T>>, value: T) {
    if let Some(place) = place {
        place.write(value);
    }
}

/// Values of a caller, for the length of a call.
///
/// # Safety
/// `pointer` is NULL, or `count` values can be read from it on and nobody writes
/// them during the call.
///
/// # Errors
/// It is NULL though there is to be a value, misaligned, or there are too many.
#[inline]
pub unsafe fn values<'a, T>(pointer: *const T, count: usize, name: &str) -> Result<&'a [T], Error> {
    if count == 0 {
        return Ok(&[]);
    }
    check(pointer, count, name)?;
    // SAFETY: neither NULL nor misaligned nor too long; the caller promises that so
    // many values can be read and nobody writes them.
    Ok(unsafe { std::slice::from_raw_parts(pointer, count) })
}

/// Bytes of a caller, for the length of a call.
///
/// # Safety
/// As [`values`].
///
/// # Errors
/// As [`values`].
#[inline]
pub unsafe fn bytes<'a>(pointer: *const c_void, count: usize, name: &str) -> Result<&'a [u8], Error> {
    // SAFETY: the caller's promise; a byte is aligned anywhere.
    unsafe { values(pointer.cast(), count, name) }
}

/// Bytes that a caller lets this call write and read.
///
/// # Safety
/// `pointer` is NULL, or there is memory for `count` bytes from it on which nobody
/// else uses during the call. What is in it does not matter: it comes from
/// outside, and each byte has some value.
///
/// # Errors
/// As [`values`].
#[inline]
pub unsafe fn bytes_mut<'a>(pointer: *mut c_void, count: usize, name: &str) -> Result<&'a mut [u8], Error> {
    if count == 0 {
        return Ok(&mut []);
    }
    check(pointer.cast_const().cast::<u8>(), count, name)?;
    // SAFETY: neither NULL nor too long; the caller promises that it is memory
    // which nobody else uses.
    Ok(unsafe { std::slice::from_raw_parts_mut(pointer.cast(), count) })
}

/// Places for `count` values.
///
/// # Safety
/// `pointer` is NULL, or there is memory for `count` values from it on which nobody
/// else uses during the call.
///
/// # Errors
/// As [`values`].
pub unsafe fn places<'a, T>(
    pointer: *mut T,
    count: usize,
    name: &str,
) -> Result<&'a mut [MaybeUninit<T>], Error> {
    if count == 0 {
        return Ok(&mut []);
    }
    check(pointer.cast_const(), count, name)?;
    // SAFETY: neither NULL nor misaligned nor too long; the caller promises that it
    // is memory which nobody else uses, and any bytes are a MaybeUninit.
    Ok(unsafe { std::slice::from_raw_parts_mut(pointer.cast(), count) })
}

fn check<T>(pointer: *const T, count: usize, name: &str) -> Result<(), Error> {
    if pointer.is_null() {
        return Err(Error::null(name));
    }
    if !pointer.is_aligned() {
        return Err(Error::invalid(format!("`{name}` is not aligned for its type; pass an address that is")));
    }
    match count.checked_mul(size_of::<T>()) {
        Some(bytes) if bytes <= isize::MAX as usize => Ok(()),
        _ => Err(Error::invalid(format!(
            "`{name}` has {count} parts, more than an address space; pass how many there are"
        ))),
    }
}

/// A text of a caller, for the length of a call.
///
/// # Safety
/// It is NULL, or ends with a zero up to which it can be read, and nobody writes it
/// during the call.
///
/// # Errors
/// It is NULL, or not UTF-8.
pub unsafe fn text<'a>(pointer: *const c_char, name: &str) -> Result<&'a str, Error> {
    if pointer.is_null() {
        return Err(Error::null(name));
    }
    // SAFETY: not NULL, so readable up to its zero by the caller's promise.
    let text = unsafe { CStr::from_ptr(pointer) };
    text.to_str().map_err(|_| Error::invalid(format!("`{name}` is no UTF-8; write plain text")))
}

/// Lends one piece of memory to an operation.
///
/// # Safety
/// `pointer` is NULL, or as [`Buffer::new`] asks until the operation has ended or
/// its endpoint was closed.
///
/// # Errors
/// It is NULL though there is to be a byte, or reaches past the address space.
#[inline]
pub unsafe fn lend(pointer: *const c_void, bytes: usize, access: Access) -> Result<Buffer, Error> {
    // SAFETY: the caller's promise.
    unsafe { lend_list(&[piece(pointer, bytes)?], access) }
}

/// Lends a list of pieces to an operation.
///
/// # Safety
/// `list` is NULL, or `count` pieces can be read from it on during the call, each of
/// which is lent as [`lend`] says.
///
/// # Errors
/// As [`lend`], for the list and each piece.
#[inline]
pub unsafe fn lend_segments(list: *const libc::iovec, count: usize, access: Access) -> Result<Buffer, Error> {
    // SAFETY: the caller's promise.
    let list = unsafe { values(list, count, "segments") }?;
    if list.len() <= FEW {
        let mut few = [Segment::default(); FEW];
        for (segment, part) in few.iter_mut().zip(list) {
            *segment = piece(part.iov_base, part.iov_len)?;
        }
        // SAFETY: the caller's promise for each.
        return unsafe { lend_list(&few[..count], access) };
    }
    let many: Result<Vec<_>, _> = list.iter().map(|part| piece(part.iov_base, part.iov_len)).collect();
    // SAFETY: the caller's promise for each.
    unsafe { lend_list(&many?, access) }
}

fn piece(pointer: *const c_void, bytes: usize) -> Result<Segment, Error> {
    if pointer.is_null() && bytes > 0 {
        return Err(Error::new(
            crate::code::lmt_code::LMT_ERR_NULL,
            format!("a segment of {bytes} bytes begins at NULL; pass its address, or no bytes"),
        ));
    }
    Ok(Segment { address: pointer.expose_provenance(), bytes })
}

/// # Safety
/// As [`Buffer::new`], for each segment.
unsafe fn lend_list(list: &[Segment], access: Access) -> Result<Buffer, Error> {
    // SAFETY: the caller promises what `Buffer::new` asks for.
    unsafe { Buffer::new(list, access) }.map_err(|error| Error::invalid(error.to_string()))
}

#[cfg(test)]
#[path = "border_tests.rs"]
mod tests;
