//! `fabric.h`, what other headers build on: the beginning of every object, and what
//! is asked of either direction of an endpoint.

use std::ffi::{c_char, c_int, c_void};

/// What every object begins with.
#[repr(C)]
pub struct Fid {
    pub fclass: usize,
    pub context: *mut c_void,
    pub ops: *const Ops,
}

pub const CLASS_FABRIC: usize = 1;
pub const CLASS_DOMAIN: usize = 2;
pub const CLASS_EP: usize = 3;
pub const CLASS_SRX_CTX: usize = 6;
pub const CLASS_AV: usize = 11;
pub const CLASS_MR: usize = 12;
pub const CLASS_EQ: usize = 13;
pub const CLASS_CQ: usize = 14;
pub const CLASS_CNTR: usize = 15;
pub const CLASS_POLL: usize = 17;

/// `fi_control`'s commands.
pub const CONTROL_GETOPSFLAG: c_int = 2;
pub const CONTROL_SETOPSFLAG: c_int = 3;
pub const CONTROL_ALIAS: c_int = 4;
pub const CONTROL_GETWAIT: c_int = 5;
pub const CONTROL_ENABLE: c_int = 6;
pub const CONTROL_GETWAITOBJ: c_int = 16;

#[repr(C)]
pub struct Ops {
    pub size: usize,
    pub close: unsafe extern "C" fn(*mut Fid) -> c_int,
    pub bind: unsafe extern "C" fn(*mut Fid, *mut Fid, u64) -> c_int,
    pub control: unsafe extern "C" fn(*mut Fid, c_int, *mut c_void) -> c_int,
    pub ops_open: unsafe extern "C" fn(*mut Fid, *const c_char, u64, *mut *mut c_void, *mut c_void) -> c_int,
    pub tostr: unsafe extern "C" fn(*const Fid, *mut c_char, usize) -> c_int,
    pub ops_set: unsafe extern "C" fn(*mut Fid, *const c_char, u64, *mut c_void, *mut c_void) -> c_int,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct TxAttr {
    pub caps: u64,
    pub mode: u64,
    pub op_flags: u64,
    pub msg_order: u64,
    pub comp_order: u64,
    pub inject_size: usize,
    pub size: usize,
    pub iov_limit: usize,
    pub rma_iov_limit: usize,
    pub tclass: u32,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct RxAttr {
    pub caps: u64,
    pub mode: u64,
    pub op_flags: u64,
    pub msg_order: u64,
    pub comp_order: u64,
    pub total_buffered_recv: usize,
    pub size: usize,
    pub iov_limit: usize,
}
