//! `fi_endpoint.h`: endpoints and plain messages.

use std::ffi::{c_int, c_void};

use super::FiAddr;
use super::atomic::OpsAtomic;
use super::cm::OpsCm;
use super::fabric::{Fid, RxAttr, TxAttr};
use super::rma::OpsRma;
use super::tagged::OpsTagged;

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
