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

/// The boxes that an endpoint reads, at most so many. They and the inbox are
/// looked at in turn, so that none keeps the others waiting.
#[derive(Debug, Default)]
pub(crate) struct Boxes {
    list: Vec<BoxReceiver>,
    most: usize,
    /// Whose turn it is; after the last box it is the inbox's.
    turn: usize,
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
        self.turn = 0;
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    #[inline]
    pub(crate) fn turn(&self) -> usize {
        self.turn
    }

    pub(crate) fn inbox_had_its_turn(&mut self) {
        self.turn = 0;
    }

    /// The first of these boxes in which something is.
    #[inline]
    pub(crate) fn first_ready(&self, from: usize, to: usize) -> Option<usize> {
        let list = self.list.get(from..to)?;
        let ready = |one: &BoxReceiver| one.reader.find(&one.memory.words()).is_some();
        list.iter().position(ready).map(|at| from + at)
    }

    /// The next message of box number `at`, unchecked.
    #[inline]
    pub(crate) fn find(&self, at: usize) -> Option<Header> {
        self.list.get(at)?.find()
    }

    /// Ends the message of `bytes` bytes that was found in box number `at`.
    #[inline]
    pub(crate) fn consume(&mut self, at: usize, bytes: usize) {
        self.turn = at + 1;
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
