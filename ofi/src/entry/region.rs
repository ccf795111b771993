//! Memory regions (fi_mr(3)): not offered.
#![allow(unsafe_code)] // Called from C.

use std::ffi::{c_int, c_void};

use super::absent;
use crate::abi::domain::{FidMr, MrAttr, OpsMr};
use crate::abi::fabric::Fid;

pub(super) static OPS: OpsMr = OpsMr { size: size_of::<OpsMr>(), reg, regv, regattr };

absent! {
    reg(*mut Fid, *const c_void, usize, u64, u64, u64, u64, *mut *mut FidMr, *mut c_void) -> c_int;
    regv(*mut Fid, *const libc::iovec, usize, u64, u64, u64, u64, *mut *mut FidMr, *mut c_void) -> c_int;
    regattr(*mut Fid, *const MrAttr, u64, *mut *mut FidMr) -> c_int;
}
