//! Where addresses that a caller hands over become buffers of the engine.
#![allow(unsafe_code)] // Buffer::new is the unsafe step.

use lmt::buffer::{Access, Buffer, Segment};

use crate::abi::Errno;

/// Memory that a caller has lent for the length of an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lent {
    segment: Segment,
    access: Access,
}

impl Lent {
    /// Lends `bytes` bytes from `address` on.
    ///
    /// # Safety
    /// Until the completion of the operation is read, or its endpoint is closed,
    /// the memory must be valid, freed by nobody, and used by nobody but that
    /// operation (to send it, others may read it). That is what libfabric asks of
    /// its callers (fi_msg(3)).
    pub const unsafe fn new(address: usize, bytes: usize, access: Access) -> Self {
        Self { segment: Segment { address, bytes }, access }
    }

    /// Where it begins and how long it is.
    pub const fn segment(&self) -> Segment {
        self.segment
    }

    /// All from byte `from_bytes` on, as an operation's buffer.
    ///
    /// # Errors
    /// [`Errno::FAULT`]: it reaches past the address space.
    #[inline]
    pub fn rest(&self, from_bytes: usize) -> Result<Buffer, Errno> {
        let Segment { address, bytes } = self.segment;
        let from_bytes = from_bytes.min(bytes);
        let address = address.checked_add(from_bytes).ok_or(Errno::FAULT)?;
        let segment = Segment { address, bytes: bytes - from_bytes };
        // SAFETY: part of the memory that `new`'s caller has lent. Only one
        // operation at a time uses it: the next message's receive is posted
        // when the one before has ended.
        unsafe { Buffer::new(&[segment], self.access) }.map_err(|_| Errno::FAULT)
    }
}

/// A list of segments that a caller has lent, as one buffer.
///
/// # Safety
/// For each segment as [`Lent::new`].
///
/// # Errors
/// [`Errno::FAULT`]: a segment reaches past the address space.
pub unsafe fn segments(list: &[Segment], access: Access) -> Result<Buffer, Errno> {
    // SAFETY: the caller promises what `Buffer::new` asks for.
    unsafe { Buffer::new(list, access) }.map_err(|_| Errno::FAULT)
}

/// Bytes that an operation owns itself.
#[derive(Debug)]
pub struct Owned(*mut [u8]);

// SAFETY: it owns the bytes, as a box does, and gives no references to them.
unsafe impl Send for Owned {}

impl Owned {
    /// A copy of `bytes`, and a buffer over it for sending. Crate-private, for its
    /// one caller: the copy is kept with its operation, and dropped with it or
    /// after the engine (the first field of an endpoint) has given it up.
    ///
    /// # Errors
    /// As [`segments`]; never of memory that there is.
    pub(crate) fn for_an_operation(bytes: &[u8]) -> Result<(Self, Buffer), Errno> {
        let owned = Self(Box::into_raw(Box::from(bytes)));
        let segment = Segment { address: owned.0.expose_provenance(), bytes: bytes.len() };
        // SAFETY: allocated above, valid until `owned` is dropped, which its
        // caller does when the operation has ended; nobody writes it, since it is
        // reached by `owned` only.
        let buffer = unsafe { segments(&[segment], Access::Read) }?;
        Ok((owned, buffer))
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        // SAFETY: the pointer came from `Box::into_raw` and is given back once.
        drop(unsafe { Box::from_raw(self.0) });
    }
}
