//! A place in a list of segments, so that a long list is walked once and not
//! from its beginning at every step.

use super::buffer::Segment;

/// One entry of a segment list: something with a number of bytes.
pub trait Extent {
    /// How many bytes.
    fn extent_bytes(&self) -> u64;
}

impl Extent for Segment {
    fn extent_bytes(&self) -> u64 {
        self.bytes as u64
    }
}

/// A piece of one entry, as [`Cursor::take`] cuts it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Piece {
    /// Which entry of the list.
    pub index: usize,
    /// Offset of the piece's first byte within the entry.
    pub offset: u64,
    /// Bytes of the piece, at least 1; they end within the entry.
    pub bytes: u64,
}

/// A place in a list of segments. It belongs to one list; with another it is
/// some place in that list or its end, never past it.
///
/// ```
/// use lmt_core::{buffer::Segment, cursor::{Cursor, Piece}};
/// let list = [Segment { address: 0, bytes: 3 }, Segment { address: 9, bytes: 4 }];
/// let mut at = Cursor::at(&list, 1);
/// assert_eq!(at.take(&list, 9), Some(Piece { index: 0, offset: 1, bytes: 2 }));
/// assert_eq!(at.take(&list, 3), Some(Piece { index: 1, offset: 0, bytes: 3 }));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Cursor {
    index: usize,
    within: u64,
}

impl Cursor {
    /// The place `offset` bytes behind the beginning of `list`.
    pub fn at<E: Extent>(list: &[E], offset: u64) -> Self {
        let mut cursor = Self::default();
        cursor.advance(list, offset);
        cursor
    }

    /// Cuts the next piece, of at most `max_bytes`, and goes behind it; `None`
    /// at the end or when `max_bytes` is 0. Empty entries are skipped.
    pub fn take<E: Extent>(&mut self, list: &[E], max_bytes: u64) -> Option<Piece> {
        if max_bytes == 0 {
            return None;
        }
        while let Some(entry) = list.get(self.index) {
            let left = entry.extent_bytes().saturating_sub(self.within);
            if left > 0 {
                let piece = Piece { index: self.index, offset: self.within, bytes: left.min(max_bytes) };
                self.within += piece.bytes;
                return Some(piece);
            }
            *self = Self { index: self.index + 1, within: 0 };
        }
        None
    }

    /// Goes `bytes` forward, or to the end of the list.
    pub fn advance<E: Extent>(&mut self, list: &[E], mut bytes: u64) {
        while let Some(piece) = self.take(list, bytes) {
            bytes -= piece.bytes;
        }
    }
}

#[cfg(test)]
#[path = "cursor_tests.rs"]
mod tests;
