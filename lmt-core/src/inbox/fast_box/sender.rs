//! The writing end of a box.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use super::memory::{ANNEX_BYTES, BoxMemory, CELLS, PIECE_BYTES, Place};
use super::pair::PairCells;
use super::place::{GIVEN_WORD, IN_ANNEX, PAIR_CELL_BYTES, Part, TAIL_BYTES, standing_word};
use super::ring::{BoxFull, Writer};
use super::standing::{self, STANDING_BYTES, Standing};
use crate::again::Hop;
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

/// So many bytes for what stands in the box get memory at once.
const STANDING_STEP_BYTES: usize = 64 << 10;

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
    /// What stands in the box for good; `None` where nothing is to.
    standing: Option<Standing>,
    /// So many bytes for it have memory, from the first on.
    committed_bytes: usize,
    /// Behind the last line that named the place of the message that has begun, before it.
    named_before: u64,
    /// The piece that comes next, where it stands.
    stands: Option<Stands>,
    /// So many bytes of what was sent stood here already.
    standing_bytes: u64,
    /// How far the reader's core is.
    hop: Hop,
}

/// A piece that stands in the box for good, and is still to be told of.
#[derive(Clone, Copy, Debug)]
struct Stands {
    at: usize,
    /// Where its bytes are at the sender, and how many.
    address: usize,
    bytes: usize,
    /// So many of them had to be written.
    written_bytes: usize,
}

impl Stands {
    /// Whether it is this one.
    fn is(&self, payload: &Payload<'_>) -> bool {
        (payload.first_address(), payload.bytes()) == (self.address, self.bytes as u64)
    }
}

impl BoxSender {
    /// Attaches to the box behind `fd`, in up to `standing_bytes` of which something is to stand.
    ///
    /// # Errors
    /// [`AttachError`] when it is none, or could fault.
    pub(crate) fn attach(fd: OwnedFd, standing_bytes: u64) -> Result<Self, AttachError> {
        let memory = Arc::new(BoxMemory::attach(fd)?);
        let writer = Writer::new(&memory.words(), CELLS);
        let is_fresh = writer.is_fresh();
        let room = usize::try_from(standing_bytes).unwrap_or(usize::MAX).min(STANDING_BYTES);
        let standing = (room > 0).then(|| Standing::new(room, writer.line_number()));
        Ok(Self {
            memory,
            writer,
            pair: None,
            filling: None,
            is_fresh,
            standing,
            committed_bytes: 0,
            named_before: 0,
            stands: None,
            standing_bytes: 0,
            hop: Hop::default(),
        })
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
        // What stands in the box takes none, and its receiver sends none back.
        let takes_none = self.standing.as_ref().is_some_and(Standing::takes_all);
        !takes_none && self.pair.as_ref().is_none_or(|pair| !pair.has_cells_for(bytes))
    }

    /// Whether this end has sent more in such cells than has come back, by more than `bytes`
    /// bytes: several messages are on their way, or the peer sends none. Not without such cells.
    #[inline]
    pub(crate) fn is_ahead(&self, bytes: u64) -> bool {
        self.pair.as_ref().is_some_and(|pair| pair.is_ahead(bytes))
    }

    /// Whether this message, which may go another way, is likely to stand here already, or will
    /// when it has come here.
    #[inline]
    pub(crate) fn is_likely_to_stand(&mut self, message: &[u8]) -> bool {
        let Some(standing) = &mut self.standing else { return false };
        standing.is_likely(message) && self.hop.lets(message.len() as u64)
    }

    /// How many bytes of what was sent stood here already.
    pub(crate) const fn standing_bytes(&self) -> u64 {
        self.standing_bytes
    }

    /// At most so many pieces a message of `bytes` bytes has.
    #[inline]
    pub(crate) const fn most_pieces(bytes: u64) -> u64 {
        // Of 4 KiB and more, or of 3 KiB, or some of these and then some of
        // those; and what is left of it in the last cell.
        if bytes <= PIECE_BYTES as u64 { 1 } else { bytes.div_ceil(PIECE_BYTES as u64) + 2 }
    }

    /// The length of the piece that comes next of a message of `total_bytes`
    /// bytes, more than [`PIECE_BYTES`], of which `sent_bytes` are sent and `rest` is not, if that
    /// lies in one piece of memory. What says again what a message before it said stands then
    /// where it is to be.
    #[inline]
    pub(crate) fn piece_bytes(
        &mut self,
        sent_bytes: u64,
        total_bytes: u64,
        rest: Option<&[u8]>,
        cut: Cut,
    ) -> u64 {
        self.stands = None;
        if let Some(rest) = rest.filter(|_| total_bytes >= standing::LEAST_BYTES)
            && let Some(bytes) = self.stand(sent_bytes, total_bytes, rest, cut)
        {
            return bytes;
        }
        let address = rest.map_or(0, |rest| rest.as_ptr().addr());
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
        // For this send or none: whoever comes next may say something else.
        let stands = self.stands.take().filter(|stands| stands.is(payload));
        self.writer.reserve(&self.memory.words(), false)?;
        let stands_at = stands.and_then(|stands| self.takes_standing(stands, piece));
        let shared = self.memory.words();
        if bytes <= ANNEX_BYTES && piece == Piece::Whole {
            self.put(Place::Annex { line: self.writer.line_number(), bytes }, payload);
            words[PART_WORD - 1] = IN_ANNEX;
            self.writer.publish(&shared, &words[..PART_WORD], kind, false);
            return Ok(());
        }
        if let Some(at) = stands_at {
            words[PART_WORD - 1] = standing_word(at);
            words[GIVEN_WORD - 1] = self.pair.as_ref().map_or(0, |pair| pair.take_surplus());
            self.writer.publish(&shared, &words[..GIVEN_WORD], kind, false);
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

    /// Has the next piece stand in the box for good, if the message says again what one before
    /// it said; how long it is then.
    #[inline]
    fn stand(&mut self, sent_bytes: u64, total_bytes: u64, rest: &[u8], cut: Cut) -> Option<u64> {
        let standing = self.standing.as_mut()?;
        if self.writer.reserve(&self.memory.words(), false).is_err() {
            // It is written when there is a line.
            standing.is_passed_by();
            return None;
        }
        let at = if sent_bytes > 0 {
            standing.at()?
        } else {
            if !self.hop.lets(rest.len() as u64) {
                standing.is_passed_by();
                return None;
            }
            let behind_line = begin_in_cell(rest.as_ptr().addr());
            let place = standing.begin(rest, behind_line)?;
            if place.at.end > self.committed_bytes && !self.commit_standing(place.at.end) {
                return None;
            }
            self.named_before = place.named;
            self.hop.time(|| Some(Writer::read_by_reader(&self.memory.words())));
            place.at.start
        };
        let most = rest.len() as u64;
        let bytes = match cut {
            Cut::Growing => growing_piece_bytes(sent_bytes, total_bytes),
            Cut::Cells => most,
        };
        // What is left is to be long enough for another such piece.
        let bytes = if bytes + INLINE_BYTES as u64 >= most { most } else { bytes };
        let may_write = || Writer::may_change(&self.memory.words(), self.named_before);
        let written_bytes = self.memory.write_standing(at, rest.get(..bytes as usize)?, may_write);
        if let Some(written_bytes) = written_bytes {
            let address = rest.as_ptr().addr();
            self.stands = Some(Stands { at, address, bytes: bytes as usize, written_bytes });
            return Some(bytes);
        }
        self.standing.as_mut()?.is_refused();
        None
    }

    /// Where a piece stands that is told of in the next line.
    #[inline]
    fn takes_standing(&mut self, stands: Stands, piece: Piece) -> Option<usize> {
        let Stands { at, bytes, written_bytes, .. } = stands;
        self.standing_bytes += (bytes - written_bytes) as u64;
        self.standing.as_mut()?.stands(bytes, written_bytes, self.writer.line_number(), piece.is_end());
        Some(at)
    }

    /// Takes memory for what is to stand up to here; without it nothing will.
    #[cold]
    fn commit_standing(&mut self, end: usize) -> bool {
        let end = end.next_multiple_of(STANDING_STEP_BYTES).min(STANDING_BYTES);
        if let Err(error) = self.memory.commit_standing(self.committed_bytes..end) {
            tracing::debug!(%error, "what is sent again is copied again");
            self.standing = None;
            return false;
        }
        self.committed_bytes = end;
        true
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
