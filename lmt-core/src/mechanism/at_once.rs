//! Messages that a receiver brings in within the call that matches them.
#![forbid(unsafe_code)]

use super::Cookie;
#[cfg(doc)]
use super::Lmt;
use crate::buffer::Buffer;

/// One of several messages that [`Lmt::get_several`] copies.
#[derive(Debug)]
pub struct Gathered {
    /// What describes the sender's memory, untrusted.
    pub remote: Cookie,
    /// Where it goes.
    pub data: Buffer,
    /// How many bytes of it, from the first on; no more than `data` has.
    pub bytes: u64,
}

/// Where the lines were that a receiver has copied.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lines {
    /// In the caches of its core, as far as is known: most copies are not timed.
    AtHand,
    /// In those of another core, or in memory: the copy took much longer.
    Elsewhere,
}
