//! The functions of a receive context: it has none, since its owner has the
//! receives. What C calls on it answers so.
#![allow(unsafe_code)] // Called from C.

use std::ffi::{c_int, c_void};
use std::ptr;

use super::absent;
use crate::abi::FiAddr;
use crate::abi::endpoint::{FidEp, Msg, OpsEp, OpsMsg, OpsTagged};
use crate::abi::fid::{Fid, RxAttr, TxAttr};
use crate::abi::tagged::MsgTagged;

type Iovec = *const libc::iovec;
type Desc = *mut *mut c_void;

absent! {
    cancel(*mut Fid, *mut c_void) -> isize;
    getopt(*mut Fid, c_int, c_int, *mut c_void, *mut usize) -> c_int;
    setopt(*mut Fid, c_int, c_int, *const c_void, usize) -> c_int;
    tx_ctx(*mut FidEp, c_int, *mut TxAttr, *mut *mut FidEp, *mut c_void) -> c_int;
    rx_ctx(*mut FidEp, c_int, *mut RxAttr, *mut *mut FidEp, *mut c_void) -> c_int;
    size_left(*mut FidEp) -> isize;
    recv(*mut FidEp, *mut c_void, usize, *mut c_void, FiAddr, *mut c_void) -> isize;
    vector(*mut FidEp, Iovec, Desc, usize, FiAddr, *mut c_void) -> isize;
    message(*mut FidEp, *const Msg, u64) -> isize;
    send(*mut FidEp, *const c_void, usize, *mut c_void, FiAddr, *mut c_void) -> isize;
    inject(*mut FidEp, *const c_void, usize, FiAddr) -> isize;
    senddata(*mut FidEp, *const c_void, usize, *mut c_void, u64, FiAddr, *mut c_void) -> isize;
    injectdata(*mut FidEp, *const c_void, usize, u64, FiAddr) -> isize;
    trecv(*mut FidEp, *mut c_void, usize, *mut c_void, FiAddr, u64, u64, *mut c_void) -> isize;
    trecvv(*mut FidEp, Iovec, Desc, usize, FiAddr, u64, u64, *mut c_void) -> isize;
    tmessage(*mut FidEp, *const MsgTagged, u64) -> isize;
    tsend(*mut FidEp, *const c_void, usize, *mut c_void, FiAddr, u64, *mut c_void) -> isize;
    tsendv(*mut FidEp, Iovec, Desc, usize, FiAddr, u64, *mut c_void) -> isize;
    tinject(*mut FidEp, *const c_void, usize, FiAddr, u64) -> isize;
    tsenddata(*mut FidEp, *const c_void, usize, *mut c_void, u64, FiAddr, u64, *mut c_void) -> isize;
    tinjectdata(*mut FidEp, *const c_void, usize, u64, FiAddr, u64) -> isize;
}

static EP: OpsEp = OpsEp {
    size: size_of::<OpsEp>(),
    cancel,
    getopt,
    setopt,
    tx_ctx,
    rx_ctx,
    rx_size_left: size_left,
    tx_size_left: size_left,
};
static MSG: OpsMsg = OpsMsg {
    size: size_of::<OpsMsg>(),
    recv,
    recvv: vector,
    recvmsg: message,
    send,
    sendv: vector,
    sendmsg: message,
    inject,
    senddata,
    injectdata,
};
static TAGGED: OpsTagged = OpsTagged {
    size: size_of::<OpsTagged>(),
    recv: trecv,
    recvv: trecvv,
    recvmsg: tmessage,
    send: tsend,
    sendv: tsendv,
    sendmsg: tmessage,
    inject: tinject,
    senddata: tsenddata,
    injectdata: tinjectdata,
};

/// What C sees of a receive context.
pub(super) fn head(fid: Fid) -> FidEp {
    FidEp {
        fid,
        ops: &raw const EP,
        cm: ptr::null(),
        msg: &raw const MSG,
        rma: ptr::null(),
        tagged: &raw const TAGGED,
        atomic: ptr::null(),
        collective: ptr::null(),
    }
}
