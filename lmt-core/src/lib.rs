//! The core of lmt: everything between a send in one process and a receive in
//! another that is not a copying mechanism.
//!
//! Its modules, of which each uses those below it and none above (`.ci/arrows`):
//!
//! - [`endpoint`]: one endpoint; puts the others together.
//! - [`device`]: the same transfers for device layers with packets and matching of
//!   their own.
//! - `requests`: what an operation is, and how it ends.
//! - [`selection`]: the table of decisions for a peer, and the trait that fills it.
//! - [`transfer`]: runs mechanisms for the protocol.
//! - [`region`]: registered memory, gets and puts; buffers that peers may map.
//! - [`both_ends`]: who copies which part of a message.
//! - [`mechanism`]: the trait [`mechanism::Lmt`] behind which each path of a large
//!   message stands. No mechanism is named here.
//! - [`rendezvous`]: RTS, CTS, DONE: a pure state machine.
//! - [`matching`]: which receive gets which message.
//! - [`queue`]: the inbox.
//! - [`connect`]: sockets, credentials, the handshake.
//! - `memory`: shared memory, the segments of a buffer, limits.
//! - `vocabulary`: words that several modules share.
//! - `base`: clock, CPU sets, processes, the doorbell, atomics.
//!
//! What is public of the modules without a link is named below, one by one.
#![deny(unsafe_code)]

mod base;
pub mod both_ends;
#[cfg(not(loom))]
pub mod connect;
#[cfg(not(loom))]
pub mod device;
#[cfg(not(loom))]
pub mod endpoint;
pub mod matching;
pub mod mechanism;
mod memory;
pub mod queue;
pub mod region;
pub mod rendezvous;
#[cfg(not(loom))]
mod requests; // What is public of it is named in `endpoint`.
#[cfg(not(loom))]
pub mod selection;
#[cfg(not(loom))]
pub mod transfer;
mod vocabulary;

pub use base::{bounded_file, doorbell, errno_advice, fork_guard, process};
#[cfg(not(loom))]
pub use base::{cpu_set, random};
pub use mechanism::diagnostic;
pub use memory::{buffer, cursor, iovec, mapped_copy, mapping_cache};
#[cfg(not(loom))]
pub use memory::{limits as memory_limits, prefault, shared_memory};
pub use region::shared_buffer;
pub use vocabulary::{config, config_key, error, identity};
