//! The double-buffered pipeline through shared memory: the sender copies the
//! message into a few buffers, the receiver copies it out, both at once
//! (nemesis-lmt, section 2). It needs nothing from the kernel but a memory file
//! that both have mapped, so it works wherever two processes can connect.
//!
//! Each endpoint owns one pool of such buffers, a sealed memfd without a name,
//! sparse until it is used; its peers map it and receive through it. A transfer
//! takes a *lane* of the pool, some buffers and two counters, once both sides
//! are active, and gives it back when it ends. How the counters stay sound when
//! transfers are aborted and processes stop anywhere is written in `lane`.
//!
//! Every peer has the whole pool mapped: peers are trusted not to look at each
//! other's messages, as all of them are processes of one user.
#![deny(unsafe_code)]

#[cfg_attr(loom, allow(dead_code))] // The models draw their own tags.
mod lane;
mod sync;

#[cfg(not(loom))]
mod copier;
#[cfg(not(loom))]
mod diagnostics;
#[cfg(not(loom))]
mod faults;
#[cfg(not(loom))]
mod geometry;
#[cfg(not(loom))]
mod mechanism;
#[cfg(not(loom))]
mod piece;
#[cfg(not(loom))]
mod pool;
#[cfg(not(loom))]
mod sys;

#[cfg(not(loom))]
pub use copier::{Copied, Copier, Cpu, Piece};
#[cfg(not(loom))]
pub use geometry::{Config, ConfigError, KEYS};
#[cfg(not(loom))]
pub use mechanism::{Shm, ShmPeer, ShmTransfer};
