//! The driver's numbers and structs, as version 1.1.1 (ABI 0xd) has them.
//!
//! The direction bits within the numbers are not what the requests do, so the
//! numbers stand here as they are and are not composed.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// The version of the interface that these definitions are of.
pub const ABI_VERSION: u32 = 0xd;
/// Bit 0 of [`Info::features`]: there is a DMA engine.
pub const FEATURE_DMA: u32 = 1;

/// What the driver pins at a time.
pub(super) const PAGE_BYTES: u64 = 4096;

/// Asks for [`Info`].
pub const GET_INFO: u32 = 0x4010_4b10;
/// Takes a [`BindOffload`].
pub const BIND_OFFLOAD: u32 = 0x8010_4b11;
/// Takes a [`CreateRegion`] and fills in its cookie.
pub const CREATE_REGION: u32 = 0xc020_4b21;
/// Takes a cookie, a `u64`.
pub const DESTROY_REGION: u32 = 0x8008_4b22;
/// Takes a [`Copy`].
pub const COPY: u32 = 0x8030_4b32;
/// Takes an [`InlineCopy`].
pub const INLINE_COPY: u32 = 0x8030_4b33;
/// Takes a [`CopyBounded`].
pub const COPY_BOUNDED: u32 = 0x8038_4b34;
/// Takes an [`InlineCopyBounded`].
pub const INLINE_COPY_BOUNDED: u32 = 0x8038_4b35;

/// Copy by the DMA engine.
pub const FLAG_DMA: u32 = 1;
/// The DMA engine writes the status itself: asynchronous.
pub const FLAG_ASYNCDMACOMPLETE: u32 = 2;
/// A kernel thread waits for the DMA engine: asynchronous.
pub const FLAG_DMATHREAD: u32 = 4;
/// A kernel thread copies: asynchronous.
pub const FLAG_MEMCPYTHREAD: u32 = 8;
/// All local pages are pinned before the copy begins.
pub const FLAG_PINLOCAL: u32 = 16;
/// The region can be used by one request (on creation only).
pub const FLAG_SINGLEUSE: u32 = 32;

/// Peers may read a region (PROT_READ).
pub const PROT_READ: u32 = 1;
/// Peers may write a region (PROT_WRITE).
pub const PROT_WRITE: u32 = 2;

/// The copy goes on; its slot of the status array will tell.
pub const STATUS_PENDING: u8 = 0;
/// The copy has ended well.
pub const STATUS_SUCCESS: u8 = 1;
/// The copy has failed.
pub const STATUS_FAILED: u8 = 2;

/// The bit of a cookie by which a copy is the region's last. The driver gives it
/// for a region for one use, and believes whoever asks with it.
pub const COOKIE_SINGLE_USE: u64 = 1 << 31;

/// The region's number among those of its descriptor: all of a cookie that
/// destroying looks at.
pub const fn region_number(cookie: u64) -> u32 {
    (cookie >> 32) as u32
}

/// The offload thread runs on the CPUs of a mask.
pub const BIND_CUSTOM: u32 = 1;
/// It runs where the caller may run.
pub const BIND_CURRENT: u32 = 2;
/// It runs where the caller may not run.
pub const BIND_CURRENT_REVERSED: u32 = 4;

/// What the driver says of itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Info {
    /// [`ABI_VERSION`].
    pub abi: u32,
    /// [`FEATURE_DMA`].
    pub features: u32,
    /// Copy flags without effect here.
    pub ignored_flags: u32,
    /// Copy flags that every copy has.
    pub forced_flags: u32,
}

/// Where the offload thread is to run.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct BindOffload {
    /// One of `BIND_*`.
    pub flags: u32,
    /// The mask's length in bytes.
    pub mask_len: u32,
    /// The mask's address.
    pub mask_ptr: u64,
}

/// A piece of memory; not `struct iovec`, though it looks like it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Segment {
    /// Its address.
    pub base: u64,
    /// Its bytes.
    pub len: u64,
}

/// A region to be declared.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct CreateRegion {
    /// Address of an array of [`Segment`].
    pub iovec_array: u64,
    /// Its entries.
    pub iovec_nr: u32,
    /// 0 or [`FLAG_SINGLEUSE`].
    pub flags: u32,
    /// [`PROT_READ`], [`PROT_WRITE`] or both.
    pub protection: u32,
    /// Nothing.
    pub pad: u32,
    /// Out: the region's cookie.
    pub cookie: u64,
}

/// A copy between two regions, to the end of the one that ends first.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Copy {
    /// Where it comes from.
    pub src_cookie: u64,
    /// The first byte there.
    pub src_offset: u64,
    /// Where it goes.
    pub dst_cookie: u64,
    /// The first byte there.
    pub dst_offset: u64,
    /// `FLAG_*`.
    pub flags: u32,
    /// Out: `STATUS_*`.
    pub current_status: u32,
    /// The slot of the status array, if the copy is asynchronous.
    pub async_status_index: u32,
    /// Nothing.
    pub pad: u32,
}

/// A copy between two regions, of a given length.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct CopyBounded {
    /// Where it comes from.
    pub src_cookie: u64,
    /// The first byte there.
    pub src_offset: u64,
    /// Where it goes.
    pub dst_cookie: u64,
    /// The first byte there.
    pub dst_offset: u64,
    /// How many bytes.
    pub length: u64,
    /// `FLAG_*`.
    pub flags: u32,
    /// Out: `STATUS_*`.
    pub current_status: u32,
    /// The slot of the status array, if the copy is asynchronous.
    pub async_status_index: u32,
    /// Nothing.
    pub pad: u32,
}

/// A copy between memory here and a region, to the end of what ends first.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct InlineCopy {
    /// Address of an array of [`Segment`].
    pub local_iovec_array: u64,
    /// Its entries.
    pub local_iovec_nr: u32,
    /// 1 into the region, 0 out of it.
    pub write: u32,
    /// The region.
    pub remote_cookie: u64,
    /// The first byte there.
    pub remote_offset: u64,
    /// `FLAG_*`.
    pub flags: u32,
    /// Out: `STATUS_*`.
    pub current_status: u32,
    /// The slot of the status array, if the copy is asynchronous.
    pub async_status_index: u32,
    /// Nothing.
    pub pad: u32,
}

/// A copy between memory here and a region, of a given length.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct InlineCopyBounded {
    /// Address of an array of [`Segment`].
    pub local_iovec_array: u64,
    /// Its entries.
    pub local_iovec_nr: u32,
    /// 1 into the region, 0 out of it.
    pub write: u32,
    /// The region.
    pub remote_cookie: u64,
    /// The first byte there.
    pub remote_offset: u64,
    /// How many bytes.
    pub length: u64,
    /// `FLAG_*`.
    pub flags: u32,
    /// Out: `STATUS_*`.
    pub current_status: u32,
    /// The slot of the status array, if the copy is asynchronous.
    pub async_status_index: u32,
    /// Nothing.
    pub pad: u32,
}

/// Bytes that the driver takes for a request, as they stand in its number.
const fn bytes_in(request: u32) -> usize {
    (request >> 16) as usize & 0x3fff
}

/// A request's number says KNEM's letter, its own place and its struct's size.
macro_rules! check_request {
    ($request:ident, $place:literal, $argument:ty, $bytes:literal) => {
        const _: () = {
            assert!(size_of::<$argument>() == $bytes && bytes_in($request) == $bytes);
            assert!($request & 0xffff == (b'K' as u32) << 8 | $place);
            assert!(align_of::<$argument>() <= 8);
        };
    };
}

check_request!(GET_INFO, 0x10, Info, 16);
check_request!(BIND_OFFLOAD, 0x11, BindOffload, 16);
check_request!(CREATE_REGION, 0x21, CreateRegion, 32);
check_request!(DESTROY_REGION, 0x22, u64, 8);
check_request!(COPY, 0x32, Copy, 48);
check_request!(INLINE_COPY, 0x33, InlineCopy, 48);
check_request!(COPY_BOUNDED, 0x34, CopyBounded, 56);
check_request!(INLINE_COPY_BOUNDED, 0x35, InlineCopyBounded, 56);

/// Each field where the driver looks for it.
macro_rules! check_offsets {
    ($($type:ident { $($field:ident: $offset:literal),+ })+) => {
        $($(const _: () = assert!(std::mem::offset_of!($type, $field) == $offset);)+)+
    };
}

check_offsets! {
    Info { abi: 0, features: 4, ignored_flags: 8, forced_flags: 12 }
    BindOffload { flags: 0, mask_len: 4, mask_ptr: 8 }
    Segment { base: 0, len: 8 }
    CreateRegion { iovec_array: 0, iovec_nr: 8, flags: 12, protection: 16, cookie: 24 }
    Copy { src_cookie: 0, src_offset: 8, dst_cookie: 16, dst_offset: 24, flags: 32, current_status: 36,
        async_status_index: 40 }
    CopyBounded { src_cookie: 0, src_offset: 8, dst_cookie: 16, dst_offset: 24, length: 32, flags: 40,
        current_status: 44, async_status_index: 48 }
    InlineCopy { local_iovec_array: 0, local_iovec_nr: 8, write: 12, remote_cookie: 16, remote_offset: 24,
        flags: 32, current_status: 36, async_status_index: 40 }
    InlineCopyBounded { local_iovec_array: 0, local_iovec_nr: 8, write: 12, remote_cookie: 16,
        remote_offset: 24, length: 32, flags: 40, current_status: 44, async_status_index: 48 }
}
const _: () = assert!(size_of::<Segment>() == 16);

// The copy flags of the interface are the driver's, bit for bit.
const _: () = {
    use crate::types::CopyFlags;
    assert!(CopyFlags::DMA.bits() == FLAG_DMA);
    assert!(CopyFlags::DMA_ASYNC_COMPLETION.bits() == FLAG_ASYNCDMACOMPLETE);
    assert!(CopyFlags::DMA_THREAD.bits() == FLAG_DMATHREAD);
    assert!(CopyFlags::MEMCPY_THREAD.bits() == FLAG_MEMCPYTHREAD);
    assert!(CopyFlags::PIN_LOCAL.bits() == FLAG_PINLOCAL);
};
