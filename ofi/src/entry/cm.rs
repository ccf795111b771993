//! An endpoint's name (fi_cm(3)). Reliable datagrams have no connections.
#![allow(unsafe_code)] // Called from C.

use std::ffi::{c_int, c_void};

use super::vector::give_name;
use super::{absent, objects};
use crate::abi::endpoint::{FidEp, OpsCm};
use crate::abi::fid::Fid;
use crate::border;

pub(super) static OPS: OpsCm = OpsCm {
    size: size_of::<OpsCm>(),
    setname,
    getname,
    getpeer,
    connect,
    listen,
    accept,
    reject,
    shutdown,
    join,
};

absent! {
    setname(*mut Fid, *mut c_void, usize) -> c_int;
    getpeer(*mut FidEp, *mut c_void, *mut usize) -> c_int;
    connect(*mut FidEp, *const c_void, *const c_void, usize) -> c_int;
    listen(*mut c_void) -> c_int;
    accept(*mut FidEp, *const c_void, usize) -> c_int;
    reject(*mut c_void, *mut Fid, *const c_void, usize) -> c_int;
    shutdown(*mut FidEp, u64) -> c_int;
    join(*mut FidEp, *const c_void, u64, *mut *mut c_void, *mut c_void) -> c_int;
}

unsafe extern "C" fn getname(fid: *mut Fid, to: *mut c_void, bytes: *mut usize) -> c_int {
    // SAFETY: C's promise: an endpoint of ours.
    let named = unsafe { objects::endpoint(fid) }
        // SAFETY: C's promise: null or room for as many bytes as it says.
        .and_then(|ep| unsafe { give_name(&ep.name, to, bytes) });
    border::int(named)
}
