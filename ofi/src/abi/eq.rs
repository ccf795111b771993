//! `fi_eq.h`: queues, counters, and what is waited for.

use std::ffi::{c_char, c_int, c_void};

use super::FiAddr;
use super::fid::Fid;

pub const WAIT_NONE: c_int = 0;
pub const WAIT_UNSPEC: c_int = 1;
pub const WAIT_SET: c_int = 2;
pub const WAIT_FD: c_int = 3;
pub const WAIT_YIELD: c_int = 5;

/// Never made by this provider.
pub type FidWait = c_void;
/// Not read by this provider.
pub type WaitAttr = c_void;

/// Events.
pub const NOTIFY: u32 = 0;
pub const MR_COMPLETE: u32 = 4;
pub const AV_COMPLETE: u32 = 5;

#[derive(Clone, Copy)]
#[repr(C)]
pub struct EqAttr {
    pub size: usize,
    pub flags: u64,
    pub wait_obj: c_int,
    pub signaling_vector: c_int,
    pub wait_set: *mut FidWait,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct EqEntry {
    pub fid: *mut Fid,
    pub context: *mut c_void,
    pub data: u64,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct EqErrEntry {
    pub fid: *mut Fid,
    pub context: *mut c_void,
    pub data: u64,
    pub err: c_int,
    pub prov_errno: c_int,
    pub err_data: *mut c_void,
    pub err_data_size: usize,
}

#[repr(C)]
pub struct FidEq {
    pub fid: Fid,
    pub ops: *const OpsEq,
}

#[repr(C)]
pub struct OpsEq {
    pub size: usize,
    pub read: unsafe extern "C" fn(*mut FidEq, *mut u32, *mut c_void, usize, u64) -> isize,
    pub readerr: unsafe extern "C" fn(*mut FidEq, *mut EqErrEntry, u64) -> isize,
    pub write: unsafe extern "C" fn(*mut FidEq, u32, *const c_void, usize, u64) -> isize,
    pub sread: unsafe extern "C" fn(*mut FidEq, *mut u32, *mut c_void, usize, c_int, u64) -> isize,
    pub strerror: unsafe extern "C" fn(*mut FidEq, c_int, *const c_void, *mut c_char, usize) -> *const c_char,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct PollAttr {
    pub flags: u64,
}

#[repr(C)]
pub struct FidPoll {
    pub fid: Fid,
    pub ops: *const OpsPoll,
}

#[repr(C)]
pub struct OpsPoll {
    pub size: usize,
    pub poll: unsafe extern "C" fn(*mut FidPoll, *mut *mut c_void, c_int) -> c_int,
    pub poll_add: unsafe extern "C" fn(*mut FidPoll, *mut Fid, u64) -> c_int,
    pub poll_del: unsafe extern "C" fn(*mut FidPoll, *mut Fid, u64) -> c_int,
}

pub const CQ_FORMAT_UNSPEC: c_int = 0;
pub const CQ_FORMAT_CONTEXT: c_int = 1;
pub const CQ_FORMAT_MSG: c_int = 2;
pub const CQ_FORMAT_DATA: c_int = 3;
pub const CQ_FORMAT_TAGGED: c_int = 4;

/// The longest of the formats; each other one is a part of it from the beginning.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct CqTaggedEntry {
    pub op_context: *mut c_void,
    pub flags: u64,
    pub len: usize,
    pub buf: *mut c_void,
    pub data: u64,
    pub tag: u64,
}

/// As version 1.17 has it; 1.20 adds `src_addr` at the end.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct CqErrEntry {
    pub op_context: *mut c_void,
    pub flags: u64,
    pub len: usize,
    pub buf: *mut c_void,
    pub data: u64,
    pub tag: u64,
    pub olen: usize,
    pub err: c_int,
    pub prov_errno: c_int,
    pub err_data: *mut c_void,
    pub err_data_size: usize,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct CqAttr {
    pub size: usize,
    pub flags: u64,
    pub format: c_int,
    pub wait_obj: c_int,
    pub signaling_vector: c_int,
    pub wait_cond: c_int,
    pub wait_set: *mut FidWait,
}

#[repr(C)]
pub struct FidCq {
    pub fid: Fid,
    pub ops: *const OpsCq,
}

#[repr(C)]
pub struct OpsCq {
    pub size: usize,
    pub read: unsafe extern "C" fn(*mut FidCq, *mut c_void, usize) -> isize,
    pub readfrom: unsafe extern "C" fn(*mut FidCq, *mut c_void, usize, *mut FiAddr) -> isize,
    pub readerr: unsafe extern "C" fn(*mut FidCq, *mut CqErrEntry, u64) -> isize,
    pub sread: unsafe extern "C" fn(*mut FidCq, *mut c_void, usize, *const c_void, c_int) -> isize,
    pub sreadfrom:
        unsafe extern "C" fn(*mut FidCq, *mut c_void, usize, *mut FiAddr, *const c_void, c_int) -> isize,
    pub signal: unsafe extern "C" fn(*mut FidCq) -> c_int,
    pub strerror: unsafe extern "C" fn(*mut FidCq, c_int, *const c_void, *mut c_char, usize) -> *const c_char,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct CntrAttr {
    pub events: c_int,
    pub wait_obj: c_int,
    pub wait_set: *mut FidWait,
    pub flags: u64,
}

pub const CNTR_EVENTS_COMP: c_int = 0;

#[repr(C)]
pub struct FidCntr {
    pub fid: Fid,
    pub ops: *const OpsCntr,
}

#[repr(C)]
pub struct OpsCntr {
    pub size: usize,
    pub read: unsafe extern "C" fn(*mut FidCntr) -> u64,
    pub readerr: unsafe extern "C" fn(*mut FidCntr) -> u64,
    pub add: unsafe extern "C" fn(*mut FidCntr, u64) -> c_int,
    pub set: unsafe extern "C" fn(*mut FidCntr, u64) -> c_int,
    pub wait: unsafe extern "C" fn(*mut FidCntr, u64, c_int) -> c_int,
    pub adderr: unsafe extern "C" fn(*mut FidCntr, u64) -> c_int,
    pub seterr: unsafe extern "C" fn(*mut FidCntr, u64) -> c_int,
}
