//! Versions, errors, and what values are.
#![allow(unsafe_code)] // Functions that C calls.

use std::ffi::{CStr, c_char, c_int};

use crate::border::Place;
use crate::code::{SENTENCES, lmt_code};
use crate::error::{guard, last};
use crate::objects::NO_REQUEST;
use crate::types::{LMT_VERSION_MAJOR, LMT_VERSION_MINOR, LMT_VERSION_PATCH, lmt_peer, lmt_request};

const UNKNOWN: &CStr = c"there is no such code in this version of lmt";

/// The sentence for a code, for the life of the program; for a number that is none
/// of this version it says so. Never NULL.
#[unsafe(no_mangle)]
pub extern "C" fn lmt_strerror(code: c_int) -> *const c_char {
    let found = SENTENCES.iter().find(|(known, _)| *known as c_int == code);
    found.map_or(UNKNOWN, |(_, sentence)| *sentence).as_ptr()
}

/// What was wrong with the last call of this thread that failed, and what would be
/// right, in one sentence; empty if none has. Never NULL. Good until the next call
/// of this thread that fails: copy what is to be kept.
#[unsafe(no_mangle)]
pub extern "C" fn lmt_last_error() -> *const c_char {
    last()
}

/// The version of the library that is loaded; that of the header is
/// `LMT_VERSION_MAJOR` and so on. Any of the places may be NULL.
///
/// Errors: `LMT_ERR_INVALID`.
///
/// # Safety
/// Each place is NULL or memory for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lmt_version(major: *mut u32, minor: *mut u32, patch: *mut u32) -> lmt_code {
    guard(|| {
        let parts = [
            (major, "major", LMT_VERSION_MAJOR),
            (minor, "minor", LMT_VERSION_MINOR),
            (patch, "patch", LMT_VERSION_PATCH),
        ];
        for (place, name, part) in parts {
            // SAFETY: by `# Safety`, each place is NULL or memory for a number.
            unsafe { Place::wanted(place, name) }?.write(part);
        }
        Ok(())
    })
}

/// Whether both name the same peer.
#[unsafe(no_mangle)]
pub extern "C" fn lmt_peer_equal(one: lmt_peer, other: lmt_peer) -> bool {
    one == other
}

/// Whether a request is `LMT_REQUEST_NULL`, which names no operation.
#[unsafe(no_mangle)]
pub extern "C" fn lmt_request_is_null(request: lmt_request) -> bool {
    request == NO_REQUEST
}
