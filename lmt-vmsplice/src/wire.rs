//! What the two sides tell each other: in the greeting, with a pipe's
//! descriptor, in the cookies, and in the pipe before each message.

use lmt_core::mechanism::Cookie;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Version of all that stands here; both sides must have the same.
pub(crate) const VERSION: u32 = 1;

/// The greeting.
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct Greeting {
    pub version: u32,
}

/// What comes with the read end of a new pipe.
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct PipeDescriptor {
    /// The sender's number for the pipe, from 1 on.
    pub pipe: u64,
}

/// What stands in the pipe before the bytes of each message.
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct Header {
    /// The number that the message's cookie gave.
    pub message: u64,
    /// How many bytes follow.
    pub bytes: u64,
}

pub(crate) const HEADER_BYTES: usize = size_of::<Header>();

/// How many bits of a cookie number the message; the others number the pipe.
const MESSAGE_BITS: u32 = 40;
const PIPE_BITS: u32 = u64::BITS - MESSAGE_BITS;

/// What the sender's cookie says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Name {
    /// The message's number, unlike that of any other in flight.
    pub message: u64,
    /// The last bits of the number of the pipe that the sender had then: the
    /// message comes by it or by a later one.
    pub pipe: u64,
}

impl Name {
    /// The name of a message by what its sender has counted.
    pub(crate) const fn of(messages: u64, pipes: u64) -> Self {
        Self { message: messages & ((1 << MESSAGE_BITS) - 1), pipe: pipes & ((1 << PIPE_BITS) - 1) }
    }

    /// Eight bytes, so that the RTS travels in one cache line.
    pub(crate) fn cookie(self) -> Cookie {
        let both = self.pipe << MESSAGE_BITS | self.message;
        Cookie::new(&both.to_ne_bytes()).unwrap_or(Cookie::empty())
    }

    /// Reads a sender's cookie, which is untrusted.
    pub(crate) fn parse(cookie: &Cookie) -> Option<Self> {
        let both = u64::from_ne_bytes(cookie.as_bytes().try_into().ok()?);
        Some(Self::of(both, both >> MESSAGE_BITS))
    }

    /// Whether it names a later pipe than `pipe`, the last one that is known.
    /// The numbers go round: the half of them that lies ahead is later.
    pub(crate) const fn awaits_later_than(self, pipe: u64) -> bool {
        let ahead = self.pipe.wrapping_sub(pipe) & ((1 << PIPE_BITS) - 1);
        ahead != 0 && ahead < 1 << (PIPE_BITS - 1)
    }
}

#[cfg(test)]
#[path = "wire_tests.rs"]
mod tests;
