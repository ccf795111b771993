//! What every mechanism must keep.
#![cfg(not(loom))]

lmt_conformance::suite!(ring, lmt_ring::Ring::default());
// The least ring, so that cells come back, and everything past the caches.
lmt_conformance::suite!(
    streaming,
    lmt_ring::Ring::new(lmt_ring::Config { ring_bytes: 256 << 10, streaming_bytes: 32 << 10, max_rings: 16 })
);
