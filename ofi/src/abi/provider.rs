//! `providers/fi_prov.h`.

use std::ffi::{c_char, c_int, c_void};

use super::fabric::{FabricAttr, FidFabric, Info};

/// Memory that libfabric's core keeps for itself with a provider.
#[repr(C)]
pub struct Context {
    pub internal: [*mut c_void; 4],
}

/// What `fi_prov_ini` gives to libfabric's core.
#[repr(C)]
pub struct Provider {
    pub version: u32,
    pub fi_version: u32,
    pub context: Context,
    pub name: *const c_char,
    pub getinfo:
        unsafe extern "C" fn(u32, *const c_char, *const c_char, u64, *const Info, *mut *mut Info) -> c_int,
    pub fabric: unsafe extern "C" fn(*mut FabricAttr, *mut *mut FidFabric, *mut c_void) -> c_int,
    pub cleanup: unsafe extern "C" fn(),
}

/// A version as libfabric writes it.
pub const fn version(major: u32, minor: u32) -> u32 {
    major << 16 | minor
}
