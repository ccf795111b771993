//! Which of a message's ways an endpoint may choose among at run time.

use crate::rendezvous::Candidates;

/// Some of a message's candidates, by their places in the list.
///
/// ```
/// use lmt_core::selection::Alternatives;
///
/// let some: Alternatives = [0, 2].into_iter().collect();
/// assert!(some.contains(2) && !some.contains(1));
/// assert_eq!(some.count(), 2);
/// assert_eq!(Alternatives::NONE.count(), 0);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Alternatives(u32);

// A bit for each candidate.
const _: () = assert!(Candidates::MAX <= u32::BITS as usize);

impl Alternatives {
    /// None: the order of the candidates holds.
    pub const NONE: Self = Self(0);

    /// Whether the candidate at this place is among them.
    #[inline]
    pub const fn contains(self, at: usize) -> bool {
        at < Candidates::MAX && self.0 & 1 << at != 0
    }

    /// How many there are.
    #[inline]
    pub const fn count(self) -> u32 {
        self.0.count_ones()
    }
}

impl FromIterator<usize> for Alternatives {
    /// Places beyond [`Candidates::MAX`] are none of any candidate's.
    fn from_iter<I: IntoIterator<Item = usize>>(places: I) -> Self {
        let places = places.into_iter().filter(|at| *at < Candidates::MAX);
        Self(places.fold(0, |bits, at| bits | 1 << at))
    }
}
