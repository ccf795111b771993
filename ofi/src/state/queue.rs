//! A completion queue.

use std::collections::VecDeque;

use super::completion::{Entry, Failure, Item};
use super::watch::Watch;

/// Which part of a completion the reader gets: the first so many bytes of
/// `struct fi_cq_tagged_entry`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Format {
    /// The context.
    Context,
    /// And flags and length.
    Msg,
    /// And buffer and data.
    Data,
    /// And the tag.
    Tagged,
}

impl Format {
    /// How many bytes an entry has.
    #[inline]
    pub const fn bytes(self) -> usize {
        match self {
            Self::Context => 8,
            Self::Msg => 24,
            Self::Data => 40,
            Self::Tagged => 48,
        }
    }
}

/// Completions that wait to be read, oldest first.
#[derive(Debug, Default)]
pub struct Queue {
    /// The endpoints that put completions here.
    pub endpoints: Vec<usize>,
    /// Whether completions are written to a queue of somebody else's.
    pub is_owned: bool,
    /// Who waits for one.
    pub watch: Watch,
    items: VecDeque<Item>,
    /// Whether a reader that waits is to return without a completion.
    signalled: bool,
    /// What owners that match receives get back behind the completions.
    pub done_with: Vec<DoneWith>,
}

/// An owner's entry whose operation has ended, told or not. Both are addresses that
/// are only handed back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DoneWith {
    /// The entry.
    pub entry: usize,
    /// The owner's receive context.
    pub context: usize,
}

/// What reading came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Read {
    /// The oldest completion was handed over.
    Entry,
    /// It is a failure, which [`Queue::take_failure`] tells.
    Failure,
    /// There is none.
    Nothing,
}

impl Queue {
    /// An empty queue, somebody else's or not.
    pub fn new(is_owned: bool) -> Self {
        Self { is_owned, ..Self::default() }
    }

    /// Puts a completion behind the others.
    #[inline(always)] // The path of a short message: written once, where it stays.
    pub fn push(&mut self, item: Item) {
        self.items.push_back(item);
        self.watch.ring();
    }

    /// Whether nothing waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Takes the oldest completion, whatever it is.
    #[inline]
    pub fn take(&mut self) -> Option<Item> {
        self.items.pop_front()
    }

    /// Puts one back that could not be told.
    pub fn put_back(&mut self, item: Item) {
        self.items.push_front(item);
    }

    /// Takes the oldest completion, if it is none of a failure, and hands it to `take`: where
    /// it lies, since what has just been written there in small parts is slow to copy as a
    /// whole.
    #[inline]
    pub fn read(&mut self, take: impl FnOnce(&Entry)) -> Read {
        match self.items.front() {
            None => Read::Nothing,
            Some(Item::Failed(_)) => Read::Failure,
            Some(Item::Done(entry)) => {
                take(entry);
                self.items.pop_front();
                Read::Entry
            }
        }
    }

    /// Takes the oldest completion, if it is one of a failure.
    pub fn take_failure(&mut self) -> Option<Failure> {
        match self.items.front() {
            Some(Item::Failed(failure)) => {
                let failure = *failure;
                self.items.pop_front();
                Some(failure)
            }
            _ => None,
        }
    }

    /// Has the reader that waits, or the next one, return.
    pub fn signal(&mut self) {
        self.signalled = true;
        self.watch.ring();
    }

    /// Whether that was asked for and nobody has returned for it yet.
    pub const fn is_signalled(&self) -> bool {
        self.signalled
    }

    /// Whether that was asked for; says so once.
    pub fn take_signal(&mut self) -> bool {
        std::mem::take(&mut self.signalled)
    }
}

#[cfg(test)]
#[path = "queue_tests.rs"]
mod tests;
