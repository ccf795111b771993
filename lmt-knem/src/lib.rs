//! KNEM's interface: memory declared as regions, named by cookies that travel,
//! and copied from and into by whoever holds one (knem-jpdc2013, section 3.4
//! and figure 4).
//!
//! [`Knem`] is the one type; behind it is a [`Driver`], of which there are two:
//! the kernel module behind /dev/knem, and one that needs no module.
#![deny(unsafe_code)]

#[cfg(not(loom))]
mod driver;
#[cfg(not(loom))]
mod error;
#[cfg(not(loom))]
mod faults;
pub mod ioctl;
#[cfg(not(loom))]
mod knem;
#[cfg(not(loom))]
mod mechanism;
/// The examples of docs/mechanisms/knem.md, to be compiled.
#[cfg(all(doctest, not(loom)))]
#[doc = include_str!("../../docs/mechanisms/knem.md")]
mod page {}
mod sync;
#[cfg(not(loom))]
mod sys;
#[cfg(not(loom))]
mod transfer;
#[cfg_attr(loom, allow(dead_code))] // The models need the flags only.
mod types;
#[cfg(not(loom))]
pub mod user;

#[cfg(not(loom))]
pub use driver::Driver;
#[cfg(not(loom))]
pub use error::KnemError;
#[cfg(not(loom))]
pub use knem::Knem;
#[cfg(not(loom))]
pub use mechanism::{KnemIoctl, KnemLmt, KnemPeer, KnemUser};
#[cfg(not(loom))]
pub use transfer::KnemTransfer;
pub use types::{
    Binding, Copied, CopyFlags, CopyId, Info, InlineCopy, Length, RegionCookie, RegionCopy, RegionPlace, Uses,
};
