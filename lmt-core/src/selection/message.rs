//! What is known of a message when its way is chosen.

use serde::{Deserialize, Serialize};

use crate::vocabulary::model::SharedEnds;

/// Whether a message's bytes are in the sender's cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Warmth {
    /// Nobody has said.
    #[default]
    Unknown,
    /// The sender has just written them: its core copies best.
    Warm,
    /// It wrote them long ago: who needs them next copies best.
    Cold,
}

/// Whether a buffer takes part in further transfers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reuse {
    /// Nobody has said.
    #[default]
    Unknown,
    /// Not again: what is prepared for it is lost.
    Once,
    /// It is sent from again and again.
    Again,
}

/// What a caller may tell of a message, for a better choice; nothing depends on
/// its being right (knem-jpdc, section 5.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub struct Hints {
    /// Whether the bytes are in the sender's cache.
    pub warmth: Warmth,
    /// Whether the buffer is used again.
    pub reuse: Reuse,
}

/// One message, as far as the choice of its way depends on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Message {
    /// Its length.
    pub bytes: u64,
    /// Whether it is one segment at the sender.
    pub contiguous: bool,
    /// Whether it is in shared buffers.
    pub shared: SharedEnds,
    /// What the caller has told.
    pub hints: Hints,
    /// How many processes other than the receiver may be reading this one's
    /// memory already: those to which it has announced a message, to be read,
    /// that is not done. The receiver itself copies one message at a time, so
    /// more of them to the same one make no more readers.
    pub readers: u32,
}

impl Message {
    /// A contiguous message of which nothing else is known.
    pub fn of_bytes(bytes: u64) -> Self {
        let (shared, hints) = (SharedEnds::default(), Hints::default());
        Self { bytes, contiguous: true, shared, hints, readers: 0 }
    }

    /// Which of the cases it is that decisions tell apart.
    #[inline]
    pub const fn variant(&self) -> Variant {
        Variant::of(self.contiguous, self.hints).shared(self.shared)
    }
}

/// A case that decisions tell apart, apart from length and readers: contiguous
/// or not, shared buffers or not, and each combination of hints.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Variant(u8);

impl Variant {
    /// How many there are.
    pub const COUNT: usize = 4 * Self::PRIVATE as usize;

    /// How many there are between ends that are not shared.
    const PRIVATE: u8 = 18;

    /// The case of these, where neither end is in shared buffers.
    #[inline]
    pub const fn of(contiguous: bool, hints: Hints) -> Self {
        Self((contiguous as u8 * 3 + hints.warmth as u8) * 3 + hints.reuse as u8)
    }

    /// The same case between such ends.
    #[inline]
    #[must_use]
    pub const fn shared(self, ends: SharedEnds) -> Self {
        let ends = ends.sender as u8 | (ends.receiver as u8) << 1;
        Self(self.0 % Self::PRIVATE + ends * Self::PRIVATE)
    }

    /// Which ends are in shared buffers.
    pub const fn shared_ends(self) -> SharedEnds {
        let ends = self.0 / Self::PRIVATE;
        SharedEnds { sender: ends & 1 != 0, receiver: ends & 2 != 0 }
    }

    /// All of them, in the order of [`Self::index`].
    pub fn all() -> impl Iterator<Item = Self> {
        (0..Self::COUNT as u8).map(Self)
    }

    /// A number below [`Self::COUNT`].
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// Whether the message is one segment.
    pub const fn is_contiguous(self) -> bool {
        self.0 % Self::PRIVATE >= 9
    }

    /// The hints.
    pub const fn hints(self) -> Hints {
        let warmth = match self.0 / 3 % 3 {
            0 => Warmth::Unknown,
            1 => Warmth::Warm,
            _ => Warmth::Cold,
        };
        let reuse = match self.0 % 3 {
            0 => Reuse::Unknown,
            1 => Reuse::Once,
            _ => Reuse::Again,
        };
        Hints { warmth, reuse }
    }
}
