//! The memory of `fi_getinfo`: hints are read, and an offer is written where
//! `fi_freeinfo` finds it. The caller's libfabric frees each piece with free(3),
//! so each is allocated with calloc(3) or strdup(3).
#![allow(unsafe_code)] // Reads and allocates C's structures.

use std::ffi::{CStr, c_char, c_void};
use std::ptr;

use crate::abi::Errno;
use crate::abi::fabric::{DOMAIN_ATTR_GIVEN_BYTES, DomainAttr, FabricAttr, Info};
use crate::border;
use crate::naming::Name;
use crate::offer::{ADDRESS_FORMAT, Chosen, Hints, Offer, VERSION};
use crate::state::vector::NAME_BYTES;

/// A string, if there is one.
///
/// # Safety
/// The pointer is null or points to a string that a zero ends.
pub unsafe fn text(pointer: *const c_char) -> Option<String> {
    if pointer.is_null() {
        return None;
    }
    // SAFETY: not null, so a string by the caller's promise.
    let text = unsafe { CStr::from_ptr(pointer) };
    Some(text.to_string_lossy().into_owned())
}

/// An address, if there is one; of one that is too long as much as shows that.
///
/// # Safety
/// The pointer is null or points to so many bytes.
unsafe fn address(pointer: *const c_void, bytes: usize) -> Option<Vec<u8>> {
    if pointer.is_null() {
        return None;
    }
    // SAFETY: not null, so as many bytes by the caller's promise.
    Some(unsafe { std::slice::from_raw_parts(pointer.cast::<u8>(), bytes.min(NAME_BYTES + 1)) }.to_vec())
}

/// Reads what a caller asks for; of the domain no more than version 1.17 has.
///
/// # Safety
/// The pointer is null or points to an `fi_info` whose pointers are null or point
/// to what they should.
pub unsafe fn read(hints: *const Info) -> Hints {
    // SAFETY: the caller's promise.
    let Some(info) = (unsafe { border::read_if(hints) }) else { return Hints::default() };
    // SAFETY: the caller's promise, here and below.
    let domain = unsafe { border::read_if(info.domain_attr) };
    // SAFETY: as above.
    let fabric = unsafe { border::read_if(info.fabric_attr) };
    // SAFETY: as above.
    let domain_name = domain.and_then(|attr| unsafe { text(attr.name) });
    // SAFETY: as above.
    let fabric_name = fabric.and_then(|attr| unsafe { text(attr.name) });
    // SAFETY: as above.
    let provider_name = fabric.and_then(|attr| unsafe { text(attr.prov_name) });
    Hints {
        caps: info.caps,
        addr_format: info.addr_format,
        // SAFETY: as above.
        source: unsafe { address(info.src_addr, info.src_addrlen) },
        // SAFETY: as above.
        destination: unsafe { address(info.dest_addr, info.dest_addrlen) },
        // SAFETY: as above.
        tx: unsafe { border::read_if(info.tx_attr) },
        // SAFETY: as above.
        rx: unsafe { border::read_if(info.rx_attr) },
        // SAFETY: as above.
        ep: unsafe { border::read_if(info.ep_attr) },
        domain,
        domain_name,
        fabric_name,
        provider_name,
    }
}

/// Memory that free(3) takes, or null.
fn allocate<T: Copy>(value: T, given_bytes: usize) -> *mut T {
    let bytes = given_bytes.max(size_of::<T>());
    // SAFETY: calloc has no precondition.
    let memory = unsafe { libc::calloc(1, bytes) }.cast::<T>();
    if !memory.is_null() {
        // SAFETY: as many bytes as a T has, or more, aligned for anything.
        unsafe { memory.write(value) };
    }
    memory
}

fn string(text: &str) -> *mut c_char {
    let bytes: Vec<u8> = text.bytes().chain([0]).collect();
    // SAFETY: a string that a zero ends.
    unsafe { libc::strdup(bytes.as_ptr().cast()) }
}

/// An `fi_info` that says what is offered.
///
/// # Errors
/// [`Errno::NOMEM`].
pub fn write(offer: &Offer, api_version: u32) -> Result<*mut Info, Errno> {
    let domain = DomainAttr { name: string(offer.place), ..offer.domain };
    let fabric = FabricAttr {
        fabric: ptr::null_mut(),
        name: string(offer.place),
        // libfabric's core writes the provider's name.
        prov_name: ptr::null_mut(),
        prov_version: VERSION,
        api_version,
    };
    let bytes_of = |name: Option<Name>| name.map_or(0, |name| name.len());
    let given = |name: Option<Name>| name.map_or(ptr::null_mut(), |name| allocate(name, 0).cast());
    let info = Info {
        next: ptr::null_mut(),
        caps: offer.caps,
        mode: 0,
        addr_format: ADDRESS_FORMAT,
        src_addrlen: bytes_of(offer.source),
        dest_addrlen: bytes_of(offer.destination),
        src_addr: given(offer.source),
        dest_addr: given(offer.destination),
        handle: ptr::null_mut(),
        tx_attr: allocate(offer.tx, 0),
        rx_attr: allocate(offer.rx, 0),
        ep_attr: allocate(offer.ep, 0),
        domain_attr: allocate(domain, DOMAIN_ATTR_GIVEN_BYTES),
        fabric_attr: allocate(fabric, 0),
        nic: ptr::null_mut(),
    };
    let given = [(info.src_addr, info.src_addrlen), (info.dest_addr, info.dest_addrlen)];
    let are_given = given.iter().all(|(address, bytes)| *bytes == 0 || !address.is_null());
    let parts = [
        domain.name.cast(),
        fabric.name.cast(),
        info.tx_attr.cast(),
        info.rx_attr.cast(),
        info.ep_attr.cast(),
        info.domain_attr.cast(),
        info.fabric_attr.cast::<libc::c_void>(),
    ];
    let whole = allocate(info, 0);
    if !whole.is_null() && are_given && parts.iter().all(|part| !part.is_null()) {
        return Ok(whole);
    }
    for part in parts.into_iter().chain([whole.cast(), info.src_addr, info.dest_addr]) {
        // SAFETY: each is null or was allocated above and is freed once.
        unsafe { libc::free(part) };
    }
    Err(Errno::NOMEM)
}

/// Reads it.
///
/// # Safety
/// As [`read`].
///
/// # Errors
/// [`Errno::INVAL`]: the pointer is null.
pub unsafe fn chosen(info: *const Info) -> Result<Chosen, Errno> {
    // SAFETY: the caller's promise, here and below.
    let info = unsafe { border::read(info) }?;
    Ok(Chosen {
        caps: info.caps,
        // SAFETY: as above.
        source: unsafe { address(info.src_addr, info.src_addrlen) },
        // SAFETY: as above.
        tx: unsafe { border::read_if(info.tx_attr) },
        // SAFETY: as above.
        rx: unsafe { border::read_if(info.rx_attr) },
        // SAFETY: as above.
        ep: unsafe { border::read_if(info.ep_attr) },
    })
}
