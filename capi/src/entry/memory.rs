//! Memory that peers can map.
#![allow(unsafe_code)] // Functions that C calls.

use std::collections::HashMap;
use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::sync::{LazyLock, Mutex, MutexGuard};

use lmt::SharedBuffer;

use crate::border::there;
use crate::code::lmt_code::{self, LMT_ERR_FORKED, LMT_ERR_HANDLE, LMT_ERR_NO_MEMORY};
use crate::error::{Error, guard};
use crate::lock::patiently;

/// What was allocated and not freed, by its address.
static ALLOCATED: LazyLock<Mutex<HashMap<usize, SharedBuffer>>> = LazyLock::new(Mutex::default);

fn allocated() -> Result<MutexGuard<'static, HashMap<usize, SharedBuffer>>, Error> {
    patiently(&ALLOCATED).ok_or_else(|| {
        let sentence =
            "another thread was allocating when this process was forked; fork where no thread does";
        Error::new(LMT_ERR_FORKED, sentence)
    })
}

/// Allocates memory that peers can map, zeroed: messages from or to it are one copy
/// in user space, by both ends where both are such. It begins at a cache line, from
/// 4096 bytes on at a page. Allocating takes about as long as writing the bytes: use
/// it again and again. A peer to or from which some of it has gone can read and write
/// all of it at any time. To be given back by `lmt_free`. A forked child has none of
/// it.
///
/// Errors: `LMT_ERR_NULL`, `LMT_ERR_INVALID` (no bytes), `LMT_ERR_NO_MEMORY`.
///
/// # Safety
/// `memory` is NULL or memory for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lmt_alloc(bytes: usize, memory: Option<&mut MaybeUninit<*mut c_void>>) -> lmt_code {
    guard(|| {
        let place = there(memory, "memory")?;
        if bytes == 0 {
            return Err(Error::invalid("`bytes` is 0; allocate as many as a message has"));
        }
        let mut buffer =
            lmt::alloc(bytes).map_err(|error| Error::new(LMT_ERR_NO_MEMORY, error.to_string()))?;
        let pointer: *mut c_void = buffer.as_mut_ptr().cast();
        allocated()?.insert(pointer.expose_provenance(), buffer);
        place.write(pointer);
        Ok(())
    })
}

/// Gives memory back that `lmt_alloc` gave, when no operation uses it any more. What a
/// peer is still copying goes back when it is done or dead.
///
/// Errors: `LMT_ERR_NULL`, `LMT_ERR_HANDLE` (it is not what `lmt_alloc` gave, or was
/// freed before).
///
/// # Safety
/// Any pointer will do; the memory that it leads to is used by nobody.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lmt_free(memory: *mut c_void) -> lmt_code {
    guard(|| {
        if memory.is_null() {
            return Err(Error::null("memory"));
        }
        let found = allocated()?.remove(&memory.addr());
        found.map(drop).ok_or_else(|| {
            let sentence =
                "this is not what lmt_alloc gave, or was freed before; free each once, by its first address";
            Error::new(LMT_ERR_HANDLE, sentence)
        })
    })
}
