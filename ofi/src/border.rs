//! The border to C: objects behind pointers, and what callers hand over. All
//! that is checked is that a pointer is not null; that it points to what its type
//! says is the caller's promise, as everywhere in libfabric.
#![allow(unsafe_code)] // Pointers of C become references and values here.

use std::ffi::{c_char, c_int, c_void};

use lmt::buffer::{Access, Buffer, Segment};

use crate::abi::Errno;
use crate::lend::{self, Lent};
use crate::log::Subsystem;
use crate::refuse::because;
use crate::wait;

/// The most pieces of one message.
pub const IOV_LIMIT: usize = 16;

/// A null pointer is where a `T` should be.
#[cold]
fn null<T>() -> Errno {
    let name = std::any::type_name::<T>();
    let name = name.rsplit("::").next().unwrap_or(name);
    because(Subsystem::Core, Errno::INVAL, format_args!("a pointer to {name} is null, and must not be"))
}

/// More is asked for than the address space has, or from where it cannot be.
#[cold]
fn beyond(count: usize) -> Errno {
    because(
        Subsystem::Core,
        Errno::INVAL,
        format_args!("{count} values are at a null pointer, or not aligned, or more than memory has"),
    )
}

/// Checks that there is a place for what a call gives.
///
/// # Errors
/// [`Errno::INVAL`]: the pointer is null.
#[inline]
pub fn place<T>(pointer: *mut T) -> Result<(), Errno> {
    if pointer.is_null() { Err(null::<T>()) } else { Ok(()) }
}

/// An object that C knows by its first part, `F`, one of libfabric's `fid_*`.
#[repr(C)]
pub struct Object<F, T> {
    /// What C sees.
    pub head: F,
    /// What it does not.
    pub inner: T,
}

impl<F, T> Object<F, T> {
    /// Hands an object to C, which gives it back to [`Object::close`] once.
    pub fn open(head: F, inner: T) -> *mut F {
        Box::into_raw(Box::new(Self { head, inner })).cast()
    }

    /// The object behind a pointer, for the length of a call.
    ///
    /// # Safety
    /// The pointer is null, or came from [`Object::open`] of this very type and
    /// was not closed; nobody closes it during the call.
    ///
    /// # Errors
    /// [`Errno::INVAL`]: it is null.
    #[inline]
    pub unsafe fn get<'a, P>(pointer: *const P) -> Result<&'a Self, Errno> {
        // SAFETY: the caller promises that it is null or a live object, which
        // begins with what C sees (repr(C)). Only shared references are made.
        unsafe { pointer.cast::<Self>().as_ref() }.ok_or_else(null::<F>)
    }

    /// Takes an object back from C.
    ///
    /// # Safety
    /// As [`Object::get`], and nobody uses it any more.
    pub unsafe fn close<P>(pointer: *mut P) -> Self {
        // SAFETY: the caller promises that it came from `open`, that is from
        // `Box::into_raw` of this type, and is given back once.
        *unsafe { Box::from_raw(pointer.cast::<Self>()) }
    }
}

/// What a function that returns an `int` returns.
#[inline]
pub fn int(result: Result<(), Errno>) -> c_int {
    match result {
        Ok(()) => 0,
        Err(error) => error.returned_int(),
    }
}

/// What a function that returns an `ssize_t` returns.
#[inline]
pub fn size(result: Result<(), Errno>) -> isize {
    match result {
        Ok(()) => 0,
        Err(error) => error.returned(),
    }
}

/// Copies what a pointer points to.
///
/// # Safety
/// It is null or points to a value.
///
/// # Errors
/// [`Errno::INVAL`]: it is null.
#[inline]
pub unsafe fn read<T: Copy>(pointer: *const T) -> Result<T, Errno> {
    // SAFETY: the caller's promise.
    unsafe { pointer.as_ref() }.copied().ok_or_else(null::<T>)
}

/// The same; a null pointer is no value.
///
/// # Safety
/// It is null or points to a value.
#[inline]
pub unsafe fn read_if<T: Copy>(pointer: *const T) -> Option<T> {
    // SAFETY: the caller's promise.
    unsafe { pointer.as_ref() }.copied()
}

/// Writes to where a pointer points.
///
/// # Safety
/// It is null or points to memory for a value, whatever is in it.
///
/// # Errors
/// [`Errno::INVAL`]: it is null.
#[inline]
pub unsafe fn write<T>(pointer: *mut T, value: T) -> Result<(), Errno> {
    place(pointer)?;
    // SAFETY: not null, so memory for a value by the caller's promise.
    unsafe { pointer.write(value) };
    Ok(())
}

/// Bytes of a caller, for the length of a call.
///
/// # Safety
/// `pointer` is null, or `bytes` bytes can be read from it on and nobody writes
/// them during the call.
///
/// # Errors
/// [`Errno::INVAL`]: it is null though there is to be a byte.
#[inline]
pub unsafe fn bytes<'a>(pointer: *const c_void, bytes: usize) -> Result<&'a [u8], Errno> {
    if bytes == 0 {
        return Ok(&[]);
    }
    if pointer.is_null() || bytes > isize::MAX as usize {
        return Err(beyond(bytes));
    }
    // SAFETY: neither null nor too long; readable by the caller's promise.
    Ok(unsafe { std::slice::from_raw_parts(pointer.cast(), bytes) })
}

/// The same for values.
///
/// # Safety
/// As [`bytes`], of `count` values.
///
/// # Errors
/// As [`bytes`].
#[inline]
pub unsafe fn values<'a, T>(pointer: *const T, count: usize) -> Result<&'a [T], Errno> {
    if count == 0 {
        return Ok(&[]);
    }
    let too_many = count.checked_mul(size_of::<T>()).is_none_or(|bytes| bytes > isize::MAX as usize);
    if pointer.is_null() || too_many || !pointer.is_aligned() {
        return Err(beyond(count));
    }
    // SAFETY: neither null nor too many, aligned; readable by the caller's promise.
    Ok(unsafe { std::slice::from_raw_parts(pointer, count) })
}

/// Room for values, whatever is in it.
///
/// # Safety
/// `pointer` is null, or there is memory for `count` values from it on, which
/// nobody else uses during the call.
///
/// # Errors
/// As [`bytes`].
pub unsafe fn room<'a, T>(
    pointer: *mut T,
    count: usize,
) -> Result<&'a mut [std::mem::MaybeUninit<T>], Errno> {
    if count == 0 {
        return Ok(&mut []);
    }
    let too_many = count.checked_mul(size_of::<T>()).is_none_or(|bytes| bytes > isize::MAX as usize);
    if pointer.is_null() || too_many || !pointer.is_aligned() {
        return Err(beyond(count));
    }
    // SAFETY: neither null nor too many, aligned; writable by the caller's
    // promise, and any bytes are a MaybeUninit.
    Ok(unsafe { std::slice::from_raw_parts_mut(pointer.cast(), count) })
}

/// One piece of memory, lent to an operation.
///
/// # Safety
/// As [`Lent::new`], unless `pointer` is null.
///
/// # Errors
/// [`Errno::INVAL`]: it is null though there is to be a byte.
#[inline]
pub unsafe fn lent(pointer: *const c_void, bytes: usize, access: Access) -> Result<Lent, Errno> {
    if pointer.is_null() && bytes > 0 {
        return Err(beyond(bytes));
    }
    // SAFETY: the caller's promise; of no bytes nothing is promised.
    Ok(unsafe { Lent::new(pointer.expose_provenance(), bytes, access) })
}

/// What a list of pieces comes to.
pub struct Pieces {
    /// All of them, lent to an operation.
    pub buffer: Buffer,
    /// The address of the first, for the completion.
    pub address: usize,
}

/// A list of pieces, lent to an operation.
///
/// # Safety
/// `iov` is null or points to `count` pieces, each of which is lent as
/// [`Lent::new`] says.
///
/// # Errors
/// [`Errno::INVAL`]: more than [`IOV_LIMIT`] pieces, or a null pointer where there
/// is to be a byte.
#[inline]
pub unsafe fn pieces(iov: *const libc::iovec, count: usize, access: Access) -> Result<Pieces, Errno> {
    if count > IOV_LIMIT {
        let why = format_args!("a message has {count} pieces; it may have {IOV_LIMIT}");
        return Err(because(Subsystem::EpData, Errno::INVAL, why));
    }
    // SAFETY: the caller's promise.
    let list = unsafe { values(iov, count) }?;
    if let [one] = list {
        // SAFETY: the caller's promise.
        return unsafe { piece(one.iov_base, one.iov_len, access) };
    }
    let mut segments = [Segment::default(); IOV_LIMIT];
    for (segment, piece) in segments.iter_mut().zip(list) {
        // SAFETY: the caller's promise.
        *segment = unsafe { lent(piece.iov_base, piece.iov_len, access) }?.segment();
    }
    // SAFETY: the caller's promise for each.
    let buffer = unsafe { lend::segments(&segments[..count], access) }?;
    Ok(Pieces { buffer, address: segments[0].address })
}

/// The same of one piece.
///
/// # Safety
/// As [`Lent::new`], unless `pointer` is null.
///
/// # Errors
/// As [`lent`]; [`Errno::FAULT`]: it reaches past the address space.
#[inline(always)] // The path of a short message: its buffer is made where it is used.
pub unsafe fn piece(pointer: *const c_void, bytes: usize, access: Access) -> Result<Pieces, Errno> {
    // SAFETY: the caller's promise.
    let lent = unsafe { lent(pointer, bytes, access) }?;
    Ok(Pieces { buffer: lent.whole()?, address: lent.segment().address })
}

/// Writes a string, ended by a zero, to where there is room for so many bytes.
///
/// # Safety
/// `to` is null or there is that room.
pub unsafe fn give_text(text: &str, to: *mut c_char, room_bytes: usize) {
    // SAFETY: the caller's promise.
    let Ok([room @ .., last]) = (unsafe { room(to, room_bytes) }) else { return };
    last.write(0);
    let mut bytes = text.bytes().chain([0]);
    for (place, byte) in room.iter_mut().zip(&mut bytes) {
        place.write(byte as c_char);
    }
}

/// What an error of the provider means: written to where there is room, or lasting.
///
/// # Safety
/// `to` is null or room for so many bytes.
pub unsafe fn give_error_text(prov_errno: c_int, to: *mut c_char, room_bytes: usize) -> *const c_char {
    let text = Errno(prov_errno.saturating_abs()).text();
    if to.is_null() || room_bytes == 0 {
        return wait::lasting(text);
    }
    // SAFETY: the caller's promise.
    unsafe { give_text(text, to, room_bytes) };
    to
}
