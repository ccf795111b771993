//! Declared memory: what peers may get from and put into without the owner's help.
#![allow(unsafe_code)] // Functions that C calls.

use std::ffi::c_void;
use std::ptr;

use lmt::buffer::Access;
use lmt::{Direction, Protection, RegionKey, RegionOptions};

use super::memory::some_bytes;
use crate::border::{Place, lend_segments, value};
use crate::code::lmt_code;
use crate::error::{Error, guard};
use crate::numbers::request_to_c;
use crate::objects::{Endpoint, Side};
use crate::types::{
    LMT_REGION_READ, LMT_REGION_SINGLE_USE, LMT_REGION_WRITE, lmt_endpoint, lmt_region_key, lmt_request,
};

fn options_of(flags: u32) -> Result<RegionOptions, Error> {
    if flags & !(LMT_REGION_READ | LMT_REGION_WRITE | LMT_REGION_SINGLE_USE) != 0
        || flags & (LMT_REGION_READ | LMT_REGION_WRITE) == 0
    {
        return Err(Error::invalid(format!(
            "`flags` is {flags:#x}; it must be LMT_REGION_READ, LMT_REGION_WRITE or both, perhaps with LMT_REGION_SINGLE_USE"
        )));
    }
    let protection = Protection { read: flags & LMT_REGION_READ != 0, write: flags & LMT_REGION_WRITE != 0 };
    Ok(RegionOptions { protection, single_use: flags & LMT_REGION_SINGLE_USE != 0 })
}

/// # Safety
/// `key` is NULL or leads to one.
unsafe fn key_of(key: *const lmt_region_key) -> Result<RegionKey, Error> {
    // SAFETY: by `# Safety`, `key` is NULL or leads to one.
    let key = unsafe { value(key, "key") }?;
    Ok(RegionKey::from_bytes(key.bytes))
}

/// Declares memory of this process as a region: peers that are given the key may get
/// from it (`LMT_REGION_READ`) and put into it (`LMT_REGION_WRITE`) without this
/// process's help; with `LMT_REGION_SINGLE_USE` the first get or put uses it up. It
/// is lent until `lmt_region_destroy` or the endpoint's end. A copy that a peer has
/// just begun then goes on for the length of a system call: let peers say by a
/// message that they are done, and destroy it after.
///
/// Errors: `LMT_ERR_NULL`, `LMT_ERR_INVALID`, `LMT_ERR_HANDLE`, `LMT_ERR_BUSY`,
/// `LMT_ERR_REGION_TOO_MANY`, `LMT_ERR_NO_MEMORY`, `LMT_ERR_SYSTEM`,
/// `LMT_ERR_FORKED`.
///
/// # Safety
/// `segments` is NULL or leads to `count` segments, each of memory that nobody frees
/// before the region has ended and peers are done with it; `key` is NULL or memory
/// for one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lmt_region_register(
    endpoint: *mut lmt_endpoint,
    segments: *const libc::iovec,
    count: usize,
    flags: u32,
    key: *mut lmt_region_key,
) -> lmt_code {
    guard(|| {
        // SAFETY: by `# Safety`, `key` is NULL or memory for one.
        let place = unsafe { Place::new(key, "key") }?;
        let options = options_of(flags)?;
        let access = if options.protection.write { Access::Write } else { Access::Read };
        // SAFETY: by `# Safety`, `segments` is NULL or leads to `count` segments of memory
        // that nobody frees before the region has ended and peers are done with it; the
        // owner and the peers that it has given the key use it in turn, as it sees to.
        let buffer = unsafe { lend_segments(segments, count, access) }?;
        Endpoint::with(endpoint, |endpoint| {
            let key = endpoint.engine(|engine| engine.register_region(buffer, options))?;
            place.write(lmt_region_key { bytes: key.to_bytes() });
            Ok(())
        })
    })
}

/// Allocates zeroed memory that peers map, and declares it: reachable also where no
/// mechanism reaches this process's own memory. `memory` (which may be NULL) is where
/// it begins, until `lmt_region_destroy` or `lmt_endpoint_close`, which unmap it:
/// nobody uses it then, and no request that it was passed to is in flight. Peers may
/// change the bytes at any time, as their puts come. The first access by each peer
/// needs this process to make progress once.
///
/// Errors: as `lmt_region_register`; `LMT_ERR_INVALID` also of no bytes.
///
/// # Safety
/// `key` and `memory` are NULL or memory for one each.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lmt_region_allocate(
    endpoint: *mut lmt_endpoint,
    bytes: usize,
    flags: u32,
    key: *mut lmt_region_key,
    memory: *mut *mut c_void,
) -> lmt_code {
    guard(|| {
        // SAFETY: by `# Safety`, `key` is NULL or memory for one.
        let place = unsafe { Place::new(key, "key") }?;
        // SAFETY: by `# Safety`, `memory` is NULL or memory for one.
        let memory = unsafe { Place::wanted(memory, "memory") }?;
        let options = options_of(flags)?;
        some_bytes(bytes)?;
        Endpoint::with(endpoint, |endpoint| {
            let key = endpoint.engine(|engine| engine.allocate_region(bytes, options))?;
            let pointer = endpoint.engine(|engine| engine.region_pointer(&key));
            memory.write(pointer.map_or(ptr::null_mut(), |at| at.as_ptr().cast()));
            place.write(lmt_region_key { bytes: key.to_bytes() });
            Ok(())
        })
    })
}

/// Takes a region of this endpoint back: no copy begins any more. One that a peer has
/// just begun goes on for the length of a system call, so peers are to be done with
/// registered memory before. Memory of `lmt_region_allocate` is unmapped; what a peer
/// is just putting into it goes into memory that nobody reads.
///
/// Errors: `LMT_ERR_NULL`, `LMT_ERR_HANDLE`, `LMT_ERR_BUSY`,
/// `LMT_ERR_REGION_NOT_REGISTERED`, `LMT_ERR_FORKED`.
///
/// # Safety
/// `key` is NULL or leads to one. Memory of `lmt_region_allocate` is used by nobody any
/// more, nor passed to a request that has not ended.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lmt_region_destroy(
    endpoint: *mut lmt_endpoint,
    key: *const lmt_region_key,
) -> lmt_code {
    guard(|| {
        // SAFETY: by `# Safety`, `key` is NULL or leads to one.
        let key = unsafe { key_of(key) }?;
        Endpoint::with(endpoint, |endpoint| Ok(endpoint.engine(|engine| engine.destroy_region(&key))?))
    })
}

/// The length of the region of a key, in bytes.
///
/// Errors: `LMT_ERR_NULL`, `LMT_ERR_INVALID`.
///
/// # Safety
/// `key` is NULL or leads to one; `bytes` is NULL or memory for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lmt_region_bytes(key: *const lmt_region_key, bytes: *mut u64) -> lmt_code {
    guard(|| {
        // SAFETY: by `# Safety`, `bytes` is NULL or memory for a number.
        let place = unsafe { Place::new(bytes, "bytes") }?;
        // SAFETY: by `# Safety`, `key` is NULL or leads to one.
        place.write(unsafe { key_of(key) }?.total_bytes());
        Ok(())
    })
}

/// # Safety
/// As [`lmt_region_get`] of a get, as [`lmt_region_put`] of a put.
unsafe fn begin(
    endpoint: *mut lmt_endpoint,
    key: *const lmt_region_key,
    direction: Direction,
    offset: u64,
    segments: *const libc::iovec,
    count: usize,
    request: *mut lmt_request,
) -> Result<(), Error> {
    // SAFETY: by `# Safety`, `request` is NULL or memory for one.
    let place = unsafe { Place::new(request, "request") }?;
    // SAFETY: by `# Safety`, `key` is NULL or leads to one.
    let key = unsafe { key_of(key) }?;
    let access = if direction == Direction::Get { Access::Write } else { Access::Read };
    // SAFETY: by `# Safety`, `segments` is NULL or leads to `count` segments, lent as
    // `lmt_irecv_segments` (of a get) or `lmt_isend_segments` (of a put) says.
    let buffer = unsafe { lend_segments(segments, count, access) }?;
    Endpoint::with(endpoint, |endpoint| {
        let request = endpoint.engine(|engine| match direction {
            Direction::Get => engine.get(&key, offset, buffer),
            Direction::Put => engine.put(&key, offset, buffer),
        })?;
        place.write(request_to_c(endpoint.number(), request));
        Ok(())
    })
}

/// Begins to fill segments from a region, from `offset` on, without the owner's help;
/// the owner's address must have been inserted. How it ended is told like that of a
/// receive.
///
/// Errors: as `lmt_irecv`; when it ends also `LMT_ERR_REGION_NOT_REGISTERED`,
/// `LMT_ERR_REGION_USED_UP`, `LMT_ERR_REGION_FORBIDDEN`, `LMT_ERR_REGION_BOUNDS`,
/// `LMT_ERR_REGION_UNREACHABLE`.
///
/// # Safety
/// `key` is NULL or leads to one; `segments` and `request` as for
/// `lmt_irecv_segments`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lmt_region_get(
    endpoint: *mut lmt_endpoint,
    key: *const lmt_region_key,
    offset: u64,
    segments: *const libc::iovec,
    count: usize,
    request: *mut lmt_request,
) -> lmt_code {
    // SAFETY: `begin` asks for what `# Safety` says.
    guard(|| unsafe { begin(endpoint, key, Direction::Get, offset, segments, count, request) })
}

/// Begins to copy segments into a region, from `offset` on; else as `lmt_region_get`.
/// When it has ended the bytes are there: a message sent after it finds them.
///
/// Errors: as `lmt_region_get`.
///
/// # Safety
/// `key` is NULL or leads to one; `segments` and `request` as for
/// `lmt_isend_segments`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lmt_region_put(
    endpoint: *mut lmt_endpoint,
    key: *const lmt_region_key,
    offset: u64,
    segments: *const libc::iovec,
    count: usize,
    request: *mut lmt_request,
) -> lmt_code {
    // SAFETY: `begin` asks for what `# Safety` says.
    guard(|| unsafe { begin(endpoint, key, Direction::Put, offset, segments, count, request) })
}
