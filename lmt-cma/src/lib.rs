//! Single copy by the kernel: the receiver reads the sender's memory
//! (process_vm_readv(2), the Get model), the sender writes the receiver's
//! (process_vm_writev(2), Put), or both do, each one part (Both).
//!
//! The kernel enforces no ranges: a peer that may do this can reach the whole
//! address space. A transfer is described by a cookie that lists its segments,
//! or says where a long list stands in the process that made it.
#![deny(unsafe_code)]
// Models of loom are of crates that use this one, and of nothing in it.
#![cfg_attr(loom, allow(dead_code))]

mod diagnostics;
#[cfg(not(loom))]
mod mechanism;
#[cfg(not(loom))]
mod peer;
mod probe;
mod refusal;
pub mod remote;
pub mod segments;
#[cfg(not(loom))]
mod speed;
mod sys;
pub mod vm;

pub use diagnostics::diagnostics;
#[cfg(not(loom))]
pub use mechanism::Cma;
#[cfg(not(loom))]
pub use peer::{CmaPeer, CmaTransfer};
pub use probe::probe;
pub use segments::{INLINE_SEGMENTS, MAX_SEGMENTS};
