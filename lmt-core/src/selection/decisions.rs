//! The decisions for one peer, as a table.

use super::Alternatives;
use super::message::{Message, Variant};
use crate::rendezvous::{Candidates, Choice};

/// What is decided for messages up to some length.
#[derive(Clone, Debug)]
pub struct Range {
    /// The longest message that it is for; the next range begins behind it.
    pub up_to_bytes: u64,
    /// The ways to try, the best first.
    pub candidates: Candidates,
    /// So many processes may read this one's memory at once. While so many
    /// others may be reading ([`Message::readers`]), a message takes the ways by
    /// which nobody reads this process first.
    pub max_readers: u32,
    /// Among which of the ways the endpoint may choose by what it times
    /// ([`super::adaptive`]); none where the order is to be kept.
    pub alternatives: Alternatives,
}

#[derive(Clone, Debug)]
struct Row {
    up_to_bytes: u64,
    max_readers: u32,
    alternatives: Alternatives,
    usual: Candidates,
    /// As `usual`, with what reads this process behind all else.
    crowded: Candidates,
}

/// What is decided for all messages to one peer.
///
/// ```
/// use lmt_core::rendezvous::Candidates;
/// use lmt_core::selection::{Alternatives, Decisions, Message, Range};
///
/// let (candidates, alternatives) = (Candidates::new(), Alternatives::NONE);
/// let all = Range { up_to_bytes: u64::MAX, candidates, max_readers: 1, alternatives };
/// let decisions = Decisions::new(4096, |_| vec![all.clone()]);
/// assert_eq!(decisions.eager_max_bytes(), 4096);
/// assert!(decisions.candidates(&Message::of_bytes(1 << 20)).as_slice().is_empty());
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct Decisions {
    eager_max_bytes: u64,
    /// Up to this length cells may be tried.
    try_eager_max_bytes: u64,
    /// Up to this length cells are taken where they are found to be better.
    beyond_max_bytes: u64,
    /// Whether short messages take cells whatever their receivers have at hand.
    cells_always: bool,
    lists: Vec<Vec<Row>>,
    /// Which list holds for each variant.
    of_variant: [u8; Variant::COUNT],
}

impl Decisions {
    /// Decisions of these ranges for each variant, in ascending order of their
    /// lengths. The last one holds for all that is longer, too.
    pub fn new(eager_max_bytes: u64, mut ranges_of: impl FnMut(Variant) -> Vec<Range>) -> Self {
        let mut lists: Vec<Vec<Row>> = Vec::new();
        let mut of_variant = [0; Variant::COUNT];
        for variant in Variant::all() {
            let rows: Vec<Row> = ranges_of(variant).into_iter().map(Row::new).collect();
            let known = lists.iter().position(|list| list.iter().eq(&rows));
            let at = known.unwrap_or_else(|| {
                lists.push(rows);
                lists.len() - 1
            });
            // There are no more lists than variants.
            of_variant[variant.index()] = at as u8;
        }
        Self {
            eager_max_bytes,
            try_eager_max_bytes: eager_max_bytes,
            beyond_max_bytes: 0,
            cells_always: false,
            lists,
            of_variant,
        }
    }

    /// The endpoint may try cells for messages up to this length, where their
    /// range has [`Range::alternatives`].
    #[must_use]
    pub const fn with_eager_tried_up_to(mut self, bytes: u64) -> Self {
        self.try_eager_max_bytes = bytes;
        self
    }

    /// Messages up to this length go in cells though they are announced otherwise, one at a time,
    /// while the application uses its buffers between messages.
    #[must_use]
    pub const fn with_cells_beyond(mut self, bytes: u64) -> Self {
        self.beyond_max_bytes = bytes;
        self
    }

    /// See [`Self::with_cells_beyond`]; 0 where there are none such.
    pub const fn beyond_max_bytes(&self) -> u64 {
        self.beyond_max_bytes
    }

    /// Whether short messages take cells also where their receivers have them at hand
    /// (`at_hand_min_bytes`): where cells were asked for by name, or a copy by the receiver
    /// alone is slow everywhere.
    #[must_use]
    pub const fn with_cells_always(mut self, always: bool) -> Self {
        self.cells_always = always;
        self
    }

    /// See [`Self::with_cells_always`].
    pub const fn takes_cells_always(&self) -> bool {
        self.cells_always
    }

    /// Messages up to this length may be tried in inbox cells.
    pub const fn try_eager_max_bytes(&self) -> u64 {
        self.try_eager_max_bytes
    }

    /// Messages up to this length travel in inbox cells.
    pub const fn eager_max_bytes(&self) -> u64 {
        self.eager_max_bytes
    }

    /// The ways for this message, the best first.
    #[inline]
    pub fn candidates(&self, message: &Message) -> &Candidates {
        match self.row(message).1 {
            None => &Candidates::NONE,
            Some(row) if message.readers >= row.max_readers => &row.crowded,
            Some(row) => &row.usual,
        }
    }

    /// Among which of the ways of [`Self::candidates`] the endpoint may choose,
    /// and the number of the range that says so. None while as many others read
    /// this process as may: then the way depends on them.
    #[inline]
    pub fn alternatives(&self, message: &Message) -> (usize, Alternatives) {
        match self.row(message) {
            (at, Some(row)) if message.readers < row.max_readers => (at, row.alternatives),
            (at, _) => (at, Alternatives::NONE),
        }
    }

    /// The ranges of lengths of a case, each up to so many bytes, with the ways.
    pub fn ranges(&self, variant: Variant) -> impl Iterator<Item = (u64, &Candidates)> {
        let list = &self.lists[usize::from(self.of_variant[variant.index()])];
        list.iter().map(|row| (row.up_to_bytes, &row.usual))
    }

    #[inline]
    fn row(&self, message: &Message) -> (usize, Option<&Row>) {
        let list = &self.lists[usize::from(self.of_variant[message.variant().index()])];
        // There are few rows, and most messages meet one of the first.
        let at = list.iter().position(|row| message.bytes <= row.up_to_bytes);
        let at = at.unwrap_or(list.len().saturating_sub(1));
        (at, list.get(at))
    }
}

impl Row {
    fn new(range: Range) -> Self {
        let Range { up_to_bytes, candidates: usual, max_readers, alternatives } = range;
        let reads = |choice: &&Choice| choice.model.reads_sender();
        let choices = usual.as_slice().iter();
        let crowded = choices.clone().filter(|c| !reads(c)).chain(choices.filter(reads)).copied().collect();
        Self { up_to_bytes, max_readers, alternatives, usual, crowded }
    }
}

impl PartialEq for Row {
    /// The crowded order follows from the usual one.
    fn eq(&self, other: &Self) -> bool {
        (self.up_to_bytes, self.max_readers, self.alternatives)
            == (other.up_to_bytes, other.max_readers, other.alternatives)
            && self.usual.as_slice() == other.usual.as_slice()
    }
}

#[cfg(test)]
#[path = "decisions_tests.rs"]
mod tests;
