//! `fi_cm.h`: names and connections, of which this provider has the former.

use std::ffi::{c_int, c_void};

use super::endpoint::FidEp;
use super::fabric::Fid;

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
