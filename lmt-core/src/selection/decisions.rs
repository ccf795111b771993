//! The decisions for one peer, as a table.

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
}

#[derive(Clone, Debug)]
struct Row {
    up_to_bytes: u64,
    max_readers: u32,
    usual: Candidates,
    /// As `usual`, with what reads this process behind all else.
    at_reader_limit: Candidates,
}

/// What is decided for all messages to one peer.
///
/// ```
/// use lmt_core::rendezvous::Candidates;
/// use lmt_core::selection::{Decisions, Message, Range};
///
/// let all = Range { up_to_bytes: u64::MAX, candidates: Candidates::new(), max_readers: 1 };
/// let decisions = Decisions::new(4096, |_| vec![all.clone()]);
/// assert_eq!(decisions.eager_max_bytes(), 4096);
/// assert!(decisions.candidates(&Message::of_bytes(1 << 20)).as_slice().is_empty());
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct Decisions {
    eager_max_bytes: u64,
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
        Self { eager_max_bytes, lists, of_variant }
    }

    /// Messages up to this length travel in inbox cells.
    pub const fn eager_max_bytes(&self) -> u64 {
        self.eager_max_bytes
    }

    /// The ways for this message, the best first.
    #[inline]
    pub fn candidates(&self, message: &Message) -> &Candidates {
        match self.row(message) {
            None => &Candidates::NONE,
            Some(row) if message.readers >= row.max_readers => &row.at_reader_limit,
            Some(row) => &row.usual,
        }
    }

    /// The ranges of lengths of a case, each up to so many bytes, with the ways.
    pub fn ranges(&self, variant: Variant) -> impl Iterator<Item = (u64, &Candidates)> {
        let list = &self.lists[usize::from(self.of_variant[variant.index()])];
        list.iter().map(|row| (row.up_to_bytes, &row.usual))
    }

    #[inline]
    fn row(&self, message: &Message) -> Option<&Row> {
        let list = &self.lists[usize::from(self.of_variant[message.variant().index()])];
        // There are few rows, and most messages meet one of the first.
        let at = list.iter().position(|row| message.bytes <= row.up_to_bytes);
        list.get(at.unwrap_or(list.len().saturating_sub(1)))
    }
}

impl Row {
    fn new(range: Range) -> Self {
        let Range { up_to_bytes, candidates: usual, max_readers } = range;
        let reads = |choice: &&Choice| choice.model.reads_sender();
        let choices = usual.as_slice().iter();
        let at_reader_limit =
            choices.clone().filter(|c| !reads(c)).chain(choices.filter(reads)).copied().collect();
        Self { up_to_bytes, max_readers, usual, at_reader_limit }
    }
}

impl PartialEq for Row {
    /// The crowded order follows from the usual one.
    fn eq(&self, other: &Self) -> bool {
        (self.up_to_bytes, self.max_readers) == (other.up_to_bytes, other.max_readers)
            && self.usual.as_slice() == other.usual.as_slice()
    }
}

#[cfg(test)]
#[path = "decisions_tests.rs"]
mod tests;
