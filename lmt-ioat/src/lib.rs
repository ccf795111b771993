//! Copy engines: copies that go on in the background while the application
//! computes (nemesis-lmt, section 3.4; knem-jpdc, sections 3.4 and 4;
//! open-mx-intranode, section III).
//!
//! A [`engine::CopyEngine`] takes a list of copies, works through it in order
//! and writes its completion into memory, where it costs a load to look. What
//! it copies stays lent to it until it is quiet about the list ([`places`] says
//! how that is kept).
//!
//! Unsafe code is in the files that allow it at their top with a reason, and in
//! the two mechanisms' `prepare`, which lends a buffer's memory to an engine.
#![deny(unsafe_code)]
// The models use the queue alone.
#![cfg_attr(loom, allow(dead_code))]

#[cfg(not(loom))]
mod backoff;
#[cfg(not(loom))]
pub mod chunks;
#[cfg(not(loom))]
pub mod dsa;
pub mod engine;
mod few;
#[cfg(not(loom))]
pub mod knem;
mod mapped;
#[cfg(not(loom))]
pub mod offload;
mod outcome;
#[cfg(not(loom))]
pub mod pipeline;
pub mod places;
mod queue;
#[cfg(not(loom))]
pub mod software;
#[cfg(not(loom))]
mod steps;
mod sync;
#[cfg(not(loom))]
mod sys;

/// Messages by a copying thread: `ioat-software`.
#[cfg(not(loom))]
pub type IoatSoftware = offload::Offload<software::Software>;

/// Messages by the DMA engine of KNEM's kernel module: `ioat-knem`.
#[cfg(not(loom))]
pub type IoatKnem = knem::OffloadKnem<lmt_knem::ioctl::IoctlDriver>;

/// Messages by Intel's DSA, through the pipeline: `ioat-dsa`.
#[cfg(not(loom))]
pub type IoatDsa = lmt_shm::Shm<pipeline::EngineCopier<dsa::DsaEngine>>;
