//! `fi_rma.h`: reading and writing a peer's registered memory.

use std::ffi::c_void;

use super::FiAddr;
use super::endpoint::FidEp;

#[derive(Clone, Copy)]
#[repr(C)]
pub struct RmaIov {
    pub addr: u64,
    pub len: usize,
    pub key: u64,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct MsgRma {
    pub msg_iov: *const libc::iovec,
    pub desc: *mut *mut c_void,
    pub iov_count: usize,
    pub addr: FiAddr,
    pub rma_iov: *const RmaIov,
    pub rma_iov_count: usize,
    pub context: *mut c_void,
    pub data: u64,
}

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
    pub read: unsafe extern "C" fn(
        *mut FidEp,
        *mut c_void,
        usize,
        *mut c_void,
        FiAddr,
        u64,
        u64,
        *mut c_void,
    ) -> isize,
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
