//! Another provider that matches an endpoint's receives, its owner (fi_peer(3)), and
//! the messages that wait for it.

use std::collections::HashMap;

use lmt::{Message, Space};

use super::spaces::{PLAIN, TAGGED};

/// The owner, and what it has not asked for yet.
#[derive(Debug)]
pub struct Owner {
    /// Where the owner's receive context is; an address that is only handed back.
    pub context: usize,
    /// Under which number the endpoint is known beside its domain.
    pub registered: u16,
    /// Messages for which the owner had no receive, by number.
    pub(super) kept: HashMap<u64, Message>,
    /// Messages about which the owner could not say anything yet, by space.
    pub(super) put_off: [Option<PutOff>; 2],
}

/// A message that the owner is asked about again.
#[derive(Debug)]
pub(super) struct PutOff {
    pub(super) message: Message,
    /// In which round it was asked.
    pub(super) round: u64,
}

/// The spaces of messages, as `put_off` has them.
pub(super) const SPACES: [Space; 2] = [TAGGED, PLAIN];

pub(super) fn place_of(space: Space) -> usize {
    usize::from(space == PLAIN)
}

impl Owner {
    /// An owner with this receive context, that knows of no message.
    pub fn new(context: usize, registered: u16) -> Self {
        Self { context, registered, kept: HashMap::new(), put_off: [None, None] }
    }

    /// Keeps a message until the owner asks for it by this number.
    pub fn keep(&mut self, number: u64, message: Message) {
        self.kept.insert(number, message);
    }

    /// Takes a message out that was kept; dropped, its sender's operation ends as if it had been
    /// received.
    pub fn take(&mut self, number: u64) -> Option<Message> {
        self.kept.remove(&number)
    }

    /// Keeps a message that the owner is asked about again later, before all
    /// others of its space: not before the round after `round`.
    pub fn put_off(&mut self, space: Space, message: Message, round: u64) {
        self.put_off[place_of(space)] = Some(PutOff { message, round });
    }
}
