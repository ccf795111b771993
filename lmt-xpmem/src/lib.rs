//! One copy in user space over XPMEM, a kernel module by which a process attaches the
//! memory of another: the receiver reads the sender's memory (the Get model), the sender
//! writes the receiver's (Put), or both do, each one part (Both).
//!
//! Each process makes one segment of its whole address space. Peers attach blocks of it
//! where messages are, keep them within a bound, and copy by loads and stores. What stands
//! behind an attachment is the peer's memory of that moment: pages that the peer unmaps
//! are dropped, and looked up again when they are touched. Where there is none, a copy
//! faults; that ends the transfer by this mechanism and not the process.
//!
//! `docs/mechanisms/xpmem.md` says what it needs, and what it does to security.
#![deny(unsafe_code)]
#![cfg(not(loom))] // The models build the core without what this needs.

pub mod abi;
mod attachments;
mod config;
mod device;
mod diagnostics;
mod driver;
mod mechanism;
mod peer;
mod refusal;

pub use config::{Config, KEYS};
pub use device::Device;
pub use driver::Driver;
pub use mechanism::Xpmem;
pub use peer::{XpmemPeer, XpmemTransfer};
