//! The ways among which a stream may choose.

use crate::rendezvous::{Candidates, Choice};
use crate::selection::Alternatives;

/// One way of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Way {
    /// In cells of the peer's inbox.
    Cells,
    /// Announced.
    By(Choice),
}

/// The ways of one stream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ways<'a> {
    /// All that work, in the policy's order.
    pub candidates: &'a Candidates,
    /// Which of them may be tried.
    pub alternatives: Alternatives,
    /// Whether cells may be, too.
    pub has_cells: bool,
}

impl<'a> Ways<'a> {
    /// Whether there is more than one.
    #[inline]
    pub fn are_several(&self) -> bool {
        let announced = self.alternatives.count();
        // What the policy takes first is one of them, or it is not to be left.
        self.alternatives.contains(0) && announced + u32::from(self.has_cells) > 1
    }

    fn choices(&self) -> impl Iterator<Item = (usize, Choice)> + 'a {
        let alternatives = self.alternatives;
        let choices = self.candidates.as_slice().iter().copied().enumerate();
        choices.filter(move |(at, _)| alternatives.contains(*at))
    }

    /// In the order in which they are tried: the policy's first choice, cells,
    /// each other mechanism in its preferred model, and then the other models.
    pub fn iter(&self) -> impl Iterator<Item = Way> + 'a {
        let all = self.candidates.as_slice();
        let is_repeated = move |at: usize, choice: &Choice| {
            all[..at].iter().any(|before| before.mechanism == choice.mechanism)
        };
        let first = self.choices().take(1);
        let cells = self.has_cells.then_some(Way::Cells);
        let fresh = self.choices().skip(1).filter(move |(at, choice)| !is_repeated(*at, choice));
        let repeated = self.choices().skip(1).filter(move |(at, choice)| is_repeated(*at, choice));
        let by = |(_, choice)| Way::By(choice);
        first.map(by).chain(cells).chain(fresh.map(by)).chain(repeated.map(by))
    }
}

#[cfg(test)]
#[path = "ways_tests.rs"]
mod tests;
