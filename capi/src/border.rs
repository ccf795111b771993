//! The border to C: what pointers lead to. All that can be checked is that a
//! pointer is not NULL where it must not be and is aligned, and that lengths are
//! possible; that it leads to what its type says is the caller's promise.
#![allow(unsafe_code)] // Pointers of C become places, slices and buffers here.

use std::ffi::{CStr, c_char, c_void};
use std::marker::PhantomData;

use lmt::buffer::{Access, Buffer, Segment};

use crate::code::lmt_code::LMT_ERR_NULL;
use crate::error::Error;

/// Segments of one message that are listed without an allocation.
const FEW: usize = 16;

/// An argument that must be there.
///
/// # Errors
/// It is NULL.
#[inline]
pub fn there<T>(argument: Option<T>, name: &str) -> Result<T, Error> {
    argument.ok_or_else(|| Error::null(name))
}

/// Places for answers, one after the other, for the length of a call. No reference is
/// made of them: two that overlap do no harm, and what is in them does not matter.
#[derive(Debug)]
pub struct Places<'a, T> {
    first: *mut T,
    count: usize,
    call: PhantomData<&'a ()>,
}

impl<T> Clone for Places<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Places<'_, T> {}

impl<T> Places<'_, T> {
    /// `count` places.
    ///
    /// # Safety
    /// `pointer` is NULL, or as long as the value and its copies live `count` values
    /// can be written from it on, which no other thread uses.
    ///
    /// # Errors
    /// As [`values`].
    #[inline]
    pub unsafe fn new(pointer: *mut T, count: usize, name: &str) -> Result<Self, Error> {
        if count > 0 {
            check(pointer, count, name)?;
        }
        Ok(Self { first: pointer, count, call: PhantomData })
    }

    /// The same, or none where the caller wants no answers.
    ///
    /// # Safety
    /// As [`Places::new`].
    ///
    /// # Errors
    /// As [`Places::new`], but for NULL.
    #[inline]
    pub unsafe fn wanted(pointer: *mut T, count: usize, name: &str) -> Result<Self, Error> {
        let count = if pointer.is_null() { 0 } else { count };
        // SAFETY: `new` asks for the same.
        unsafe { Self::new(pointer, count, name) }
    }

    /// How many there are.
    pub const fn count(self) -> usize {
        self.count
    }

    /// Writes an answer where there is a place of this number.
    #[inline]
    pub fn write(self, at: usize, value: T) {
        if at < self.count {
            let place = self.first.wrapping_add(at);
            // SAFETY: below `count`, so by the promise that was made to `new` a value
            // can be written here; `check` has seen that it is aligned.
            unsafe { place.write(value) };
        }
    }
}

/// A place for one answer.
#[derive(Debug)]
pub struct Place<'a, T>(Places<'a, T>);

impl<T> Clone for Place<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Place<'_, T> {}

impl<T> Place<'_, T> {
    /// A place that must be there.
    ///
    /// # Safety
    /// As [`Places::new`], for one.
    ///
    /// # Errors
    /// It is NULL or misaligned.
    #[inline]
    pub unsafe fn new(pointer: *mut T, name: &str) -> Result<Self, Error> {
        // SAFETY: `Places::new` asks for the same.
        unsafe { Places::new(pointer, 1, name) }.map(Self)
    }

    /// A place that is NULL where the caller wants no answer.
    ///
    /// # Safety
    /// As [`Places::new`], for one.
    ///
    /// # Errors
    /// It is misaligned.
    #[inline]
    pub unsafe fn wanted(pointer: *mut T, name: &str) -> Result<Self, Error> {
        // SAFETY: `Places::wanted` asks for the same.
        unsafe { Places::wanted(pointer, 1, name) }.map(Self)
    }

    /// No place at all.
    pub const fn nowhere() -> Self {
        Self(Places { first: std::ptr::null_mut(), count: 0, call: PhantomData })
    }

    /// Writes the answer.
    #[inline]
    pub fn write(self, value: T) {
        self.0.write(0, value);
    }
}

/// A value of a caller.
///
/// # Safety
/// `pointer` is NULL, or one value can be read from it that nobody writes meanwhile.
///
/// # Errors
/// It is NULL or misaligned.
#[inline]
pub unsafe fn value<T: Copy>(pointer: *const T, name: &str) -> Result<T, Error> {
    check(pointer, 1, name)?;
    // SAFETY: neither NULL nor misaligned; the caller promises that a value can be
    // read.
    Ok(unsafe { pointer.read() })
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
    // SAFETY: `values` asks for the same.
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
    // SAFETY: the caller promises for the one piece what `lend_list` asks for each.
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
    // SAFETY: the caller promises that the list is NULL or can be read.
    let list = unsafe { values(list, count, "segments") }?;
    if list.len() <= FEW {
        let mut few = [Segment::default(); FEW];
        for (segment, part) in few.iter_mut().zip(list) {
            *segment = piece(part.iov_base, part.iov_len)?;
        }
        // SAFETY: the caller promises for each piece what `lend_list` asks for.
        return unsafe { lend_list(&few[..count], access) };
    }
    let many: Result<Vec<_>, _> = list.iter().map(|part| piece(part.iov_base, part.iov_len)).collect();
    // SAFETY: the caller promises for each piece what `lend_list` asks for.
    unsafe { lend_list(&many?, access) }
}

fn piece(pointer: *const c_void, bytes: usize) -> Result<Segment, Error> {
    if pointer.is_null() && bytes > 0 {
        return Err(Error::new(
            LMT_ERR_NULL,
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
