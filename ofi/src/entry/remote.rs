//! Reading and writing a peer's registered memory (fi_rma(3)).
#![allow(unsafe_code)] // Called from C.

use std::ffi::c_void;

use lmt::Direction;
use lmt::buffer::Access;

use super::messages::{check, in_one, reports};
use super::objects;
use crate::abi::endpoint::{FidEp, OpsRma};
use crate::abi::rma::MsgRma;
use crate::abi::{Errno, FiAddr, flags};
use crate::border::{self, Pieces};
use crate::log::Subsystem;
use crate::refuse::because;
use crate::state::service::errand::Remote;

pub(super) static OPS: OpsRma = OpsRma {
    size: size_of::<OpsRma>(),
    read,
    readv,
    readmsg,
    write,
    writev,
    writemsg,
    inject,
    writedata,
    injectdata,
};

/// Where in which region of which peer.
pub(super) struct There {
    pub peer: FiAddr,
    pub offset: u64,
    pub key: u64,
}

/// # Safety
/// The pointer is null or an endpoint of ours.
unsafe fn begin(
    ep: *mut FidEp,
    direction: Direction,
    pieces: Result<Pieces, Errno>,
    there: There,
    context: *mut c_void,
    flags: Option<u64>,
    data: Option<u32>,
) -> isize {
    // SAFETY: the caller's promise.
    let begun = unsafe { objects::endpoint(ep) }.and_then(|ep| {
        let pieces = pieces?;
        ep.begin(|endpoint, shared_state| {
            let There { peer, offset, key } = there;
            let flags = flags.unwrap_or(endpoint.settings.send_flags);
            check(flags)?;
            let reports = reports(endpoint.send_queue, flags);
            let remote = Remote { peer, key, offset, context: Some(context.expose_provenance()), reports };
            if direction == Direction::Put && flags & flags::INJECT != 0 {
                return in_one(&pieces, |bytes| endpoint.inject_remote(shared_state, remote, bytes, data));
            }
            endpoint.remote(shared_state, remote, direction, pieces.buffer, data)
        })
    });
    border::size(begun)
}

unsafe extern "C" fn read(
    ep: *mut FidEp,
    buf: *mut c_void,
    len: usize,
    _desc: *mut c_void,
    peer: FiAddr,
    offset: u64,
    key: u64,
    context: *mut c_void,
) -> isize {
    // SAFETY: C's promise: the memory is lent until the completion is read.
    let pieces = unsafe { border::piece(buf, len, Access::Write) };
    // SAFETY: C's promise: an endpoint of ours.
    unsafe { begin(ep, Direction::Get, pieces, There { peer, offset, key }, context, None, None) }
}

unsafe extern "C" fn readv(
    ep: *mut FidEp,
    iov: *const libc::iovec,
    _desc: *mut *mut c_void,
    count: usize,
    peer: FiAddr,
    offset: u64,
    key: u64,
    context: *mut c_void,
) -> isize {
    // SAFETY: C's promise: the memory is lent until the completion is read.
    let pieces = unsafe { border::pieces(iov, count, Access::Write) };
    // SAFETY: C's promise: an endpoint of ours.
    unsafe { begin(ep, Direction::Get, pieces, There { peer, offset, key }, context, None, None) }
}

unsafe extern "C" fn write(
    ep: *mut FidEp,
    buf: *const c_void,
    len: usize,
    _desc: *mut c_void,
    peer: FiAddr,
    offset: u64,
    key: u64,
    context: *mut c_void,
) -> isize {
    // SAFETY: C's promise: the memory is lent until the completion is read.
    let pieces = unsafe { border::piece(buf, len, Access::Read) };
    // SAFETY: C's promise: an endpoint of ours.
    unsafe { begin(ep, Direction::Put, pieces, There { peer, offset, key }, context, None, None) }
}

unsafe extern "C" fn writev(
    ep: *mut FidEp,
    iov: *const libc::iovec,
    _desc: *mut *mut c_void,
    count: usize,
    peer: FiAddr,
    offset: u64,
    key: u64,
    context: *mut c_void,
) -> isize {
    // SAFETY: C's promise: the memory is lent until the completion is read.
    let pieces = unsafe { border::pieces(iov, count, Access::Read) };
    // SAFETY: C's promise: an endpoint of ours.
    unsafe { begin(ep, Direction::Put, pieces, There { peer, offset, key }, context, None, None) }
}

/// The one piece of the peer's memory that a call names.
///
/// # Safety
/// The list is null or has so many pieces, which stay as they are.
pub(super) unsafe fn only<'a, T>(list: *const T, count: usize) -> Result<&'a T, Errno> {
    // SAFETY: the caller's promise.
    match unsafe { border::values(list, count) }? {
        [one] => Ok(one),
        _ => {
            let why = format_args!(
                "{count} pieces of the peer's memory are named; name one, as rma_iov_limit says"
            );
            Err(because(Subsystem::EpData, Errno::INVAL, why))
        }
    }
}

/// The memory here and there has to be of the same length.
fn same_length(pieces: &Pieces, there_bytes: usize) -> Result<(), Errno> {
    let here_bytes = pieces.buffer.total_bytes();
    if here_bytes == there_bytes as u64 {
        return Ok(());
    }
    let why =
        format_args!("{here_bytes} bytes here are to become {there_bytes} bytes there; let them be as many");
    Err(because(Subsystem::EpData, Errno::INVAL, why))
}

/// # Safety
/// The pointers are null, or an endpoint of ours and a structure whose pieces are
/// lent until the completion is read.
unsafe fn by_message(ep: *mut FidEp, msg: *const MsgRma, flags: u64, direction: Direction) -> isize {
    // SAFETY: the caller's promise.
    let msg = match unsafe { border::read(msg) } {
        Ok(msg) => msg,
        Err(error) => return error.returned(),
    };
    let has_data = flags & flags::REMOTE_CQ_DATA != 0;
    if has_data && direction == Direction::Get {
        let why = format_args!("a read tells the peer nothing; FI_REMOTE_CQ_DATA is for writes");
        return because(Subsystem::EpData, Errno::BADFLAGS, why).returned();
    }
    // SAFETY: the caller's promise.
    let (there, bytes) = match unsafe { only(msg.rma_iov, msg.rma_iov_count) } {
        Ok(one) => (There { peer: msg.addr, offset: one.addr, key: one.key }, one.len),
        Err(error) => return error.returned(),
    };
    let access = match direction {
        Direction::Get => Access::Write,
        Direction::Put => Access::Read,
    };
    // SAFETY: the caller's promise.
    let pieces = unsafe { border::pieces(msg.msg_iov, msg.iov_count, access) };
    let pieces = pieces.and_then(|pieces| same_length(&pieces, bytes).map(|()| pieces));
    // SAFETY: the caller's promise.
    unsafe {
        begin(ep, direction, pieces, there, msg.context, Some(flags), has_data.then_some(msg.data as u32))
    }
}

unsafe extern "C" fn readmsg(ep: *mut FidEp, msg: *const MsgRma, flags: u64) -> isize {
    // SAFETY: C's promises.
    unsafe { by_message(ep, msg, flags, Direction::Get) }
}

unsafe extern "C" fn writemsg(ep: *mut FidEp, msg: *const MsgRma, flags: u64) -> isize {
    // SAFETY: C's promises.
    unsafe { by_message(ep, msg, flags, Direction::Put) }
}

/// # Safety
/// The pointer is null or an endpoint of ours; the bytes can be read.
unsafe fn put_in(
    ep: *mut FidEp,
    buf: *const c_void,
    len: usize,
    There { peer, offset, key }: There,
    data: Option<u32>,
) -> isize {
    // SAFETY: the caller's promise.
    let begun = unsafe { objects::endpoint(ep) }.and_then(|ep| {
        // SAFETY: the caller's promise.
        let bytes = unsafe { border::bytes(buf, len) }?;
        let remote = Remote { peer, key, offset, context: None, reports: false };
        ep.begin(|endpoint, shared_state| endpoint.inject_remote(shared_state, remote, bytes, data))
    });
    border::size(begun)
}

unsafe extern "C" fn inject(
    ep: *mut FidEp,
    buf: *const c_void,
    len: usize,
    peer: FiAddr,
    offset: u64,
    key: u64,
) -> isize {
    // SAFETY: C's promises: an endpoint of ours, and bytes for the call.
    unsafe { put_in(ep, buf, len, There { peer, offset, key }, None) }
}

// Of the number's bits those count that `cq_data_size` promises.

unsafe extern "C" fn writedata(
    ep: *mut FidEp,
    buf: *const c_void,
    len: usize,
    _desc: *mut c_void,
    data: u64,
    peer: FiAddr,
    offset: u64,
    key: u64,
    context: *mut c_void,
) -> isize {
    // SAFETY: C's promise: the memory is lent until the completion is read.
    let pieces = unsafe { border::piece(buf, len, Access::Read) };
    let there = There { peer, offset, key };
    // SAFETY: C's promise: an endpoint of ours.
    unsafe { begin(ep, Direction::Put, pieces, there, context, None, Some(data as u32)) }
}

unsafe extern "C" fn injectdata(
    ep: *mut FidEp,
    buf: *const c_void,
    len: usize,
    data: u64,
    peer: FiAddr,
    offset: u64,
    key: u64,
) -> isize {
    // SAFETY: C's promises: an endpoint of ours, and bytes for the call.
    unsafe { put_in(ep, buf, len, There { peer, offset, key }, Some(data as u32)) }
}
