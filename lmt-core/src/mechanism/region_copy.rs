//! Copies between a peer's declared memory and memory here.

use crate::memory::buffer::Segment;

/// Which way a one-sided copy goes, seen from who copies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// Out of the peer's memory.
    Get,
    /// Into the peer's memory.
    Put,
}

impl std::fmt::Display for Direction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Get => "get from",
            Self::Put => "put into",
        })
    }
}

/// A copy between a peer's declared memory and memory here.
#[derive(Clone, Copy, Debug)]
pub struct RegisteredCopy<'a> {
    /// Which way.
    pub direction: Direction,
    /// The declared memory, as addresses in the peer; untrusted.
    pub remote: &'a [Segment],
    /// The first byte there, counted over all segments.
    pub remote_offset: u64,
    /// The first byte here.
    pub local_offset: u64,
    /// How many bytes at most.
    pub max_bytes: u64,
}
