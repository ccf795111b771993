//! What a copy names: memory mapped here, a peer's memory, a KNEM region; and
//! the lists of copies that engines take.

use std::sync::Arc;

use lmt_core::buffer::Access;
use lmt_core::process::PeerProcess;
use lmt_knem::RegionCookie;

use crate::few::Few;

pub use crate::mapped::Mapped;

/// One end of a copy: where its first byte is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// Memory of this process, lent.
    Mapped(Mapped),
    /// An address in the peer that the list names; untrusted. A wrong one is
    /// the peer's loss: the copy is refused, or the peer's own bytes garbled.
    Peer(u64),
    /// A region of KNEM's, by its cookie, and the first byte's offset in it.
    Region {
        /// The cookie that its owner has given out.
        cookie: RegionCookie,
        /// In bytes from the region's beginning.
        offset: u64,
    },
}

impl Place {
    /// The place `bytes` further on, where there is one.
    pub fn advanced(self, bytes: u64) -> Option<Self> {
        Some(match self {
            Self::Mapped(mapped) => Self::Mapped(mapped.advanced(bytes)?),
            Self::Peer(address) => Self::Peer(address.checked_add(bytes)?),
            Self::Region { cookie, offset } => Self::Region { cookie, offset: offset.checked_add(bytes)? },
        })
    }
}

/// One copy of a list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Copy {
    from: Place,
    to: Place,
    bytes: u64,
}

impl Copy {
    /// Where the bytes are.
    pub const fn from(&self) -> Place {
        self.from
    }

    /// Where they go.
    pub const fn to(&self) -> Place {
        self.to
    }

    /// How many, at least 1.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// Why a copy cannot be put into a list.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ListError {
    /// A place ends before the copy does.
    #[error("the copy has {bytes} bytes and one of its places only {room}; cut it to what both have")]
    TooShort {
        /// Bytes of the copy.
        bytes: u64,
        /// Bytes of the place.
        room: u64,
    },
    /// The target was lent for reading.
    #[error("the target is read-only; pass it with Access::Write")]
    ReadOnly,
    /// The bytes of all copies overflow.
    #[error("the list has more than 2^64 bytes; submit it in parts")]
    TooMany,
}

/// A list of copies, done in order. What it names belongs to at most one peer.
///
/// The copies of one list must not overlap each other in what they write, nor a
/// source any target, unless the bytes that come out do not matter.
#[derive(Debug, Default)]
pub struct CopyList {
    peer: Option<Arc<PeerProcess>>,
    copies: Few<Copy>,
    total_bytes: u64,
}

impl CopyList {
    /// An empty list, for places of this process and regions.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty list whose [`Place::Peer`] are addresses in this process.
    pub fn with_peer(process: Arc<PeerProcess>) -> Self {
        Self { peer: Some(process), ..Self::default() }
    }

    /// Adds a copy behind those that are there; one of 0 bytes is left out.
    ///
    /// # Errors
    /// [`ListError`]; the list is as before.
    pub fn push(&mut self, from: Place, to: Place, bytes: u64) -> Result<(), ListError> {
        for place in [from, to] {
            let room = match place {
                Place::Mapped(mapped) => mapped.bytes() as u64,
                Place::Peer(address) => u64::MAX - address,
                Place::Region { offset, .. } => u64::MAX - offset,
            };
            if room < bytes {
                return Err(ListError::TooShort { bytes, room });
            }
        }
        if matches!(to, Place::Mapped(mapped) if mapped.access() == Access::Read) {
            return Err(ListError::ReadOnly);
        }
        let total_bytes = self.total_bytes.checked_add(bytes).ok_or(ListError::TooMany)?;
        if bytes > 0 {
            self.copies.push(Copy { from, to, bytes });
        }
        self.total_bytes = total_bytes;
        Ok(())
    }

    /// The process that the list's [`Place::Peer`] are in.
    pub const fn peer(&self) -> Option<&Arc<PeerProcess>> {
        self.peer.as_ref()
    }

    /// The copies, in order.
    pub fn copies(&self) -> &[Copy] {
        &self.copies
    }

    /// The bytes of all copies.
    pub const fn total_bytes(&self) -> u64 {
        self.total_bytes
    }
}

#[cfg(test)]
#[path = "places_tests.rs"]
mod tests;
