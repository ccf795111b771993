//! Where things are in a box's shared memory, and the only code that makes
//! references and copies of it.
//!
//! ```text
//! 0         what this is; consumed; sent: a line each
//! 4096      LINES x 64 B
//! 20480     LINES x SHORT_LINE_BUFFER_BYTES: a line buffer for each line
//! 53248     LINES x LINE_BUFFER_BYTES: a longer one for each line
//! 184320    CELLS x 4096 B, of which the first PIECE_BYTES are used
//! behind    HANDOFF_CELLS x HANDOFF_CELL_STRIDE_BYTES, without memory until they are used
//! ```
//!
//! The last are the cells that change their owner, of one of a pair's two boxes;
//! those of the other are not used (see `pair`).
//!
//! Two things about the ring's cells were found by measurement (docs/performance.md):
//! each begins a page of its own and leaves the page's end free, because a
//! reader's hardware prefetchers run on behind what is published and would take
//! the next cell's lines away from its writer; and there are many, because a line
//! that the reader's cache still holds costs its writer as much as the transfer
//! itself.
#![allow(unsafe_code)] // Turns offsets into references and copies cells.

use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};

use lmt_copy::Distance;

use super::cell_ownership::HANDOFF_CELLS;
use super::place::{HANDOFF_CELL_STRIDE_BYTES, Part};
use super::ring::{Progress, Words};
use crate::memory::buffer::{Buffer, Leaving, Taking};
use crate::memory::shared_memory::{AttachError, SharedMemory};
use crate::queue::layout::INLINE_BYTES;
use crate::queue::ring::Line;
use crate::vocabulary::error::MemoryError;

/// "lmtfbox" and the layout's version in one word; changes with the layout.
const MAGIC: u64 = u64::from_le_bytes(*b"lmtfbox\x09");

pub(super) const PAGE_BYTES: usize = 4096;

/// Lines, a power of two: enough for what two processes that exchange windows of 64
/// long messages announce and answer, so few that they stay in the second-level cache.
pub(super) const LINES: usize = 256;

/// Cells, a power of two: 512 KiB of them, and a connection takes as long as their pages take.
pub(crate) const CELLS: usize = 128;

/// The longest message that one line and one cell hold, in bytes.
pub(crate) const PIECE_BYTES: usize = 3072;

/// The longest message in a line buffer of its line, in bytes.
pub(crate) const LINE_BUFFER_BYTES: usize = 512;

/// Up to so many bytes it is the shorter one: lines that follow one another stand side by side
/// there, and are fetched so where messages follow one another.
const SHORT_LINE_BUFFER_BYTES: usize = 128;

const LINES_OFFSET: usize = PAGE_BYTES;

const LINE_BUFFERS_OFFSET: usize = LINES_OFFSET + LINES * size_of::<Line>();

const LONG_LINE_BUFFERS_OFFSET: usize = LINE_BUFFERS_OFFSET + LINES * SHORT_LINE_BUFFER_BYTES;

const CELLS_OFFSET: usize = LONG_LINE_BUFFERS_OFFSET + LINES * LINE_BUFFER_BYTES;

/// What is allocated when a box is made.
const COMMITTED_BYTES: usize = CELLS_OFFSET + CELLS * PAGE_BYTES;

const HANDOFF_OFFSET: usize = COMMITTED_BYTES;

const TOTAL_BYTES: usize = HANDOFF_OFFSET + HANDOFF_CELLS as usize * HANDOFF_CELL_STRIDE_BYTES;

const PURPOSE: &str = "a fast box";

const KEY: &str = "fast_boxes";

#[repr(C, align(64))]
struct Control {
    magic: AtomicU64,
    consumed: Progress,
    sent: Progress,
}

const _: () = assert!(size_of::<Control>() == 192 && size_of::<Progress>() == 64);

const _: () = assert!(LINES.is_power_of_two() && CELLS.is_power_of_two());

const _: () =
    assert!(LINE_BUFFERS_OFFSET == 20480 && LONG_LINE_BUFFERS_OFFSET == 53248 && CELLS_OFFSET == 184320);

const _: () = assert!(CELLS_OFFSET.is_multiple_of(PAGE_BYTES));

const _: () = assert!(PIECE_BYTES <= PAGE_BYTES);

/// A place that is no part of a pair's cell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Place {
    /// In a line buffer of the line of this number, as long as it is for so many bytes.
    LineBuffer { line: u64, bytes: usize },
    /// In the ring's cell of this number.
    Cell(u64),
}

/// A mapped box.
#[derive(Debug)]
pub(super) struct FastBoxMemory {
    memory: SharedMemory,
}

impl FastBoxMemory {
    pub(super) fn create() -> Result<(Self, OwnedFd), MemoryError> {
        let (memory, fd) = SharedMemory::create_partly(PURPOSE, KEY, TOTAL_BYTES, COMMITTED_BYTES)?;
        let this = Self { memory };
        // Relaxed: the peer gets the descriptor by a system call after this.
        this.control().magic.store(MAGIC, Ordering::Relaxed);
        Ok((this, fd))
    }

    pub(super) fn attach(fd: OwnedFd) -> Result<Self, AttachError> {
        let this = Self { memory: SharedMemory::attach(fd, TOTAL_BYTES, TOTAL_BYTES)? };
        // Relaxed: written before the descriptor was sent here.
        if this.control().magic.load(Ordering::Relaxed) != MAGIC {
            return Err(AttachError::WrongContent { what: "it is no fast box of this version" });
        }
        Ok(this)
    }

    #[inline]
    fn control(&self) -> &Control {
        let control = self.memory.base().cast::<Control>();
        // SAFETY: the mapping is page-aligned, has TOTAL_BYTES bytes (made or
        // checked so), lives as long as `self`; all fields are atomics, for
        // which every value is valid and other processes' stores are fine.
        unsafe { control.as_ref() }
    }

    /// The shared words.
    #[inline]
    pub(super) fn words(&self) -> Words<'_> {
        let control = self.control();
        // SAFETY: LINES_OFFSET is within the mapping of TOTAL_BYTES bytes.
        let first = unsafe { self.memory.base().add(LINES_OFFSET) };
        // SAFETY: LINES lines from there on are within the mapping (asserted
        // above), aligned (LINES_OFFSET is a multiple of the page), alive as
        // long as `self`; they are atomics, valid for any bytes, shared.
        let lines = unsafe { std::slice::from_raw_parts(first.cast::<Line>().as_ptr(), LINES) };
        Words { lines, consumed: &control.consumed, sent: &control.sent }
    }

    /// The first byte of a line's line buffer for so many bytes, and how many are valid from there on,
    /// for as long as `self` lives; `line` is taken modulo the ring.
    #[inline]
    fn line_buffer(&self, line: u64, bytes: usize) -> (*mut u8, usize) {
        let (begin, length) = if bytes <= SHORT_LINE_BUFFER_BYTES {
            (LINE_BUFFERS_OFFSET, SHORT_LINE_BUFFER_BYTES)
        } else {
            (LONG_LINE_BUFFERS_OFFSET, LINE_BUFFER_BYTES)
        };
        let offset = begin + (line as usize & (LINES - 1)) * length;
        // SAFETY: the line's number is below LINES, so the whole line buffer from `offset` on
        // is within the TOTAL_BYTES bytes of the mapping.
        (unsafe { self.memory.base().as_ptr().add(offset) }, length)
    }

    /// Asks for the first `bytes` bytes of a line's line buffer, which will be read as soon as the line
    /// is published: so they cross beside it and not after it.
    #[inline]
    pub(super) fn prefetch_line_buffer(&self, line: u64, bytes: usize) {
        let (first, length) = self.line_buffer(line, bytes);
        lmt_copy::prefetch(first, bytes.min(length));
    }

    /// Asks for a line, and for its line buffer if a message of so many bytes lies there, to write them
    /// soon; `line` is taken modulo the ring.
    #[inline(always)] // The path of a short message.
    pub(super) fn prefetch_for_write(&self, line: u64, bytes: usize) {
        let words = self.words().line(line);
        lmt_copy::prefetch_for_write(words.as_ptr().cast(), size_of_val(words));
        if bytes > INLINE_BYTES && bytes <= LINE_BUFFER_BYTES {
            let (first, length) = self.line_buffer(line, bytes);
            lmt_copy::prefetch_for_write(first, bytes.min(length));
        }
    }

    /// The first byte of a cell; `cell` is taken modulo the ring. PIECE_BYTES
    /// bytes are valid from there on for as long as `self` lives.
    #[inline]
    fn cell(&self, cell: u64) -> *mut u8 {
        let offset = CELLS_OFFSET + (cell as usize & (CELLS - 1)) * PAGE_BYTES;
        // SAFETY: the cell's number is below CELLS, so the whole page from
        // `offset` on is within the TOTAL_BYTES bytes of the mapping.
        unsafe { self.memory.base().as_ptr().add(offset) }
    }

    /// Where a part of a pair's cell begins, and how many bytes are valid from
    /// there on, to the cell's end, for as long as `self` lives.
    #[inline]
    fn part(&self, part: Part) -> (*mut u8, usize) {
        let within = (part.offset as usize).min(HANDOFF_CELL_STRIDE_BYTES);
        let cell = usize::from(part.cell) % HANDOFF_CELLS as usize;
        let offset = HANDOFF_OFFSET + cell * HANDOFF_CELL_STRIDE_BYTES + within;
        // SAFETY: the cell's number is below HANDOFF_CELLS and `within` at most a
        // cell's bytes, so the place is within the TOTAL_BYTES bytes of the
        // mapping, or at their end with no byte behind it.
        let first = unsafe { self.memory.base().as_ptr().add(offset) };
        (first, HANDOFF_CELL_STRIDE_BYTES - within)
    }

    /// Takes memory for a pair's cell now, rather than at the first touch, where
    /// want of it would kill the process.
    pub(super) fn commit_handoff_cell(&self, cell: u8, bytes: usize) -> Result<(), MemoryError> {
        let offset = HANDOFF_OFFSET + usize::from(cell) * HANDOFF_CELL_STRIDE_BYTES;
        self.memory.commit_range(PURPOSE, KEY, offset, bytes)
    }

    /// Copies `bytes` into a part of a pair's cell from its byte `at` on, as far
    /// as they go. The cell is this process's.
    #[inline]
    pub(super) fn write_part(&self, part: Part, at: usize, bytes: &[u8]) {
        let (target, length) = fitting(self.part(part), at, bytes.len());
        // SAFETY: as in `write`; the peer does not touch a cell of this process.
        unsafe { lmt_copy::copy_toward(target, bytes.as_ptr(), length, Distance::Peer) };
    }

    /// The same from a buffer's bytes `range`.
    #[inline]
    pub(super) fn write_part_from(&self, part: Part, buffer: &Buffer, range: Range<u64>) {
        if let Some(bytes) = buffer.one_slice(range.clone()) {
            self.write_part(part, 0, bytes);
            return;
        }
        let (first, room) = self.part(part);
        let length = range.end.saturating_sub(range.start).min(room as u64) as usize;
        // SAFETY: `first` has `room` writable bytes, at least `length`.
        unsafe { buffer.read_raw(range.start, first, length, Leaving::For(Distance::Peer)) };
    }

    /// Copies the first bytes of a published part of a pair's cell.
    #[inline]
    pub(super) fn read_part(&self, part: Part, target: &mut [u8]) {
        let (first, room) = self.part(part);
        let length = target.len().min(room);
        // SAFETY: as in `read`: `length` bytes are in the part and in `target`.
        unsafe { lmt_copy::copy_nonoverlapping(target.as_mut_ptr(), first, length) };
    }

    /// The same, `bytes` of them, to a buffer from its byte `offset` on;
    /// returns how many fitted.
    #[inline]
    pub(super) fn read_part_to(&self, part: Part, bytes: usize, buffer: &mut Buffer, offset: u64) -> usize {
        let (first, room) = self.part(part);
        // SAFETY: as in `read_to`.
        unsafe { buffer.write_raw(offset, first, bytes.min(room), Taking::Near) }
    }

    /// Where a place begins, and how many bytes are valid from there on.
    #[inline]
    fn room(&self, place: Place) -> (*mut u8, usize) {
        match place {
            Place::LineBuffer { line, bytes } => self.line_buffer(line, bytes),
            Place::Cell(cell) => (self.cell(cell), PIECE_BYTES),
        }
    }

    /// Copies `bytes` to a place from its byte `at` on, as far as they go. The caller has
    /// reserved it.
    #[inline]
    pub(super) fn write(&self, place: Place, at: usize, bytes: &[u8]) {
        let (target, length) = fitting(self.room(place), at, bytes.len());
        // SAFETY: `length` bytes are in `bytes` and in the place; a slice of this
        // process does not overlap the mapping, which is reached by raw
        // pointers only. The peer does not touch what is reserved; if a
        // misbehaving one does, the message's bytes are wrong and nothing else.
        unsafe { lmt_copy::copy_toward(target, bytes.as_ptr(), length, Distance::Peer) };
    }

    /// The same from a buffer's bytes `range`.
    #[inline]
    pub(super) fn write_from(&self, place: Place, buffer: &Buffer, range: Range<u64>) {
        let (first, room) = self.room(place);
        let length = range.end.saturating_sub(range.start).min(room as u64) as usize;
        // SAFETY: the place has `room` writable bytes, see `write`.
        unsafe { buffer.read_raw(range.start, first, length, Leaving::For(Distance::Peer)) };
    }

    /// Copies the first bytes of what is published and not consumed yet.
    #[inline]
    pub(super) fn read(&self, place: Place, target: &mut [u8]) {
        let (first, room) = self.room(place);
        let length = target.len().min(room);
        // SAFETY: `length` bytes are in the place and in `target`, which do not
        // overlap (see `write`); the sender wrote them before it published.
        unsafe { lmt_copy::copy_nonoverlapping(target.as_mut_ptr(), first, length) };
    }

    /// The same, `bytes` of them, to a buffer from its byte `offset` on;
    /// returns how many fitted.
    #[inline]
    pub(super) fn read_to(&self, place: Place, bytes: usize, buffer: &mut Buffer, offset: u64) -> usize {
        let (first, room) = self.room(place);
        // SAFETY: as in `read`; a buffer's segments are memory lent by this
        // process's application, not this mapping.
        unsafe { buffer.write_raw(offset, first, bytes.min(room), Taking::Near) }
    }
}

/// Where byte `at` of a room is, and how many of `bytes` bytes fit from there on; `first`
/// has `room` valid bytes.
#[inline]
fn fitting((first, room): (*mut u8, usize), at: usize, bytes: usize) -> (*mut u8, usize) {
    let at = at.min(room);
    (first.wrapping_add(at), bytes.min(room - at))
}
