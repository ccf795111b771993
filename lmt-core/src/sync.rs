//! Atomics and cells, which become loom's when a model is checked.
//!
//! Every lock-free algorithm of this crate takes them from here, so that the
//! code that loom explores is the code that ships.

#[cfg(loom)]
pub(crate) use loom::{
    cell::UnsafeCell,
    hint::spin_loop,
    sync::atomic::{AtomicU32, AtomicU64, Ordering, fence},
};

#[cfg(not(loom))]
pub(crate) use std::{
    hint::spin_loop,
    sync::atomic::{AtomicU32, AtomicU64, Ordering, fence},
};
