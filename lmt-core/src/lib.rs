//! The core of lmt: everything between a send in one process and a receive in
//! another that is not a copying mechanism.
//!
//! Its parts, in the order a message meets them: the [`connect`] state machine,
//! the [`inbox`] queue, [`matching`], the [`rendezvous`] protocol, and the
//! [`mechanism::Lmt`] trait behind which every way of moving a large message
//! stands. No mechanism is named here.
#![deny(unsafe_code)]

pub mod buffer;
pub mod config;
pub mod cursor;
pub mod error;
#[cfg(not(loom))]
pub mod fork_guard;
pub mod identity;
pub mod mechanism;
#[cfg(not(loom))]
mod memory_limits;
pub mod process;
#[cfg(not(loom))]
pub mod shared_memory;
pub mod sync;
