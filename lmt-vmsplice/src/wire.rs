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
pub(crate) struct PipeNote {
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

/// The sender's cookie: the message's number. Eight bytes, so that the RTS
/// travels in one cache line.
pub(crate) fn cookie_of(message: u64) -> Cookie {
    Cookie::new(&message.to_ne_bytes()).unwrap_or(Cookie::empty())
}

/// Reads a sender's cookie, which is untrusted.
pub(crate) fn message_of(cookie: &Cookie) -> Option<u64> {
    Some(u64::from_ne_bytes(cookie.as_bytes().try_into().ok()?))
}
