//! The regions that this process has declared, and the table that tells peers
//! of them.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;

use lmt_core::buffer::{Access, Buffer};
use lmt_core::region::Protection;
use lmt_core::shared_memory::SharedMemory;

use super::abi::PAGE_BYTES;
use super::kept::{Kept, PinCache, PinCacheConfig, Pinned};
use super::slot::{Entry, Shape, Slot};
use super::sys::{self, Device, HEAD_BYTES, REGIONS, TABLE_BYTES};
use super::{abi, errors};
use crate::error::KnemError;
use crate::types::Uses;

const TABLE: &str = "the table of KNEM regions";
/// What there may be fewer of where memory for the table is short.
const KEY: &str = "the number of endpoints and of regions registered at a time";

/// A region of one's own. What peers are told stands in the table; nothing of
/// that is believed here, since peers can write it.
#[derive(Debug)]
struct Own {
    generation: u32,
    /// The driver's region; none once it is known to be gone, for then its number
    /// may be another's.
    pinned: Option<Pinned>,
    uses: Uses,
    memory: Buffer,
    entry: Entry,
}

/// All of them.
#[derive(Debug)]
pub(super) struct Regions {
    table: SharedMemory,
    descriptor: OwnedFd,
    own: Vec<Option<Own>>,
    /// Lines of `own` without a region.
    free: Vec<u32>,
    /// The generation that each line had last. A line that has had them all is
    /// not used again: a cookie never names two regions.
    generations: Vec<u32>,
    /// The lines of regions, by the driver's number.
    numbers: HashMap<u32, u32>,
    kept: Kept,
    /// Who tells of memory that changes.
    invalidation_sources: Vec<PinCache>,
}

const fn bits(protection: Protection) -> u32 {
    (if protection.read { abi::PROT_READ } else { 0 }) | (if protection.write { abi::PROT_WRITE } else { 0 })
}

impl Regions {
    pub fn new() -> Result<Self, KnemError> {
        let (table, descriptor) = SharedMemory::create(TABLE, KEY, TABLE_BYTES, false)?;
        table.commit_range(TABLE, KEY, 0, HEAD_BYTES)?;
        Ok(Self {
            table,
            descriptor,
            own: Vec::new(),
            free: Vec::new(),
            generations: Vec::new(),
            numbers: HashMap::new(),
            kept: Kept::default(),
            invalidation_sources: Vec::new(),
        })
    }

    /// The table's memory, for peers.
    pub fn descriptor(&self) -> &OwnedFd {
        &self.descriptor
    }

    pub fn is_usable_here(&self) -> bool {
        self.table.is_usable_here()
    }

    /// Says how much may stay pinned of regions that were destroyed.
    pub fn keep(&mut self, device: &Device, keeping: PinCacheConfig) {
        self.kept.set(device, keeping);
    }

    /// Hears from now on what this handle is told.
    pub fn listen(&mut self, teller: PinCache) {
        self.invalidation_sources.push(teller);
    }

    /// Forgets what the handles were told. Before a kept region is used, and
    /// before one becomes a kept one.
    fn hear(&mut self, device: &Device) {
        for index in 0..self.invalidation_sources.len() {
            for (start, end) in self.invalidation_sources[index].take() {
                self.forget_range(device, start, end - start);
            }
        }
    }

    /// See [`crate::Driver::forget_range`].
    pub fn forget_range(&mut self, device: &Device, address: usize, bytes: usize) {
        self.kept.forget_range(device, address, bytes);
        for pinned in self.own.iter_mut().flatten().filter_map(|own| own.pinned.as_mut()) {
            if pinned.overlaps(address, bytes) {
                pinned.is_cacheable = false;
            }
        }
    }

    /// Declares memory; returns its line and generation.
    pub fn create(
        &mut self,
        device: &Device,
        memory: Buffer,
        protection: Protection,
        uses: Uses,
    ) -> Result<(u32, u32), KnemError> {
        if protection.write && memory.access() != Access::Write {
            return Err(KnemError::ReadOnlyMemory);
        }
        let (index, is_new) = match self.free.last() {
            Some(index) => (*index, false),
            None => (self.own.len() as u32, true),
        };
        let full = || KnemError::TooMany { what: "regions", most: REGIONS };
        if index >= REGIONS {
            let is_worn_out = self.own.iter().all(Option::is_none);
            return Err(if is_worn_out { KnemError::NumbersExhausted } else { full() });
        }
        self.hear(device);
        // The page must be there: a failing first touch would be SIGBUS.
        if is_new {
            self.table.commit_range(TABLE, KEY, sys::line_offset(index), size_of::<Slot>())?;
            // Release pairs with the peers' Acquire: they look at no line
            // before its memory is there.
            sys::lines(&self.table).ok_or_else(full)?.store(u64::from(index) + 1, Ordering::Release);
        }
        let pinned = self.pin(device, &memory, protection, uses)?;
        // Less than the largest, or the line would not be free.
        let generation = self.generations.get(index as usize).map_or(1, |last| last.saturating_add(1));
        let entry = Entry {
            cookie: pinned.cookie,
            total_bytes: memory.total_bytes(),
            read: protection.read,
            write: protection.write,
            single: uses == Uses::Single,
            shape: shape_of(&memory),
        };
        sys::slot(&self.table, index).ok_or_else(full)?.publish(generation, &entry);
        self.numbers.insert(abi::region_number(entry.cookie), index);
        let own = Own { generation, pinned: Some(pinned), uses, memory, entry };
        if is_new {
            self.own.push(Some(own));
            self.generations.push(generation);
        } else {
            self.free.pop();
            self.own[index as usize] = Some(own);
            self.generations[index as usize] = generation;
        }
        Ok((index, generation))
    }

    /// Has the driver pin memory, or takes what it has pinned already.
    fn pin(
        &mut self,
        device: &Device,
        memory: &Buffer,
        protection: Protection,
        uses: Uses,
    ) -> Result<Pinned, KnemError> {
        let single = uses == Uses::Single;
        if !single && let Some(pinned) = self.kept.take(device, memory, protection) {
            return Ok(pinned);
        }
        let is_to_be_kept = self.kept.is_on() && !single;
        let mut is_populated = true;
        // The driver writes to pages of a region that peers may put into. Pages
        // of others that were never written are to be the region's own: who
        // lends memory for reading may write to other bytes of the same pages,
        // or to these before the driver has ended with them.
        if !protection.write {
            is_populated = sys::populate(memory).map_err(errors::of_create)?;
        }
        // What the driver pins, it pins at this count of forks.
        let forks = if is_to_be_kept { sys::count_forks() } else { None };
        let flags = if single { abi::FLAG_SINGLEUSE } else { 0 };
        let cookie = sys::create(device, memory, bits(protection), flags).map_err(errors::of_create)?;
        self.drop_same_number(cookie);
        let is_cacheable = is_to_be_kept && is_populated && forks.is_some();
        Ok(Pinned { cookie, protection, segments: memory.segments().into(), forks, is_cacheable })
    }

    /// A region whose number the driver has just given again is gone: it was for
    /// one use, or a peer has taken it away. Its line must not lead to the new
    /// one, nor be destroyed by that number.
    fn drop_same_number(&mut self, cookie: u64) {
        let number = abi::region_number(cookie);
        self.kept.void_number(number);
        let Some(index) = self.numbers.remove(&number) else { return };
        if let Some(own) = self.own.get_mut(index as usize).and_then(Option::as_mut) {
            own.pinned = None;
            if let Some(line) = sys::slot(&self.table, index) {
                line.withdraw();
            }
        }
    }

    /// Takes a region back.
    pub fn destroy(&mut self, device: &Device, index: u32, generation: u32) -> Result<Buffer, KnemError> {
        self.hear(device);
        let place = self.own.get_mut(index as usize).ok_or(KnemError::NotRegistered)?;
        if place.as_ref().is_none_or(|own| own.generation != generation) {
            return Err(KnemError::NotRegistered);
        }
        let own = place.take().ok_or(KnemError::NotRegistered)?;
        if generation < u32::MAX {
            self.free.push(index);
        }
        let number = abi::region_number(own.entry.cookie);
        if self.numbers.get(&number) == Some(&index) {
            self.numbers.remove(&number);
        }
        // Before the driver may give the number to another.
        if let Some(line) = sys::slot(&self.table, index) {
            line.withdraw();
        }
        if let Some(pinned) = own.pinned {
            if own.uses == Uses::Many && pinned.is_cacheable {
                self.kept.put(device, pinned);
            } else {
                // EINVAL: it is gone. Anything else leaves a region that
                // nobody can name by us any more.
                let _gone = device.destroy(pinned.cookie);
            }
        }
        Ok(own.memory)
    }

    /// What a cookie of one's own names, and its line.
    pub fn look_up(&self, index: u32, generation: u32) -> Option<(&Entry, &Slot)> {
        let own = self.own.get(index as usize)?.as_ref()?;
        (own.generation == generation).then_some(())?;
        Some((&own.entry, sys::slot(&self.table, index)?))
    }

    /// Ends all regions: as long as a child holds the descriptor, the driver
    /// would keep them.
    pub fn destroy_all(&mut self, device: &Device) {
        self.kept.set(device, PinCacheConfig::default());
        for index in 0..self.own.len() as u32 {
            let generation = self.own[index as usize].as_ref().map(|own| own.generation);
            if let Some(generation) = generation {
                // It is declared, so it is destroyed.
                let _memory = self.destroy(device, index, generation);
            }
        }
    }
}

/// What peers are told of where the driver's pieces are.
pub(super) fn shape_of(memory: &Buffer) -> Shape {
    let mut filled = memory.segments().iter().filter(|segment| segment.bytes > 0);
    let (first, last) = (filled.clone().next(), filled.clone().next_back());
    let (Some(first), Some(last)) = (first, last) else {
        return Shape { contiguous: true, ..Shape::default() };
    };
    let end = (last.address + last.bytes) as u64;
    let page_start = (end - 1) / PAGE_BYTES * PAGE_BYTES;
    let last_piece = end - page_start.max(last.address as u64);
    Shape {
        contiguous: filled.nth(1).is_none(),
        offset_in_page: (first.address as u64 % PAGE_BYTES) as u32,
        last_piece_bytes: last_piece as u32,
    }
}

#[cfg(test)]
#[path = "regions_tests.rs"]
mod tests;
