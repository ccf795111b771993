//! The words of one transfer: its plan, the cookies, the parts of the message that
//! are copied, what a step comes to, and what can go wrong.

use super::model::{Model, Role};

/// A part of a message: the bytes from `start` up to, not including, `end`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Interval {
    /// Offset of the first byte.
    pub start: u64,
    /// Offset behind the last byte.
    pub end: u64,
}

impl Interval {
    /// How many bytes.
    pub const fn bytes(self) -> u64 {
        self.end.saturating_sub(self.start)
    }
}

/// What went wrong in the middle of a transfer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// This mechanism cannot go on; the next one takes over what is left.
    #[error("{sentence}")]
    Demote {
        /// The errno, or 0.
        errno: i32,
        /// Whether the mechanism is of no more use with this peer at all.
        for_good: bool,
        /// One sentence on what happened.
        sentence: String,
    },
    /// The peer is dead.
    #[error("the peer has died")]
    PeerDead,
}

/// What one call of [`crate::mechanism::Lmt::step`] achieved.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step {
    /// Bytes by which the transfer's front advanced in this call. The bytes of
    /// all steps together never exceed the interval.
    pub bytes: u64,
    /// Whether this side has nothing left to do for this interval.
    pub done: bool,
}

/// What a transfer is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Which end this process is.
    pub role: Role,
    /// Who moves the bytes.
    pub model: Model,
    /// Which part of the message.
    pub interval: Interval,
}

impl Plan {
    /// A plan of which nothing else is said.
    pub const fn new(role: Role, model: Model, interval: Interval) -> Self {
        Self { role, model, interval }
    }

    /// How many bytes a mechanism's cookie of this side may have: in the Both model the
    /// receiver's stands behind what names the claims on the message.
    pub const fn cookie_bytes(&self) -> usize {
        match (self.model, self.role) {
            (Model::Both, Role::Receiver) => Cookie::MAX_BYTES - Cookie::NUMBER_BYTES,
            _ => Cookie::MAX_BYTES,
        }
    }
}

/// A short opaque description of one side of a transfer, carried by the
/// rendezvous packets to the same mechanism on the other side.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Cookie {
    used: u8,
    bytes: [u8; Self::MAX_BYTES],
}

impl Cookie {
    /// The most bytes a cookie holds. It is copied with every packet and action,
    /// so it is kept small; 16 bytes or fewer let RTS and CTS travel in one cache line.
    pub const MAX_BYTES: usize = 64;

    /// A cookie of these bytes, or `None` when there are too many.
    pub fn new(bytes: &[u8]) -> Option<Self> {
        let mut cookie = Self { used: u8::try_from(bytes.len()).ok()?, bytes: [0; Self::MAX_BYTES] };
        cookie.bytes.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(cookie)
    }

    /// A cookie without bytes.
    pub const fn empty() -> Self {
        Self { used: 0, bytes: [0; Self::MAX_BYTES] }
    }

    /// Its bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.used as usize]
    }

    const NUMBER_BYTES: usize = size_of::<u64>();

    /// A number, and this cookie behind it; `None` where that is too long.
    pub(crate) fn behind(&self, number: u64) -> Option<Self> {
        let (number, own) = (number.to_ne_bytes(), self.as_bytes());
        let mut bytes = [0; Self::MAX_BYTES];
        bytes[..Self::NUMBER_BYTES].copy_from_slice(&number);
        bytes[Self::NUMBER_BYTES..].get_mut(..own.len())?.copy_from_slice(own);
        Self::new(&bytes[..Self::NUMBER_BYTES + own.len()])
    }

    /// The number and the cookie that [`Self::behind`] has joined; this one is untrusted.
    pub(crate) fn split(&self) -> Option<(u64, Self)> {
        let (number, rest) = self.as_bytes().split_first_chunk()?;
        Some((u64::from_ne_bytes(*number), Self::new(rest)?))
    }

    /// Its bytes in words, the first the lowest; of the last word, zeros behind them.
    #[inline]
    pub(crate) fn words(&self) -> impl Iterator<Item = u64> {
        let words = self.bytes.as_chunks::<8>().0.iter().map(|chunk| u64::from_le_bytes(*chunk));
        words.take(usize::from(self.used).div_ceil(8))
    }

    /// Of the first `bytes` bytes of these words, at most [`Self::MAX_BYTES`].
    #[inline]
    pub(crate) fn from_words(words: impl Iterator<Item = u64>, bytes: usize) -> Self {
        let used = bytes.min(Self::MAX_BYTES);
        let mut cookie = Self { used: used as u8, bytes: [0; Self::MAX_BYTES] };
        let chunks = cookie.bytes.as_chunks_mut::<8>().0.iter_mut();
        chunks.zip(words).take(used.div_ceil(8)).for_each(|(chunk, word)| *chunk = word.to_le_bytes());
        // Equal cookies have equal bytes, the unused ones among them.
        cookie.bytes[used..used.next_multiple_of(8)].fill(0);
        cookie
    }
}

impl std::fmt::Debug for Cookie {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Cookie({:02x?})", self.as_bytes())
    }
}
