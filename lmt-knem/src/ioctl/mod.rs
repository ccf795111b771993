//! The driver behind /dev/knem.
//!
//! [`abi`] are its numbers and structs, [`Device`] its requests as they are,
//! [`StatusArray`] the array in which it tells of asynchronous copies; with
//! these its behaviour can be tried. [`IoctlDriver`] is what programs use: it
//! keeps every rule that the driver needs.

pub mod abi;
#[cfg(not(loom))]
mod asking;
#[cfg(not(loom))]
mod copies;
#[cfg(not(loom))]
mod diagnostics;
#[cfg(not(loom))]
mod dma;
#[cfg(not(loom))]
mod dma_min;
#[cfg(not(loom))]
mod driver;
#[cfg(not(loom))]
mod errors;
#[cfg(not(loom))]
mod interface;
#[cfg(not(loom))]
mod kept;
#[cfg(not(loom))]
mod met;
#[cfg(not(loom))]
mod regions;
#[cfg(not(loom))]
mod request;
#[cfg_attr(loom, allow(dead_code))] // The models need no tables.
mod slot;
#[cfg(not(loom))]
pub(crate) mod sys;
#[cfg(all(test, not(loom)))]
mod test_double;

#[cfg(not(loom))]
pub use driver::{DEVICE_PATH, IoctlDriver};
#[cfg(not(loom))]
pub use kept::{PinCache, PinCacheConfig};
#[cfg(not(loom))]
pub use sys::{Device, STATUS_SLOTS, StatusArray};
