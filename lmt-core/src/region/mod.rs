//! Registered memory: put and get without the owner's help, after KNEM's
//! regions (knem-jpdc2013, sections 3.2 and 3.4).
//!
//! An owner registers memory with a protection and passes the [`RegionKey`] to
//! whom it likes. A peer looks the key up in the owner's table, which is shared
//! memory, and copies: with a mechanism that reaches the owner's memory, or,
//! for memory that was allocated to be shared, by mapping it.
//!
//! The table is checked by the process that copies. It guards against
//! mistakes, not against a peer that may read or write this process anyway.
//!
//! - `entry`: one entry's words, and who moves them how; loom runs it.
//! - [`RegionTable`]: the owner's half; [`RemoteTable`]: a peer's half.
//! - [`RegionAccess`] and [`copy_piece`]: copies out of, into and between
//!   regions, over whatever [`OwnerMemory`] there are into the owner's memory.
//!
//! An endpoint keeps one table for its peers. Who needs regions and no
//! endpoint makes a table and passes its descriptor by means of its own: this module
//! must know neither messages nor requests, and which mechanism copies is said by
//! its caller.

#[cfg(not(loom))]
mod access;
mod entry;
#[cfg(not(loom))]
mod memory;
#[cfg(not(loom))]
mod remote;
pub mod shared_buffer;
#[cfg(not(loom))]
mod table;

use zerocopy::{BE, FromBytes, Immutable, IntoBytes, KnownLayout, U64, Unaligned};

pub use crate::mechanism::Direction;
use crate::vocabulary::error::MemoryError;
use crate::vocabulary::identity::EndpointId;
#[cfg(not(loom))]
pub use access::{OwnerMemory, Part, RegionAccess, copy_piece};
pub use entry::{Entry, Place};
#[cfg(not(loom))]
pub use memory::{attach_shared, copy_shared, put_shared, take_shared_past_caches};
#[cfg(not(loom))]
pub use remote::RemoteTable;
#[cfg(not(loom))]
pub use table::RegionTable;

/// Regions that one table can have at a time: its first line is its head.
pub const MAX_REGIONS: u32 = (1 << INDEX_BITS) - 1;

const INDEX_BITS: u32 = 16;

#[cfg_attr(loom, allow(dead_code))] // Its user needs real shared memory.
const ENTRY_BYTES: usize = 64;

#[cfg_attr(loom, allow(dead_code))] // Its user needs real shared memory.
const TABLE_BYTES: usize = ENTRY_BYTES << INDEX_BITS;

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

    /// Checks a copy's direction.
    ///
    /// # Errors
    /// [`RegionError::Forbidden`].
    pub const fn allows(self, direction: Direction) -> Result<(), RegionError> {
        let allowed = match direction {
            Direction::Get => self.read,
            Direction::Put => self.write,
        };
        if allowed { Ok(()) } else { Err(RegionError::Forbidden(direction)) }
    }

    /// With this protection, and for the first copy only; see
    /// [`RegionOptions::single_use`].
    pub const fn single_use(self) -> RegionOptions {
        RegionOptions { protection: self, single_use: true }
    }
}

/// How a region is declared. A [`Protection`] alone will do:
///
/// ```
/// use lmt_core::region::{Protection, RegionOptions};
///
/// let many: RegionOptions = Protection::READ.into();
/// assert!(!many.single_use && Protection::READ.single_use().single_use);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RegionOptions {
    /// What peers may do with it.
    pub protection: Protection,
    /// The first copy that a peer, or the owner by its key, begins uses the
    /// region up, whatever becomes of it; every other is told
    /// [`RegionError::UsedUp`]. As with KNEM's flag, a copy of no bytes and one
    /// that fails use it up too; one that is refused, because the protection
    /// forbids it or it would leave the region, has not begun (knem-jpdc2013,
    /// section 3.4). Its owner destroys it all the same.
    pub single_use: bool,
}

impl From<Protection> for RegionOptions {
    fn from(protection: Protection) -> Self {
        Self { protection, single_use: false }
    }
}

/// The name of a region, to be passed to peers ([`RegionKey::to_bytes`]).
///
/// It holds a generation, so that the key of a destroyed region never names
/// another that took its place.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct RegionKey {
    owner: EndpointId,
    /// Generation, and the index in the table in the lower 16 bits.
    handle: u64,
    total_bytes: u64,
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct WireKey {
    owner: [u8; 16],
    handle: U64<BE>,
    total_bytes: U64<BE>,
}

#[cfg_attr(loom, allow(dead_code))] // Some of it is used with real shared memory only.
impl RegionKey {
    /// The key's size on the way to a peer, in bytes.
    pub const BYTES: usize = size_of::<WireKey>();

    /// The key of the region that `owner`'s table has under `handle`. One that
    /// was made up names nothing.
    pub const fn new(owner: EndpointId, handle: u64, total_bytes: u64) -> Self {
        Self { owner, handle, total_bytes }
    }

    /// The key of a region of which only [`RegionKey::handle`] is known, for those
    /// who can pass on no more than a word. A get or a put looks its length up,
    /// and bounds are checked against that; for everything else it names nothing.
    pub const fn by_handle(owner: EndpointId, handle: u64) -> Self {
        Self { owner, handle, total_bytes: Self::UNKNOWN_BYTES }
    }

    /// No region is so long.
    const UNKNOWN_BYTES: u64 = u64::MAX;

    /// Whether it is no more than a handle.
    pub(crate) const fn is_handle(&self) -> bool {
        self.total_bytes == Self::UNKNOWN_BYTES
    }

    /// Whose memory it is: the id of the table.
    pub const fn owner(&self) -> EndpointId {
        self.owner
    }

    /// What names the region within its table, never 0 and never given twice
    /// in a table's life (2^48 regions). It alone is enough for who knows the
    /// table ([`RemoteTable::key_of`]).
    pub const fn handle(&self) -> u64 {
        self.handle
    }

    /// The region's length in bytes; [`u64::MAX`] if it is not known.
    pub const fn total_bytes(&self) -> u64 {
        self.total_bytes
    }

    const fn index(&self) -> u16 {
        self.handle as u16
    }

    const fn generation(&self) -> u64 {
        self.handle >> INDEX_BITS
    }

    /// The key as bytes.
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        let wire = WireKey {
            owner: self.owner.to_bytes(),
            handle: self.handle.into(),
            total_bytes: self.total_bytes.into(),
        };
        zerocopy::transmute!(wire)
    }

    /// Reads [`Self::to_bytes`]. A key that was tampered with names nothing.
    pub fn from_bytes(bytes: [u8; Self::BYTES]) -> Self {
        let wire: WireKey = zerocopy::transmute!(bytes);
        Self {
            owner: EndpointId::from_bytes(wire.owner),
            handle: wire.handle.get(),
            total_bytes: wire.total_bytes.get(),
        }
    }
}

/// Why declared memory was not declared, or not reached.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RegionError {
    /// The key names no region now.
    #[error("the region is not registered (any more); ask its owner for a new key")]
    NotRegistered,
    /// It was for one copy, which another was.
    #[error("the region was registered for a single use, and has been used; ask its owner for a new key")]
    UsedUp,
    /// The protection forbids it.
    #[error("the region's protection forbids to {0} it; its owner must register it with that right")]
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
        "no mechanism reaches the owner's memory ({0}); let the owner allocate the region instead of registering its own memory"
    )]
    Unreachable(String),
    /// One access came upon memory that cannot be reached, though others can.
    #[error(
        "the memory of the region or of the buffer cannot be reached ({0}); keep both mapped, with the access that they were given with"
    )]
    BadMemory(String),
    /// The table is full.
    #[error("{0} regions are registered already, the most there can be; destroy some first")]
    TooMany(u32),
    /// Memory for a region or for the table is not to be had.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// The memory lent does not allow what peers are to be allowed.
    #[error("read-only memory cannot be registered for writing; pass it for writing")]
    ReadOnlyMemory,
}
