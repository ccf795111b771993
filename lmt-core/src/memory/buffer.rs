//! An application's memory, described by segments, for as long as an operation
//! uses it.
#![allow(unsafe_code)] // The one place where addresses become memory.

use std::ops::Range;

use lmt_copy::Distance;

/// One piece of a message in this process: `bytes` bytes from `address`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(C)]
pub struct Segment {
    /// The address of the first byte, in this process.
    pub address: usize,
    /// How many bytes.
    pub bytes: usize,
}

impl Segment {
    /// The segment that a slice covers.
    pub fn of(slice: &[u8]) -> Self {
        Self { address: slice.as_ptr().expose_provenance(), bytes: slice.len() }
    }

    /// The segment that a mutable slice covers.
    pub fn of_mut(slice: &mut [u8]) -> Self {
        Self { address: slice.as_mut_ptr().expose_provenance(), bytes: slice.len() }
    }
}

/// What may be done to a [`Buffer`]'s memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// It is sent: only read.
    Read,
    /// It is received into: written, and read too.
    Write,
}

/// How a copy goes into a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Taking {
    /// It goes through the caches.
    Near,
    /// What is written goes past them.
    #[cfg_attr(loom, allow(dead_code))] // Its user needs real shared memory.
    PastCaches,
}

/// Where a copy leaves what it writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Leaving {
    /// In this core's cache, or wherever the routine for that distance does.
    For(Distance),
    /// In memory, past the caches.
    PastCaches,
}

/// Memory lent to an operation: a list of segments, contiguous being the case
/// of one.
///
/// Constructing one is the unsafe step ([`Buffer::new`]); from then on its
/// methods keep within the segments and are safe.
#[derive(Debug)]
pub struct Buffer {
    segments: Segments,
    total_bytes: u64,
    access: Access,
}

#[derive(Debug)]
enum Segments {
    One(Segment),
    Many(Box<[Segment]>),
}

/// Why a list of segments is no buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BufferError {
    /// A segment wraps around the address space, or the sum overflows.
    #[error("segment {index} of the buffer ({bytes} bytes at {address:#x}) reaches past the address space")]
    OutOfAddressSpace {
        /// Which segment.
        index: usize,
        /// Its first address.
        address: usize,
        /// Its bytes.
        bytes: usize,
    },
}

impl Buffer {
    /// Lends `segments` to an operation.
    ///
    /// # Errors
    /// [`BufferError`] when a segment is impossible in any address space.
    ///
    /// # Safety
    /// Until the operation that takes the buffer is complete (or the buffer is
    /// dropped unused), each segment must be valid memory of this process that
    /// nobody frees; for [`Access::Read`] nobody writes it, for
    /// [`Access::Write`] nobody else reads or writes it. Addresses must be
    /// exposed ([`Segment::of`] does it).
    pub unsafe fn new(segments: &[Segment], access: Access) -> Result<Self, BufferError> {
        let mut total_bytes = 0u64;
        for (index, s) in segments.iter().enumerate() {
            let bad = BufferError::OutOfAddressSpace { index, address: s.address, bytes: s.bytes };
            if s.bytes > isize::MAX as usize || s.address.checked_add(s.bytes).is_none() {
                return Err(bad);
            }
            total_bytes = total_bytes.checked_add(s.bytes as u64).ok_or(bad)?;
        }
        let segments = match segments {
            [] => Segments::One(Segment::default()),
            [one] => Segments::One(*one),
            many => Segments::Many(many.into()),
        };
        Ok(Self { segments, total_bytes, access })
    }

    /// What [`Self::new`] does with one segment.
    ///
    /// # Safety
    /// As [`Self::new`], with a segment that ends within the address space, as each slice does.
    #[inline]
    pub const unsafe fn of_one(one: Segment, access: Access) -> Self {
        Self { segments: Segments::One(one), total_bytes: one.bytes as u64, access }
    }

    /// An empty buffer, for messages without bytes.
    pub const fn empty(access: Access) -> Self {
        Self { segments: Segments::One(Segment { address: 0, bytes: 0 }), total_bytes: 0, access }
    }

    /// What is lent here, for who keeps it; an empty one stays.
    #[cfg_attr(loom, allow(dead_code))] // Its users need real shared memory.
    pub(crate) const fn take(&mut self) -> Self {
        let access = self.access;
        std::mem::replace(self, Self::empty(access))
    }

    /// The bytes of all segments together.
    #[inline]
    pub const fn total_bytes(&self) -> u64 {
        self.total_bytes
    }

    /// What may be done to the memory.
    pub const fn access(&self) -> Access {
        self.access
    }

    /// The segments, in order.
    pub fn segments(&self) -> &[Segment] {
        match &self.segments {
            Segments::One(one) => std::slice::from_ref(one),
            Segments::Many(many) => many,
        }
    }

    /// Whether the memory is one piece.
    pub const fn is_contiguous(&self) -> bool {
        matches!(self.segments, Segments::One(_))
    }

    /// The pieces of memory that hold the bytes `range` of the message, in
    /// order; empty pieces are left out. What lies past the end is left out.
    pub fn pieces(&self, range: Range<u64>) -> impl Iterator<Item = Segment> + '_ {
        let mut offset = 0u64;
        self.segments().iter().filter_map(move |s| {
            let (first, last) = (offset, offset + s.bytes as u64);
            offset = last;
            let from = range.start.max(first);
            let to = range.end.min(last);
            (from < to).then(|| Segment {
                address: s.address + (from - first) as usize,
                bytes: (to - from) as usize,
            })
        })
    }

    /// Takes the first `bytes` bytes off, or all if there are fewer, as a buffer of
    /// their own.
    #[must_use]
    pub(crate) fn split_front(&mut self, bytes: u64) -> Self {
        let (bytes, access) = (bytes.min(self.total_bytes), self.access);
        let part = |range| Self { segments: self.segments_of(range), total_bytes: 0, access };
        let front = Self { total_bytes: bytes, ..part(0..bytes) };
        *self = Self { total_bytes: self.total_bytes - bytes, ..part(bytes..self.total_bytes) };
        front
    }

    fn segments_of(&self, range: Range<u64>) -> Segments {
        let mut pieces = self.pieces(range);
        match (pieces.next(), pieces.next()) {
            (one, None) => Segments::One(one.unwrap_or_default()),
            (first, second) => Segments::Many(first.into_iter().chain(second).chain(pieces).collect()),
        }
    }

    /// Copies message bytes from `offset` on into `target`; returns how many
    /// there were.
    pub fn read_at(&self, offset: u64, target: &mut [u8]) -> usize {
        // SAFETY: a live slice of just that length, which cannot overlap the
        // segments, since nobody else holds a reference into those.
        unsafe { self.read_raw(offset, target.as_mut_ptr(), target.len(), Leaving::For(Distance::Near)) }
    }

    /// Copies up to `bytes` message bytes from `offset` on to `target`, which is
    /// read next at that distance; returns how many there were.
    ///
    /// # Safety
    /// `target` must be valid for writes of `bytes` bytes that overlap no
    /// segment. Other processes may see it (a cell of shared memory).
    pub(crate) unsafe fn read_raw(
        &self,
        offset: u64,
        target: *mut u8,
        bytes: usize,
        leaving: Leaving,
    ) -> usize {
        let mut done = 0;
        for piece in self.pieces(offset..offset.saturating_add(bytes as u64)) {
            let source = std::ptr::with_exposed_provenance::<u8>(piece.address);
            // SAFETY: the pieces together have at most `bytes` bytes, so
            // `done` is within what the caller promised.
            let into = unsafe { target.add(done) };
            match leaving {
                // SAFETY: `new`'s caller promised `piece.bytes` readable bytes at
                // `source`; this method's caller as many writable ones at `into`,
                // apart from the segments.
                Leaving::For(distance) => unsafe {
                    lmt_copy::copy_toward(into, source, piece.bytes, distance);
                },
                // SAFETY: the same bytes, by another routine, which asks for the same.
                Leaving::PastCaches => unsafe { lmt_copy::copy_streaming(into, source, piece.bytes) },
            }
            done += piece.bytes;
        }
        done
    }

    /// Copies `source` to the message bytes from `offset` on; returns how many
    /// fitted. Writes nothing to a buffer that is lent for reading.
    pub fn write_at(&mut self, offset: u64, source: &[u8]) -> usize {
        self.write_slice(offset, source, Taking::Near)
    }

    fn write_slice(&mut self, offset: u64, source: &[u8], taking: Taking) -> usize {
        // SAFETY: a live slice of just that length, which cannot overlap the
        // segments, since nobody else holds a reference into those.
        unsafe { self.write_raw(offset, source.as_ptr(), source.len(), taking) }
    }

    /// Copies `bytes` bytes from `source` to the message bytes from `offset`
    /// on; returns how many fitted. Writes nothing to a buffer that is lent for
    /// reading.
    ///
    /// # Safety
    /// `source` must be valid for reads of `bytes` bytes that overlap no
    /// segment. Other processes may see it (a cell of shared memory).
    pub(crate) unsafe fn write_raw(
        &mut self,
        offset: u64,
        source: *const u8,
        bytes: usize,
        taking: Taking,
    ) -> usize {
        if self.access == Access::Read {
            return 0;
        }
        let mut done = 0;
        for piece in self.pieces(offset..offset.saturating_add(bytes as u64)) {
            let target = std::ptr::with_exposed_provenance_mut::<u8>(piece.address);
            // SAFETY: the pieces together have at most `bytes` bytes, so
            // `done` is within what the caller promised.
            let from = unsafe { source.add(done) };
            match taking {
                // SAFETY: `new`'s caller promised `piece.bytes` writable bytes at
                // `target` that nobody else uses; this method's caller as many
                // readable ones at `from`, apart from the segments.
                Taking::Near => unsafe { lmt_copy::copy_nonoverlapping(target, from, piece.bytes) },
                // SAFETY: the same.
                Taking::PastCaches => unsafe { lmt_copy::copy_streaming(target, from, piece.bytes) },
            }
            done += piece.bytes;
        }
        done
    }

    /// The message bytes `range` as one slice, if they lie in one piece; what
    /// lies past the end is left out.
    pub fn one_slice(&self, range: Range<u64>) -> Option<&[u8]> {
        let Segments::One(segment) = &self.segments else {
            return None;
        };
        let end = range.end.min(self.total_bytes);
        let start = range.start.min(end);
        if start == end {
            return Some(&[]);
        }
        let first = std::ptr::with_exposed_provenance::<u8>(segment.address + start as usize);
        // SAFETY: within the one segment, whose bytes `new`'s caller promised
        // readable, and which nobody writes while `self` is borrowed: others
        // may not, and this buffer's own writes need `&mut self`.
        Some(unsafe { std::slice::from_raw_parts(first, (end - start) as usize) })
    }

    /// The first message bytes, `bytes` of them, for writing, if they lie in one piece and the
    /// buffer is lent for that.
    #[inline]
    #[cfg_attr(loom, allow(dead_code))] // Its user needs real shared memory.
    pub(crate) fn first_bytes_mut(&mut self, bytes: usize) -> Option<&mut [u8]> {
        let Segments::One(segment) = &self.segments else { return None };
        if self.access == Access::Read || bytes == 0 || bytes > segment.bytes {
            return None;
        }
        let first = std::ptr::with_exposed_provenance_mut::<u8>(segment.address);
        // SAFETY: within the one segment, which `new`'s caller promised is there, and which
        // nobody else reads or writes: `self` is borrowed for writing, so neither does this
        // buffer meanwhile.
        Some(unsafe { std::slice::from_raw_parts_mut(first, bytes) })
    }
}

/// Calls `f` with a buffer of these bytes, for reading.
///
/// ```
/// let mut copy = [0; 3];
/// assert_eq!(lmt_core::buffer::lend(b"abcd", |buffer| buffer.read_at(1, &mut copy)), 3);
/// assert_eq!(&copy, b"bcd");
/// ```
pub fn lend<T>(bytes: &[u8], f: impl FnOnce(&Buffer) -> T) -> T {
    // SAFETY: the bytes are borrowed, so unwritten, until this function returns; the buffer
    // does not leave it, since it can neither be copied nor be moved out of a shared
    // reference.
    let buffer = unsafe { Buffer::of_one(Segment::of(bytes), Access::Read) };
    f(&buffer)
}

/// Calls `f` with a buffer of these bytes, for writing.
///
/// The buffer is lent for the call alone: an `f` that puts another in its place, and so
/// has it for longer, ends the process.
///
/// ```
/// let mut bytes = [0; 4];
/// assert_eq!(lmt_core::buffer::lend_mut(&mut bytes, |buffer| buffer.write_at(1, b"abcd")), 3);
/// assert_eq!(&bytes, b"\0abc");
/// ```
pub fn lend_mut<T>(bytes: &mut [u8], f: impl FnOnce(&mut Buffer) -> T) -> T {
    struct Lent(Buffer, Segment);
    impl Drop for Lent {
        fn drop(&mut self) {
            if self.0.segments() != [self.1] {
                std::process::abort();
            }
        }
    }
    let one = Segment::of_mut(bytes);
    // SAFETY: the bytes are borrowed for writing until this function returns, and the buffer
    // has not left it by then, also when `f` unwinds.
    let buffer = unsafe { Buffer::of_one(one, Access::Write) };
    let mut lent = Lent(buffer, one);
    f(&mut lent.0)
}

/// Copies the bytes of `source` to `target`, as many as both have; returns how
/// many. One copy, piece by piece, whatever the segments of the two.
pub fn copy_between(source: &Buffer, target: &mut Buffer) -> u64 {
    copy_pieces(source, target, Taking::Near)
}

/// The same past the caches into `target`, where the CPU has such stores: for more than
/// the caches hold.
pub fn copy_between_past_caches(source: &Buffer, target: &mut Buffer) -> u64 {
    copy_pieces(source, target, Taking::PastCaches)
}

fn copy_pieces(source: &Buffer, target: &mut Buffer, taking: Taking) -> u64 {
    let mut offset = 0;
    for piece in source.pieces(0..source.total_bytes()) {
        let from = std::ptr::with_exposed_provenance::<u8>(piece.address);
        // SAFETY: the lender of `source` promised `piece.bytes` readable bytes
        // at this address that nobody writes while the buffer is lent.
        let bytes = unsafe { std::slice::from_raw_parts(from, piece.bytes) };
        let written = target.write_slice(offset, bytes, taking) as u64;
        offset += written;
        if written < piece.bytes as u64 {
            break;
        }
    }
    offset
}

#[cfg(test)]
#[path = "buffer_tests.rs"]
mod tests;
