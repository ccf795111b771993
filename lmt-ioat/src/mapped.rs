//! Memory of this process that an engine may use in the background.
#![allow(unsafe_code)] // Its constructor states what the lender promises.

use lmt_core::buffer::{Access, Buffer, Segment};
use lmt_core::mechanism::Interval;

use crate::few::Few;

/// A piece of this process's memory, lent to an engine. Constructing one is the
/// unsafe step; what safe code makes of it stays within the piece.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mapped {
    address: usize,
    bytes: usize,
    access: Access,
}

impl Mapped {
    /// Lends the memory of `segment`.
    ///
    /// # Safety
    /// As long as this value, a copy or part of it, or a list or job that holds
    /// one exists, the segment must be valid memory of this process that nobody
    /// frees; for [`Access::Read`] nobody writes it, for [`Access::Write`]
    /// nobody but engines reads or writes it. (Memory shared with another
    /// process may be written by that process: what is copied is then whatever
    /// it held.) The segment must not reach past the address space, and its
    /// address must be exposed. A job that is forgotten counts as existing;
    /// one that the engine has reported ended ([`crate::engine::Progress`])
    /// does not.
    pub const unsafe fn new(segment: Segment, access: Access) -> Self {
        Self { address: segment.address, bytes: segment.bytes, access }
    }

    /// The address of the first byte, exposed.
    pub const fn address(self) -> usize {
        self.address
    }

    /// How many bytes.
    pub const fn bytes(self) -> usize {
        self.bytes
    }

    /// What may be done to them.
    pub const fn access(self) -> Access {
        self.access
    }

    /// What is left of it `bytes` further on; `None` past its end.
    pub fn advanced(self, bytes: u64) -> Option<Self> {
        let skipped = usize::try_from(bytes).ok()?;
        let left = self.bytes.checked_sub(skipped)?;
        Some(Self { address: self.address + skipped, bytes: left, access: self.access })
    }

    /// Its first bytes, at most `bytes`.
    pub fn shortened(self, bytes: u64) -> Self {
        Self { bytes: usize::try_from(bytes).map_or(self.bytes, |bytes| self.bytes.min(bytes)), ..self }
    }
}

/// The memory of `interval` of a buffer that was given to `Lmt::prepare`, in
/// order.
///
/// # Safety
/// The pieces are for that transfer only: they, and every list and job made of
/// them, must be gone or ended when its `Lmt::finish` returns or it is dropped.
pub(crate) unsafe fn lent_by(data: &Buffer, interval: Interval) -> Few<Mapped> {
    let lent = |piece| {
        // SAFETY: the buffer's maker promised valid memory, used by nobody
        // else, until the operation is complete, which it is not before
        // `Lmt::finish` has returned; the caller promises to keep the pieces no
        // longer.
        // A buffer's pieces lie in the address space and are exposed.
        unsafe { Mapped::new(piece, data.access()) }
    };
    data.pieces(interval.start..interval.end).map(lent).collect()
}
