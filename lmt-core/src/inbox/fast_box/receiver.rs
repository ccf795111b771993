//! The reading ends: the boxes of one endpoint.

use std::os::fd::OwnedFd;

use super::memory::{BoxMemory, CELLS};
use super::ring::Reader;
use crate::buffer::Buffer;
use crate::error::MemoryShort;
use crate::inbox::layout::INLINE_BYTES;
use crate::inbox::receiver::Header;

/// Takes messages out of one box.
#[derive(Debug)]
struct BoxReceiver {
    memory: BoxMemory,
    reader: Reader,
    /// The number of the peer whose box it is.
    sender: u16,
    /// For handing to the peer, as often as it connects.
    descriptor: OwnedFd,
}

impl BoxReceiver {
    fn create(sender: u16) -> Result<Self, MemoryShort> {
        let (memory, descriptor) = BoxMemory::create()?;
        Ok(Self { memory, reader: Reader::new(CELLS), sender, descriptor })
    }

    /// The next message. What it says is still to be checked.
    #[inline]
    fn find(&self) -> Option<Header> {
        let shared = self.memory.words();
        let kind = self.reader.find(&shared)?;
        Some(Header::copy(self.reader.line(&shared), self.sender, kind))
    }
}

/// After so many messages from boxes the inbox is looked at first.
const IN_A_ROW: u32 = 2;

/// The boxes that an endpoint reads, at most so many. They and the inbox are
/// looked at in turn, so that none keeps the others waiting; and two of them by
/// each poll, so that it takes the same time however many there are.
#[derive(Debug, Default)]
pub(crate) struct Boxes {
    list: Vec<BoxReceiver>,
    most: usize,
    /// The box from which the last message of a box came: every poll looks at
    /// it ...
    hot: usize,
    /// ... after the others when the last message of all was from it.
    hot_came_last: bool,
    /// Which box a poll looks at beside it.
    other: usize,
    /// How many messages came from boxes since the inbox had its turn.
    in_a_row: u32,
}

impl Boxes {
    pub(crate) fn allow(&mut self, most: usize) {
        self.most = most;
    }

    /// The descriptor of a sender's box; made now if there may be one more.
    /// None when there may not, or memory is short.
    pub(crate) fn open(&mut self, sender: u16) -> Option<OwnedFd> {
        let at = match self.list.iter().position(|one| one.sender == sender) {
            Some(at) => at,
            None if self.list.len() >= self.most => return None,
            None => {
                let refused = |error: &MemoryShort| tracing::info!(%error, "a peer gets no fast box");
                self.list.push(BoxReceiver::create(sender).inspect_err(refused).ok()?);
                self.list.len() - 1
            }
        };
        self.list[at].descriptor.try_clone().ok()
    }

    pub(crate) fn has(&self, sender: u16) -> bool {
        self.list.iter().any(|one| one.sender == sender)
    }

    /// Gives up a sender's box and what is left in it.
    pub(crate) fn close(&mut self, sender: u16) {
        self.list.retain(|one| one.sender != sender);
        (self.hot, self.hot_came_last, self.other) = (0, false, 0);
    }

    pub(crate) fn inbox_had_its_turn(&mut self) {
        self.hot_came_last = false;
        self.in_a_row = 0;
    }

    #[inline]
    fn is_ready(&self, at: usize) -> bool {
        self.list.get(at).is_some_and(|one| one.reader.find(&one.memory.words()).is_some())
    }

    /// The box to take a message from before the inbox is looked at.
    #[inline]
    pub(crate) fn first_look(&self) -> Option<usize> {
        if !self.hot_came_last && self.is_ready(self.hot) {
            return Some(self.hot);
        }
        self.is_ready(self.other).then_some(self.other)
    }

    /// The box to take a message from after the inbox had none. When there is
    /// none either, the next poll looks at another box.
    #[inline]
    pub(crate) fn last_look(&mut self) -> Option<usize> {
        if self.hot_came_last && self.is_ready(self.hot) {
            return Some(self.hot);
        }
        self.look_elsewhere(self.other);
        None
    }

    /// The box behind number `at` is looked at next.
    #[inline]
    fn look_elsewhere(&mut self, at: usize) {
        self.other = if at + 1 < self.list.len() { at + 1 } else { 0 };
    }

    /// Whether the inbox is looked at first, so that boxes that are never empty
    /// do not keep it waiting.
    #[inline]
    pub(crate) fn is_inbox_due(&self) -> bool {
        self.in_a_row >= IN_A_ROW
    }

    /// Gives the turn to a box in which something is, if there is one.
    pub(crate) fn look_at_all(&mut self) {
        if !self.is_ready(self.other)
            && let Some(at) = (0..self.list.len()).find(|at| self.is_ready(*at))
        {
            self.other = at;
        }
    }

    /// The next message of box number `at`, unchecked.
    #[inline]
    pub(crate) fn find(&self, at: usize) -> Option<Header> {
        self.list.get(at)?.find()
    }

    /// Ends the message of `bytes` bytes that was found in box number `at`.
    #[inline]
    pub(crate) fn consume(&mut self, at: usize, bytes: usize) {
        self.in_a_row = if self.in_a_row >= IN_A_ROW { 0 } else { self.in_a_row + 1 };
        if at == self.hot {
            self.hot_came_last = true;
            self.look_elsewhere(self.other);
        } else {
            (self.hot, self.hot_came_last) = (at, false);
            self.look_elsewhere(at);
        }
        if let Some(one) = self.list.get_mut(at) {
            one.reader.consume(&one.memory.words(), bytes > INLINE_BYTES);
        }
    }

    /// Copies the first bytes of the cell of the message found in box `at`.
    #[inline]
    pub(crate) fn read(&self, at: usize, target: &mut [u8]) {
        if let Some(one) = self.list.get(at) {
            one.memory.read(one.reader.cell(), target);
        }
    }

    /// The same, `bytes` of them, to a buffer; returns how many fitted.
    #[inline]
    pub(crate) fn read_to(&self, at: usize, bytes: usize, buffer: &mut Buffer, offset: u64) -> usize {
        let Some(one) = self.list.get(at) else { return 0 };
        one.memory.read_to(one.reader.cell(), bytes, buffer, offset)
    }

    /// Whether nothing is in any of them.
    pub(crate) fn are_empty(&self) -> bool {
        self.list.iter().all(|one| one.find().is_none())
    }

    /// Whether a message of a sender waits in its box.
    pub(crate) fn holds_messages_of(&self, sender: u16) -> bool {
        self.list.iter().any(|one| one.sender == sender && one.find().is_some())
    }
}
