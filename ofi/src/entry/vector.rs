//! An address vector (fi_av(3)). Addresses are inserted at once, and connecting
//! begins with the first operation that names one.
#![allow(unsafe_code)] // Called from C.

use std::ffi::{c_char, c_int, c_void};
use std::sync::Arc;

use super::absent;
use super::base::{self, ops};
use super::event::{self, Reports};
use super::objects::{self, Vector, VectorObject};
use super::owner_receives;
use super::shared_domain::Shared;
use crate::abi::domain::{AvAttr, FidAv, OpsAv};
use crate::abi::eq::AV_COMPLETE;
use crate::abi::fabric::{AV_MAP, AV_TABLE, AV_UNSPEC};
use crate::abi::fid::{CLASS_AV, CLASS_EQ, Fid, Ops};
use crate::abi::{ADDR_UNSPEC, Errno, FiAddr, flags};
use crate::border;
use crate::log::{self, Subsystem};
use crate::refuse::{because, no_flags};
use crate::state::events::FailedRequest;
use crate::state::vector::{AddressVector, NAME_BYTES, Place, no_such_number};

static OPS: Ops = ops!(close: close, bind: bind, control: base::control);
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
    border::place(out)?;
    if !attr.name.is_null() || attr.flags & flags::READ != 0 {
        log::warn(Subsystem::Av, format_args!("named and shared address vectors are not offered"));
        return Err(Errno::NOSYS);
    }
    if attr.flags & !(flags::EVENT | flags::SYMMETRIC) != 0 {
        log::warn(
            Subsystem::Av,
            format_args!("an address vector has the flags FI_EVENT and FI_SYMMETRIC, no others"),
        );
        return Err(Errno::BADFLAGS);
    }
    if ![AV_UNSPEC, AV_MAP, AV_TABLE].contains(&attr.av_type) || attr.rx_ctx_bits != 0 {
        log::warn(
            Subsystem::Av,
            format_args!("address vectors are maps or tables, without bits for receive contexts"),
        );
        return Err(Errno::INVAL);
    }
    let reports = (attr.flags & flags::EVENT != 0).then(Reports::default);
    let number = domain.domain.lock().shared_state.vectors.insert(AddressVector::default());
    let fid = Fid { fclass: CLASS_AV, context, ops: &raw const OPS };
    let head = FidAv { fid, ops: &raw const AV };
    let inner = Vector { domain: Arc::clone(domain), number, reports };
    // SAFETY: the caller's promise.
    unsafe { border::write(out, VectorObject::open(head, inner)) }
}

unsafe extern "C" fn close(fid: *mut Fid) -> c_int {
    // SAFETY: C's promise: a vector of ours.
    let closed = unsafe { objects::vector(fid) }.and_then(|vector| {
        let mut state = vector.domain.domain.lock();
        let vectors = &mut state.shared_state.vectors;
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

unsafe extern "C" fn bind(fid: *mut Fid, other: *mut Fid, with: u64) -> c_int {
    // SAFETY: C's promise: a vector of ours.
    let bound = unsafe { objects::vector(fid) }.and_then(|vector| {
        // SAFETY: C's promise: null or an object.
        let class = unsafe { other.as_ref() }.ok_or(Errno::INVAL)?.fclass;
        let reports = vector.reports.as_ref().filter(|_| class == CLASS_EQ).ok_or_else(|| {
            log::warn(
                Subsystem::Av,
                format_args!("an address vector is bound to an event queue, if it was opened with FI_EVENT"),
            );
            Errno::INVAL
        })?;
        no_flags(Subsystem::Av, with, "fi_av_bind")?;
        // SAFETY: C's promise: an event queue of ours.
        unsafe { reports.bind(vector.domain.fabric(), other) }
    });
    border::int(bound)
}

/// Flags of an insertion. That more will follow changes nothing.
const INSERT_FLAGS: u64 = flags::MORE | flags::SYNC_ERR | flags::AV_USER_ID;

/// Inserts names one by one, and has `tell` say of each at which number, or why not;
/// how many were inserted.
fn insert_all(
    vector: &Vector,
    names: &[[u8; NAME_BYTES]],
    user_addresses: &[FiAddr],
    mut tell: impl FnMut(usize, Result<FiAddr, Errno>),
) -> Result<usize, Errno> {
    let mut state = vector.domain.domain.lock();
    let addresses = state.shared_state.vectors.get_mut(vector.number).ok_or(Errno::INVAL)?;
    let mut inserted = 0;
    for (at, name) in names.iter().enumerate() {
        let place = Place::from_name(name).map_err(|_| Errno::INVAL);
        if place.is_err() {
            log::warn(
                Subsystem::Av,
                format_args!("name {at} of {} is none of an endpoint of this provider", names.len()),
            );
        }
        inserted += usize::from(place.is_ok());
        tell(at, place.map(|place| addresses.insert_as(place, user_addresses.get(at).copied())));
    }
    Ok(inserted)
}

unsafe extern "C" fn insert(
    av: *mut FidAv,
    names: *const c_void,
    count: usize,
    out: *mut FiAddr,
    with: u64,
    context: *mut c_void,
) -> c_int {
    // SAFETY: C's promise: a vector of ours.
    let inserted = unsafe { objects::vector(av) }.and_then(|vector| {
        if with & !INSERT_FLAGS != 0 {
            log::warn(
                Subsystem::Av,
                format_args!(
                    "addresses are inserted with FI_MORE, FI_SYNC_ERR and FI_AV_USER_ID, no other flags"
                ),
            );
            return Err(Errno::BADFLAGS);
        }
        // SAFETY: C's promise: null or `count` names side by side.
        let names = unsafe { border::values(names.cast::<[u8; NAME_BYTES]>(), count) }?;
        let user_addresses = if with & flags::AV_USER_ID == 0 {
            Vec::new()
        } else {
            // SAFETY: C's promise, where this flag is: null or `count` numbers.
            unsafe { border::values(out, count) }?.to_vec()
        };
        // SAFETY: C's promise: null or room for `count` numbers.
        let mut out = if out.is_null() { None } else { Some(unsafe { border::room(out, count) }?) };
        let mut errors = match with & flags::SYNC_ERR {
            0 => None,
            // SAFETY: C's promise: with that flag, room for `count` errors.
            _ => Some(unsafe { border::room(context.cast::<c_int>(), count) }?),
        };
        let events = match &vector.reports {
            Some(reports) => Some(reports.events().ok_or_else(|| {
                let why = format_args!("a vector with FI_EVENT has no event queue; bind one first");
                because(Subsystem::Av, Errno::NOEQ, why)
            })?),
            None => None,
        };
        let inserted = insert_all(vector, names, &user_addresses, |at, told| {
            if let Some(place) = out.as_mut().and_then(|out| out.get_mut(at)) {
                place.write(told.unwrap_or(ADDR_UNSPEC));
            }
            let error = told.err();
            if let Some(place) = errors.as_mut().and_then(|errors| errors.get_mut(at)) {
                place.write(error.map_or(0, |error| error.0));
            }
            if let (Some(events), Some(error)) = (events, error) {
                let (fid, context) = (av.expose_provenance(), context.expose_provenance());
                events.fail(FailedRequest { fid, context, data: at as u64, error });
            }
        })?;
        owner_receives::tell_of_sources(vector);
        let Some(events) = events else { return Ok(inserted as c_int) };
        event::tell(events, AV_COMPLETE, av, context, inserted as u64);
        Ok(0)
    });
    inserted.unwrap_or_else(Errno::returned_int)
}

unsafe extern "C" fn remove(av: *mut FidAv, numbers: *mut FiAddr, count: usize, with: u64) -> c_int {
    // SAFETY: C's promise: a vector of ours.
    let removed = unsafe { objects::vector(av) }.and_then(|vector| {
        no_flags(Subsystem::Av, with, "fi_av_remove")?;
        // SAFETY: C's promise: null or `count` numbers.
        let numbers = unsafe { border::values(numbers, count) }?;
        let mut state = vector.domain.domain.lock();
        numbers.iter().try_for_each(|number| state.remove_address(vector.number, *number))
    });
    border::int(removed)
}

unsafe extern "C" fn lookup(av: *mut FidAv, number: FiAddr, name: *mut c_void, bytes: *mut usize) -> c_int {
    // SAFETY: C's promise: a vector of ours.
    let found = unsafe { objects::vector(av) }.and_then(|vector| {
        let state = vector.domain.domain.lock();
        let addresses = state.shared_state.vectors.get(vector.number).ok_or(Errno::INVAL)?;
        let place = addresses.place(number).ok_or_else(|| no_such_number(number))?;
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
    unsafe { border::give_text(&text, to, room_bytes) };
    // SAFETY: C's promise: null or a number.
    let _noted = unsafe { border::write(bytes, text.len() + 1) };
    to
}
