//! What every mechanism must keep.
#![cfg(not(loom))]

lmt_conformance::suite!(mapped, lmt_mapped::Mapped::new());
