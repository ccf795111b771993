//! `fi_endpoint.h`: endpoints and plain messages; and an endpoint's tables of other
//! headers (`fi_cm.h`, `fi_rma.h`, `fi_tagged.h`, `fi_atomic.h`), since each names it.

use std::ffi::{c_int, c_void};

use super::FiAddr;
use super::atomic::{Ioc, MsgAtomic};
use super::fid::{Fid, RxAttr, TxAttr};
use super::rma::MsgRma;
use super::tagged::MsgTagged;

#[derive(Clone, Copy)]
#[repr(C)]
pub struct Msg {
    pub msg_iov: *const libc::iovec,
    pub desc: *mut *mut c_void,
    pub iov_count: usize,
    pub addr: FiAddr,
    pub context: *mut c_void,
    pub data: u64,
}

pub const OPT_LEVEL_ENDPOINT: c_int = 0;
pub const OPT_MIN_MULTI_RECV: c_int = 0;
pub const OPT_CM_DATA_SIZE: c_int = 1;

#[repr(C)]
pub struct OpsEp {
    pub size: usize,
    pub cancel: unsafe extern "C" fn(*mut Fid, *mut c_void) -> isize,
    pub getopt: unsafe extern "C" fn(*mut Fid, c_int, c_int, *mut c_void, *mut usize) -> c_int,
    pub setopt: unsafe extern "C" fn(*mut Fid, c_int, c_int, *const c_void, usize) -> c_int,
    pub tx_ctx: unsafe extern "C" fn(*mut FidEp, c_int, *mut TxAttr, *mut *mut FidEp, *mut c_void) -> c_int,
    pub rx_ctx: unsafe extern "C" fn(*mut FidEp, c_int, *mut RxAttr, *mut *mut FidEp, *mut c_void) -> c_int,
    pub rx_size_left: unsafe extern "C" fn(*mut FidEp) -> isize,
    pub tx_size_left: unsafe extern "C" fn(*mut FidEp) -> isize,
}

pub type Recv =
    unsafe extern "C" fn(*mut FidEp, *mut c_void, usize, *mut c_void, FiAddr, *mut c_void) -> isize;
pub type Recvv = unsafe extern "C" fn(
    *mut FidEp,
    *const libc::iovec,
    *mut *mut c_void,
    usize,
    FiAddr,
    *mut c_void,
) -> isize;
pub type WithMsg = unsafe extern "C" fn(*mut FidEp, *const Msg, u64) -> isize;
pub type Send =
    unsafe extern "C" fn(*mut FidEp, *const c_void, usize, *mut c_void, FiAddr, *mut c_void) -> isize;
pub type Sendv = Recvv;
pub type Inject = unsafe extern "C" fn(*mut FidEp, *const c_void, usize, FiAddr) -> isize;
pub type SendData =
    unsafe extern "C" fn(*mut FidEp, *const c_void, usize, *mut c_void, u64, FiAddr, *mut c_void) -> isize;
pub type InjectData = unsafe extern "C" fn(*mut FidEp, *const c_void, usize, u64, FiAddr) -> isize;

#[repr(C)]
pub struct OpsMsg {
    pub size: usize,
    pub recv: Recv,
    pub recvv: Recvv,
    pub recvmsg: WithMsg,
    pub send: Send,
    pub sendv: Sendv,
    pub sendmsg: WithMsg,
    pub inject: Inject,
    pub senddata: SendData,
    pub injectdata: InjectData,
}

#[repr(C)]
pub struct FidEp {
    pub fid: Fid,
    pub ops: *const OpsEp,
    pub cm: *const OpsCm,
    pub msg: *const OpsMsg,
    pub rma: *const OpsRma,
    pub tagged: *const OpsTagged,
    pub atomic: *const OpsAtomic,
    pub collective: *const c_void,
}

#[repr(C)]
pub struct OpsCm {
    pub size: usize,
    pub setname: unsafe extern "C" fn(*mut Fid, *mut c_void, usize) -> c_int,
    pub getname: unsafe extern "C" fn(*mut Fid, *mut c_void, *mut usize) -> c_int,
    pub getpeer: unsafe extern "C" fn(*mut FidEp, *mut c_void, *mut usize) -> c_int,
    pub connect: unsafe extern "C" fn(*mut FidEp, *const c_void, *const c_void, usize) -> c_int,
    pub listen: unsafe extern "C" fn(*mut c_void) -> c_int,
    pub accept: unsafe extern "C" fn(*mut FidEp, *const c_void, usize) -> c_int,
    pub reject: unsafe extern "C" fn(*mut c_void, *mut Fid, *const c_void, usize) -> c_int,
    pub shutdown: unsafe extern "C" fn(*mut FidEp, u64) -> c_int,
    pub join: unsafe extern "C" fn(*mut FidEp, *const c_void, u64, *mut *mut c_void, *mut c_void) -> c_int,
}

/// One piece of memory to be filled, and two numbers behind the address: an offset and a
/// key, or a tag and what of it is ignored.
pub type IntoOne =
    unsafe extern "C" fn(*mut FidEp, *mut c_void, usize, *mut c_void, FiAddr, u64, u64, *mut c_void) -> isize;
/// The same of several pieces.
pub type Vector = unsafe extern "C" fn(
    *mut FidEp,
    *const libc::iovec,
    *mut *mut c_void,
    usize,
    FiAddr,
    u64,
    u64,
    *mut c_void,
) -> isize;

#[repr(C)]
pub struct OpsRma {
    pub size: usize,
    pub read: IntoOne,
    pub readv: Vector,
    pub readmsg: unsafe extern "C" fn(*mut FidEp, *const MsgRma, u64) -> isize,
    pub write: unsafe extern "C" fn(
        *mut FidEp,
        *const c_void,
        usize,
        *mut c_void,
        FiAddr,
        u64,
        u64,
        *mut c_void,
    ) -> isize,
    pub writev: Vector,
    pub writemsg: unsafe extern "C" fn(*mut FidEp, *const MsgRma, u64) -> isize,
    pub inject: unsafe extern "C" fn(*mut FidEp, *const c_void, usize, FiAddr, u64, u64) -> isize,
    pub writedata: unsafe extern "C" fn(
        *mut FidEp,
        *const c_void,
        usize,
        *mut c_void,
        u64,
        FiAddr,
        u64,
        u64,
        *mut c_void,
    ) -> isize,
    pub injectdata: unsafe extern "C" fn(*mut FidEp, *const c_void, usize, u64, FiAddr, u64, u64) -> isize,
}

#[repr(C)]
pub struct OpsTagged {
    pub size: usize,
    pub recv: IntoOne,
    pub recvv: Vector,
    pub recvmsg: unsafe extern "C" fn(*mut FidEp, *const MsgTagged, u64) -> isize,
    pub send: unsafe extern "C" fn(
        *mut FidEp,
        *const c_void,
        usize,
        *mut c_void,
        FiAddr,
        u64,
        *mut c_void,
    ) -> isize,
    pub sendv: unsafe extern "C" fn(
        *mut FidEp,
        *const libc::iovec,
        *mut *mut c_void,
        usize,
        FiAddr,
        u64,
        *mut c_void,
    ) -> isize,
    pub sendmsg: unsafe extern "C" fn(*mut FidEp, *const MsgTagged, u64) -> isize,
    pub inject: unsafe extern "C" fn(*mut FidEp, *const c_void, usize, FiAddr, u64) -> isize,
    pub senddata: unsafe extern "C" fn(
        *mut FidEp,
        *const c_void,
        usize,
        *mut c_void,
        u64,
        FiAddr,
        u64,
        *mut c_void,
    ) -> isize,
    pub injectdata: unsafe extern "C" fn(*mut FidEp, *const c_void, usize, u64, FiAddr, u64) -> isize,
}

pub type AtomicValid = unsafe extern "C" fn(*mut FidEp, c_int, c_int, *mut usize) -> c_int;

#[repr(C)]
pub struct OpsAtomic {
    pub size: usize,
    pub write: unsafe extern "C" fn(
        *mut FidEp,
        *const c_void,
        usize,
        *mut c_void,
        FiAddr,
        u64,
        u64,
        c_int,
        c_int,
        *mut c_void,
    ) -> isize,
    pub writev: unsafe extern "C" fn(
        *mut FidEp,
        *const Ioc,
        *mut *mut c_void,
        usize,
        FiAddr,
        u64,
        u64,
        c_int,
        c_int,
        *mut c_void,
    ) -> isize,
    pub writemsg: unsafe extern "C" fn(*mut FidEp, *const MsgAtomic, u64) -> isize,
    pub inject:
        unsafe extern "C" fn(*mut FidEp, *const c_void, usize, FiAddr, u64, u64, c_int, c_int) -> isize,
    pub readwrite: unsafe extern "C" fn(
        *mut FidEp,
        *const c_void,
        usize,
        *mut c_void,
        *mut c_void,
        *mut c_void,
        FiAddr,
        u64,
        u64,
        c_int,
        c_int,
        *mut c_void,
    ) -> isize,
    pub readwritev: unsafe extern "C" fn(
        *mut FidEp,
        *const Ioc,
        *mut *mut c_void,
        usize,
        *mut Ioc,
        *mut *mut c_void,
        usize,
        FiAddr,
        u64,
        u64,
        c_int,
        c_int,
        *mut c_void,
    ) -> isize,
    pub readwritemsg:
        unsafe extern "C" fn(*mut FidEp, *const MsgAtomic, *mut Ioc, *mut *mut c_void, usize, u64) -> isize,
    pub compwrite: unsafe extern "C" fn(
        *mut FidEp,
        *const c_void,
        usize,
        *mut c_void,
        *const c_void,
        *mut c_void,
        *mut c_void,
        *mut c_void,
        FiAddr,
        u64,
        u64,
        c_int,
        c_int,
        *mut c_void,
    ) -> isize,
    pub compwritev: unsafe extern "C" fn(
        *mut FidEp,
        *const Ioc,
        *mut *mut c_void,
        usize,
        *const Ioc,
        *mut *mut c_void,
        usize,
        *mut Ioc,
        *mut *mut c_void,
        usize,
        FiAddr,
        u64,
        u64,
        c_int,
        c_int,
        *mut c_void,
    ) -> isize,
    pub compwritemsg: unsafe extern "C" fn(
        *mut FidEp,
        *const MsgAtomic,
        *const Ioc,
        *mut *mut c_void,
        usize,
        *mut Ioc,
        *mut *mut c_void,
        usize,
        u64,
    ) -> isize,
    pub writevalid: AtomicValid,
    pub readwritevalid: AtomicValid,
    pub compwritevalid: AtomicValid,
}
