//! `fi_atomic.h`.

use std::ffi::{c_int, c_void};

use super::FiAddr;
use super::endpoint::FidEp;

/// `struct fi_ioc`, which this provider does not read.
pub type Ioc = c_void;

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
    pub writemsg: unsafe extern "C" fn(*mut FidEp, *const c_void, u64) -> isize,
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
        unsafe extern "C" fn(*mut FidEp, *const c_void, *mut Ioc, *mut *mut c_void, usize, u64) -> isize,
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
        *const c_void,
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
