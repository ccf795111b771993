//! The writing end of a box.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use super::memory::{CELLS, FastBoxMemory, LINE_BUFFER_BYTES, PIECE_BYTES, Place};
use super::pair::HandoffCells;
use super::place::{HANDOFF_CELL_BYTES, IN_LINE_BUFFER, Part};
use super::ring::{FastBoxFull, Writer};
use crate::memory::buffer::Buffer;
use crate::memory::shared_memory::AttachError;
use crate::queue::layout::{HEADER_WORDS, INLINE_BYTES};
use crate::queue::payload::{Payload, Piece};
use crate::queue::ring::Line;

/// Where in its cell a piece begins whose first byte is at `address`: at the same place of a
/// line, for copies between places that stand alike are the fastest.
const fn begin_in_cell(address: usize) -> usize {
    address % size_of::<Line>()
}

/// Which word of a line names the part of a pair's cell.
pub(super) const PART_WORD: usize = HEADER_WORDS;

/// Puts messages into the box that one peer made for this endpoint.
#[derive(Debug)]
pub(crate) struct FastBoxSender {
    memory: Arc<FastBoxMemory>,
    writer: Writer,
    pair: Option<Arc<HandoffCells>>,
    is_fresh: bool,
}

impl FastBoxSender {
    /// Attaches to the box behind `fd`.
    ///
    /// # Errors
    /// [`AttachError`] when it is none, or could fault.
    pub(crate) fn attach(fd: OwnedFd) -> Result<Self, AttachError> {
        let memory = Arc::new(FastBoxMemory::attach(fd)?);
        let writer = Writer::new(&memory.words(), CELLS);
        let is_fresh = writer.is_fresh();
        Ok(Self { memory, writer, pair: None, is_fresh })
    }

    /// The cells of this box that change their owner, for this process.
    pub(super) fn make_handoff_cells(&self) -> Arc<HandoffCells> {
        Arc::new(HandoffCells::theirs(self.memory.clone(), self.is_fresh))
    }

    pub(super) fn use_handoff_cells(&mut self, pair: Arc<HandoffCells>) {
        self.pair = Some(pair);
    }

    /// Whether a message of `bytes` bytes would find too few of the cells that change their
    /// owner, or there are none.
    #[inline]
    pub(crate) fn lacks_handoff_cells(&self, bytes: u64) -> bool {
        self.pair.as_ref().is_none_or(|pair| !pair.has_cells_for(bytes))
    }

    /// At most so many pieces a message of `bytes` bytes has.
    #[inline]
    pub(crate) const fn max_pieces(bytes: u64) -> u64 {
        // All but the last have at least so much.
        if bytes <= PIECE_BYTES as u64 { 1 } else { bytes.div_ceil(PIECE_BYTES as u64) }
    }

    /// The length of the longest piece that there is room for now.
    #[inline]
    pub(crate) fn max_piece_bytes(&self) -> u64 {
        let has_cell = self.pair.as_ref().is_some_and(|pair| pair.has_cell(HANDOFF_CELL_BYTES));
        (if has_cell { HANDOFF_CELL_BYTES } else { PIECE_BYTES }) as u64
    }

    /// Publishes one message, or a piece of one, of at most [`PIECE_BYTES`]
    /// bytes, or as many as [`FastBoxSender::max_piece_bytes`] has just said. `words` are
    /// the line's from 1 on; so many of them are `used`, with the payload if it
    /// is inline.
    #[inline(always)] // The path of a short message.
    pub(crate) fn send(
        &mut self,
        words: &mut [u64],
        used: usize,
        bytes: usize,
        kind: u8,
        payload: &Payload<'_>,
        piece: Piece,
    ) -> Result<(), FastBoxError> {
        let shared = self.memory.words();
        if bytes > INLINE_BYTES {
            return self.send_outside_line(words, bytes, kind, payload, piece);
        }
        self.writer.reserve(&shared, false)?;
        self.writer.publish(&shared, &words[..used], kind, false);
        Ok(())
    }

    /// Publishes a message of at most [`INLINE_BYTES`] bytes; `first` are its line's words before
    /// those.
    #[inline(always)] // The path of a short message.
    pub(crate) fn send_in_line(
        &mut self,
        first: [u64; 2],
        bytes: &[u8],
        kind: u8,
    ) -> Result<(), FastBoxFull> {
        let shared = self.memory.words();
        self.writer.reserve(&shared, false)?;
        self.writer.publish_bytes(&shared, first, bytes, kind);
        Ok(())
    }

    /// Asks for the line that comes next, to write it soon, and where a message of so many bytes
    /// lies in a line buffer, for that.
    #[inline(always)] // The path of a short message.
    pub(crate) fn prefetch_next_line(&self, bytes: usize) {
        // One that is not known to be free may still be its reader's.
        if self.writer.has_line() {
            self.memory.prefetch_for_write(self.writer.line_number(), bytes);
        }
    }

    #[inline]
    fn send_outside_line(
        &mut self,
        words: &mut [u64],
        bytes: usize,
        kind: u8,
        payload: &Payload<'_>,
        piece: Piece,
    ) -> Result<(), FastBoxError> {
        let shared = self.memory.words();
        self.writer.reserve(&shared, false)?;
        if bytes <= LINE_BUFFER_BYTES && piece == Piece::Whole {
            self.put(Place::LineBuffer { line: self.writer.line_number(), bytes }, payload);
            words[PART_WORD - 1] = IN_LINE_BUFFER;
            self.writer.publish(&shared, &words[..PART_WORD], kind, false);
            return Ok(());
        }
        if let Some((part, pair)) = self.part_for(bytes, payload) {
            let memory = &pair.memory;
            let put_part = |buffer: &Buffer, range| memory.write_part_from(part, buffer, range);
            payload.write(|at, bytes| memory.write_part(part, at, bytes), put_part);
            words[PART_WORD - 1] = part.to_word();
            self.writer.publish(&shared, &words[..PART_WORD], kind, false);
            return Ok(());
        }
        if bytes > PIECE_BYTES {
            return Err(FastBoxError::TooLong);
        }
        let cell = self.writer.reserve(&shared, true)?;
        self.put(Place::Cell(cell), payload);
        words[PART_WORD - 1] = 0;
        self.writer.publish(&shared, &words[..PART_WORD], kind, true);
        Ok(())
    }

    #[inline]
    fn put(&self, place: Place, payload: &Payload<'_>) {
        let memory = &self.memory;
        let put_part = |buffer: &Buffer, range| memory.write_from(place, buffer, range);
        payload.write(|at, bytes| memory.write(place, at, bytes), put_part);
    }

    /// The part of a pair's cell that so many bytes go to, if there is one.
    #[inline]
    fn part_for(&self, bytes: usize, payload: &Payload<'_>) -> Option<(Part, &HandoffCells)> {
        let pair = self.pair.as_deref()?;
        if bytes > HANDOFF_CELL_BYTES {
            return None;
        }
        // What is short needs fewer lines from the cell's begin.
        let offset = if bytes <= PIECE_BYTES { 0 } else { begin_in_cell(payload.first_address()) };
        let cell = pair.take(if bytes <= PIECE_BYTES { bytes } else { HANDOFF_CELL_BYTES })?;
        Some((Part { cell, offset: offset as u32 }, pair))
    }
}

/// Why a box took nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FastBoxError {
    /// There is no free line or cell now.
    Full,
    /// It is longer than a cell.
    TooLong,
}

impl From<FastBoxFull> for FastBoxError {
    fn from(_: FastBoxFull) -> Self {
        Self::Full
    }
}
