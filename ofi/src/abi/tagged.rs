//! `fi_tagged.h`: a tagged message.

use std::ffi::c_void;

use super::FiAddr;

#[derive(Clone, Copy)]
#[repr(C)]
pub struct MsgTagged {
    pub msg_iov: *const libc::iovec,
    pub desc: *mut *mut c_void,
    pub iov_count: usize,
    pub addr: FiAddr,
    pub tag: u64,
    pub ignore: u64,
    pub context: *mut c_void,
    pub data: u64,
}
