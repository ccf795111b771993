//! What goes with a message beside its bytes: its tag, the matching space that
//! it is in, and a number that its sender adds.
#![forbid(unsafe_code)]

use super::ids::PeerId;

/// One of the spaces in which messages and receives meet: a receive of one space
/// matches no message of another, whatever the tags. Most programs use the first
/// only; a layer that has several kinds of messages (tagged and plain ones, active
/// messages of its own) gives each kind a space.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, PartialOrd, Ord)]
pub struct Space(pub(crate) u8);

impl Space {
    /// How many there are.
    pub const COUNT: usize = 4;
    /// The one that is meant where none is named.
    pub const FIRST: Self = Self(0);

    /// Space number `number`, counted from 0; none from [`Space::COUNT`] on.
    ///
    /// ```
    /// use lmt_core::endpoint::Space;
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
/// use lmt_core::endpoint::{Label, Space};
/// let plain = Label::from(7);
/// assert_eq!((plain.space, plain.immediate), (Space::FIRST, None));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Label {
    /// What receives ask for.
    pub tag: u64,
    /// In which space.
    pub space: Space,
    /// A number that the receiver's [`super::outcome::Status`] gives, with no part in
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

/// From whom a receive takes messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Source {
    /// From anybody.
    Any,
    /// From this peer.
    Peer(PeerId),
}

/// Which tags a receive takes: those that equal `tag` in every bit that is
/// not set in `ignore`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TagMatch {
    /// The tag.
    pub tag: u64,
    /// The bits that do not matter.
    pub ignore: u64,
}

impl TagMatch {
    /// Just this tag.
    pub const fn exactly(tag: u64) -> Self {
        Self { tag, ignore: 0 }
    }

    /// Any tag.
    pub const fn any() -> Self {
        Self { tag: 0, ignore: u64::MAX }
    }
}
