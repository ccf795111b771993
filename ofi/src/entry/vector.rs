//! An address vector (fi_av(3)). Addresses are inserted at once, and connecting
//! begins with the first operation that names one.
#![allow(unsafe_code)] // Called from C.

use std::ffi::{c_char, c_int, c_void};
use std::sync::Arc;

use super::absent;
use super::base::{self, ops};
use super::domain::Shared;
use super::owner_receives;
use crate::abi::domain::{AvAttr, FidAv, OpsAv};
use crate::abi::fabric::{CLASS_AV, Fid, Ops};
use crate::abi::{ADDR_UNSPEC, Errno, FiAddr, flags};
use crate::border::{self, Object};
use crate::log::{self, Subsystem};
use crate::state::vector::{AddressVector, NAME_BYTES, Place};

/// A vector, by its number in its domain.
#[derive(Debug)]
pub struct Vector {
    /// The domain.
    pub domain: Arc<Shared>,
    /// The number.
    pub number: usize,
}

type VectorObject = Object<FidAv, Vector>;

static OPS: Ops = ops!(close: close, bind: base::bind, control: base::control);
static AV: OpsAv =
    OpsAv { size: size_of::<OpsAv>(), insert, insertsvc, insertsym, remove, lookup, straddr, av_set };

absent! {
    insertsvc(*mut FidAv, *const c_char, *const c_char, *mut FiAddr, u64, *mut c_void) -> c_int;
    insertsym(*mut FidAv, *const c_char, usize, *const c_char, usize, *mut FiAddr, u64, *mut c_void) -> c_int;
    av_set(*mut FidAv, *mut c_void, *mut *mut c_void, *mut c_void) -> c_int;
}

/// # Safety
/// `out` is null or room for a pointer.
pub(super) unsafe fn open(
    domain: &Arc<Shared>,
    attr: &AvAttr,
    out: *mut *mut FidAv,
    context: *mut c_void,
) -> Result<(), Errno> {
    if out.is_null() {
        return Err(Errno::INVAL);
    }
    if !attr.name.is_null() || attr.flags != 0 {
        log::warn(
            Subsystem::Av,
            format_args!("named, shared and event-driven address vectors are not offered"),
        );
        return Err(Errno::NOSYS);
    }
    let number = domain.domain.lock().around.vectors.insert(AddressVector::default());
    let fid = Fid { fclass: CLASS_AV, context, ops: &raw const OPS };
    let head = FidAv { fid, ops: &raw const AV };
    let inner = Vector { domain: Arc::clone(domain), number };
    // SAFETY: the caller's promise.
    unsafe { border::write(out, VectorObject::open(head, inner)) }
}

/// The vector behind a pointer.
///
/// # Safety
/// It is null or a vector of this provider that nobody closes during the call.
pub unsafe fn get<'a, P>(vector: *const P) -> Result<&'a Vector, Errno> {
    // SAFETY: the caller's promise.
    unsafe { VectorObject::get(vector) }.map(|object| &object.inner)
}

unsafe extern "C" fn close(fid: *mut Fid) -> c_int {
    // SAFETY: C's promise: a vector of ours.
    let closed = unsafe { get(fid) }.and_then(|vector| {
        let mut state = vector.domain.domain.lock();
        let vectors = &mut state.around.vectors;
        if vectors.get(vector.number).is_some_and(|vector| !vector.endpoints.is_empty()) {
            log::warn(
                Subsystem::Av,
                format_args!("an address vector is closed before its endpoints; close those first"),
            );
            return Err(Errno::BUSY);
        }
        vectors.remove(vector.number);
        Ok(())
    });
    if closed.is_ok() {
        // SAFETY: C's promise: it is closed once.
        drop(unsafe { VectorObject::close(fid) });
    }
    border::int(closed)
}

unsafe extern "C" fn insert(
    av: *mut FidAv,
    names: *const c_void,
    count: usize,
    out: *mut FiAddr,
    with: u64,
    _context: *mut c_void,
) -> c_int {
    // SAFETY: C's promise: a vector of ours.
    let inserted = unsafe { get(av) }.and_then(|vector| {
        // SAFETY: C's promise: null or `count` names side by side.
        let names = unsafe { border::values(names.cast::<[u8; NAME_BYTES]>(), count) }?;
        let told_as = if with & flags::AV_USER_ID == 0 {
            Vec::new()
        } else {
            // SAFETY: C's promise, where this flag is: null or `count` numbers.
            unsafe { border::values(out, count) }?.to_vec()
        };
        // SAFETY: C's promise: null or room for `count` numbers.
        let mut out = if out.is_null() { None } else { Some(unsafe { border::room(out, count) }?) };
        let mut state = vector.domain.domain.lock();
        let addresses = state.around.vectors.get_mut(vector.number).ok_or(Errno::INVAL)?;
        let mut inserted = 0;
        for (at, name) in names.iter().enumerate() {
            let number = match Place::from_name(name) {
                Ok(place) => {
                    inserted += 1;
                    match told_as.get(at) {
                        Some(number) => addresses.insert_as(place, *number),
                        None => addresses.insert(place),
                    }
                }
                Err(_) => {
                    log::warn(
                        Subsystem::Av,
                        format_args!("name {at} of {count} is none of an endpoint of this provider"),
                    );
                    ADDR_UNSPEC
                }
            };
            if let Some(place) = out.as_mut().and_then(|out| out.get_mut(at)) {
                place.write(number);
            }
        }
        drop(state);
        owner_receives::tell_of_sources(vector);
        Ok(inserted)
    });
    inserted.unwrap_or_else(Errno::returned_int)
}

unsafe extern "C" fn remove(av: *mut FidAv, numbers: *mut FiAddr, count: usize, _flags: u64) -> c_int {
    // SAFETY: C's promise: a vector of ours.
    let removed = unsafe { get(av) }.and_then(|vector| {
        // SAFETY: C's promise: null or `count` numbers.
        let numbers = unsafe { border::values(numbers, count) }?;
        let mut state = vector.domain.domain.lock();
        let state = &mut *state;
        for number in numbers {
            let addresses = state.around.vectors.get_mut(vector.number).ok_or(Errno::INVAL)?;
            addresses.remove(*number)?;
            let endpoints = addresses.endpoints.clone();
            for endpoint in endpoints {
                if let Some(endpoint) = state.endpoints.get_mut(endpoint) {
                    endpoint.forget_peer(&mut state.around, *number)?;
                }
            }
        }
        Ok(())
    });
    border::int(removed)
}

unsafe extern "C" fn lookup(av: *mut FidAv, number: FiAddr, name: *mut c_void, bytes: *mut usize) -> c_int {
    // SAFETY: C's promise: a vector of ours.
    let found = unsafe { get(av) }.and_then(|vector| {
        let state = vector.domain.domain.lock();
        let addresses = state.around.vectors.get(vector.number).ok_or(Errno::INVAL)?;
        let place = addresses.place(number).ok_or(Errno::INVAL)?;
        // SAFETY: C's promise: null or room for as many bytes as it says.
        unsafe { give_name(&place.to_name()?, name, bytes) }
    });
    border::int(found)
}

/// Writes a name to where there is room for `*bytes` bytes, as much of it as fits,
/// and its length to `bytes`.
///
/// # Safety
/// `bytes` is null or points to a number, and `to` is null or room for so many
/// bytes.
///
/// # Errors
/// [`Errno::TOOSMALL`]: it did not fit.
pub(super) unsafe fn give_name(
    name: &[u8; NAME_BYTES],
    to: *mut c_void,
    bytes: *mut usize,
) -> Result<(), Errno> {
    // SAFETY: the caller's promise.
    let room_bytes = unsafe { border::read(bytes) }?;
    let given_bytes = room_bytes.min(NAME_BYTES);
    // SAFETY: the caller's promise.
    let room = unsafe { border::room(to.cast::<u8>(), given_bytes) }?;
    for (place, byte) in room.iter_mut().zip(name) {
        place.write(*byte);
    }
    // SAFETY: the caller's promise.
    unsafe { border::write(bytes, NAME_BYTES) }?;
    if room_bytes < NAME_BYTES { Err(Errno::TOOSMALL) } else { Ok(()) }
}

unsafe extern "C" fn straddr(
    _av: *mut FidAv,
    name: *const c_void,
    to: *mut c_char,
    bytes: *mut usize,
) -> *const c_char {
    // SAFETY: C's promise: null or a name.
    let text = match unsafe { border::read(name.cast::<[u8; NAME_BYTES]>()) }
        .and_then(|name| Place::from_name(&name))
    {
        Ok(Place { address, .. }) => match address.folder() {
            Some(folder) => format!("lmt://{}{}", address.id(), folder.display()),
            None => format!("lmt://{}", address.id()),
        },
        _ => "not an lmt address".to_owned(),
    };
    // SAFETY: C's promise: null or a number.
    let room_bytes = unsafe { border::read_if(bytes) }.unwrap_or_default();
    // SAFETY: C's promise: null or room for so many bytes.
    unsafe { give_text(&text, to, room_bytes) };
    // SAFETY: C's promise: null or a number.
    let _noted = unsafe { border::write(bytes, text.len() + 1) };
    to
}

/// Writes a string, ended by a zero, to where there is room for so many bytes.
///
/// # Safety
/// `to` is null or there is that room.
pub(super) unsafe fn give_text(text: &str, to: *mut c_char, room_bytes: usize) {
    // SAFETY: the caller's promise.
    let Ok([room @ .., last]) = (unsafe { border::room(to, room_bytes) }) else { return };
    last.write(0);
    let mut bytes = text.bytes().chain([0]);
    for (place, byte) in room.iter_mut().zip(&mut bytes) {
        place.write(byte as c_char);
    }
}
