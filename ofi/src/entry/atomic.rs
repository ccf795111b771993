//! Atomic operations on a peer's memory (fi_atomic(3)): not offered.
#![allow(unsafe_code)] // Called from C.

use std::ffi::{c_int, c_void};

use super::absent;
use crate::abi::FiAddr;
use crate::abi::atomic::{Ioc, OpsAtomic};
use crate::abi::endpoint::FidEp;

pub(super) static OPS: OpsAtomic = OpsAtomic {
    size: size_of::<OpsAtomic>(),
    write,
    writev,
    writemsg,
    inject,
    readwrite,
    readwritev,
    readwritemsg,
    compwrite,
    compwritev,
    compwritemsg,
    writevalid: valid,
    readwritevalid: valid,
    compwritevalid: valid,
};

type Out = *mut c_void;
type In = *const c_void;
type Descs = *mut *mut c_void;

absent! {
    write(*mut FidEp, In, usize, Out, FiAddr, u64, u64, c_int, c_int, Out) -> isize;
    writev(*mut FidEp, *const Ioc, Descs, usize, FiAddr, u64, u64, c_int, c_int, Out) -> isize;
    writemsg(*mut FidEp, In, u64) -> isize;
    inject(*mut FidEp, In, usize, FiAddr, u64, u64, c_int, c_int) -> isize;
    readwrite(*mut FidEp, In, usize, Out, Out, Out, FiAddr, u64, u64, c_int, c_int, Out) -> isize;
    readwritev(
        *mut FidEp, *const Ioc, Descs, usize, *mut Ioc, Descs, usize, FiAddr, u64, u64, c_int, c_int, Out,
    ) -> isize;
    readwritemsg(*mut FidEp, In, *mut Ioc, Descs, usize, u64) -> isize;
    compwrite(
        *mut FidEp, In, usize, Out, In, Out, Out, Out, FiAddr, u64, u64, c_int, c_int, Out,
    ) -> isize;
    compwritev(
        *mut FidEp, *const Ioc, Descs, usize, *const Ioc, Descs, usize, *mut Ioc, Descs, usize,
        FiAddr, u64, u64, c_int, c_int, Out,
    ) -> isize;
    compwritemsg(*mut FidEp, In, *const Ioc, Descs, usize, *mut Ioc, Descs, usize, u64) -> isize;
    valid(*mut FidEp, c_int, c_int, *mut usize) -> c_int;
}
