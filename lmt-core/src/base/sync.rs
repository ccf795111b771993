//! Atomics, which become loom's when a model is checked.
//!
//! Every lock-free algorithm of this crate takes them from here, so that the
//! code that loom explores is the code that ships.

#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{AtomicU64, Ordering, fence};

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicU64, Ordering, fence};
