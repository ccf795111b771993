//! The slots of `struct fi_ops` that most objects leave empty.
#![allow(unsafe_code)] // Called from C.

use std::ffi::{c_char, c_int, c_void};

use super::absent;
use crate::abi::fid::Fid;

absent! {
    bind(*mut Fid, *mut Fid, u64) -> c_int;
    control(*mut Fid, c_int, *mut c_void) -> c_int;
    ops_open(*mut Fid, *const c_char, u64, *mut *mut c_void, *mut c_void) -> c_int;
    tostr(*const Fid, *mut c_char, usize) -> c_int;
    ops_set(*mut Fid, *const c_char, u64, *mut c_void, *mut c_void) -> c_int;
}

/// An object's table with these functions, and none for the rest.
macro_rules! ops {
    (close: $close:expr, bind: $bind:expr, control: $control:expr) => {
        crate::abi::fid::Ops {
            size: size_of::<crate::abi::fid::Ops>(),
            close: $close,
            bind: $bind,
            control: $control,
            ops_open: crate::entry::base::ops_open,
            tostr: crate::entry::base::tostr,
            ops_set: crate::entry::base::ops_set,
        }
    };
}
pub(super) use ops;
