//! Intel's Data Streaming Accelerator, a copy engine beside the cores of 4th
//! generation Xeon Scalable processors and later, through the character devices
//! that Linux's idxd driver offers (/dev/dsa/wq*; the specification is Intel's
//! document 341204).
//!
//! [`DsaEngine`] is the engine; it works on any [`queue::WorkQueue`], of which
//! [`device::DeviceQueue`] is the hardware's.

mod core;
pub mod descriptor;
pub mod device;
mod diagnostics;
mod engine;
mod job;
mod keys;
mod portal;
pub mod queue;
pub mod status;
mod submission;
mod sys;
pub mod sysfs;

use std::time::Duration;

pub use engine::{DsaEngine, DsaJob};
pub use keys::KEYS;
use status::Status;

/// What the engine can be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Copies shorter than so many bytes are done by the CPU. Default 4096: a
    /// descriptor's round trip takes as long as the CPU takes for a
    /// page or two.
    pub min_copy_bytes: u32,
    /// Units (descriptors or batches) that are in flight at once, 1 to 1024.
    /// Default 32, a quarter of a device's entries.
    pub units: u32,
    /// How often a unit is offered to a full queue before the CPU copies it.
    /// Default 256: others share the queue, and none of them may stop us.
    pub max_retries: u32,
    /// What is written goes to the cache, not to memory. Default true: the
    /// receiver reads the pipeline's buffers at once.
    pub to_cache: bool,
    /// The device waits for the kernel where a page is missing, where the queue
    /// allows that; otherwise the CPU copies the rest. Default false, since
    /// it holds up all who share the device.
    pub block_on_fault: bool,
    /// How long the device may take to answer the first, empty descriptor.
    /// Default 20 ms: it takes microseconds, and whoever greets a peer waits.
    pub answer_limit: Duration,
    /// How long one descriptor may be in flight before the device is given up.
    /// Default 10 s: a copy takes milliseconds even when others share it. What
    /// it has then not answered stays lent until it does.
    pub stall_limit: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            min_copy_bytes: 4096,
            units: 32,
            max_retries: 256,
            to_cache: true,
            block_on_fault: false,
            answer_limit: Duration::from_millis(20),
            stall_limit: Duration::from_secs(10),
        }
    }
}

/// What an engine has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Copies that the queue has accepted.
    pub descriptors: u64,
    /// Their bytes.
    pub submitted_bytes: u64,
    /// Bytes that the device has copied.
    pub device_bytes: u64,
    /// Bytes that the CPU has copied: short copies, and what the device left.
    pub cpu_bytes: u64,
    /// Copies that ended at a page that was not there.
    pub page_faults: u64,
    /// How often the queue was full.
    pub retries: u64,
    /// What the device said last of a descriptor that it did not take.
    pub last_refusal: Option<Status>,
}
