//! The names of peers and requests that an embedder holds.

use std::cmp::Ordering;
use std::fmt;

use crate::vocabulary::identity::PeerKey;

/// A peer of one endpoint: the binding that the embedder made for an address.
/// After [`crate::endpoint::Engine::remove_peer`] it names nobody, also when another peer
/// has got its number.
// The number below, above it how often that was given to another peer before. One word: two that
// are stored one by one and loaded together stall (store forwarding).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct PeerId(u64);

impl fmt::Debug for PeerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (index, generation) = (self.index(), self.generation());
        f.debug_struct("PeerId").field("index", &index).field("generation", &generation).finish()
    }
}

impl Ord for PeerId {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.index(), self.generation()).cmp(&(other.index(), other.generation()))
    }
}

impl PartialOrd for PeerId {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PeerId {
    /// The peer with this number, which was another's so often before.
    #[inline]
    pub(crate) const fn new(key: PeerKey, generation: u32) -> Self {
        Self((generation as u64) << 32 | key as u64)
    }

    /// The first peer with this number.
    pub(crate) const fn first(key: PeerKey) -> Self {
        Self::new(key, 0)
    }

    /// How often the number was given to another peer before.
    #[inline]
    pub(crate) const fn generation(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// The number under which this endpoint knows the peer: small, dense, and
    /// of no meaning to others.
    pub const fn index(self) -> u32 {
        self.0 as u32
    }

    /// The name as one number, for embedders that keep it in a handle.
    pub const fn to_raw(self) -> u64 {
        self.0
    }

    /// Reads [`Self::to_raw`]. A number that names no peer is harmless: operations
    /// with it answer [`super::outcome::OperationError::UnknownPeer`].
    pub const fn from_raw(raw: u64) -> Self {
        Self(raw)
    }
}

/// An operation that was begun.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct RequestId(pub(super) u64);

impl RequestId {
    /// The id as a number, for embedders that keep it in a handle.
    pub const fn to_raw(self) -> u64 {
        self.0
    }

    /// Reads [`Self::to_raw`]. A number that names no request is harmless:
    /// operations on it answer [`super::outcome::OperationError::UnknownRequest`].
    pub const fn from_raw(raw: u64) -> Self {
        Self(raw)
    }
}
