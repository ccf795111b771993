//! The writing end of a box.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use super::memory::{ANNEX_BYTES, BoxMemory, CELLS, PIECE_BYTES, Place};
use super::pair::PairCells;
use super::place::{IN_ANNEX, PAIR_CELL_BYTES, Part, TAIL_BYTES};
use super::ring::{BoxFull, Writer};
use crate::buffer::Buffer;
use crate::inbox::layout::{HEADER_WORDS, INLINE_BYTES};
use crate::inbox::ring::Line;
use crate::inbox::sender::{Payload, Piece};
use crate::shared_memory::AttachError;

/// The pieces of a message in cells that change their owner: short enough for the receiver to
/// begin soon, long enough to be told seldom. Each takes both sides some 50 ns beside its bytes'
/// way where their cores share a cache, and 200 and more where they do not: what is no longer
/// than this goes in one (16 KiB takes 0.84 to 1.08 of the time that it takes in two).
const SHORT_BYTES: u64 = 16 << 10;

/// The first piece of a longer one.
const fn first_piece_bytes(total_bytes: u64) -> u64 {
    if total_bytes <= SHORT_BYTES { SHORT_BYTES } else { 8 << 10 }
}

/// Less than so much of a cell is left to no other piece.
const LEAST_LEFT_BYTES: u64 = 4 << 10;

/// The longest piece: a cell from where many follow one another (128 and 256 KiB take 0.95 to
/// 0.99 of the time by that, 64 KiB 1.05).
const fn most_piece_bytes(total_bytes: u64) -> u64 {
    if total_bytes < 128 << 10 { 16 << 10 } else { PAIR_CELL_BYTES as u64 }
}

/// The piece behind so many bytes, where there is room for it.
fn growing_piece_bytes(sent_bytes: u64, total_bytes: u64) -> u64 {
    sent_bytes.clamp(first_piece_bytes(total_bytes), most_piece_bytes(total_bytes))
}

/// Into what a message is cut that goes in cells which change their owner.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Cut {
    /// Short pieces at first, and longer ones behind: for who waits for it.
    Growing,
    /// Whole cells, for who is to begin later: all-to-all of 64 KiB by 4 ranks on 2 cores
    /// takes 0.81 of the time, windows both ways 0.93.
    Cells,
}

/// Where in its first cell a message begins whose first byte is at `address`: at the same place
/// of a line, for copies between places that stand alike are the fastest. The cells behind it
/// are filled from their begins, where a line begins as the message goes on with one.
const fn begin_in_cell(address: usize) -> usize {
    address % size_of::<Line>()
}

/// The same for a piece of so many bytes, the first in a cell. One that was cut for another place
/// begins with the cell.
#[inline]
const fn begin_of(bytes: usize, piece: Piece, address: usize) -> usize {
    let begin = begin_in_cell(address);
    if begin + bytes <= most_in_cell(piece, address) { begin } else { 0 }
}

/// Where a piece ends at most, from the begin of its cell on: its line takes a little of the
/// last, if it lies in one segment of memory, of which there is the address.
const fn most_in_cell(piece: Piece, address: usize) -> usize {
    if piece.is_end() && address != 0 { PAIR_CELL_BYTES + TAIL_BYTES } else { PAIR_CELL_BYTES }
}

/// Which word of a line names the part of a pair's cell.
pub(super) const PART_WORD: usize = HEADER_WORDS;

/// Puts messages into the box that one peer made for this endpoint.
#[derive(Debug)]
pub(crate) struct BoxSender {
    memory: Arc<BoxMemory>,
    writer: Writer,
    pair: Option<Arc<PairCells>>,
    /// The cell that a message in pieces is filling, and where its next piece begins there.
    filling: Option<(u8, usize)>,
    is_fresh: bool,
}

impl BoxSender {
    /// Attaches to the box behind `fd`.
    ///
    /// # Errors
    /// [`AttachError`] when it is none, or could fault.
    pub(crate) fn attach(fd: OwnedFd) -> Result<Self, AttachError> {
        let memory = Arc::new(BoxMemory::attach(fd)?);
        let writer = Writer::new(&memory.words(), CELLS);
        let is_fresh = writer.is_fresh();
        Ok(Self { memory, writer, pair: None, filling: None, is_fresh })
    }

    /// The cells of this box that change their owner, for this process.
    pub(super) fn make_pair(&self) -> Arc<PairCells> {
        Arc::new(PairCells::theirs(self.memory.clone(), self.is_fresh))
    }

    pub(super) fn use_pair(&mut self, pair: Arc<PairCells>) {
        self.pair = Some(pair);
    }

    /// Whether a message of `bytes` bytes, in pieces, fits as a whole now, by
    /// whatever cells.
    #[inline]
    pub(crate) fn has_room_for(&mut self, bytes: u64) -> bool {
        self.writer.has_room_for(&self.memory.words(), Self::most_pieces(bytes))
    }

    /// Whether there are cells that change their owner.
    #[inline]
    pub(crate) fn has_pair_cells(&self) -> bool {
        self.pair.is_some()
    }

    /// Whether a message of `bytes` bytes would find too few of the cells that change their
    /// owner, or there are none.
    #[inline]
    pub(crate) fn lacks_pair_cells(&self, bytes: u64) -> bool {
        self.pair.as_ref().is_none_or(|pair| !pair.has_cells_for(bytes))
    }

    /// Whether this end has sent more in such cells than has come back, by more than `bytes`
    /// bytes: several messages are on their way, or the peer sends none. Not without such cells.
    #[inline]
    pub(crate) fn is_ahead(&self, bytes: u64) -> bool {
        self.pair.as_ref().is_some_and(|pair| pair.is_ahead(bytes))
    }

    /// At most so many pieces a message of `bytes` bytes has.
    #[inline]
    pub(crate) const fn most_pieces(bytes: u64) -> u64 {
        // Of 4 KiB and more, or of 3 KiB, or some of these and then some of
        // those; and what is left of it in the last cell.
        if bytes <= PIECE_BYTES as u64 { 1 } else { bytes.div_ceil(PIECE_BYTES as u64) + 2 }
    }

    /// The length of the piece that comes next of a message of `total_bytes`
    /// bytes, more than [`PIECE_BYTES`], of which `sent_bytes` are sent. The others are at
    /// `address`; 0 if they do not all lie in one piece of memory.
    #[inline]
    pub(crate) fn piece_bytes(&self, sent_bytes: u64, total_bytes: u64, address: usize, cut: Cut) -> u64 {
        let left_bytes = total_bytes - sent_bytes;
        let filled = self.filling.filter(|_| sent_bytes > 0);
        let room = match (&self.pair, filled) {
            (Some(_), Some((_, at))) => PAIR_CELL_BYTES - at,
            (Some(pair), None) if pair.has_cell(PAIR_CELL_BYTES) => PAIR_CELL_BYTES - begin_in_cell(address),
            _ => return left_bytes.min(PIECE_BYTES as u64),
        };
        let bytes = match cut {
            Cut::Growing => growing_piece_bytes(sent_bytes, total_bytes),
            Cut::Cells => PAIR_CELL_BYTES as u64,
        };
        // What would leave little of its cell takes it all: pieces go on growing by what is
        // sent, of which the first cell may have had less than a cell's.
        let bytes = if bytes + LEAST_LEFT_BYTES > room as u64 { bytes.max(room as u64) } else { bytes };
        // The last piece is to say that the cell is handed over, which one that
        // fits its line cannot.
        let whole =
            if left_bytes - bytes.min(left_bytes) <= INLINE_BYTES as u64 { left_bytes } else { bytes };
        // Or it has the little in its line that its cell does not hold.
        let beyond_bytes = whole.saturating_sub(room as u64);
        if whole == left_bytes && address != 0 && beyond_bytes <= TAIL_BYTES as u64 {
            return whole;
        }
        whole.min(room as u64)
    }

    /// Publishes one message, or a piece of one, of at most [`PIECE_BYTES`]
    /// bytes, or as many as [`BoxSender::piece_bytes`] has just said. `words` are
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
    ) -> Result<(), Refusal> {
        let shared = self.memory.words();
        if bytes > INLINE_BYTES {
            return self.send_beside_line(words, bytes, kind, payload, piece);
        }
        debug_assert!(
            self.filling.is_none() || matches!(piece, Piece::Whole | Piece::First),
            "a piece in its line hands no cell over"
        );
        self.writer.reserve(&shared, false)?;
        self.writer.publish(&shared, &words[..used], kind, false);
        Ok(())
    }

    /// Publishes a message of at most [`INLINE_BYTES`] bytes; `first` are its line's words before
    /// those.
    #[inline(always)] // The path of a short message.
    pub(crate) fn send_in_line(&mut self, first: [u64; 2], bytes: &[u8], kind: u8) -> Result<(), BoxFull> {
        let shared = self.memory.words();
        self.writer.reserve(&shared, false)?;
        self.writer.publish_bytes(&shared, first, bytes, kind);
        Ok(())
    }

    /// Asks for the line that comes next, to write it soon, and where a message of so many bytes
    /// lies in an annex, for that.
    #[inline(always)] // The path of a short message.
    pub(crate) fn take_over_next(&self, bytes: usize) {
        // One that is not known to be free may still be its reader's.
        if !self.writer.has_line() {
            return;
        }
        self.memory.take_over(self.writer.line_number(), bytes);
    }

    #[inline]
    fn send_beside_line(
        &mut self,
        words: &mut [u64],
        bytes: usize,
        kind: u8,
        payload: &Payload<'_>,
        piece: Piece,
    ) -> Result<(), Refusal> {
        let shared = self.memory.words();
        self.writer.reserve(&shared, false)?;
        if bytes <= ANNEX_BYTES && piece == Piece::Whole {
            self.put(Place::Annex { line: self.writer.line_number(), bytes }, payload);
            words[PART_WORD - 1] = IN_ANNEX;
            self.writer.publish(&shared, &words[..PART_WORD], kind, false);
            return Ok(());
        }
        if let Some((part, pair)) = self.part_for(bytes, piece, payload) {
            let memory = &pair.memory;
            let put_part = |buffer: &Buffer, range| memory.write_part_from(part, buffer, range);
            payload.write(|at, bytes| memory.write_part(part, at, bytes), put_part);
            words[PART_WORD - 1] = part.to_word();
            let tail_words = payload.pack_behind(part.room(), &mut words[PART_WORD..]);
            self.writer.publish(&shared, &words[..PART_WORD + tail_words], kind, false);
            let end = part.offset as usize + bytes;
            // A whole message may go between the pieces of another.
            if piece != Piece::Whole {
                self.filling = (!part.is_last).then_some((part.cell, end));
            }
            return Ok(());
        }
        if bytes > PIECE_BYTES {
            return Err(Refusal::TooLong);
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
    fn part_for(&self, bytes: usize, piece: Piece, payload: &Payload<'_>) -> Option<(Part, &PairCells)> {
        let pair = self.pair.as_deref()?;
        // What is short needs fewer lines from the cell's begin.
        let is_short = piece == Piece::Whole && bytes <= PIECE_BYTES;
        let address = if is_short { 0 } else { payload.first_address() };
        let filled = self.filling.filter(|_| matches!(piece, Piece::Next | Piece::Last));
        let at = filled.map_or_else(|| begin_of(bytes, piece, address), |(_, at)| at);
        let end = at + bytes;
        if end > most_in_cell(piece, address) {
            return None;
        }
        let memory_bytes = if is_short { bytes } else { PAIR_CELL_BYTES };
        let cell = filled.map_or_else(|| pair.take(memory_bytes), |(cell, _)| Some(cell))?;
        let is_last = piece.is_end() || end >= PAIR_CELL_BYTES;
        Some((Part { cell, offset: at as u32, is_last }, pair))
    }
}

/// Why a box took nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Refusal {
    /// There is no free line or cell now.
    Full,
    /// It is longer than a cell.
    TooLong,
}

impl From<BoxFull> for Refusal {
    fn from(_: BoxFull) -> Self {
        Self::Full
    }
}
