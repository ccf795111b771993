//! What every program of this kind needs and no library gives as it is wanted
//! here: clock, slab, CPU sets, processes by descriptor, doorbell, the atomics
//! that loom can take over.
//!
//! It knows nothing of lmt: no peer, no message, no configuration.

pub mod bounded_file;
#[cfg(not(loom))]
pub(crate) mod clock;
#[cfg(not(loom))]
pub mod cpu_set;
pub mod doorbell;
pub mod errno_advice;
pub mod fork_guard;
#[cfg(not(loom))]
pub(crate) mod pidfd;
pub mod process;
#[cfg(not(loom))]
pub mod random;
pub(crate) mod short_queue;
pub(crate) mod slab;
pub(crate) mod sync;
#[cfg(all(test, not(loom)))]
pub(crate) mod test_alone;
#[cfg(not(loom))]
pub mod yielding;
