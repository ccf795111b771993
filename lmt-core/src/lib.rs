//! The core of lmt: everything between a send in one process and a receive in
//! another that is not a copying mechanism.
//!
//! Its parts, in the order a message meets them: the [`connect`] state machine,
//! the [`inbox`] queue, [`matching`], the [`rendezvous`] protocol, and the
//! [`mechanism::Lmt`] trait behind which every way of moving a large message
//! stands. No mechanism is named here.
#![deny(unsafe_code)]

pub mod bell;
pub mod bounded_file;
pub mod buffer;
pub mod checkup;
pub mod claims;
#[cfg(not(loom))]
mod clock;
pub mod config;
#[cfg(not(loom))]
pub mod connect;
#[cfg(not(loom))]
pub mod cpu_set;
pub mod cursor;
#[cfg(not(loom))]
pub mod door;
#[cfg(not(loom))]
pub mod engine;
pub mod error;
#[cfg(not(loom))]
pub mod fault_in;
pub mod fork_guard;
pub mod identity;
pub mod inbox;
pub mod iovec;
pub mod keys;
pub mod matching;
pub mod mechanism;
#[cfg(not(loom))]
pub mod mechanisms;
#[cfg(not(loom))]
pub mod memory_limits;
mod mix_hasher;
mod parcel;
pub mod process;
mod queue;
#[cfg(not(loom))]
pub mod random;
pub mod refusal;
pub mod region;
pub mod rendezvous;
#[cfg(not(loom))]
pub mod selection;
pub mod shared_buffer;
#[cfg(not(loom))]
pub mod shared_memory;
mod slab;
pub mod sync;
#[cfg(all(test, not(loom)))]
mod test_alone;
#[cfg(all(test, not(loom)))]
mod test_peer;
#[cfg(not(loom))]
pub mod transfers;
