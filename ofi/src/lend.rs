//! Where addresses that a caller hands over become buffers of the engine.
#![allow(unsafe_code)] // Buffer::new is the unsafe step.

use lmt::buffer::{Access, Buffer, Segment};

use crate::abi::Errno;
use crate::atomic::memory::Target;
use crate::touch::FaultSafeCopy;

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

    /// All of it, as an operation's buffer.
    ///
    /// # Errors
    /// [`Errno::FAULT`]: it reaches past the address space.
    #[inline(always)] // The path of a short message.
    pub fn whole(&self) -> Result<Buffer, Errno> {
        let Segment { address, bytes } = self.segment;
        if bytes > isize::MAX as usize || address.checked_add(bytes).is_none() {
            return Err(Errno::FAULT);
        }
        // SAFETY: the memory that `new`'s caller has lent, to one operation at a time; it ends
        // within the address space.
        Ok(unsafe { Buffer::of_one(self.segment, self.access) })
    }
}

impl Lent {
    /// At most `bytes` bytes of it from byte `from_bytes` on.
    pub fn part(&self, from_bytes: usize, bytes: usize) -> Segment {
        let Segment { address, bytes: all } = self.segment;
        let from_bytes = from_bytes.min(all);
        Segment { address: address.wrapping_add(from_bytes), bytes: bytes.min(all - from_bytes) }
    }

    /// Copies what is there from byte `from_bytes` on, if it can be read.
    ///
    /// # Errors
    /// As [`FaultSafeCopy::read`].
    pub fn read(&self, touch: &mut FaultSafeCopy, from_bytes: usize, into: &mut [u8]) -> Result<(), Errno> {
        touch.read(self.part(from_bytes, into.len()), into)
    }

    /// Copies bytes to byte `from_bytes` and on, if that can be written.
    ///
    /// # Errors
    /// As [`FaultSafeCopy::write`]; [`Errno::ACCES`]: it was lent for reading.
    pub fn write(&self, touch: &mut FaultSafeCopy, from_bytes: usize, bytes: &[u8]) -> Result<(), Errno> {
        if self.access != Access::Write {
            return Err(Errno::ACCES);
        }
        // SAFETY: part of the memory that `new`'s caller has lent for writing. It was
        // registered for peers: whoever else uses it is the caller's agreement with them.
        unsafe { touch.write(self.part(from_bytes, bytes.len()), bytes) }
    }

    /// `bytes` bytes from byte `from_bytes` on, as elements of atomic operations;
    /// none if they reach past the end. Of memory that was lent for reading only
    /// none may be updated.
    pub fn elements(&self, from_bytes: u64, bytes: u64) -> Option<Target> {
        let end = from_bytes.checked_add(bytes)?;
        if end > self.segment.bytes as u64 {
            return None;
        }
        // SAFETY: part of the memory that `new`'s caller has lent, for writing where
        // the caller of this says so. It was registered for peers: whoever else uses
        // it is the caller's agreement with them.
        Some(unsafe { Target::new(self.segment.address + from_bytes as usize, bytes as usize) })
    }
}

/// A buffer's memory, to be used in parts when the operation that it was lent to first
/// has ended without having done its work. It is the same operation to
/// the caller.
#[derive(Debug)]
pub struct Kept {
    segments: Box<[Segment]>,
    access: Access,
}

impl Kept {
    /// That of this buffer.
    pub fn of(buffer: &Buffer) -> Self {
        Self { segments: buffer.segments().into(), access: buffer.access() }
    }

    /// How long it is.
    pub fn total_bytes(&self) -> u64 {
        self.segments.iter().map(|one| one.bytes as u64).sum()
    }

    /// The pieces of it that hold `bytes` bytes from byte `start` on.
    fn pieces(&self, start: u64, bytes: usize) -> impl Iterator<Item = Segment> + '_ {
        let (mut passed_bytes, end) = (0_u64, start.saturating_add(bytes as u64));
        self.segments.iter().filter_map(move |one| {
            let (first, last) = (passed_bytes, passed_bytes + one.bytes as u64);
            passed_bytes = last;
            let (from, to) = (start.max(first), end.min(last));
            (from < to).then(|| Segment {
                address: one.address + (from - first) as usize,
                bytes: (to - from) as usize,
            })
        })
    }

    /// Copies what is there from byte `start` on, if it can be read.
    ///
    /// # Errors
    /// As [`FaultSafeCopy::read`].
    pub fn read(&self, touch: &mut FaultSafeCopy, start: u64, mut into: &mut [u8]) -> Result<(), Errno> {
        for piece in self.pieces(start, into.len()) {
            let (first, rest) = std::mem::take(&mut into).split_at_mut(piece.bytes);
            // SAFETY: part of a buffer whose maker has promised that nobody writes it; of one
            // that is read here by its own process, which has lent it for that.
            unsafe { touch.read_own(piece, first) }?;
            into = rest;
        }
        Ok(())
    }

    /// Copies bytes to byte `start` and on, if that can be written.
    ///
    /// # Errors
    /// As [`FaultSafeCopy::write`]; [`Errno::ACCES`]: it was lent for reading.
    pub fn write(&self, touch: &mut FaultSafeCopy, start: u64, mut bytes: &[u8]) -> Result<(), Errno> {
        if self.access != Access::Write && !bytes.is_empty() {
            return Err(Errno::ACCES);
        }
        for piece in self.pieces(start, bytes.len()) {
            let (first, rest) = bytes.split_at(piece.bytes);
            // SAFETY: part of a buffer for writing, whose maker has promised that nobody
            // else uses it; the engine has given that buffer up, and the parts that are
            // written do not overlap.
            unsafe { touch.write_own(piece, first) }?;
            bytes = rest;
        }
        Ok(())
    }
}

/// Room that receives use one after the other, and that is read in between.
#[derive(Debug)]
pub struct Room(*mut [u8]);

// SAFETY: it owns the bytes, as a box does.
unsafe impl Send for Room {}

impl Room {
    /// So many bytes, which take no memory before they are used.
    pub fn new(bytes: usize) -> Self {
        Self(Box::into_raw(vec![0; bytes].into_boxed_slice()))
    }

    /// All of it, for a receive, which ends before it is read or dropped (the room is
    /// kept with its operation) or whose engine is closed before.
    ///
    /// # Errors
    /// As [`segments`]; never of memory that there is.
    pub(crate) fn for_a_receive(&mut self) -> Result<Buffer, Errno> {
        let segment = Segment { address: self.0.expose_provenance(), bytes: self.0.len() };
        // SAFETY: allocated by `new`, and used by nobody but that receive.
        unsafe { segments(&[segment], Access::Write) }
    }

    /// The first bytes, when no receive is in flight.
    pub(crate) fn received(&self, bytes: usize) -> &[u8] {
        // SAFETY: allocated by `new` and initialized; no receive writes them now.
        let all: &[u8] = unsafe { &*self.0 };
        &all[..bytes.min(all.len())]
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        // SAFETY: the pointer came from `Box::into_raw` and is given back once.
        drop(unsafe { Box::from_raw(self.0) });
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
    /// A copy of `bytes`, and a buffer over it for sending. Crate-private: whoever
    /// calls it keeps the copy with its operation, to be dropped with it or after the
    /// engine (the first field of an endpoint) has given it up.
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
