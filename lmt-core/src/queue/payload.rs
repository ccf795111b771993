//! The bytes of a message on their way into cells: where they are, and which part
//! of them goes into one cell.

use std::ops::Range;

use zerocopy::IntoBytes;

use super::layout::INLINE_BYTES;
use super::words::last_word;
use crate::memory::buffer::Buffer;

/// A message's bytes.
#[derive(Clone, Debug)]
pub enum Payload<'a> {
    /// As they are.
    Bytes(&'a [u8]),
    /// So many bytes of these words, which are little-endian.
    Words(&'a [u64], usize),
    /// The bytes of this range of a buffer; what lies past its end is left out.
    Part(&'a Buffer, Range<u64>),
    /// One after the other, as a header and a body.
    Two(&'a [u8], &'a [u8]),
}

/// Which part of a message is sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Piece {
    /// All of it.
    Whole,
    /// The first of several pieces.
    First,
    /// A further one.
    Next,
    /// The last of several.
    Last,
}

impl Piece {
    /// Whether this ends the message: the receiver is woken for it.
    #[inline]
    pub const fn is_end(self) -> bool {
        matches!(self, Self::Whole | Self::Last)
    }
}

impl Payload<'_> {
    /// How many bytes it has.
    #[inline]
    pub fn bytes(&self) -> u64 {
        match self {
            Payload::Bytes(bytes) => bytes.len() as u64,
            Payload::Words(words, bytes) => (*bytes).min(size_of_val(*words)) as u64,
            Payload::Part(buffer, range) => range.end.min(buffer.total_bytes()).saturating_sub(range.start),
            Payload::Two(first, second) => first.len() as u64 + second.len() as u64,
        }
    }

    /// Its bytes, if all of them lie in one piece of memory.
    #[inline]
    pub(super) fn one_slice(&self) -> Option<&[u8]> {
        match self {
            Payload::Bytes(bytes) => Some(bytes),
            Payload::Part(buffer, range) => buffer.one_slice(range.clone()),
            Payload::Words(..) | Payload::Two(..) => None,
        }
    }

    /// Where its first byte is, if all of it lies in one piece of memory; 0 otherwise.
    #[inline]
    pub(crate) fn first_address(&self) -> usize {
        self.one_slice().map_or(0, |bytes| bytes.as_ptr().addr())
    }

    /// Puts up to [`INLINE_BYTES`] bytes into words; returns how many words.
    #[inline]
    pub(super) fn pack(&self, words: &mut [u64]) -> usize {
        let mut packer = Packer { words, bytes: 0 };
        match self {
            Payload::Bytes(bytes) => return pack_one(packer.words, bytes),
            Payload::Words(all, _) => {
                let used = (self.bytes() as usize).div_ceil(8);
                let pairs = packer.words.iter_mut().zip(&all[..used]);
                pairs.for_each(|(word, value)| *word = u64::from_le(*value));
                return used;
            }
            Payload::Two(first, second) => {
                packer.append(first);
                packer.append(second);
            }
            Payload::Part(buffer, range) => match buffer.one_slice(range.clone()) {
                Some(bytes) => return pack_one(packer.words, bytes),
                None => {
                    let mut gathered = [0; INLINE_BYTES];
                    let length = (self.bytes() as usize).min(INLINE_BYTES);
                    buffer.read_at(range.start, &mut gathered[..length]);
                    packer.append(&gathered[..length]);
                }
            },
        }
        packer.bytes.div_ceil(8)
    }

    /// Puts it into a cell: `put` copies bytes to an offset there, `put_part` a
    /// part of a buffer to the beginning.
    #[inline]
    pub(super) fn write(&self, put: impl Fn(usize, &[u8]), put_part: impl Fn(&Buffer, Range<u64>)) {
        match self {
            Payload::Bytes(bytes) => put(0, bytes),
            Payload::Words(words, _) => put(0, &words.as_bytes()[..self.bytes() as usize]),
            Payload::Part(buffer, range) => put_part(buffer, range.clone()),
            Payload::Two(first, second) => {
                put(0, first);
                put(first.len(), second);
            }
        }
    }
}

/// Lays bytes into words, as many as these have; returns how many words.
#[inline]
fn pack_one(words: &mut [u64], bytes: &[u8]) -> usize {
    let (whole, rest) = bytes.as_chunks::<8>();
    for (word, chunk) in words.iter_mut().zip(whole) {
        *word = u64::from_le_bytes(*chunk);
    }
    if !rest.is_empty()
        && let Some(word) = words.get_mut(whole.len())
    {
        *word = last_word(rest);
    }
    bytes.len().div_ceil(8)
}

/// Lays bytes that begin anywhere into words without a call of memcpy, which would take longer
/// than the few bytes themselves.
struct Packer<'a> {
    words: &'a mut [u64],
    bytes: usize,
}

impl Packer<'_> {
    #[inline]
    fn append(&mut self, bytes: &[u8]) {
        let (whole, rest) = bytes.as_chunks::<8>();
        for chunk in whole {
            self.push(u64::from_le_bytes(*chunk), 8);
        }
        if !rest.is_empty() {
            self.push(last_word(rest), rest.len());
        }
    }

    /// Adds the lowest `count` bytes of `word`, 1 to 8; the others are zero.
    #[inline]
    fn push(&mut self, word: u64, count: usize) {
        let (index, shift) = (self.bytes / 8, self.bytes % 8 * 8);
        if let Some(target) = self.words.get_mut(index) {
            *target |= word << shift;
        }
        if shift != 0
            && let Some(target) = self.words.get_mut(index + 1)
        {
            *target |= word >> (64 - shift);
        }
        self.bytes += count;
    }
}
