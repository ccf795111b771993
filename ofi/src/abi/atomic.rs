//! `fi_atomic.h`: what an atomic operation is of.

use std::ffi::{c_int, c_void};

use super::FiAddr;

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
