//! The routines by which lmt copies bytes in user space: one for all that goes through
//! the caches, [`copy_toward`], and one for what goes past them, [`copy_streaming`]
//! (`docs/copy.md` says who uses which).
//!
//! [`copy_nonoverlapping`] copies up to [`SHORT_MAX_BYTES`] inline, without a
//! call. Longer copies go to the C library's `memcpy`, but for aliased ones
//! ([`Copier::usual`]), or unless `lmt tune` has found another [`Routine`] to be
//! faster on this machine: the process's [`Copier`] is a table from a copy's length,
//! alignment and [`Distance`] to a routine. It is chosen once for each process
//! ([`install`]); until then all is the C library's, which is never wrong.
//!
//! ```
//! let source = [7u8; 1000];
//! let mut target = [0u8; 1000];
//! lmt_copy::copy_slice(&mut target, &source);
//! assert_eq!(target, source);
//! ```
//!
//! **Bytes that others write meanwhile.** Every byte of the target is written
//! from the source within the call and not touched after it. Where blocks
//! overlap, a byte may be read twice, as by every `memcpy`; whichever of the two
//! values stays in the target is what the caller then checks and uses.
#![deny(unsafe_code)]

mod blocks;
mod copier;
mod copy;
mod fault_safe;
mod measure;
mod prefetch_for_write;
mod routine;
mod short;
mod streaming;
mod text;
#[cfg(all(target_arch = "x86_64", not(miri)))]
mod x86;

pub use copier::{Alignment, Copier, Distance, LARGEST_CLASS_BYTES, MIN_TABLE_BYTES};
pub use copy::{
    AlreadyInstalled, copy_nonoverlapping, copy_overlapping, copy_slice, copy_toward, install, installed,
};
pub use fault_safe::{FaultSafeCopy, FaultsUnhandled};
pub use measure::{Effort, Measurement, measure, paired_ratio};
pub use prefetch_for_write::{prefetch, prefetch_for_write};
pub use routine::Routine;
pub use short::SHORT_MAX_BYTES;
pub use streaming::copy_streaming;
pub use text::{Plan, TextError};
