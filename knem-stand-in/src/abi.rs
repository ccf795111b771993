//! The driver's binary interface, as observed of it: numbers, and where the
//! fields of each request's struct stand. Written from that table alone, not
//! from any client's definitions, so that one mistake is not made twice.

/// The version that GET_INFO reports.
pub const VERSION: u32 = 0xd;
/// Feature: there is a DMA engine.
pub const FEATURE_DMA: u32 = 1;

pub const GET_INFO: u32 = 0x4010_4b10;
pub const BIND_OFFLOAD: u32 = 0x8010_4b11;
pub const CREATE_REGION: u32 = 0xc020_4b21;
pub const DESTROY_REGION: u32 = 0x8008_4b22;
pub const COPY: u32 = 0x8030_4b32;
pub const INLINE_COPY: u32 = 0x8030_4b33;
pub const COPY_BOUNDED: u32 = 0x8038_4b34;
pub const INLINE_COPY_BOUNDED: u32 = 0x8038_4b35;

pub const GET_INFO_BYTES: usize = 16;
pub const BIND_OFFLOAD_BYTES: usize = 16;
pub const CREATE_REGION_BYTES: usize = 32;
/// Where CREATE_REGION writes the cookie.
pub const CREATED_COOKIE_AT: u64 = 24;
pub const SEGMENT_BYTES: usize = 16;

pub const FLAG_DMA: u32 = 1;
pub const FLAG_ASYNC_DMA_COMPLETE: u32 = 2;
pub const FLAG_DMA_THREAD: u32 = 4;
pub const FLAG_MEMCPY_THREAD: u32 = 8;
pub const FLAG_PIN_LOCAL: u32 = 16;
pub const FLAG_SINGLE_USE: u32 = 32;
/// Those that make a copy asynchronous.
pub const FLAGS_ASYNC: u32 = FLAG_ASYNC_DMA_COMPLETE | FLAG_DMA_THREAD | FLAG_MEMCPY_THREAD;
/// Those that need an engine.
pub const FLAGS_ENGINE: u32 = FLAG_DMA | FLAG_DMA_THREAD;

pub const PROTECTION_READ: u32 = 1;
pub const PROTECTION_WRITE: u32 = 2;

pub const BIND_CUSTOM: u32 = 1;
pub const BIND_CURRENT: u32 = 2;

/// What a slot says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Status {
    Pending = 0,
    Success = 1,
    Failed = 2,
}

/// The 4 bytes at `at` of a request's struct.
pub fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(bytes[at..at + 4].try_into().expect("it is four bytes"))
}

/// The 8 bytes at `at`.
pub fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_ne_bytes(bytes[at..at + 8].try_into().expect("it is eight bytes"))
}

/// What the four kinds of copies have at the end of their structs.
#[derive(Clone, Copy, Debug)]
pub struct CopyTail {
    /// Bounded copies only.
    pub length_bytes: Option<u64>,
    pub flags: u32,
    pub status_index: u32,
    /// Where current_status stands.
    pub current_status_at: u64,
}

impl CopyTail {
    /// How many bytes a copy's struct has.
    pub fn struct_bytes(bounded: bool) -> usize {
        if bounded { 56 } else { 48 }
    }

    pub fn read(bytes: &[u8], bounded: bool) -> Self {
        let flags_at = if bounded { 40 } else { 32 };
        Self {
            length_bytes: bounded.then(|| u64_at(bytes, 32)),
            flags: u32_at(bytes, flags_at),
            current_status_at: flags_at as u64 + 4,
            status_index: u32_at(bytes, flags_at + 8),
        }
    }
}

/// As in the driver's array of segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    pub address: u64,
    pub bytes: u64,
}
