//! Memory that peers can map.
#![allow(unsafe_code)] // Functions that C calls.

use std::collections::BTreeMap;
use std::ffi::c_void;

use lmt::SharedBuffer;
use lmt_core::fork_guard::Origin;

use crate::border::Place;
use crate::code::lmt_code::{self, LMT_ERR_FORKED, LMT_ERR_HANDLE, LMT_ERR_NULL};
use crate::code::of_memory;
use crate::error::{Error, guard};
use crate::lock::ShortLock;

/// What was allocated and not freed, and by which process, by its address.
type Allocated = BTreeMap<usize, (Origin, SharedBuffer)>;

static ALLOCATED: ShortLock<Allocated> = ShortLock::new(BTreeMap::new());

fn with_allocated<R>(f: impl FnOnce(&mut Allocated) -> Result<R, Error>) -> Result<R, Error> {
    let lost = "another thread was allocating when this process was forked; fork where no thread does";
    let mut allocated = ALLOCATED.lock().ok_or_else(|| Error::new(LMT_ERR_FORKED, lost))?;
    f(&mut allocated)
}

/// Refuses to allocate nothing.
pub(super) fn some_bytes(bytes: usize) -> Result<(), Error> {
    match bytes {
        0 => Err(Error::invalid("`bytes` is 0; allocate at least one")),
        _ => Ok(()),
    }
}

/// Allocates memory that peers can map, zeroed: messages from or to it are one copy
/// in user space, by both ends where both are such. It begins at a cache line, from
/// 4096 bytes on at a page. Allocating takes about as long as writing the bytes: use
/// it again and again. A peer to or from which some of it has gone can read and write
/// all of it at any time. To be given back by `lmt_free`. A forked child has none of
/// it.
///
/// Errors: `LMT_ERR_NULL`, `LMT_ERR_INVALID` (no bytes), `LMT_ERR_NO_MEMORY`,
/// `LMT_ERR_SYSTEM`, `LMT_ERR_FORKED` (another thread was allocating at the fork).
///
/// # Safety
/// `memory` is NULL or memory for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lmt_alloc(bytes: usize, memory: *mut *mut c_void) -> lmt_code {
    guard(|| {
        // SAFETY: by `# Safety`, `memory` is NULL or memory for a pointer.
        let place = unsafe { Place::new(memory, "memory") }?;
        some_bytes(bytes)?;
        let mut buffer =
            lmt::alloc(bytes).map_err(|error| Error::new(of_memory(&error), error.to_string()))?;
        let pointer: *mut c_void = buffer.as_mut_ptr().cast();
        with_allocated(|allocated| {
            let before = allocated.insert(pointer.expose_provenance(), (Origin::here(), buffer));
            // Only a parent's can have been at this address; this process has none of it.
            std::mem::forget(before);
            Ok(())
        })?;
        place.write(pointer);
        Ok(())
    })
}

/// Gives memory back that `lmt_alloc` gave, when no operation uses it any more. What
/// a peer is still copying goes back when it is done or dead.
///
/// Errors: `LMT_ERR_NULL`, `LMT_ERR_HANDLE` (it is not what `lmt_alloc` gave, or was
/// freed before), `LMT_ERR_FORKED` (the parent of this process has allocated it).
///
/// # Safety
/// Any pointer will do; the memory that it leads to is used by nobody.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lmt_free(memory: *mut c_void) -> lmt_code {
    guard(|| {
        if memory.is_null() {
            return Err(Error::new(LMT_ERR_NULL, "`memory` is NULL; pass what lmt_alloc gave"));
        }
        let freed = with_allocated(|allocated| match allocated.get(&memory.addr()) {
            Some((origin, _)) if !origin.is_this_process() => Err(Error::new(
                LMT_ERR_FORKED,
                "this belongs to the process that this one was forked off; free what this one has allocated",
            )),
            _ => Ok(allocated.remove(&memory.addr())),
        })?;
        freed.map(drop).ok_or_else(|| {
            let sentence =
                "this is not what lmt_alloc gave, or was freed before; free each once, by its first address";
            Error::new(LMT_ERR_HANDLE, sentence)
        })
    })
}
