//! What a process tells others of its table of regions.

use lmt_core::identity::EndpointId;
use zerocopy::{BE, FromBytes, Immutable, IntoBytes, KnownLayout, U32, U64, Unaligned};

/// The interface's name and version.
const MAGIC: [u8; 8] = *b"knem-us1";

/// Where a table of regions is. It goes along with the table's descriptor; or
/// alone, to who may fetch the descriptor by itself.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct Name {
    magic: [u8; 8],
    owner: [u8; 16],
    pid: U32<BE>,
    descriptor: U32<BE>,
    address: U64<BE>,
}

impl Name {
    /// The name of `owner`'s table, which is behind `descriptor` and mapped at
    /// `address` in process `pid`.
    pub fn new(owner: EndpointId, pid: u32, descriptor: i32, address: u64) -> Self {
        Self {
            magic: MAGIC,
            owner: owner.to_bytes(),
            pid: pid.into(),
            descriptor: (descriptor as u32).into(),
            address: address.into(),
        }
    }

    /// Reads a name, which is untrusted.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        Self::read_from_bytes(bytes).ok().filter(|name| name.magic == MAGIC)
    }

    pub fn owner(&self) -> EndpointId {
        EndpointId::from_bytes(self.owner)
    }

    /// The pid, if it can be one.
    pub fn pid(&self) -> Option<i32> {
        i32::try_from(self.pid.get()).ok().filter(|pid| *pid > 0)
    }

    pub fn descriptor(&self) -> i32 {
        self.descriptor.get() as i32
    }

    pub fn address(&self) -> u64 {
        self.address.get()
    }
}
