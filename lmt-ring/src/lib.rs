//! The ring of a pair: two processes that talk copy their messages through cells
//! of shared memory, the sender in, the receiver out, both at once. A cell
//! belongs to one of the two at a time, and with a message it changes its owner:
//! the receiver keeps the cells that it has emptied, and writes its own messages
//! into them. So each line crosses between the two caches once for a message, where a
//! pipe with a direction (nemesis-lmt, section 2) moves it twice: the bytes over
//! and the right to write back.
//!
//! Each endpoint owns a pool of rings, a sealed memfd without a name, sparse
//! until it is used, which its peers map. A pair uses a ring of the pool of who
//! sent first; there are at most `max_rings` in a pool, so memory does not grow
//! with the square of the processes.
//!
//! Every peer has the whole pool mapped: peers are trusted not to look at each
//! other's messages, as all of them are processes of one user.
#![deny(unsafe_code)]

#[cfg_attr(loom, allow(dead_code))] // The models draw their own tags.
mod slot;
mod sync;

#[cfg(not(loom))]
mod config;
#[cfg(not(loom))]
mod cookie;
#[cfg(not(loom))]
mod faults;
#[cfg(not(loom))]
mod in_flight;
#[cfg(not(loom))]
mod layout;
#[cfg(not(loom))]
mod mechanism;
#[cfg(not(loom))]
mod pool;
#[cfg(not(loom))]
mod receiver;
#[cfg(not(loom))]
mod ring;
#[cfg(not(loom))]
mod sender;
#[cfg(not(loom))]
mod sys;

#[cfg(not(loom))]
pub use config::{Config, KEYS};
#[cfg(not(loom))]
pub use mechanism::{Ring, RingPeer, RingTransfer};
