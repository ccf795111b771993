//! `fi_atomic.h`.

use std::ffi::{c_int, c_void};

use super::FiAddr;
use super::endpoint::FidEp;

#[derive(Clone, Copy)]
#[repr(C)]
pub struct Ioc {
    pub addr: *mut c_void,
    pub count: usize,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct RmaIoc {
    pub addr: u64,
    pub count: usize,
    pub key: u64,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct MsgAtomic {
    pub msg_iov: *const Ioc,
    pub desc: *mut *mut c_void,
    pub iov_count: usize,
    pub addr: FiAddr,
    pub rma_iov: *const RmaIoc,
    pub rma_iov_count: usize,
    pub datatype: c_int,
    pub op: c_int,
    pub context: *mut c_void,
    pub data: u64,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct AtomicAttr {
    pub count: usize,
    pub size: usize,
}

/// Of `fi_query_atomic`: which family is asked for.
pub const FETCH_ATOMIC: u64 = 1 << 58;
pub const COMPARE_ATOMIC: u64 = 1 << 59;

pub type Valid = unsafe extern "C" fn(*mut FidEp, c_int, c_int, *mut usize) -> c_int;

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
    pub writevalid: Valid,
    pub readwritevalid: Valid,
    pub compwritevalid: Valid,
}
