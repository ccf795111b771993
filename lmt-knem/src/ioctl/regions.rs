//! The regions that this process has declared, and the table that tells peers
//! of them.

use std::os::fd::OwnedFd;

use lmt_core::buffer::{Access, Buffer};
use lmt_core::region::Protection;
use lmt_core::shared_memory::SharedMemory;

use super::kept::{Keeping, Kept, KeptRegions, Pinned};
use super::slot::{Entry, Shape, Slot};
use super::sys::{self, Device, REGIONS, TABLE_BYTES};
use super::{abi, errors};
use crate::error::KnemError;
use crate::types::Uses;

const TABLE: &str = "the table of KNEM regions";

/// A region of one's own. What peers are told stands in the table; nothing of
/// that is believed here, since peers can write it.
#[derive(Debug)]
struct Own {
    generation: u32,
    /// The driver's region; none once it is known to be used up, for then its
    /// number may be another's.
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
    generation: u32,
    kept: Kept,
    /// Who tells of memory that changes.
    tellers: Vec<KeptRegions>,
}

const fn bits(protection: Protection) -> u32 {
    (if protection.read { abi::PROT_READ } else { 0 }) | (if protection.write { abi::PROT_WRITE } else { 0 })
}

impl Regions {
    pub fn new() -> Result<Self, KnemError> {
        let (table, descriptor) = SharedMemory::create(TABLE, "the number of regions", TABLE_BYTES, false)?;
        Ok(Self {
            table,
            descriptor,
            own: Vec::new(),
            free: Vec::new(),
            generation: 0,
            kept: Kept::default(),
            tellers: Vec::new(),
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
    pub fn keep(&mut self, device: &Device, keeping: Keeping) {
        self.kept.set(device, keeping);
    }

    /// Hears from now on what this handle is told.
    pub fn listen(&mut self, teller: KeptRegions) {
        self.tellers.push(teller);
    }

    /// Forgets what the handles were told. Before a kept region is used, and
    /// before one becomes a kept one.
    fn hear(&mut self, device: &Device) {
        for index in 0..self.tellers.len() {
            for (start, end) in self.tellers[index].take() {
                self.forget_range(device, start, end - start);
            }
        }
    }

    /// See [`crate::Driver::forget_range`].
    pub fn forget_range(&mut self, device: &Device, address: usize, bytes: usize) {
        self.kept.forget_range(device, address, bytes);
        for pinned in self.own.iter_mut().flatten().filter_map(|own| own.pinned.as_mut()) {
            if pinned.overlaps(address, bytes) {
                pinned.may_be_kept = false;
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
            return Err(full());
        }
        self.hear(device);
        // The page must be there: a failing first touch would be SIGBUS.
        let line_bytes = size_of::<Slot>();
        self.table.commit_range(TABLE, "the number of regions", index as usize * line_bytes, line_bytes)?;
        let pinned = self.pin(device, &memory, protection, uses)?;
        self.generation = self.generation.wrapping_add(1);
        let entry = Entry {
            cookie: pinned.cookie,
            total_bytes: memory.total_bytes(),
            read: protection.read,
            write: protection.write,
            single: uses == Uses::Single,
            shape: shape_of(&memory),
        };
        sys::slot(&self.table, index).ok_or_else(full)?.publish(self.generation, &entry);
        let own = Own { generation: self.generation, pinned: Some(pinned), uses, memory, entry };
        if is_new {
            self.own.push(Some(own));
        } else {
            self.free.pop();
            self.own[index as usize] = Some(own);
        }
        Ok((index, self.generation))
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
        // of others that were never written are to be the region's own, if they
        // may be written while the region is there.
        if !protection.write && (memory.access() == Access::Write || is_to_be_kept) {
            is_populated = sys::populate(memory).map_err(errors::of_create)?;
        }
        // What the driver pins, it pins at this count of forks.
        let forks = if is_to_be_kept { sys::count_forks() } else { None };
        let flags = if single { abi::FLAG_SINGLEUSE } else { 0 };
        let cookie = sys::create(device, memory, bits(protection), flags).map_err(errors::of_create)?;
        self.void_namesakes(cookie);
        let may_be_kept = is_to_be_kept && is_populated && forks.is_some();
        Ok(Pinned { cookie, protection, segments: memory.segments().into(), forks, may_be_kept })
    }

    /// A region for one use whose number the driver has just given again has
    /// been used up: its line must not lead to the new one, nor be destroyed by
    /// that number.
    fn void_namesakes(&mut self, cookie: u64) {
        for (index, own) in self.own.iter_mut().enumerate() {
            let Some(own) = own.as_mut().filter(|own| own.entry.cookie == cookie) else { continue };
            own.pinned = None;
            if let Some(line) = sys::slot(&self.table, index as u32) {
                line.withdraw();
            }
        }
    }

    /// Takes a region back.
    pub fn destroy(&mut self, device: &Device, index: u32, generation: u32) -> Result<Buffer, KnemError> {
        self.hear(device);
        let place = self.own.get_mut(index as usize).ok_or(KnemError::NotDeclared)?;
        if place.as_ref().is_none_or(|own| own.generation != generation) {
            return Err(KnemError::NotDeclared);
        }
        let own = place.take().ok_or(KnemError::NotDeclared)?;
        self.free.push(index);
        // Before the driver may give the number to another.
        if let Some(line) = sys::slot(&self.table, index) {
            line.withdraw();
        }
        if let Some(pinned) = own.pinned {
            if own.uses == Uses::Many && pinned.may_be_kept {
                self.kept.put(device, pinned);
            } else {
                // EINVAL: it was used up. Anything else leaves a region that
                // nobody can name by us any more.
                let _used_up = device.destroy(pinned.cookie);
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
        self.kept.set(device, Keeping::default());
        for index in 0..self.own.len() as u32 {
            let generation = self.own[index as usize].as_ref().map(|own| own.generation);
            if let Some(generation) = generation {
                // It is declared, so it is destroyed.
                let _memory = self.destroy(device, index, generation);
            }
        }
    }
}

pub(super) const PAGE_BYTES: u64 = 4096;

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
