//! `fi_domain.h`: address vectors and memory regions.

use std::ffi::{c_char, c_int, c_void};

use super::FiAddr;
use super::fid::Fid;

#[derive(Clone, Copy)]
#[repr(C)]
pub struct AvAttr {
    pub av_type: c_int,
    pub rx_ctx_bits: c_int,
    pub count: usize,
    pub ep_per_node: usize,
    pub name: *const c_char,
    pub map_addr: *mut c_void,
    pub flags: u64,
}

#[repr(C)]
pub struct FidAv {
    pub fid: Fid,
    pub ops: *const OpsAv,
}

#[repr(C)]
pub struct OpsAv {
    pub size: usize,
    pub insert:
        unsafe extern "C" fn(*mut FidAv, *const c_void, usize, *mut FiAddr, u64, *mut c_void) -> c_int,
    pub insertsvc: unsafe extern "C" fn(
        *mut FidAv,
        *const c_char,
        *const c_char,
        *mut FiAddr,
        u64,
        *mut c_void,
    ) -> c_int,
    pub insertsym: unsafe extern "C" fn(
        *mut FidAv,
        *const c_char,
        usize,
        *const c_char,
        usize,
        *mut FiAddr,
        u64,
        *mut c_void,
    ) -> c_int,
    pub remove: unsafe extern "C" fn(*mut FidAv, *mut FiAddr, usize, u64) -> c_int,
    pub lookup: unsafe extern "C" fn(*mut FidAv, FiAddr, *mut c_void, *mut usize) -> c_int,
    pub straddr: unsafe extern "C" fn(*mut FidAv, *const c_void, *mut c_char, *mut usize) -> *const c_char,
    pub av_set: unsafe extern "C" fn(*mut FidAv, *mut c_void, *mut *mut c_void, *mut c_void) -> c_int,
}

#[repr(C)]
pub struct FidMr {
    pub fid: Fid,
    pub mem_desc: *mut c_void,
    pub key: u64,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct MrAttr {
    pub mr_iov: *const libc::iovec,
    pub iov_count: usize,
    pub access: u64,
    pub offset: u64,
    pub requested_key: u64,
    pub context: *mut c_void,
    pub auth_key_size: usize,
    pub auth_key: *mut u8,
    pub iface: c_int,
    pub device: u64,
}

#[repr(C)]
pub struct OpsMr {
    pub size: usize,
    pub reg: unsafe extern "C" fn(
        *mut Fid,
        *const c_void,
        usize,
        u64,
        u64,
        u64,
        u64,
        *mut *mut FidMr,
        *mut c_void,
    ) -> c_int,
    pub regv: unsafe extern "C" fn(
        *mut Fid,
        *const libc::iovec,
        usize,
        u64,
        u64,
        u64,
        u64,
        *mut *mut FidMr,
        *mut c_void,
    ) -> c_int,
    pub regattr: unsafe extern "C" fn(*mut Fid, *const MrAttr, u64, *mut *mut FidMr) -> c_int,
}
