//! The calls of a message table (fi_msg(3), fi_tagged(3)), which differ for plain and
//! tagged messages by what names a message: nothing, or a tag and what of it a
//! receive ignores.
#![allow(unsafe_code)] // Called from C.

use std::ffi::c_void;

use lmt::{Label, Wanted};

use super::messages::{self, Incoming, Outgoing};
use super::objects::{self, Ep};
use crate::abi::endpoint::FidEp;
use crate::abi::{Errno, FiAddr};
use crate::border::{self, Pieces};

/// What is lent and the endpoint, if both are good. What is lent comes first: kept as a result while
/// the endpoint is looked at, its address would be stored in two halves and loaded as a whole, and
/// stall (store forwarding).
///
/// # Safety
/// The pointer is null or an endpoint of ours.
#[inline(always)] // The path of a short message.
unsafe fn arguments<'a>(pieces: Result<Pieces, Errno>, ep: *mut FidEp) -> Result<(Pieces, &'a Ep), Errno> {
    let pieces = pieces?;
    // SAFETY: the caller's promise.
    Ok((pieces, unsafe { objects::endpoint(ep) }?))
}

/// # Safety
/// The pointer is null or an endpoint of ours.
#[inline(always)] // The path of a short message.
pub(super) unsafe fn receive(
    ep: *mut FidEp,
    pieces: Result<Pieces, Errno>,
    from: FiAddr,
    wanted: Wanted,
    context: *mut c_void,
    flags: Option<u64>,
) -> isize {
    // SAFETY: the caller's promise.
    let (pieces, ep) = match unsafe { arguments(pieces, ep) } {
        Ok(both) => both,
        Err(error) => return error.returned(),
    };
    let context = context.expose_provenance();
    border::size(Incoming { pieces, from, wanted, context, flags }.begin(ep))
}

/// # Safety
/// The pointer is null or an endpoint of ours.
#[inline(always)] // The path of a short message.
pub(super) unsafe fn transmit(
    ep: *mut FidEp,
    pieces: Result<Pieces, Errno>,
    to: FiAddr,
    label: Label,
    context: *mut c_void,
    flags: Option<u64>,
) -> isize {
    // SAFETY: the caller's promise.
    let (pieces, ep) = match unsafe { arguments(pieces, ep) } {
        Ok(both) => both,
        Err(error) => return error.returned(),
    };
    let context = context.expose_provenance();
    border::size(Outgoing { pieces, to, label, context, flags }.begin(ep))
}

/// # Safety
/// The pointer is null or an endpoint of ours; the bytes can be read.
#[inline(always)] // The path of a short message.
pub(super) unsafe fn put_in(
    ep: *mut FidEp,
    buf: *const c_void,
    len: usize,
    to: FiAddr,
    label: Label,
) -> isize {
    // SAFETY: the caller's promises.
    let (ep, bytes) = match (unsafe { objects::endpoint(ep) }, unsafe { border::bytes(buf, len) }) {
        (Ok(ep), Ok(bytes)) => (ep, bytes),
        (Err(error), _) | (_, Err(error)) => return error.returned(),
    };
    border::size(messages::inject(ep, bytes, to, label))
}

/// A label with a number that goes along; of the number's bits those count that
/// `cq_data_size` promises.
#[inline]
pub(super) const fn with_data(label: Label, data: u64) -> Label {
    Label { immediate: Some(data as u32), ..label }
}

/// The table of a kind of messages: its type, that of its message form, what names
/// a message that is sent (`label` of it) and one that is wanted (`wanted` of it).
macro_rules! message_table {
    ($table:ident, $msg:ident, label($($sent:ident),*), wanted($($asked:ident),*)) => {
        pub(super) static OPS: $table = $table {
            size: size_of::<$table>(),
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

        unsafe extern "C" fn recv(
            ep: *mut FidEp,
            buf: *mut c_void,
            len: usize,
            _desc: *mut c_void,
            from: FiAddr,
            $($asked: u64,)*
            context: *mut c_void,
        ) -> isize {
            // SAFETY: C's promise: the memory is lent until the completion is read.
            let pieces = unsafe { border::piece(buf, len, Access::Write) };
            // SAFETY: C's promise: an endpoint of ours.
            unsafe { calls::receive(ep, pieces, from, wanted($($asked),*), context, None) }
        }

        unsafe extern "C" fn recvv(
            ep: *mut FidEp,
            iov: *const libc::iovec,
            _desc: *mut *mut c_void,
            count: usize,
            from: FiAddr,
            $($asked: u64,)*
            context: *mut c_void,
        ) -> isize {
            // SAFETY: C's promise: the memory is lent until the completion is read.
            let pieces = unsafe { border::pieces(iov, count, Access::Write) };
            // SAFETY: C's promise: an endpoint of ours.
            unsafe { calls::receive(ep, pieces, from, wanted($($asked),*), context, None) }
        }

        unsafe extern "C" fn recvmsg(ep: *mut FidEp, msg: *const $msg, flags: u64) -> isize {
            // SAFETY: C's promise: null or a structure.
            let msg = match unsafe { border::read(msg) } {
                Ok(msg) => msg,
                Err(error) => return error.returned(),
            };
            // Who only looks need not lend anything, and what is named is not looked at.
            let looks = flags & (flags::PEEK | flags::DISCARD) != 0;
            let count = if looks { 0 } else { msg.iov_count };
            // SAFETY: C's promise: the memory is lent until the completion is read.
            let pieces = unsafe { border::pieces(msg.msg_iov, count, Access::Write) };
            let wanted = wanted($(msg.$asked),*);
            // SAFETY: C's promise: an endpoint of ours.
            unsafe { calls::receive(ep, pieces, msg.addr, wanted, msg.context, Some(flags)) }
        }

        unsafe extern "C" fn send(
            ep: *mut FidEp,
            buf: *const c_void,
            len: usize,
            _desc: *mut c_void,
            to: FiAddr,
            $($sent: u64,)*
            context: *mut c_void,
        ) -> isize {
            // SAFETY: C's promise: the memory is lent until the completion is read.
            let pieces = unsafe { border::piece(buf, len, Access::Read) };
            // SAFETY: C's promise: an endpoint of ours.
            unsafe { calls::transmit(ep, pieces, to, label($($sent),*), context, None) }
        }

        unsafe extern "C" fn sendv(
            ep: *mut FidEp,
            iov: *const libc::iovec,
            _desc: *mut *mut c_void,
            count: usize,
            to: FiAddr,
            $($sent: u64,)*
            context: *mut c_void,
        ) -> isize {
            // SAFETY: C's promise: the memory is lent until the completion is read.
            let pieces = unsafe { border::pieces(iov, count, Access::Read) };
            // SAFETY: C's promise: an endpoint of ours.
            unsafe { calls::transmit(ep, pieces, to, label($($sent),*), context, None) }
        }

        unsafe extern "C" fn sendmsg(ep: *mut FidEp, msg: *const $msg, flags: u64) -> isize {
            // SAFETY: C's promise: null or a structure.
            let msg = match unsafe { border::read(msg) } {
                Ok(msg) => msg,
                Err(error) => return error.returned(),
            };
            // SAFETY: C's promise: the memory is lent until the completion is read.
            let pieces = unsafe { border::pieces(msg.msg_iov, msg.iov_count, Access::Read) };
            let bare = label($(msg.$sent),*);
            let has_data = flags & flags::REMOTE_CQ_DATA != 0;
            let label = if has_data { calls::with_data(bare, msg.data) } else { bare };
            // SAFETY: C's promise: an endpoint of ours.
            unsafe { calls::transmit(ep, pieces, msg.addr, label, msg.context, Some(flags)) }
        }

        unsafe extern "C" fn inject(
            ep: *mut FidEp,
            buf: *const c_void,
            len: usize,
            to: FiAddr,
            $($sent: u64,)*
        ) -> isize {
            // SAFETY: C's promises: an endpoint of ours, and bytes for the call.
            unsafe { calls::put_in(ep, buf, len, to, label($($sent),*)) }
        }

        unsafe extern "C" fn senddata(
            ep: *mut FidEp,
            buf: *const c_void,
            len: usize,
            _desc: *mut c_void,
            data: u64,
            to: FiAddr,
            $($sent: u64,)*
            context: *mut c_void,
        ) -> isize {
            // SAFETY: C's promise: the memory is lent until the completion is read.
            let pieces = unsafe { border::piece(buf, len, Access::Read) };
            let label = calls::with_data(label($($sent),*), data);
            // SAFETY: C's promise: an endpoint of ours.
            unsafe { calls::transmit(ep, pieces, to, label, context, None) }
        }

        unsafe extern "C" fn injectdata(
            ep: *mut FidEp,
            buf: *const c_void,
            len: usize,
            data: u64,
            to: FiAddr,
            $($sent: u64,)*
        ) -> isize {
            let label = calls::with_data(label($($sent),*), data);
            // SAFETY: C's promises: an endpoint of ours, and bytes for the call.
            unsafe { calls::put_in(ep, buf, len, to, label) }
        }
    };
}
pub(super) use message_table;
