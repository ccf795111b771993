//! Which version of libfabric calls. The structures of fi_peer(3) differ from
//! version to version, and nothing in them says which they are.
#![allow(unsafe_code)] // Asks the dynamic linker.

use std::ffi::c_void;

/// The version of the libfabric in which, or above which, the code at this address
/// lies; none where there is no libfabric.
pub(super) fn of_code(address: *const c_void) -> Option<u32> {
    // SAFETY: zeros and null pointers are valid for all its fields.
    let mut place: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: any address may be asked about; `place` is room for the answer.
    if unsafe { libc::dladdr(address, &raw mut place) } == 0 || place.dli_fname.is_null() {
        return None;
    }
    // SAFETY: a path, ended by a zero, of what is loaded; nothing is loaded anew.
    let library = unsafe { libc::dlopen(place.dli_fname, libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
    if library.is_null() {
        return None;
    }
    // SAFETY: a loaded library, and a name ended by a zero.
    let function = unsafe { libc::dlsym(library, c"fi_version".as_ptr()) };
    let version = (!function.is_null()).then(|| {
        // SAFETY: every libfabric has this function, of this type (fi_version(3)).
        let version: unsafe extern "C" fn() -> u32 = unsafe { std::mem::transmute(function) };
        // SAFETY: it has no precondition, and its library is loaded.
        unsafe { version() }
    });
    // SAFETY: opened above, closed once; the code that calls is in it, so it stays.
    unsafe { libc::dlclose(library) };
    version
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_of_others_has_no_version() {
        assert_eq!(of_code(libc::getpid as *const c_void), None);
        assert_eq!(of_code(std::ptr::null()), None);
    }
}
