//! `fi_rma.h`: what names a peer's registered memory.

use std::ffi::c_void;

use super::FiAddr;

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
