//! The form of a message in cells of the queue: what a cell's kind and its spare
//! word say.

use crate::queue::{Envelope, Piece};
use crate::requests::label::{Label, Space};

/// A cell's kind as it travels: what the cell holds in the lower three bits, the
/// message's space in the next two, and whether it has an immediate number in the
/// one above. A message of the first space without such a number has the bare kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct KindByte {
    pub space: Space,
    pub has_immediate: bool,
}

const KIND_BITS: u32 = 3;

const SPACE_BITS: u32 = 2;

const HAS_IMMEDIATE: u8 = 1 << (KIND_BITS + SPACE_BITS);

const _: () = assert!(Space::COUNT == 1 << SPACE_BITS);

impl KindByte {
    #[inline]
    pub fn of(label: &Label) -> Self {
        Self { space: label.space, has_immediate: label.immediate.is_some() }
    }

    /// The byte that travels.
    #[inline]
    pub fn on(self, kind: u8) -> u8 {
        kind | self.space.0 << KIND_BITS | if self.has_immediate { HAS_IMMEDIATE } else { 0 }
    }

    /// Takes such a byte apart; a bit that nobody sets gives no kind.
    #[inline]
    pub fn read(byte: u8) -> (u8, Self) {
        let space = Space(byte >> KIND_BITS & (Space::COUNT as u8 - 1));
        let kind = byte & ((1 << KIND_BITS) - 1);
        let known = byte < HAS_IMMEDIATE << 1;
        (if known { kind } else { 0 }, Self { space, has_immediate: byte & HAS_IMMEDIATE != 0 })
    }
}

/// How the piece of `bytes` bytes that comes after `sent_bytes` goes, of a
/// message of `total_bytes` bytes.
#[inline]
pub(super) fn envelope_of(label: &Label, sent_bytes: u64, bytes: u64, total_bytes: u64) -> (Envelope, Piece) {
    let immediate = label.immediate.unwrap_or_default();
    let (kind, aux, piece) = match (sent_bytes, sent_bytes + bytes == total_bytes) {
        (0, true) => (kind::EAGER, immediate, Piece::Whole),
        (0, false) => (kind::FIRST, total_bytes as u32, Piece::First),
        (_, false) => (kind::MORE, immediate, Piece::Next),
        (_, true) => (kind::MORE, immediate, Piece::Last),
    };
    (envelope_with(label, kind, aux), piece)
}

/// A cell's envelope, with the marks of its message.
#[inline]
pub(super) fn envelope_with(label: &Label, kind: u8, aux: u32) -> Envelope {
    Envelope { kind: KindByte::of(label).on(kind), aux, tag: label.tag }
}

/// What a cell holds.
pub(crate) mod kind {
    /// A whole message; the aux word is its immediate number.
    pub const EAGER: u8 = 1;
    /// The first part of a message; the aux word is its length in bytes.
    pub const FIRST: u8 = 2;
    /// A further part; the aux word is the message's immediate number.
    pub const MORE: u8 = 3;
    /// An RTS, to be matched by the tag; the aux word is the message's immediate
    /// number.
    pub const RTS: u8 = 4;
    /// Another packet of the rendezvous protocol.
    pub const CONTROL: u8 = 5;
    /// A key of an allocated region, whose memory the sender wants to map.
    pub const MAP_REGION: u8 = 6;
}

/// What a message takes of the room for unexpected ones beside its bytes: about
/// what its entries in the tables take.
pub(crate) const OVERHEAD_BYTES: u64 = 256;

#[cfg(test)]
#[path = "cells_tests.rs"]
mod tests;
