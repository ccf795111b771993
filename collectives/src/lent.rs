//! Memory lent to a call, and parts of it.
#![allow(unsafe_code)] // Buffer::new is the unsafe step.

use std::marker::PhantomData;

use lmt_core::buffer::{Access, Buffer, Segment};

use crate::program::{Place, Span};
use crate::reduction::{Panic, Reduction};

/// Memory that a call reads or writes, contiguous or in segments.
///
/// ```
/// use lmt_collectives::Memory;
/// let (head, body) = ([1u8; 4], vec![2u8; 100]);
/// let whole = Memory::from(&body[..]);
/// let both = Memory::segments(&[&head[..], &body[..]]);
/// assert_eq!((whole.bytes(), both.bytes()), (100, 104));
/// ```
#[derive(Debug)]
pub struct Memory<'a> {
    buffer: Buffer,
    borrow: PhantomData<&'a mut [u8]>,
}

impl<'a> Memory<'a> {
    fn new(segments: &[Segment], access: Access) -> Self {
        // SAFETY: the segments are slices that stay borrowed, exclusively where they are
        // lent for writing, for 'a; the calls that take a `Memory` see to it that they
        // have ended before 'a does (`Group::run`, `Scope`).
        let buffer = unsafe { Buffer::new(segments, access) };
        // Slices lie in the address space.
        Self { buffer: buffer.unwrap_or_else(|_| Buffer::empty(access)), borrow: PhantomData }
    }

    /// Several stretches, one after the other, to be read.
    pub fn segments(segments: &[&'a [u8]]) -> Self {
        let list: Vec<Segment> = segments.iter().map(|slice| Segment::of(slice)).collect();
        Self::new(&list, Access::Read)
    }

    /// Several stretches, one after the other, to be written. They are given away for as
    /// long as the memory is lent:
    ///
    /// ```
    /// use lmt_collectives::Memory;
    /// let (mut head, mut body) = ([0u8; 4], vec![0u8; 100]);
    /// assert_eq!(Memory::segments_mut([&mut head[..], &mut body[..]]).bytes(), 104);
    /// ```
    ///
    /// ```compile_fail,E0382
    /// use lmt_collectives::Memory;
    /// let mut data = [0u8; 4];
    /// let list = [&mut data[..]];
    /// let lent = Memory::segments_mut(list);
    /// list[0][0] = 1;
    /// drop(lent);
    /// ```
    pub fn segments_mut(segments: impl IntoIterator<Item = &'a mut [u8]>) -> Self {
        let list: Vec<Segment> = segments.into_iter().map(Segment::of_mut).collect();
        Self::new(&list, Access::Write)
    }

    /// How long it is.
    pub const fn bytes(&self) -> u64 {
        self.buffer.total_bytes()
    }

    pub(crate) fn is_for_writing(&self) -> bool {
        self.buffer.access() == Access::Write
    }

    pub(crate) fn into_buffer(self) -> Buffer {
        self.buffer
    }
}

impl<'a> From<&'a [u8]> for Memory<'a> {
    fn from(slice: &'a [u8]) -> Self {
        Self::new(&[Segment::of(slice)], Access::Read)
    }
}

impl<'a> From<&'a mut [u8]> for Memory<'a> {
    fn from(slice: &'a mut [u8]) -> Self {
        Self::new(&[Segment::of_mut(slice)], Access::Write)
    }
}

/// The memory of a running call.
#[derive(Debug)]
pub(crate) struct Places {
    input: Buffer,
    output: Buffer,
    /// Never resized while the call runs.
    work: Vec<u8>,
    /// Where it is.
    work_address: usize,
}

impl Default for Places {
    /// Nothing.
    fn default() -> Self {
        let (input, output) = (Buffer::empty(Access::Read), Buffer::empty(Access::Write));
        Self { input, output, work: Vec::new(), work_address: 0 }
    }
}

impl Places {
    /// What was lent. The lender keeps it lent until the call has ended.
    pub fn lend(&mut self, input: Option<Buffer>, output: Option<Buffer>) {
        self.input = input.unwrap_or(Buffer::empty(Access::Read));
        self.output = output.unwrap_or(Buffer::empty(Access::Write));
    }

    /// Scratch memory, of which there was none.
    pub fn lend_work(&mut self, mut work: Vec<u8>) {
        self.work_address = work.as_mut_ptr().expose_provenance();
        self.work = work;
    }

    /// The scratch memory, to be used again.
    pub fn into_work(self) -> Vec<u8> {
        self.work
    }

    pub fn bytes_of(&self, place: Place) -> u64 {
        match place {
            Place::Input => self.input.total_bytes(),
            Place::Output => self.output.total_bytes(),
            Place::Work => self.work.len() as u64,
        }
    }

    /// Part of the memory as a buffer of its own; none if it reaches past the place, or
    /// is to be written and may not be.
    pub fn part(&mut self, span: Span, access: Access) -> Option<Buffer> {
        let end = span.offset.checked_add(span.bytes)?;
        if end > self.bytes_of(span.place) {
            return None;
        }
        let whole = match span.place {
            Place::Input => &self.input,
            Place::Output => &self.output,
            Place::Work => {
                // From one pointer for all parts: a new reference to the whole would end
                // those before it.
                let address = self.work_address + span.offset as usize;
                let part = Segment { address, bytes: span.bytes as usize };
                // SAFETY: the scratch memory lives, unmoved, until `into_work`, which
                // comes after the end of all that was begun in the call. That no two
                // operations in flight use the same bytes otherwise than for reading is
                // what programs see to (their simulation finds those that do not); two
                // that did would mix bytes, which any are valid.
                return unsafe { Buffer::new(&[part], access) }.ok();
            }
        };
        if access == Access::Write && whole.access() == Access::Read {
            return None;
        }
        let mut pieces = whole.pieces(span.offset..end);
        let (first, second) = (pieces.next(), pieces.next());
        let list: Vec<Segment>;
        let pieces = match (first, second) {
            (None, _) => &[][..],
            (Some(one), None) => &[one],
            (Some(one), Some(two)) => {
                list = [one, two].into_iter().chain(pieces).collect();
                &list
            }
        };
        // SAFETY: parts of memory that is lent, for writing if this is to be, until the
        // call has ended; for the rest see above.
        unsafe { Buffer::new(pieces, access) }.ok()
    }

    /// Combines two stretches of the same length; false if they are none, or overlap.
    ///
    /// # Errors
    /// As [`Reduction::combine`].
    pub fn combine(
        &mut self,
        from: Span,
        into: Span,
        from_is_left: bool,
        with: &Reduction,
    ) -> Result<bool, Panic> {
        if from.bytes != into.bytes || (from.place == into.place && overlap(from, into)) {
            return Ok(false);
        }
        let (Some(left), Some(mut right)) = (self.part(from, Access::Read), self.part(into, Access::Write))
        else {
            return Ok(false);
        };
        if let ([one], [two]) = (left.segments(), right.segments())
            && one.bytes > 0
        {
            let source = std::ptr::with_exposed_provenance::<u8>(one.address);
            let target = std::ptr::with_exposed_provenance_mut::<u8>(two.address);
            // SAFETY: one piece of memory that is lent or the call's own, as long as
            // `part` says, which this thread alone uses now.
            let from = unsafe { std::slice::from_raw_parts(source, one.bytes) };
            // SAFETY: the same, lent for writing, and apart from `from`: other places are
            // other memory, and stretches of one place were compared above.
            let into = unsafe { std::slice::from_raw_parts_mut(target, two.bytes) };
            with.combine(from, into, from_is_left)?;
            return Ok(true);
        }
        let mut bounce = [vec![0; from.bytes as usize], vec![0; into.bytes as usize]];
        let [source, target] = &mut bounce;
        left.read_at(0, source);
        right.read_at(0, target);
        with.combine(source, target, from_is_left)?;
        right.write_at(0, target);
        Ok(true)
    }
}

const fn overlap(a: Span, b: Span) -> bool {
    a.offset < b.offset.saturating_add(b.bytes) && b.offset < a.offset.saturating_add(a.bytes)
}

#[cfg(test)]
#[path = "lent_tests.rs"]
mod tests;
