//! libfabric's binary interface: the structures, tables and numbers of its
//! headers, as version 1.17 has them, which later versions extend at their ends.
//! One file for each header, but that what names each other stands in one: an
//! endpoint's tables in [`endpoint`], the domain in [`fabric`]. [`fid`] is what all of
//! them build on. `tests/layout.rs` compares sizes and offsets with the headers where
//! they are installed.
//!
//! Nothing here does anything. Every table begins with its size in bytes; a
//! caller looks at that before it uses a slot of a later version.
#![allow(missing_docs)] // Named as in the headers, which say what they are.

pub mod atomic;
pub mod domain;
pub mod endpoint;
pub mod eq;
pub mod errno;
pub mod fabric;
pub mod fid;
pub mod flags;
pub mod peer;
pub mod provider;
pub mod rma;
pub mod tagged;

pub use errno::Errno;

/// An address's number in an address vector.
pub type FiAddr = u64;
/// None, or any (`FI_ADDR_UNSPEC`, `FI_ADDR_NOTAVAIL`).
pub const ADDR_UNSPEC: FiAddr = u64::MAX;
