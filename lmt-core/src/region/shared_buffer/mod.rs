//! Buffers that peers can map: [`alloc`] gives them, and mechanisms that copy
//! through a mapping find them ([`Offer`], [`find`]).
//!
//! They are cut out of *arenas*, sealed memory files without a name. A peer is
//! handed an arena's descriptor when a message first needs it, maps all of it,
//! and copies with plain loads and stores from then on. So everything in an
//! arena can be read and written by each peer that was given one of its
//! buffers: see [`alloc`].
//!
//! A process without such buffers pays one load for each message.
#![cfg_attr(loom, allow(dead_code, unused_imports))] // The models need the lease alone.

#[cfg(not(loom))]
mod arena;
#[cfg(not(loom))]
mod buffer;
#[cfg(not(loom))]
mod extents;
#[cfg(not(loom))]
mod leaked;
mod lease;
#[cfg(not(loom))]
mod offer;
#[cfg(not(loom))]
mod registry;

#[cfg(not(loom))]
pub use arena::{Arena, HEAD_BYTES, LEASES, lease_in};
#[cfg(not(loom))]
pub use buffer::{SharedBuffer, alloc, alloc_uncommitted};
pub use lease::LeaseWord;
#[cfg(not(loom))]
pub use offer::{Offer, OfferError, Part, arena, given_up, is_shared};

/// The usual length of an arena: of address space; memory is taken with the
/// buffers.
const ARENA_BYTES: usize = 64 << 20;

/// Longer buffers have an arena of their own.
const OWN_ARENA_BYTES: usize = ARENA_BYTES / 2;

const PAGE_BYTES: usize = 4096;

/// Buffers begin at a cache line, so that no two share one.
const LINE_BYTES: usize = 64;

/// So many bytes of pages go back to the kernel when a buffer is dropped; fewer
/// are kept for the next one.
const RETURNED_BYTES: usize = 128 << 10;

#[cfg(all(test, not(loom)))]
#[path = "shared_buffer_tests.rs"]
mod tests;
