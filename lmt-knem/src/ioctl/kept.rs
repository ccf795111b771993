//! Destroyed regions whose pages stay pinned, for memory that is declared again
//! and again (the registration cache of knem-jpdc2013, section 4.1).
//!
//! What is kept is the driver's region only. The table line that named it is
//! withdrawn like any other, and a later use gets a line and a generation of
//! its own; so no cookie given out before ever reaches it again.
//!
//! The driver holds on to the pages that were behind the addresses when they
//! were pinned. If other pages are put there, a kept region shows the old ones.
//! Nothing tells a library of that, so keeping is off unless asked for, and who
//! asks for it tells of such changes ([`PinCache::forget_range`]). Two
//! things are seen to here: forks (after one, a write puts a new page in the
//! place of a shared one), by counting them, and pages that were never written,
//! which are made the region's own before they are pinned.

use std::sync::{Arc, Mutex, PoisonError};

use lmt_core::buffer::{Buffer, Segment};
use lmt_core::fork_guard::Origin;
use lmt_core::region::Protection;

use super::abi;
use super::sys::{self, Device};

/// How much may stay pinned of regions that were destroyed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PinCacheConfig {
    /// So many regions; 0 keeps none.
    pub max_regions: u32,
    /// So many bytes, all together.
    pub max_bytes: u64,
}

/// So many ranges are remembered one by one; more become one that holds them
/// all.
const RANGES: usize = 32;

/// Tells a driver that keeps regions that memory changes, from wherever that is
/// known: from another thread too, and when the driver itself is a mechanism's
/// and out of reach. Clones tell the same driver.
#[derive(Clone, Debug)]
pub struct PinCache {
    told: Arc<Mutex<Told>>,
    origin: Origin,
}

/// What was told since the driver looked last. Nothing allocates or frees where
/// this is locked: a hook of munmap(2) may be called by an allocator.
#[derive(Clone, Copy, Debug, Default)]
struct Told {
    /// Beginning and end, of which the first `count` count.
    ranges: [(usize, usize); RANGES],
    count: usize,
}

impl Default for PinCache {
    fn default() -> Self {
        Self { told: Arc::default(), origin: Origin::here() }
    }
}

impl PinCache {
    /// A handle to be given to one driver
    /// ([`super::IoctlDriver::enable_pin_cache_invalidated_by`]).
    pub fn new() -> Self {
        Self::default()
    }

    /// Says that `bytes` bytes at `address` are about to be unmapped, given back
    /// (MADV_DONTNEED), remapped or replaced. To be called before that is done,
    /// in any thread; when it returns, no region that is declared later shows
    /// the old pages. They stay pinned until the driver is used next.
    ///
    /// It neither allocates nor makes system calls but to wait for a lock that
    /// is held for a moment. It must not be called by a signal's handler. In a
    /// forked child it does nothing, as the regions are its parent's.
    pub fn forget_range(&self, address: usize, bytes: usize) {
        // A thread that is not in the child may have held the lock.
        if bytes == 0 || !self.origin.is_this_process() {
            return;
        }
        let (start, end) = (address, address.saturating_add(bytes));
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.count < RANGES {
            let at = told.count;
            told.ranges[at] = (start, end);
            told.count += 1;
        } else {
            let all = told.ranges.iter().fold((start, end), |all, one| (all.0.min(one.0), all.1.max(one.1)));
            told.ranges[0] = all;
            told.count = 1;
        }
    }

    /// What was told since this was asked last, as beginning and end.
    pub(super) fn take(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        let told = {
            let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
            let taken = *told;
            told.count = 0;
            taken
        };
        told.ranges.into_iter().take(told.count)
    }
}

/// A region of the driver's.
#[derive(Debug)]
pub(super) struct Pinned {
    pub cookie: u64,
    pub protection: Protection,
    pub segments: Box<[Segment]>,
    /// The forks there had been when it was pinned, if they are counted.
    pub forks: Option<u64>,
    /// Whether it may be used for the same addresses later.
    pub is_cacheable: bool,
}

impl Pinned {
    fn bytes(&self) -> u64 {
        self.segments.iter().map(|segment| segment.bytes as u64).sum()
    }

    /// Whether a page of the range is among its pages.
    pub fn overlaps(&self, address: usize, bytes: usize) -> bool {
        const PAGE: usize = abi::PAGE_BYTES as usize;
        let start = address / PAGE * PAGE;
        let end = address.saturating_add(bytes).checked_next_multiple_of(PAGE).unwrap_or(usize::MAX);
        bytes > 0
            && self.segments.iter().any(|s| s.bytes > 0 && s.address < end && s.address + s.bytes > start)
    }
}

/// What is kept, the one used last at the end.
#[derive(Debug, Default)]
pub(super) struct Kept {
    keeping: PinCacheConfig,
    pinned: Vec<Pinned>,
}

impl Kept {
    pub const fn is_on(&self) -> bool {
        self.keeping.max_regions > 0
    }

    pub fn set(&mut self, device: &Device, keeping: PinCacheConfig) {
        self.keeping = keeping;
        self.shrink(device);
    }

    /// The region that has this very memory pinned with this protection.
    pub fn take(&mut self, device: &Device, memory: &Buffer, protection: Protection) -> Option<Pinned> {
        if self.pinned.is_empty() {
            return None;
        }
        let forks = sys::count_forks();
        self.end_those(device, |pinned| pinned.forks != forks);
        let is_it = |p: &Pinned| p.protection == protection && *p.segments == *memory.segments();
        let at = self.pinned.iter().rposition(is_it)?;
        Some(self.pinned.remove(at))
    }

    /// Keeps a region whose table line is withdrawn.
    pub fn put(&mut self, device: &Device, pinned: Pinned) {
        self.pinned.push(pinned);
        self.shrink(device);
    }

    pub fn forget_range(&mut self, device: &Device, address: usize, bytes: usize) {
        self.end_those(device, |pinned| pinned.overlaps(address, bytes));
    }

    /// The driver has given this number to another region: whoever was kept under
    /// it is gone, by a peer's doing.
    pub fn void_number(&mut self, number: u32) {
        self.pinned.retain(|pinned| abi::region_number(pinned.cookie) != number);
    }

    fn end_those(&mut self, device: &Device, is_void: impl Fn(&Pinned) -> bool) {
        for pinned in self.pinned.extract_if(.., |pinned| is_void(pinned)) {
            end(device, &pinned);
        }
    }

    fn shrink(&mut self, device: &Device) {
        let mut bytes: u64 = self.pinned.iter().map(Pinned::bytes).sum();
        let (mut count, mut out) = (self.pinned.len(), 0);
        while count > self.keeping.max_regions as usize || (count > 0 && bytes > self.keeping.max_bytes) {
            bytes -= self.pinned[out].bytes();
            out += 1;
            count -= 1;
        }
        for pinned in self.pinned.drain(..out) {
            end(device, &pinned);
        }
    }
}

fn end(device: &Device, pinned: &Pinned) {
    // EINVAL where a peer has taken it away, and nobody has its number.
    let _gone = device.destroy(pinned.cookie);
}

#[cfg(test)]
#[path = "kept_tests.rs"]
mod tests;
