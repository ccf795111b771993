//! What every mechanism must keep.
#![cfg(not(loom))]

lmt_conformance::suite!(ring, lmt_ring::Ring::default());
