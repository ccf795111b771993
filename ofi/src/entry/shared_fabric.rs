//! What a fabric shares with the domains and event queues that are opened in it.

use std::sync::atomic::AtomicUsize;

/// What a fabric's domains share with it.
#[derive(Debug)]
pub struct Fabric {
    /// The version of libfabric's interface that its user was written for.
    pub api_version: u32,
    /// How many domains and event queues are open.
    pub open: AtomicUsize,
}
