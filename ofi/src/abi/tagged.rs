//! `fi_tagged.h`: tagged messages.

use std::ffi::c_void;

use super::FiAddr;
use super::endpoint::FidEp;

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

#[repr(C)]
pub struct OpsTagged {
    pub size: usize,
    pub recv: unsafe extern "C" fn(
        *mut FidEp,
        *mut c_void,
        usize,
        *mut c_void,
        FiAddr,
        u64,
        u64,
        *mut c_void,
    ) -> isize,
    pub recvv: unsafe extern "C" fn(
        *mut FidEp,
        *const libc::iovec,
        *mut *mut c_void,
        usize,
        FiAddr,
        u64,
        u64,
        *mut c_void,
    ) -> isize,
    pub recvmsg: unsafe extern "C" fn(*mut FidEp, *const MsgTagged, u64) -> isize,
    pub send: unsafe extern "C" fn(
        *mut FidEp,
        *const c_void,
        usize,
        *mut c_void,
        FiAddr,
        u64,
        *mut c_void,
    ) -> isize,
    pub sendv: unsafe extern "C" fn(
        *mut FidEp,
        *const libc::iovec,
        *mut *mut c_void,
        usize,
        FiAddr,
        u64,
        *mut c_void,
    ) -> isize,
    pub sendmsg: unsafe extern "C" fn(*mut FidEp, *const MsgTagged, u64) -> isize,
    pub inject: unsafe extern "C" fn(*mut FidEp, *const c_void, usize, FiAddr, u64) -> isize,
    pub senddata: unsafe extern "C" fn(
        *mut FidEp,
        *const c_void,
        usize,
        *mut c_void,
        u64,
        FiAddr,
        u64,
        *mut c_void,
    ) -> isize,
    pub injectdata: unsafe extern "C" fn(*mut FidEp, *const c_void, usize, u64, FiAddr, u64) -> isize,
}
