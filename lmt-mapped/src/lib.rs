//! One copy in user space: memory from `lmt::alloc` is mapped by the peer, and
//! whoever has the other's buffer mapped copies from or to it without a system
//! call. The receiver reads a sender's shared buffer (the Get model), or a
//! sender writes a receiver's (Put); where both are such, both copy (Both).
//!
//! The peer asks for an arena's descriptor, or is handed it with the first
//! message from it, over the connection ([`lmt_core::mechanism::OobMessages::oob_message`]),
//! and keeps the mapping within a bound. What is in an arena can be read and
//! written by each peer that has it mapped (`docs/mechanisms/mapped.md`).
#![deny(unsafe_code)]
#![cfg(not(loom))] // The models build the core without what this needs.

mod config;
mod cookie;
mod mechanism;
mod news;
mod peer;
mod sys;

pub use config::{Config, KEYS};
pub use mechanism::Mapped;
pub use peer::{MappedPeer, MappedTransfer};
