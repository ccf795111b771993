//! The machine's libfabric, loaded at run time: the library under test is found by
//! it as by any program, in a folder that `FI_PROVIDER_PATH` names.
#![allow(unsafe_code)] // Loads a C library and calls it.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr;

use lmt_fi::abi::fabric::{FabricAttr, FidFabric, Info};

type GetInfo =
    unsafe extern "C" fn(u32, *const c_char, *const c_char, u64, *const Info, *mut *mut Info) -> c_int;

/// Its functions that are none of an object.
pub struct Fi {
    pub getinfo: GetInfo,
    pub freeinfo: unsafe extern "C" fn(*mut Info),
    pub dupinfo: unsafe extern "C" fn(*const Info) -> *mut Info,
    pub fabric: unsafe extern "C" fn(*mut FabricAttr, *mut *mut FidFabric, *mut c_void) -> c_int,
    pub version: unsafe extern "C" fn() -> u32,
    pub strerror: unsafe extern "C" fn(c_int) -> *const c_char,
}

const NAMES: [&CStr; 2] = [c"libfabric.so.1", c"libfabric.so"];

fn open() -> Result<*mut c_void, String> {
    for name in NAMES {
        // SAFETY: a name; libfabric's initialization has no precondition.
        let library = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if !library.is_null() {
            return Ok(library);
        }
    }
    Err("there is no libfabric.so.1 (libfabric1, libfabric-dev)".to_owned())
}

/// # Safety
/// The library has a function of this name and type, or none of the name.
unsafe fn function<F: Copy>(library: *mut c_void, name: &CStr) -> Result<F, String> {
    const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
    // SAFETY: an open library and a name.
    let address = unsafe { libc::dlsym(library, name.as_ptr()) };
    if address.is_null() {
        return Err(format!("libfabric has no {}", name.to_string_lossy()));
    }
    // SAFETY: a function pointer has the size of a pointer, and the caller promises
    // that it is of this type.
    Ok(unsafe { std::mem::transmute_copy(&address) })
}

impl Fi {
    /// Loads it; why that cannot be done otherwise.
    pub fn load() -> Result<&'static Self, String> {
        let library = open()?;
        let fi = Self {
            // SAFETY: the type is that of libfabric's headers, here and below.
            getinfo: unsafe { function(library, c"fi_getinfo") }?,
            // SAFETY: as above.
            freeinfo: unsafe { function(library, c"fi_freeinfo") }?,
            // SAFETY: as above.
            dupinfo: unsafe { function(library, c"fi_dupinfo") }?,
            // SAFETY: as above.
            fabric: unsafe { function(library, c"fi_fabric") }?,
            // SAFETY: as above.
            version: unsafe { function(library, c"fi_version") }?,
            // SAFETY: as above.
            strerror: unsafe { function(library, c"fi_strerror") }?,
        };
        Ok(Box::leak(Box::new(fi)))
    }

    /// `fi_getinfo` for a provider, by name.
    pub fn getinfo(&self, provider: &CStr, version: u32, hints: &mut Info) -> Result<*mut Info, c_int> {
        let mut fabric = FabricAttr {
            fabric: ptr::null_mut(),
            name: ptr::null_mut(),
            prov_name: provider.as_ptr().cast_mut(),
            prov_version: 0,
            api_version: 0,
        };
        hints.fabric_attr = &raw mut fabric;
        let mut info = ptr::null_mut();
        // SAFETY: hints whose pointers are null or alive, and room for a pointer.
        let got =
            unsafe { (self.getinfo)(version, ptr::null(), ptr::null(), 0, &raw const *hints, &raw mut info) };
        hints.fabric_attr = ptr::null_mut();
        if got == 0 { Ok(info) } else { Err(got) }
    }

    /// `fi_strerror`.
    pub fn text(&self, number: c_int) -> String {
        // SAFETY: it takes any number.
        let text = unsafe { (self.strerror)(number) };
        // SAFETY: a string that lasts.
        let text = unsafe { CStr::from_ptr(text) };
        text.to_string_lossy().into_owned()
    }
}
