//! Libraries that are loaded to see whether they can be (dlopen(3)).
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A library that is loaded, with all that it wants, until this is dropped.
#[derive(Debug)]
pub struct Library(*mut c_void);

impl Library {
    /// Loads a library.
    ///
    /// # Errors
    /// The loader's own reason.
    pub fn load(file: &Path) -> Result<Self, String> {
        let name = CString::new(file.as_os_str().as_bytes()).map_err(|error| error.to_string())?;
        // SAFETY: the name is a C string. What runs then is the code with which the
        // library sets itself up: a libfabric that belongs to an MPI, or our own
        // provider, which programs load in the same way.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if handle.is_null() { Err(last_error()) } else { Ok(Self(handle)) }
    }

    fn symbol(&self, name: &CStr) -> Option<*mut c_void> {
        // SAFETY: the handle is of a library that is loaded, the name a C string.
        let symbol = unsafe { libc::dlsym(self.0, name.as_ptr()) };
        (!symbol.is_null()).then_some(symbol)
    }

    /// Whether it has this function.
    pub fn has(&self, name: &CStr) -> bool {
        self.symbol(name).is_some()
    }

    /// The version of libfabric, major and minor (fi_version(3)), if it is one.
    pub fn libfabric_version(&self) -> Option<(u32, u32)> {
        let symbol = self.symbol(c"fi_version")?;
        // SAFETY: the function of this name is `uint32_t fi_version(void)` in every
        // libfabric, and a function's address is as wide as an object's here.
        let version = unsafe { std::mem::transmute::<*mut c_void, extern "C" fn() -> u32>(symbol) };
        let version = version();
        Some((version >> 16, version & 0xffff))
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        // SAFETY: the handle is of `dlopen` and closed once; nothing of the library
        // is borrowed beyond the methods above.
        unsafe { libc::dlclose(self.0) };
    }
}

fn last_error() -> String {
    // SAFETY: it takes nothing, and gives a C string or null.
    let text = unsafe { libc::dlerror() };
    if text.is_null() {
        return "the loader gives no reason".to_owned();
    }
    // SAFETY: it is a C string of this thread's until the next call of the loader.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

#[cfg(test)]
#[path = "sys_tests.rs"]
mod tests;
