//! Memory: sealed shared memory, the segments of a buffer that is sent or received, the
//! mappings of peers' memory, the limits that a system puts on memory.
//!
//! It must not know what the memory is used for: neither messages nor peers.

pub mod buffer;
pub mod cursor;
pub mod iovec;
#[cfg(not(loom))]
pub mod limits;
pub mod mapped_copy;
pub mod mapping_cache;
#[cfg(not(loom))]
pub mod prefault;
#[cfg(not(loom))]
pub mod shared_memory;
