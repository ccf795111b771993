//! Declared memory: put and get without the owner's help, after KNEM's
//! regions (knem-jpdc2013, sections 3.2 and 3.4).
//!
//! An owner declares memory with a protection and passes the [`RegionKey`] to
//! whom it likes. A peer looks the key up in the owner's table, which is shared
//! memory, and copies: with a mechanism that reaches the owner's memory, or,
//! for memory that was allocated to be shared, by mapping it.
//!
//! The table is checked by the process that copies. It guards against
//! mistakes, not against a peer that may read or write this process anyway.

mod table;

use zerocopy::{BE, FromBytes, Immutable, IntoBytes, KnownLayout, U32, U64, Unaligned};

use crate::error::MemoryShort;
use crate::identity::EndpointId;
pub use crate::mechanism::Direction;
pub(crate) use table::{Place, RegionTable, RemoteTable, attach_shared, copy_shared, fetch_list};

/// What peers may do with a region.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Protection {
    /// They may get from it.
    pub read: bool,
    /// They may put into it.
    pub write: bool,
}

impl Protection {
    /// Peers may get.
    pub const READ: Self = Self { read: true, write: false };
    /// Peers may put.
    pub const WRITE: Self = Self { read: false, write: true };
    /// Peers may do both.
    pub const READ_WRITE: Self = Self { read: true, write: true };
}

/// The name of a region, to be passed to peers ([`RegionKey::to_bytes`]).
///
/// It holds a generation, so that the key of a destroyed region never names
/// another that took its place.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct RegionKey {
    pub(crate) owner: EndpointId,
    pub(crate) index: u32,
    pub(crate) generation: u32,
    pub(crate) total_bytes: u64,
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct WireKey {
    owner: [u8; 16],
    index: U32<BE>,
    generation: U32<BE>,
    total_bytes: U64<BE>,
}

impl RegionKey {
    /// The key's size on the way to a peer, in bytes.
    pub const BYTES: usize = size_of::<WireKey>();

    /// Whose memory it is.
    pub const fn owner(&self) -> EndpointId {
        self.owner
    }

    /// The region's length in bytes.
    pub const fn total_bytes(&self) -> u64 {
        self.total_bytes
    }

    /// The key as bytes.
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        let wire = WireKey {
            owner: self.owner.to_bytes(),
            index: self.index.into(),
            generation: self.generation.into(),
            total_bytes: self.total_bytes.into(),
        };
        zerocopy::transmute!(wire)
    }

    /// Reads [`Self::to_bytes`]. A key that was tampered with names nothing.
    pub fn from_bytes(bytes: [u8; Self::BYTES]) -> Self {
        let wire: WireKey = zerocopy::transmute!(bytes);
        Self {
            owner: EndpointId::from_bytes(wire.owner),
            index: wire.index.get(),
            generation: wire.generation.get(),
            total_bytes: wire.total_bytes.get(),
        }
    }
}

/// Why declared memory was not declared, or not reached.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RegionError {
    /// The key names no region now.
    #[error("the region is not declared (any more); ask its owner for a new key")]
    NotDeclared,
    /// The protection forbids it.
    #[error("the region's protection forbids to {0} it; its owner must declare it with that right")]
    Forbidden(Direction),
    /// The copy would leave the region.
    #[error("{bytes} bytes from offset {offset} reach past the region's {total_bytes} bytes")]
    OutOfBounds {
        /// First byte asked for.
        offset: u64,
        /// How many.
        bytes: u64,
        /// The region's length.
        total_bytes: u64,
    },
    /// No mechanism reaches the owner's memory.
    #[error(
        "no mechanism reaches the owner's memory ({0}); let the owner allocate the region instead of declaring its own memory"
    )]
    Unreachable(String),
    /// The table is full.
    #[error("{0} regions are declared already, the most there can be; destroy some first")]
    TooMany(u32),
    /// There is too little memory for a region or for the table.
    #[error(transparent)]
    Memory(#[from] MemoryShort),
    /// The memory lent does not allow what peers are to be allowed.
    #[error("memory lent for reading cannot be declared for writing; lend it for writing")]
    ReadOnlyMemory,
}
