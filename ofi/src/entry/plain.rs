//! Plain messages (fi_msg(3)).
#![allow(unsafe_code)] // Called from C.

use std::ffi::c_void;

use lmt::Label;
use lmt::buffer::Access;

use super::endpoint;
use super::messages::{self, ANY_PLAIN, Incoming, Outgoing, with_data};
use crate::abi::endpoint::{FidEp, Msg, OpsMsg};
use crate::abi::{Errno, FiAddr, flags};
use crate::border::{self, Pieces};
use crate::state::endpoint::PLAIN;

pub(super) static OPS: OpsMsg = OpsMsg {
    size: size_of::<OpsMsg>(),
    recv,
    recvv,
    recvmsg,
    send,
    sendv,
    sendmsg,
    inject,
    senddata,
    injectdata,
};

const LABEL: Label = Label { tag: 0, space: PLAIN, immediate: None };

/// # Safety
/// The pointer is null or an endpoint of ours.
#[inline]
unsafe fn receive(
    ep: *mut FidEp,
    pieces: Result<Pieces<'_>, Errno>,
    from: FiAddr,
    context: *mut c_void,
    flags: Option<u64>,
) -> isize {
    // SAFETY: the caller's promise.
    let begun = unsafe { endpoint::get(ep) }.and_then(|ep| {
        let context = context.expose_provenance();
        Incoming { pieces: pieces?, from, wanted: ANY_PLAIN, context, flags }.begin(ep)
    });
    border::size(begun)
}

/// # Safety
/// The pointer is null or an endpoint of ours.
#[inline]
unsafe fn transmit(
    ep: *mut FidEp,
    pieces: Result<Pieces<'_>, Errno>,
    to: FiAddr,
    label: Label,
    context: *mut c_void,
    flags: Option<u64>,
) -> isize {
    // SAFETY: the caller's promise.
    let begun = unsafe { endpoint::get(ep) }.and_then(|ep| {
        Outgoing { pieces: pieces?, to, label, context: context.expose_provenance(), flags }.begin(ep)
    });
    border::size(begun)
}

unsafe extern "C" fn recv(
    ep: *mut FidEp,
    buf: *mut c_void,
    len: usize,
    _desc: *mut c_void,
    from: FiAddr,
    context: *mut c_void,
) -> isize {
    // SAFETY: C's promise: the memory is lent until the completion is read.
    let pieces = unsafe { border::piece(buf, len, Access::Write) };
    // SAFETY: C's promise: an endpoint of ours.
    unsafe { receive(ep, pieces, from, context, None) }
}

unsafe extern "C" fn recvv(
    ep: *mut FidEp,
    iov: *const libc::iovec,
    _desc: *mut *mut c_void,
    count: usize,
    from: FiAddr,
    context: *mut c_void,
) -> isize {
    // SAFETY: C's promise: the memory is lent until the completion is read.
    let pieces = unsafe { border::pieces(iov, count, Access::Write) };
    // SAFETY: C's promise: an endpoint of ours.
    unsafe { receive(ep, pieces, from, context, None) }
}

unsafe extern "C" fn recvmsg(ep: *mut FidEp, msg: *const Msg, flags: u64) -> isize {
    // SAFETY: C's promise: null or a structure.
    let msg = match unsafe { border::read(msg) } {
        Ok(msg) => msg,
        Err(error) => return error.returned(),
    };
    // SAFETY: C's promise: the memory is lent until the completion is read.
    let pieces = unsafe { border::pieces(msg.msg_iov, msg.iov_count, Access::Write) };
    // SAFETY: C's promise: an endpoint of ours.
    unsafe { receive(ep, pieces, msg.addr, msg.context, Some(flags)) }
}

unsafe extern "C" fn send(
    ep: *mut FidEp,
    buf: *const c_void,
    len: usize,
    _desc: *mut c_void,
    to: FiAddr,
    context: *mut c_void,
) -> isize {
    // SAFETY: C's promise: the memory is lent until the completion is read.
    let pieces = unsafe { border::piece(buf, len, Access::Read) };
    // SAFETY: C's promise: an endpoint of ours.
    unsafe { transmit(ep, pieces, to, LABEL, context, None) }
}

unsafe extern "C" fn sendv(
    ep: *mut FidEp,
    iov: *const libc::iovec,
    _desc: *mut *mut c_void,
    count: usize,
    to: FiAddr,
    context: *mut c_void,
) -> isize {
    // SAFETY: C's promise: the memory is lent until the completion is read.
    let pieces = unsafe { border::pieces(iov, count, Access::Read) };
    // SAFETY: C's promise: an endpoint of ours.
    unsafe { transmit(ep, pieces, to, LABEL, context, None) }
}

unsafe extern "C" fn sendmsg(ep: *mut FidEp, msg: *const Msg, flags: u64) -> isize {
    // SAFETY: C's promise: null or a structure.
    let msg = match unsafe { border::read(msg) } {
        Ok(msg) => msg,
        Err(error) => return error.returned(),
    };
    // SAFETY: C's promise: the memory is lent until the completion is read.
    let pieces = unsafe { border::pieces(msg.msg_iov, msg.iov_count, Access::Read) };
    let label = if flags & flags::REMOTE_CQ_DATA == 0 { LABEL } else { with_data(0, PLAIN, msg.data) };
    // SAFETY: C's promise: an endpoint of ours.
    unsafe { transmit(ep, pieces, msg.addr, label, msg.context, Some(flags)) }
}

/// # Safety
/// The pointer is null or an endpoint of ours; the bytes can be read.
#[inline]
unsafe fn put_in(ep: *mut FidEp, buf: *const c_void, len: usize, to: FiAddr, label: Label) -> isize {
    // SAFETY: the caller's promise.
    let begun = unsafe { endpoint::get(ep) }.and_then(|ep| {
        // SAFETY: the caller's promise.
        messages::inject(ep, unsafe { border::bytes(buf, len) }?, to, label)
    });
    border::size(begun)
}

unsafe extern "C" fn inject(ep: *mut FidEp, buf: *const c_void, len: usize, to: FiAddr) -> isize {
    // SAFETY: C's promises: an endpoint of ours, and bytes for the call.
    unsafe { put_in(ep, buf, len, to, LABEL) }
}

unsafe extern "C" fn senddata(
    ep: *mut FidEp,
    buf: *const c_void,
    len: usize,
    _desc: *mut c_void,
    data: u64,
    to: FiAddr,
    context: *mut c_void,
) -> isize {
    // SAFETY: C's promise: the memory is lent until the completion is read.
    let pieces = unsafe { border::piece(buf, len, Access::Read) };
    // SAFETY: C's promise: an endpoint of ours.
    unsafe { transmit(ep, pieces, to, with_data(0, PLAIN, data), context, None) }
}

unsafe extern "C" fn injectdata(
    ep: *mut FidEp,
    buf: *const c_void,
    len: usize,
    data: u64,
    to: FiAddr,
) -> isize {
    // SAFETY: C's promises: an endpoint of ours, and bytes for the call.
    unsafe { put_in(ep, buf, len, to, with_data(0, PLAIN, data)) }
}
