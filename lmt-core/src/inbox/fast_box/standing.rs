//! Which messages to a peer say again what one before them said.
//!
//! A message that was sent several times, unchanged as far as a few of its words tell, gets a
//! place in the box that no other message is given. There it is compared with what stands, and
//! only what differs is written (`lmt_copy::copy_changed`). What is the same crosses between
//! the two cores no more: both have its lines in their caches, and only read them.
//!
//! When a message is worth that is in [`crate::again`].
//!
//! No more than what is known of the messages; the bytes are in `memory`, and when they may be
//! written is in `ring`.

use std::ops::Range;

use crate::again::{Mark, Patience, Record};
use crate::config::STANDING_MOST_BYTES;

/// Bytes of a box for messages that stand there.
pub(super) const STANDING_BYTES: usize = STANDING_MOST_BYTES as usize;
/// Shorter messages are copied as fast as they are compared.
pub(super) const LEAST_BYTES: u64 = 4 << 10;
/// So many messages are known at a time.
const KNOWN: usize = 8;
/// After so many messages in a row of which none was known...
const MOST_STRANGERS: u8 = 16;
/// ...one in so many is looked at, until one is: no power of two, as the messages of a round are
/// often as many as that. To look takes 10 ns.
const LOOKED_AT_EVERY: u8 = 7;
/// So many messages in a row that stand let expect that the next one does.
const ALL: u8 = 2;
const LINE_BYTES: usize = 64;

/// What is known of a message that was sent lately.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    record: Record,
    /// Its place, of as many bytes as it has; nowhere if there are none.
    begin: usize,
    end: usize,
    /// Behind the last line that named it.
    named: u64,
    /// The number, of those that were looked at, with which it came last.
    last: u64,
}

impl Known {
    const fn has_place(&self) -> bool {
        self.begin < self.end
    }
}

/// A message on its way, in pieces or whole.
#[derive(Clone, Copy, Debug)]
struct Current {
    /// Which one of those that are known.
    index: usize,
    /// Where its next piece stands.
    at: usize,
    written_bytes: usize,
    /// Its place was another's before.
    is_new: bool,
}

/// Where a message stands, or is to stand.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Place {
    pub(super) at: Range<usize>,
    /// It may be changed once the reader has read the lines before this one.
    pub(super) named: u64,
}

/// What is known of the messages to one peer.
#[derive(Debug)]
pub(super) struct Standing {
    marks: [Mark; KNOWN],
    known: [Known; KNOWN],
    /// So many messages were looked at.
    looked_at: u64,
    /// Bytes for places.
    room: usize,
    /// Behind the last place that was given.
    next: usize,
    /// No place has reached so far yet.
    unused_from: usize,
    /// Behind the last line that named a place which was lost.
    lost_named: u64,
    patience: Patience,
    current: Option<Current>,
    /// How many of the last messages in a row stand, up to [`ALL`].
    in_a_row: u8,
    /// So many messages in a row were not known, up to [`MOST_STRANGERS`].
    strangers: u8,
    /// So many behind those were not looked at.
    unseen: u8,
}

impl Standing {
    /// In so many bytes of a box in which lines before number `named` may have named something.
    pub(super) fn new(room: usize, named: u64) -> Self {
        let (marks, known) = ([Mark::default(); KNOWN], [Known::default(); KNOWN]);
        Self {
            marks,
            known,
            looked_at: 0,
            next: 0,
            unused_from: if named > 0 { room } else { 0 },
            room,
            lost_named: named,
            patience: Patience::default(),
            current: None,
            in_a_row: 0,
            strangers: 0,
            unseen: 0,
        }
    }

    /// A message begins whose first byte is so far behind a line's begin. Where it stands, or is
    /// to stand, if it has come often enough.
    #[inline]
    pub(super) fn begin(&mut self, message: &[u8], behind_line: usize) -> Option<Place> {
        let in_a_row = self.in_a_row;
        self.is_passed_by();
        let index = self.recognize(message)?;
        let place = self.begin_known(index, message.len(), behind_line)?;
        self.in_a_row = (in_a_row + 1).min(ALL);
        Some(place)
    }

    /// Whether a message that may go another way has a place, or has come often enough to get one
    /// as soon as it begins. If not, it counts as one that has come.
    pub(super) fn is_likely(&mut self, message: &[u8]) -> bool {
        // What another message is known by may not be lost while its pieces are on their way.
        if self.current.is_some() || !self.has_room_for(message.len()) {
            return false;
        }
        let Some(index) = self.recognize(message) else { return false };
        let known = &mut self.known[index];
        if known.has_place() {
            return known.end - known.begin == message.len();
        }
        self.looked_at += 1;
        known.last = self.looked_at;
        known.record.is_next_kept()
    }

    /// Whether a message of so many bytes fits in at all, wherever in a line it begins.
    const fn has_room_for(&self, bytes: usize) -> bool {
        bytes <= self.room.saturating_sub(LINE_BYTES)
    }

    /// Which one of those that are known a message is, if it is looked at; one that is not known
    /// is from now on.
    #[inline]
    fn recognize(&mut self, message: &[u8]) -> Option<usize> {
        if self.strangers >= MOST_STRANGERS {
            self.unseen = (self.unseen + 1) % LOOKED_AT_EVERY;
            if self.unseen > 0 {
                return None;
            }
        }
        let mark = Mark::of(message.len() as u64, message)?;
        let Some(index) = self.marks.iter().position(|known| *known == mark) else {
            self.meet(mark);
            return None;
        };
        self.strangers = 0;
        Some(index)
    }

    fn begin_known(&mut self, index: usize, bytes: usize, behind_line: usize) -> Option<Place> {
        self.looked_at += 1;
        let known = &mut self.known[index];
        known.last = self.looked_at;
        let comes_often = known.record.comes();
        let is_new = !known.has_place();
        if is_new {
            if !comes_often {
                return None;
            }
            self.give_place(index, bytes, behind_line)?;
        }
        let Known { begin, end, named, .. } = self.known[index];
        if bytes != end - begin {
            return None; // Another message whose words mix to the same.
        }
        self.current = Some(Current { index, at: begin, written_bytes: 0, is_new });
        Some(Place { at: begin..end, named })
    }

    /// A message begins that is not looked at.
    #[inline]
    pub(super) fn is_passed_by(&mut self) {
        (self.current, self.in_a_row) = (None, 0);
    }

    /// Where the next piece of the message stands that has begun, if it does.
    #[inline]
    pub(super) fn at(&self) -> Option<usize> {
        self.current.map(|current| current.at)
    }

    /// So many bytes of it stand there now, of which so many were written, and line number
    /// `line` says so; whether it ends so.
    #[inline]
    pub(super) fn stands(&mut self, bytes: usize, written_bytes: usize, line: u64, is_end: bool) {
        let Some(current) = &mut self.current else { return };
        self.known[current.index].named = line.wrapping_add(1);
        current.at += bytes;
        current.written_bytes += written_bytes;
        if is_end {
            let current = *current;
            self.end(current);
        }
    }

    /// What stands at the message's place can be neither used nor written: the rest of it goes
    /// as all messages do.
    #[cold]
    pub(super) fn is_refused(&mut self) {
        if let Some(Current { index, .. }) = self.current.take() {
            self.change(index);
        }
        self.in_a_row = 0;
    }

    /// Whether the last messages of [`LEAST_BYTES`] or more stood, all of them.
    #[inline]
    pub(super) const fn takes_all(&self) -> bool {
        self.in_a_row == ALL
    }

    fn end(&mut self, Current { index, written_bytes, is_new, .. }: Current) {
        self.current = None;
        let known = &mut self.known[index];
        if is_new {
            return;
        }
        if known.record.is_found((known.end - known.begin) as u64, written_bytes as u64) {
            self.patience.found(known.record.found());
        } else {
            self.change(index);
        }
    }

    /// A message has changed, and loses its place.
    #[cold]
    fn change(&mut self, index: usize) {
        self.lose_place(index);
        self.known[index].record.has_changed();
    }

    /// A message comes that is not known: it is from now on, instead of the one that came longest
    /// ago.
    fn meet(&mut self, mark: Mark) {
        self.strangers = (self.strangers + 1).min(MOST_STRANGERS);
        self.looked_at += 1;
        let index = (1..KNOWN)
            .fold(0, |first, at| if self.known[at].last < self.known[first].last { at } else { first });
        if self.known[index].has_place() {
            self.patience.lost(self.known[index].record.found());
            self.lose_place(index);
        }
        self.marks[index] = mark;
        let record = Record::new(self.patience);
        self.known[index] = Known { record, last: self.looked_at, ..Known::default() };
    }

    /// Gives a message a place, which others lose.
    #[cold]
    fn give_place(&mut self, index: usize, bytes: usize, behind_line: usize) -> Option<()> {
        if !self.has_room_for(bytes) {
            return None;
        }
        let begin = self.next.next_multiple_of(LINE_BYTES) + behind_line;
        let begin = if begin + bytes <= self.room { begin } else { behind_line };
        let end = begin + bytes;
        for other in 0..KNOWN {
            if self.known[other].begin < end && begin < self.known[other].end {
                self.lose_place(other);
                self.known[other].record.is_kept_no_more();
            }
        }
        self.next = end;
        let named = if begin >= self.unused_from { 0 } else { self.lost_named };
        self.unused_from = self.unused_from.max(end);
        let known = &mut self.known[index];
        (known.begin, known.end, known.named) = (begin, end, named);
        Some(())
    }

    /// A message has no place any more.
    #[cold]
    fn lose_place(&mut self, index: usize) {
        let known = &mut self.known[index];
        self.lost_named = self.lost_named.max(known.named);
        (known.begin, known.end, known.named) = (0, 0, 0);
    }
}

#[cfg(test)]
#[path = "standing_tests.rs"]
mod tests;
