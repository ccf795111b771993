//! One copy as the driver is asked for it, in one request or two.

use lmt_core::buffer::Buffer;
use lmt_core::mechanism::Direction;
use nix::errno::Errno;

use super::dma::{Side, safe_prefix};
use super::slot::Entry;
use super::{abi, sys};
use crate::types::CopyFlags;

/// A copy whose sides are known to be long enough.
#[derive(Clone, Copy, Debug)]
pub(super) enum Request<'a> {
    Inline {
        local: &'a Buffer,
        local_offset: u64,
        direction: Direction,
        region: Entry,
        region_offset: u64,
        bytes: u64,
    },
    Between {
        source: Entry,
        source_offset: u64,
        target: Entry,
        target_offset: u64,
        bytes: u64,
    },
}

/// What has become of a request that was not refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Outcome {
    /// It was done in the call.
    Ended,
    /// It goes on; the slot will tell.
    Pending(u32),
}

/// A part of a copy: from `start` on, `bytes` bytes.
#[derive(Clone, Copy)]
pub(super) struct Part {
    pub(super) start: u64,
    pub(super) bytes: u64,
    pub(super) flags: CopyFlags,
}

/// What a status is before the driver has written it.
const UNWRITTEN: u32 = u32::MAX;

impl Request<'_> {
    pub const fn bytes(&self) -> u64 {
        match self {
            Self::Inline { bytes, .. } | Self::Between { bytes, .. } => *bytes,
        }
    }

    /// How much of it the DMA engine may copy, where pieces of up to `small_bytes`
    /// must not be its last.
    pub(super) fn dma_bytes(&self, small_bytes: u64) -> u64 {
        let region = |entry: &Entry, offset| Side::Region(entry.shape, entry.total_bytes, offset);
        let sides = match self {
            Self::Inline { local, local_offset, region: entry, region_offset, .. } => {
                [Side::Local(local, *local_offset), region(entry, *region_offset)]
            }
            Self::Between { source, source_offset, target, target_offset, .. } => {
                [region(source, *source_offset), region(target, *target_offset)]
            }
        };
        safe_prefix(self.bytes(), sides, small_bytes)
    }

    /// Asks the driver; returns the status that the request has at once.
    pub(super) fn ask(&self, device: &sys::Device, part: Part, status_index: u32) -> Result<u32, Errno> {
        let Part { start, bytes, flags } = part;
        match *self {
            Self::Inline { local, local_offset, direction, region, region_offset, .. } => {
                let mut copy = abi::InlineCopyBounded {
                    write: u32::from(direction == Direction::Put),
                    remote_cookie: region.cookie,
                    remote_offset: region_offset + start,
                    length: bytes,
                    flags: flags.bits(),
                    current_status: UNWRITTEN,
                    async_status_index: status_index,
                    ..abi::InlineCopyBounded::default()
                };
                sys::inline_copy(device, local, local_offset + start, &mut copy)?;
                Ok(copy.current_status)
            }
            Self::Between { source, source_offset, target, target_offset, .. } => {
                let mut copy = abi::CopyBounded {
                    src_cookie: source.cookie,
                    src_offset: source_offset + start,
                    dst_cookie: target.cookie,
                    dst_offset: target_offset + start,
                    length: bytes,
                    flags: flags.bits(),
                    current_status: UNWRITTEN,
                    async_status_index: status_index,
                    pad: 0,
                };
                device.copy(&mut copy)?;
                Ok(copy.current_status)
            }
        }
    }

    /// Which memory a page that cannot be accessed belongs to: those of regions
    /// were pinned when they were declared.
    pub(super) const fn pageable(&self) -> &'static str {
        match self {
            Self::Inline { .. } => "local memory",
            Self::Between { .. } => "region",
        }
    }
}
