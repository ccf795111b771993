//! What the operations are made of.

use std::num::NonZeroU32;

use lmt_core::buffer::Buffer;
use lmt_core::identity::EndpointId;
use lmt_core::mechanism::{Direction, Unavailable};

/// The name of a region, to be passed to whoever may copy
/// ([`RegionCookie::to_bytes`]).
///
/// It says whose the region is, which of the owner's it is, and a generation of
/// our own: the driver gives the numbers of destroyed regions to new ones, but
/// a cookie made here never names another region than the one it was made for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct RegionCookie {
    owner: EndpointId,
    slot: u32,
    generation: u32,
}

impl RegionCookie {
    /// A cookie's size on the way, in bytes.
    pub const BYTES: usize = 24;
    /// Its size between two that know whose region it is.
    pub const SHORT_BYTES: usize = 8;

    /// The cookie of the region that its owner keeps in `slot`.
    pub const fn new(owner: EndpointId, slot: u32, generation: u32) -> Self {
        Self { owner, slot, generation }
    }

    /// Whose region it is: [`crate::Driver::owner`] there.
    pub const fn owner(&self) -> EndpointId {
        self.owner
    }

    /// Which of the owner's regions.
    pub const fn slot(&self) -> u32 {
        self.slot
    }

    /// Which use of that slot.
    pub const fn generation(&self) -> u32 {
        self.generation
    }

    /// The cookie as bytes, the same for all machines.
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..16].copy_from_slice(&self.owner.to_bytes());
        bytes[16..].copy_from_slice(&self.to_short_bytes());
        bytes
    }

    /// Reads [`Self::to_bytes`]. Bytes that were tampered with name nothing, or
    /// another region that its owner has declared.
    pub fn from_bytes(bytes: [u8; Self::BYTES]) -> Self {
        let (mut owner, mut short) = ([0; 16], [0; Self::SHORT_BYTES]);
        owner.copy_from_slice(&bytes[..16]);
        short.copy_from_slice(&bytes[16..]);
        Self::from_short_bytes(EndpointId::from_bytes(owner), short)
    }

    /// The cookie without its owner: slot and generation.
    pub fn to_short_bytes(&self) -> [u8; Self::SHORT_BYTES] {
        (u64::from(self.slot) << 32 | u64::from(self.generation)).to_be_bytes()
    }

    /// Reads [`Self::to_short_bytes`] for a region of `owner`.
    pub const fn from_short_bytes(owner: EndpointId, bytes: [u8; Self::SHORT_BYTES]) -> Self {
        let word = u64::from_be_bytes(bytes);
        Self { owner, slot: (word >> 32) as u32, generation: word as u32 }
    }
}

/// How often a region may be copied from or into.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Uses {
    /// Until it is destroyed.
    #[default]
    Many,
    /// By one request only, whoever makes it. A copy of no bytes and one that
    /// fails use it up too; one that the protection forbids does not. The owner
    /// destroys it all the same.
    Single,
}

/// How much to copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Length {
    /// Just so many bytes; it is an error if either side has fewer.
    Bounded(u64),
    /// To the end of the side that ends first.
    ToTheEnd,
}

/// A copy between memory here and a region.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InlineCopy {
    /// Out of the region (Get) or into it (Put).
    pub direction: Direction,
    /// The region, the caller's own or another's.
    pub region: RegionCookie,
    /// The first byte in the region.
    pub region_offset: u64,
    /// The first byte in the local memory, counted over its segments.
    pub local_offset: u64,
    /// How much.
    pub length: Length,
}

/// A place in a region.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RegionPlace {
    /// The region.
    pub region: RegionCookie,
    /// A byte in it, counted over its segments.
    pub offset: u64,
}

/// A copy between two regions, neither of which need be the caller's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RegionCopy {
    /// Where it comes from.
    pub source: RegionPlace,
    /// Where it goes.
    pub target: RegionPlace,
    /// How much.
    pub length: Length,
}

/// How a copy is to be made; the driver may know better
/// ([`Info::ignored`], [`Info::forced`]).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct CopyFlags(u32);

impl CopyFlags {
    /// By the processor, in the call.
    pub const NONE: Self = Self(0);
    /// By the DMA engine.
    pub const DMA: Self = Self(1);
    /// By the DMA engine, which tells of its end by itself: asynchronous.
    pub const DMA_ASYNC_COMPLETION: Self = Self(2);
    /// By the DMA engine, with a kernel thread that waits for it: asynchronous.
    pub const DMA_THREAD: Self = Self(4);
    /// By a thread: asynchronous.
    pub const MEMCPY_THREAD: Self = Self(8);
    /// Pin all local pages first instead of each as it is reached.
    pub const PIN_LOCAL: Self = Self(16);

    /// The flags with these bits, in the order of the constants; others are
    /// dropped.
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits & 31)
    }

    /// The flags as bits, in the order of the constants.
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// Whether all of `flags` are among these.
    pub const fn contains(self, flags: Self) -> bool {
        self.0 & flags.0 == flags.0
    }

    /// Those that are not among `flags`.
    pub const fn without(self, flags: Self) -> Self {
        Self(self.0 & !flags.0)
    }

    /// Whether the copy may go on when the call is over.
    pub const fn is_asynchronous(self) -> bool {
        self.0 & (Self::DMA_ASYNC_COMPLETION.0 | Self::DMA_THREAD.0 | Self::MEMCPY_THREAD.0) != 0
    }

    /// Whether a DMA engine is to copy.
    pub const fn uses_dma(self) -> bool {
        self.0 & (Self::DMA.0 | Self::DMA_ASYNC_COMPLETION.0 | Self::DMA_THREAD.0) != 0
    }
}

impl std::ops::BitOr for CopyFlags {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// Where the thread that makes this process's asynchronous copies runs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Binding {
    /// On the CPUs of this mask: CPU n is bit n % 64 of word n / 64.
    Custom(Vec<u64>),
    /// Where the caller may run now.
    Current,
    /// Where the caller may not run now.
    CurrentReversed,
}

/// What a driver is and can do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Info {
    /// The version of the binary interface.
    pub abi: u32,
    /// The feature bits as they are; bit 0 is [`Self::has_dma`].
    pub features: u32,
    /// Flags that have no effect here.
    pub ignored: CopyFlags,
    /// Flags that every copy has.
    pub forced: CopyFlags,
}

impl Info {
    /// Whether there is a DMA engine.
    pub const fn has_dma(&self) -> bool {
        self.features & 1 != 0
    }

    /// Whether there is a DMA engine for copies that ask for one.
    ///
    /// # Errors
    /// Why there is none, and what would help.
    pub fn engine(&self) -> Result<(), Unavailable> {
        let sentence = if self.ignored.contains(CopyFlags::DMA) {
            "the KNEM module is loaded with dma=0, by which it ignores its DMA engine; an administrator loads it \
             with dma=1"
        } else if !self.has_dma() {
            "the KNEM driver has no DMA engine; the machine needs Intel I/OAT with its module (ioatdma) loaded \
             before knem"
        } else {
            return Ok(());
        };
        Err(Unavailable { errno: 0, sentence: sentence.to_owned() })
    }
}

/// An asynchronous copy in flight, to be asked for by [`crate::Driver::poll`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct CopyId {
    slot: u32,
    generation: NonZeroU32,
}

impl CopyId {
    /// The copy whose status is in `slot`, in its how manieth use.
    pub const fn new(slot: u32, generation: NonZeroU32) -> Self {
        Self { slot, generation }
    }

    /// Which status.
    pub const fn slot(self) -> u32 {
        self.slot
    }

    /// Which use of it.
    pub const fn generation(self) -> NonZeroU32 {
        self.generation
    }
}

/// An asynchronous copy that has ended well.
#[derive(Debug)]
pub struct Copied {
    /// The bytes that were copied.
    pub bytes: u64,
    /// The local memory that was lent to it, if any.
    pub local: Option<Buffer>,
}
