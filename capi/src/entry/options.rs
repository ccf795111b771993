//! Settings for endpoints and device layers.
#![allow(unsafe_code)] // Functions that C calls.

use std::ffi::{c_char, c_void};

use lmt::EndpointId;

use crate::border::{Place, bytes, text};
use crate::code::lmt_code;
use crate::error::{Error, guard};
use crate::handle::{handle_of, number_of};
use crate::objects::{OPTIONS, Options, group};
use crate::types::{LMT_ID_BYTES, lmt_options};

/// Makes settings, all as the environment, files and defaults say, to be changed by
/// the functions below and given to `lmt_endpoint_create` or `lmt_device_create` as
/// often as wanted. To be given back by `lmt_options_destroy`.
///
/// Errors: `LMT_ERR_NULL`, `LMT_ERR_NO_MEMORY`.
///
/// # Safety
/// `options` is NULL or memory for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lmt_options_create(options: *mut *mut lmt_options) -> lmt_code {
    guard(|| {
        // SAFETY: by `# Safety`, `options` is NULL or memory for a pointer.
        let place = unsafe { Place::new(options, "options") }?;
        place.write(handle_of(OPTIONS.insert(|_| Options::default())?));
        Ok(())
    })
}

/// Gives settings back. What was created with them keeps its own.
///
/// Errors: `LMT_ERR_NULL`, `LMT_ERR_HANDLE`, `LMT_ERR_BUSY`.
///
/// # Safety
/// Any pointer will do.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lmt_options_destroy(options: *mut lmt_options) -> lmt_code {
    guard(|| OPTIONS.take(number_of(options)).map(drop))
}

/// Sets a key of docs/configuration.md, as its environment variable would, and
/// outranking that: `lmt_options_set(options, "eager_max_bytes", "8KiB")`, or
/// `"mechanisms"` and `"cma,shm"`. That a mechanism does not exist is told when
/// an endpoint is created.
///
/// Errors: `LMT_ERR_NULL`, `LMT_ERR_INVALID` (no UTF-8), `LMT_ERR_HANDLE`,
/// `LMT_ERR_BUSY`, `LMT_ERR_CONFIGURATION` (no such key, or it cannot have that
/// value).
///
/// # Safety
/// `key` and `value` are NULL or texts that end with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lmt_options_set(
    options: *mut lmt_options,
    key: *const c_char,
    value: *const c_char,
) -> lmt_code {
    guard(|| {
        // SAFETY: by `# Safety`, `key` is NULL or a text that ends with a zero.
        let key = unsafe { text(key, "key") }?;
        // SAFETY: by `# Safety`, `value` is NULL or a text that ends with a zero.
        let value = unsafe { text(value, "value") }?;
        OPTIONS.with(number_of(options), |options| {
            let value = lmt::configuration::value_of(key, value)?;
            options.settings.push((key.to_owned(), value));
            Ok(())
        })
    })
}

/// Sets the identity, `LMT_ID_BYTES` bytes; random when it is not set. No two
/// endpoints or device layers of a machine may have the same at a time: creating the second
/// is answered by `LMT_ERR_NAME_IN_USE`.
///
/// Errors: `LMT_ERR_NULL`, `LMT_ERR_HANDLE`, `LMT_ERR_BUSY`.
///
/// # Safety
/// `id` is NULL or leads to `LMT_ID_BYTES` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lmt_options_set_id(options: *mut lmt_options, id: *const c_void) -> lmt_code {
    guard(|| {
        // SAFETY: by `# Safety`, `id` is NULL or leads to so many bytes.
        let id = unsafe { bytes(id, LMT_ID_BYTES, "id") }?;
        let id =
            id.try_into().map_err(|_| Error::invalid(format!("an identity has {LMT_ID_BYTES} bytes")))?;
        OPTIONS.with(number_of(options), |options| {
            options.id = Some(EndpointId::from_bytes(id));
            Ok(())
        })
    })
}

/// Sets the identity of this process's rank in the group that `lmt run` started, at
/// which the others find it by `lmt_group_address`.
///
/// Errors: `LMT_ERR_NULL`, `LMT_ERR_HANDLE`, `LMT_ERR_BUSY`, `LMT_ERR_NO_GROUP`,
/// `LMT_ERR_CONFIGURATION` (variables that contradict each other).
///
/// # Safety
/// Any pointer will do.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lmt_options_set_group_rank(options: *mut lmt_options) -> lmt_code {
    guard(|| {
        OPTIONS.with(number_of(options), |options| {
            let group = group()?;
            options.id = Some(group.id.member(group.rank));
            Ok(())
        })
    })
}

/// Whether a table of what was moved is printed to standard error at the end,
/// whatever `LMT_STATS` says.
///
/// Errors: `LMT_ERR_NULL`, `LMT_ERR_HANDLE`, `LMT_ERR_BUSY`.
///
/// # Safety
/// Any pointer will do.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lmt_options_set_statistics(options: *mut lmt_options, wanted: bool) -> lmt_code {
    guard(|| {
        OPTIONS.with(number_of(options), |options| {
            options.statistics = Some(wanted);
            Ok(())
        })
    })
}

/// Whether `LMT_ANY_PEER` also takes messages of peers that have connected without
/// having been inserted here; false when it is not set, and then such messages wait
/// until `lmt_peer_insert` names their sender. For layers in which a message itself
/// tells where an answer is to go. The status of such a message names its sender,
/// who counts towards `max_peers` until `lmt_peer_remove`. A device layer does without.
///
/// Errors: `LMT_ERR_NULL`, `LMT_ERR_HANDLE`, `LMT_ERR_BUSY`.
///
/// # Safety
/// Any pointer will do.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lmt_options_set_hear_strangers(options: *mut lmt_options, wanted: bool) -> lmt_code {
    guard(|| {
        OPTIONS.with(number_of(options), |options| {
            options.accepts_unnamed_peers = wanted;
            Ok(())
        })
    })
}
