//! The group in which `lmt run` has started this process.
#![allow(unsafe_code)] // Functions that C calls.

use std::ffi::c_void;

use super::both::write_address;
use crate::border::Place;
use crate::code::lmt_code;
use crate::error::{Error, guard};
use crate::objects::group;

/// This process's rank, from 0, and how many ranks `lmt run` has started.
///
/// Errors: `LMT_ERR_NULL`, `LMT_ERR_INVALID`, `LMT_ERR_NO_GROUP`,
/// `LMT_ERR_CONFIGURATION` (variables that contradict each other).
///
/// # Safety
/// Each place is NULL or memory for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lmt_group(rank: *mut u32, size: *mut u32) -> lmt_code {
    guard(|| {
        // SAFETY: by `# Safety`, `rank` is NULL or memory for a number.
        let rank = unsafe { Place::new(rank, "rank") }?;
        // SAFETY: by `# Safety`, `size` is NULL or memory for a number.
        let size = unsafe { Place::new(size, "size") }?;
        let group = group()?;
        rank.write(group.rank);
        size.write(group.size);
        Ok(())
    })
}

/// The address at which a rank of the group is reached that has created its
/// endpoint, or its device layer, with `lmt_options_set_group_rank`. `length` may be NULL.
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
    length: *mut usize,
) -> lmt_code {
    guard(|| {
        let of_rank = || {
            let group = group()?;
            if rank >= group.size {
                let last = group.size - 1;
                return Err(Error::invalid(format!("there is no rank {rank}; the ranks are 0 to {last}")));
            }
            Ok(group.address(rank))
        };
        // SAFETY: by `# Safety`, `address` is NULL or memory for `capacity` bytes, and
        // `length` is NULL or memory for a number.
        unsafe { write_address(of_rank, address, capacity, length) }
    })
}

/// Lets the processes that this one's parent has started copy out of this one where
/// Yama would keep them from it (`ptrace_scope` 1): for ranks that another launcher
/// starts, an MPI's. `lmt run` names itself in `LMT_LAUNCHER_PID`; where that is set
/// it alone counts. Where there is no Yama nothing is done and nothing is needed.
///
/// Errors: none.
#[unsafe(no_mangle)]
pub extern "C" fn lmt_admit_siblings() -> lmt_code {
    guard(|| {
        lmt::launch::admit_siblings();
        Ok(())
    })
}
