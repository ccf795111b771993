//! A multi-receive buffer, and what is told of it.

use lmt::Reported;

use super::completion::Entry;

/// A multi-receive buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MultiBuffer {
    /// What its receive was begun with.
    pub(super) context: usize,
    /// Where it begins, an address that is only computed with.
    pub(super) address: usize,
    /// Whether its messages are told of.
    pub(super) reports: bool,
    /// The number of its receive among the operations.
    pub(super) op: u64,
}

/// What is to be told of a multi-receive buffer.
#[derive(Debug)]
pub struct MultiEnd {
    /// What its completion says.
    pub entry: Entry,
    /// Whether its good end is told.
    pub reports: bool,
    /// How it ended.
    pub result: Reported,
}
