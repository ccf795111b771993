//! Endpoints: their beginning, end and address.
#![allow(unsafe_code)] // Functions that C calls.

use std::ffi::c_void;
use std::mem::{ManuallyDrop, MaybeUninit};

use super::write;
use crate::border::{places, there};
use crate::code::lmt_code;
use crate::error::{Error, guard};
use crate::objects::{ENDPOINTS, Endpoint, OPTIONS, Options};
use crate::types::{lmt_endpoint, lmt_options};

/// The settings that a caller hands over; NULL stands for none.
pub(super) fn options_of(options: *const lmt_options) -> Result<Options, Error> {
    match options.addr() {
        0 => Ok(Options::default()),
        number => OPTIONS.with(number as u64, |options| Ok(options.clone())),
    }
}

/// Creates an endpoint; `options` may be NULL. To be closed by
/// `lmt_endpoint_close`.
///
/// Errors: `LMT_ERR_NULL`, `LMT_ERR_HANDLE`, `LMT_ERR_BUSY`, `LMT_ERR_CONFIGURATION`,
/// `LMT_ERR_NO_MEMORY`, `LMT_ERR_SYSTEM`.
///
/// # Safety
/// `endpoint` is NULL or memory for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lmt_endpoint_create(
    options: *const lmt_options,
    endpoint: Option<&mut MaybeUninit<*mut lmt_endpoint>>,
) -> lmt_code {
    guard(|| {
        let place = there(endpoint, "endpoint")?;
        let inner = options_of(options)?.builder()?.build()?;
        let number = ENDPOINTS.insert(Box::new(Endpoint { number: 0, inner, is_sleeping: false }))?;
        ENDPOINTS.with(number, |endpoint| {
            endpoint.number = number;
            Ok(())
        })?;
        place.write(std::ptr::without_provenance_mut(number as usize));
        Ok(())
    })
}

/// Closes an endpoint: receives that nothing has matched are taken back, what still
/// waits is sent for at most `close_timeout_ms`, and peers are told goodbye. After
/// it none of its operations uses memory any more, and its handle, peers and requests
/// name nothing. Messages of `lmt_improbe` are to be discarded all the same. It is gone
/// also where an error is told.
///
/// Errors: `LMT_ERR_NULL`, `LMT_ERR_HANDLE`, `LMT_ERR_BUSY`, `LMT_ERR_FORKED`.
///
/// # Safety
/// Any pointer will do.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lmt_endpoint_close(endpoint: *mut lmt_endpoint) -> lmt_code {
    guard(|| {
        // If a fault ends it, it is kept as it is: a second one on the way out would
        // end the process.
        let endpoint = ManuallyDrop::new(ENDPOINTS.take(endpoint.addr() as u64)?);
        let closed = endpoint.engine(|engine| engine.close());
        drop(ManuallyDrop::into_inner(endpoint));
        Ok(closed?)
    })
}

/// The bytes by which others reach this endpoint, to be passed to them in any way,
/// unchanged: at most `LMT_ADDRESS_MAX_BYTES`. `length` may be NULL.
///
/// Errors: `LMT_ERR_NULL`, `LMT_ERR_HANDLE`, `LMT_ERR_BUSY`, `LMT_ERR_TOO_SHORT`.
///
/// # Safety
/// `address` is NULL or memory for `capacity` bytes; `length` is NULL or memory for
/// a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lmt_endpoint_address(
    endpoint: *mut lmt_endpoint,
    address: *mut c_void,
    capacity: usize,
    length: Option<&mut MaybeUninit<usize>>,
) -> lmt_code {
    guard(|| {
        // SAFETY: the caller's promise.
        let room = unsafe { places(address.cast::<u8>(), capacity, "address") }?;
        ENDPOINTS.with(endpoint.addr() as u64, |endpoint| {
            write::list(&endpoint.inner.address().to_bytes(), room, length)
        })
    })
}
