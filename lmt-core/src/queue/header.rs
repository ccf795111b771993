//! The first words of a cell as a sender writes them ([`Envelope`]) and as the
//! receiver reads them ([`Header`]): the two halves of one format.

use std::sync::atomic::{AtomicU64, Ordering};

use super::ring::LINE_WORDS;

/// A copy of what a line says, but for the bytes in it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Header {
    pub sender: u16,
    pub kind: u8,
    pub aux: u32,
    pub tag: u64,
    pub bytes: usize,
}

impl Header {
    /// A published line's.
    #[inline]
    pub(crate) fn copy(line: &[AtomicU64; LINE_WORDS], sender: u16, kind: u8) -> Self {
        // Relaxed throughout: the Acquire of the publish word orders them after
        // the sender's stores.
        let length_and_aux = line[1].load(Ordering::Relaxed);
        Self {
            sender,
            kind,
            aux: (length_and_aux >> 32) as u32,
            tag: line[2].load(Ordering::Relaxed),
            bytes: length_and_aux as u32 as usize,
        }
    }
}

/// What goes with a message's bytes; the inbox gives it no meaning.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Envelope {
    /// What sort of message it is.
    pub kind: u8,
    /// A number of the sender's choice.
    pub aux: u32,
    /// Another, for instance the application's tag.
    pub tag: u64,
}

/// What a line says first of a message of so many bytes.
#[inline]
pub(super) fn first_word(envelope: &Envelope, bytes: usize) -> u64 {
    u64::from(envelope.aux) << 32 | bytes as u64
}
