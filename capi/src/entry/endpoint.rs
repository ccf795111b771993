//! Endpoints: their beginning, end and address.
#![allow(unsafe_code)] // Functions that C calls.

use std::ffi::c_void;

use super::both;
use crate::border::Place;
use crate::code::lmt_code;
use crate::error::{Error, guard};
use crate::handle::{handle_of, number_of};
use crate::objects::{Endpoint, OPTIONS, Options, Side};
use crate::types::{lmt_endpoint, lmt_options};

/// The settings that a caller hands over; NULL stands for none.
pub(super) fn options_of(options: *const lmt_options) -> Result<Options, Error> {
    if options.is_null() {
        return Ok(Options::default());
    }
    // Several threads may create with the same at once.
    OPTIONS.with_waiting(number_of(options), |options| Ok(options.clone()))
}

/// Creates an endpoint; `options` may be NULL. To be closed by
/// `lmt_endpoint_close`.
///
/// Errors: `LMT_ERR_NULL`, `LMT_ERR_INVALID`, `LMT_ERR_HANDLE`,
/// `LMT_ERR_CONFIGURATION`, `LMT_ERR_NAME_IN_USE`, `LMT_ERR_NO_MEMORY`,
/// `LMT_ERR_SYSTEM`.
///
/// # Safety
/// `endpoint` is NULL or memory for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lmt_endpoint_create(
    options: *const lmt_options,
    endpoint: *mut *mut lmt_endpoint,
) -> lmt_code {
    guard(|| {
        // SAFETY: by `# Safety`, `endpoint` is NULL or memory for a pointer.
        let place = unsafe { Place::new(endpoint, "endpoint") }?;
        let options = options_of(options)?;
        let inner = options.builder()?.build()?;
        let number = Endpoint::table().insert(|number| {
            let endpoint = Endpoint::new(number, inner);
            if options.accepts_unnamed_peers {
                endpoint.engine(|engine| engine.accept_unnamed_peers());
            }
            Box::new(endpoint)
        })?;
        place.write(handle_of(number));
        Ok(())
    })
}

/// Closes an endpoint: receives that nothing has matched are taken back, what still
/// waits is sent for at most `close_timeout_ms`, regions are taken back, and peers
/// are told goodbye. Its handle, peers and requests name nothing any more, and memory
/// of `lmt_region_allocate` is gone. Messages of `lmt_improbe` are to be discarded
/// all the same.
///
/// After it this process copies nothing for the endpoint any more. But a peer that is
/// in the middle of a copy goes on until it has read the goodbye: out of the memory
/// of a send, into that of a receive, into or out of a registered region. So wait for
/// the end of all requests first, and let peers say by a message that they are done
/// with regions; what was still in flight keeps its memory, mapped and used for
/// nothing else, until those peers have closed their endpoints or have ended.
///
/// The endpoint is gone also where an error is told, but for `LMT_ERR_NULL`,
/// `LMT_ERR_HANDLE` and `LMT_ERR_BUSY`. By `LMT_ERR_FORKED` a forked child has given
/// its share back and its parent's is as it was. After `LMT_ERR_PANIC` of another
/// call nothing is moved any more: peers are told goodbye at once.
///
/// Errors: `LMT_ERR_NULL`, `LMT_ERR_HANDLE`, `LMT_ERR_BUSY`, `LMT_ERR_FORKED`.
///
/// # Safety
/// Any pointer will do; nobody uses memory of `lmt_region_allocate` any more, nor
/// that of requests that have not ended, as said above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lmt_endpoint_close(endpoint: *mut lmt_endpoint) -> lmt_code {
    guard(|| both::close::<Endpoint>(endpoint))
}

/// The bytes by which others reach this endpoint, to be passed to them in any way,
/// unchanged: at most `LMT_ADDRESS_MAX_BYTES`. `length` may be NULL.
///
/// Errors: `LMT_ERR_NULL`, `LMT_ERR_INVALID`, `LMT_ERR_HANDLE`, `LMT_ERR_BUSY`,
/// `LMT_ERR_TOO_SHORT`.
///
/// # Safety
/// `address` is NULL or memory for `capacity` bytes; `length` is NULL or memory for
/// a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lmt_endpoint_address(
    endpoint: *mut lmt_endpoint,
    address: *mut c_void,
    capacity: usize,
    length: *mut usize,
) -> lmt_code {
    // SAFETY: `own_address` asks for what `# Safety` says.
    guard(|| unsafe { both::own_address::<Endpoint>(endpoint, address, capacity, length) })
}
