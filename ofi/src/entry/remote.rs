//! Reading and writing a peer's memory (fi_rma(3)): not offered.
#![allow(unsafe_code)] // Called from C.

use std::ffi::c_void;

use super::absent;
use crate::abi::FiAddr;
use crate::abi::endpoint::FidEp;
use crate::abi::rma::{MsgRma, OpsRma};

pub(super) static OPS: OpsRma = OpsRma {
    size: size_of::<OpsRma>(),
    read,
    readv: vector,
    readmsg: message,
    write,
    writev: vector,
    writemsg: message,
    inject,
    writedata,
    injectdata,
};

absent! {
    read(*mut FidEp, *mut c_void, usize, *mut c_void, FiAddr, u64, u64, *mut c_void) -> isize;
    vector(*mut FidEp, *const libc::iovec, *mut *mut c_void, usize, FiAddr, u64, u64, *mut c_void) -> isize;
    message(*mut FidEp, *const MsgRma, u64) -> isize;
    write(*mut FidEp, *const c_void, usize, *mut c_void, FiAddr, u64, u64, *mut c_void) -> isize;
    inject(*mut FidEp, *const c_void, usize, FiAddr, u64, u64) -> isize;
    writedata(*mut FidEp, *const c_void, usize, *mut c_void, u64, FiAddr, u64, u64, *mut c_void) -> isize;
    injectdata(*mut FidEp, *const c_void, usize, u64, FiAddr, u64, u64) -> isize;
}
