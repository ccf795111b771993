//! The one step from the registry's pointer to the registry.
#![allow(unsafe_code)] // A static pointer to what is never freed.

use super::registry::Registry;

/// What a pointer refers to that is null or came from `Box::leak`.
#[inline]
pub(super) fn view(pointer: *mut Registry) -> Option<&'static Registry> {
    // SAFETY: the callers load it from the static, which holds null or what
    // `make` has leaked in this process or an ancestor, whose memory fork
    // copies; it is never freed and never changed but through its lock and
    // atomics.
    unsafe { pointer.as_ref() }
}
