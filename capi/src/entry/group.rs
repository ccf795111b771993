//! The group in which `lmt run` has started this process.
#![allow(unsafe_code)] // Functions that C calls.

use std::ffi::c_void;
use std::mem::MaybeUninit;

use super::write;
use crate::border::{places, there};
use crate::code::lmt_code;
use crate::error::{Error, guard};
use crate::objects::group;

/// This process's rank, from 0, and how many ranks `lmt run` has started.
///
/// Errors: `LMT_ERR_NULL`, `LMT_ERR_NO_GROUP`, `LMT_ERR_CONFIGURATION` (variables
/// that contradict each other).
///
/// # Safety
/// Each place is NULL or memory for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lmt_group(
    rank: Option<&mut MaybeUninit<u32>>,
    size: Option<&mut MaybeUninit<u32>>,
) -> lmt_code {
    guard(|| {
        let (rank, size) = (there(rank, "rank")?, there(size, "size")?);
        let group = group()?;
        rank.write(group.rank);
        size.write(group.size);
        Ok(())
    })
}

/// The address at which a rank of the group is reached that has created its
/// endpoint, or its door, with `lmt_options_set_group_rank`. `length` may be NULL.
///
/// Errors: `LMT_ERR_NULL`, `LMT_ERR_INVALID` (no such rank), `LMT_ERR_TOO_SHORT`
/// (pass `LMT_ADDRESS_MAX_BYTES`), `LMT_ERR_NO_GROUP`, `LMT_ERR_CONFIGURATION`.
///
/// # Safety
/// `address` is NULL or memory for `capacity` bytes; `length` is NULL or memory for
/// a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lmt_group_address(
    rank: u32,
    address: *mut c_void,
    capacity: usize,
    length: Option<&mut MaybeUninit<usize>>,
) -> lmt_code {
    guard(|| {
        // SAFETY: the caller's promise.
        let room = unsafe { places(address.cast::<u8>(), capacity, "address") }?;
        let group = group()?;
        if rank >= group.size {
            let last = group.size - 1;
            return Err(Error::invalid(format!("there is no rank {rank}; the ranks are 0 to {last}")));
        }
        write::list(&group.address(rank).to_bytes(), room, length)
    })
}

/// Lets the processes that this one's parent has started copy out of this one where
/// Yama would keep them from it (`ptrace_scope` 1): for ranks that another launcher
/// starts, an MPI's. `lmt run` names itself in `LMT_LAUNCHER_PID`; where that is set it
/// alone counts. Where there is no Yama nothing is done and nothing is needed.
///
/// Errors: none.
#[unsafe(no_mangle)]
pub extern "C" fn lmt_admit_siblings() -> lmt_code {
    guard(|| {
        lmt::launch::admit_siblings();
        Ok(())
    })
}
