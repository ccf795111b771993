//! KNEM's interface: memory declared as regions, named by cookies that travel,
//! and copied from and into by whoever holds one (knem-jpdc2013, section 3.4
//! and figure 4).
//!
//! [`Knem`] is the one type; behind it is a [`Driver`], of which there are two:
//! the kernel module behind /dev/knem, and one that needs no module.
#![deny(unsafe_code)]

mod driver;
mod error;
mod knem;
mod types;

pub use driver::Driver;
pub use error::KnemError;
pub use knem::Knem;
pub use types::{
    Binding, Copied, CopyFlags, CopyId, Info, InlineCopy, Length, RegionCookie, RegionCopy, RegionPlace, Uses,
};
