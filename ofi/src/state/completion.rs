//! What a completion queue tells of an operation.

use lmt::{Direction, Status};

use crate::abi::{ADDR_UNSPEC, Errno, FiAddr, flags};

/// An operation that has ended well.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry {
    /// What the operation was begun with, an address that is only handed back.
    pub context: usize,
    /// What it was.
    pub flags: u64,
    /// The received bytes.
    pub bytes: usize,
    /// Where they are, of multi-receive buffers; an address that is only handed back.
    pub buffer: usize,
    /// The sender's number.
    pub data: u64,
    /// The message's tag.
    pub tag: u64,
    /// Who sent it.
    pub source: FiAddr,
}

impl Entry {
    /// That of an operation of which nothing else is to be told.
    #[inline]
    pub const fn bare(context: usize, flags: u64) -> Self {
        Self { context, flags, bytes: 0, buffer: 0, data: 0, tag: 0, source: ADDR_UNSPEC }
    }
}

/// An operation that has failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Failure {
    /// As of one that ended well.
    pub entry: Entry,
    /// Bytes of the message that were cut off.
    pub cut_bytes: usize,
    /// Why.
    pub error: Errno,
}

/// Either.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Item {
    /// It ended well.
    Done(Entry),
    /// It failed.
    Failed(Failure),
}

/// Where an operation's end is told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CompletionTarget {
    /// With the sends.
    Send,
    /// With the receives.
    Receive,
    /// With the sends, but counted as what it is.
    Remote(Direction),
}

impl CompletionTarget {
    /// What counts it.
    pub(super) const fn counted_as(self) -> u64 {
        match self {
            Self::Send => flags::SEND,
            Self::Receive => flags::RECV,
            Self::Remote(Direction::Get) => flags::READ,
            Self::Remote(Direction::Put) => flags::WRITE,
        }
    }
}

/// A receive's completion with what the message's status tells.
#[inline(always)] // The path of a short message.
pub(super) fn with_status(entry: Entry, status: &Status) -> Entry {
    let has_data = if status.immediate.is_some() { flags::REMOTE_CQ_DATA } else { 0 };
    Entry {
        flags: entry.flags | has_data,
        bytes: status.bytes as usize,
        data: status.immediate.unwrap_or_default().into(),
        tag: status.tag,
        ..entry
    }
}
