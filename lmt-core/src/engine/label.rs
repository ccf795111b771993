//! What goes with a message beside its bytes: its tag, the matching space that
//! it is in, and a number that its sender adds.
#![forbid(unsafe_code)]

use super::receiving::TagMatch;

/// One of the spaces in which messages and receives meet: a receive of one space
/// matches no message of another, whatever the tags. Most programs use the first
/// only; a layer that has several kinds of messages (tagged and plain ones, active
/// messages of its own) gives each kind a space.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, PartialOrd, Ord)]
pub struct Space(u8);

impl Space {
    /// How many there are.
    pub const COUNT: usize = 4;
    /// The one that is meant where none is named.
    pub const FIRST: Self = Self(0);

    /// Space number `number`, counted from 0; none from [`Space::COUNT`] on.
    ///
    /// ```
    /// use lmt_core::engine::Space;
    /// assert_eq!(Space::new(0), Some(Space::FIRST));
    /// assert_eq!(Space::new(4), None);
    /// ```
    pub const fn new(number: u8) -> Option<Self> {
        if (number as usize) < Self::COUNT { Some(Self(number)) } else { None }
    }

    /// Its number.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// All of them.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        (0..Self::COUNT as u8).map(Self)
    }
}

/// A message's tag, its space, and its immediate number.
///
/// ```
/// use lmt_core::engine::{Label, Space};
/// let plain = Label::from(7);
/// assert_eq!((plain.space, plain.immediate), (Space::FIRST, None));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Label {
    /// What receives ask for.
    pub tag: u64,
    /// In which space.
    pub space: Space,
    /// A number that the receiver's [`super::Status`] gives, with no part in
    /// matching.
    pub immediate: Option<u32>,
}

impl From<u64> for Label {
    #[inline]
    fn from(tag: u64) -> Self {
        Self { tag, space: Space::FIRST, immediate: None }
    }
}

/// Which messages a receive or a probe takes, whoever sent them: those of one
/// space with these tags. A [`TagMatch`] alone means the first space.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wanted {
    /// In which space.
    pub space: Space,
    /// Which tags.
    pub tags: TagMatch,
}

impl From<TagMatch> for Wanted {
    #[inline]
    fn from(tags: TagMatch) -> Self {
        Self { space: Space::FIRST, tags }
    }
}

/// A cell's kind as it travels: what the cell holds in the lower three bits, the
/// message's space in the next two, and whether it has an immediate number in the
/// one above. A message of the first space without such a number has the bare kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Marks {
    pub space: Space,
    pub has_immediate: bool,
}

const KIND_BITS: u32 = 3;
const SPACE_BITS: u32 = 2;
const HAS_IMMEDIATE: u8 = 1 << (KIND_BITS + SPACE_BITS);
const _: () = assert!(Space::COUNT == 1 << SPACE_BITS);

impl Marks {
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

#[cfg(test)]
#[path = "label_tests.rs"]
mod tests;
