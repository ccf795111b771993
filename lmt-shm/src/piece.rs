//! One contiguous copy between a message and the pool.
#![allow(unsafe_code)] // Copies between raw memory.

use std::marker::PhantomData;

use lmt_copy::Distance;

/// One contiguous copy between a message's memory and the pool's; at least one
/// byte. One end lies in a segment of a lent
/// [`lmt_core::buffer::Buffer`] (for writing, if it is the target), the other in a mapped pool,
/// and both stay so for as long as [`crate::Copier`] says. The two do not
/// overlap. A peer may read and write the pool's end meanwhile; bytes have no
/// invalid values, so only its own messages are garbled.
#[derive(Debug)]
pub struct Piece<'a> {
    from: *const u8,
    to: *mut u8,
    bytes: usize,
    /// Who reads it next: the peer, what goes into the pool.
    distance: Distance,
    /// The call that lends it to the CPU.
    lent: PhantomData<&'a u8>,
}

impl Piece<'_> {
    /// A piece of `bytes` bytes.
    ///
    /// # Safety
    /// It is as the type says.
    pub(crate) const unsafe fn new(from: *const u8, to: *mut u8, bytes: usize, distance: Distance) -> Self {
        Self { from, to, bytes, distance, lent: PhantomData }
    }

    /// The address to read from, exposed.
    pub fn from_address(&self) -> usize {
        self.from.expose_provenance()
    }

    /// The address to write to, exposed.
    pub fn to_address(&self) -> usize {
        self.to.expose_provenance()
    }

    /// How many bytes.
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Copies it by the CPU.
    #[inline]
    pub fn copy_now(self) {
        // A buffer's maker promised valid memory that nobody writes (a source)
        // or uses (a target, lent for writing and borrowed exclusively by
        // `copy_out`); the pool's mapping is ours.
        // SAFETY: as the type says, one end lies in such a buffer, the other in
        // the mapping, borrowed as long as the piece lives, so both are valid
        // and do not overlap. A peer that writes the mapping meanwhile garbles
        // its own message only: bytes have no invalid values.
        unsafe { lmt_copy::copy_toward(self.to, self.from, self.bytes, self.distance) };
    }
}
