//! The engine under a group's endpoint.
#![allow(unsafe_code)] // The one call that reaches it.

use lmt::Endpoint;
use lmt_core::endpoint::Engine;

/// Calls `f` with the endpoint's engine. It stays where it is: `f` must not put another
/// in its place, and nothing in this crate does.
pub(crate) fn with_engine<R>(endpoint: &Endpoint, f: impl FnOnce(&mut Engine) -> R) -> R {
    // SAFETY: all closures of this crate only call the engine's methods; none swaps,
    // replaces or takes it.
    unsafe { endpoint.with_engine(f) }
}
