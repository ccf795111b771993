//! The table of a process's regions, in shared memory: its owner writes it,
//! peers read it.

use std::os::fd::{AsRawFd, OwnedFd};

use super::entry::{Description, Entry, GENERATION_MASK, Place, Words};
use super::memory::{SCRATCH_OFFSET, copy_lent, copy_shared, head, view_lent, view_shared, words};
use super::remote::{MAGIC, id_words, in_bounds};
use super::{
    ENTRY_BYTES, INDEX_BITS, MAX_REGIONS, Protection, RegionError, RegionKey, RegionOptions, TABLE_BYTES,
};
use crate::base::sync::Ordering;
use crate::mechanism::Direction;
use crate::memory::buffer::{Access, Buffer};
use crate::memory::shared_memory::SharedMemory;
use crate::vocabulary::error::MemoryError;
use crate::vocabulary::identity::EndpointId;

/// Lines whose memory is taken at a time: a page of them.
const LINES_AT_ONCE: usize = 4096 / ENTRY_BYTES;

/// The memory of a declared region, and where peers get it if it is shared.
#[derive(Debug)]
enum RegionMemory {
    /// The owner's own memory. A list entry points to the buffer's own array of
    /// segments, which stays where it is for as long as the buffer lives.
    Lent(Buffer),
    /// Allocated here, to be mapped by peers.
    Shared { memory: SharedMemory, descriptor: OwnedFd },
}

/// A region, as its owner knows it: what peers may have written into the table
/// does not matter to it.
#[derive(Debug)]
struct RegisteredRegion {
    handle: u64,
    what: Description,
    holding: RegionMemory,
}

/// This process's regions. To declare, look up and destroy one takes the same
/// time however many there are, and a system call only for each 64th that is
/// there at once.
#[derive(Debug)]
pub struct RegionTable {
    owner: EndpointId,
    memory: SharedMemory,
    descriptor: OwnedFd,
    /// By index; the first is the head's and stays empty.
    declared: Vec<Option<RegisteredRegion>>,
    /// Indices that are free again, the one to be taken next at the back.
    free: Vec<u16>,
    generation: u64,
}

impl RegionTable {
    /// A table whose keys name `owner`. It takes 4 MiB of address space here
    /// and in each peer, and memory as it is used.
    ///
    /// # Errors
    /// [`MemoryError`].
    pub fn create(owner: EndpointId) -> Result<Self, MemoryError> {
        let (memory, descriptor) =
            SharedMemory::create("the table of regions", "the number of endpoints", TABLE_BYTES, false)?;
        let mut table =
            Self { owner, memory, descriptor, declared: Vec::new(), free: Vec::new(), generation: 0 };
        table.take_lines()?;
        table.declared.push(None);
        if let Some(head) = head(&table.memory) {
            // Relaxed: peers get the descriptor later, by a system call.
            id_words(owner).iter().zip(&head.owner).for_each(|(v, w)| w.store(*v, Ordering::Relaxed));
            head.magic.store(MAGIC, Ordering::Relaxed);
        }
        Ok(table)
    }

    /// Whose table it is.
    pub const fn owner(&self) -> EndpointId {
        self.owner
    }

    /// The table's memory, for peers ([`super::RemoteTable::attach`]).
    pub fn descriptor(&self) -> &OwnedFd {
        &self.descriptor
    }

    /// Where the table is mapped here: a peer that reads
    /// [`super::RemoteTable::head_bytes`] at this address of this process
    /// reaches the process, and no other; not even a forked child, which has
    /// not got the mapping. The 16 bytes at [`RegionTable::SCRATCH_OFFSET`]
    /// behind it may be written by whoever wants to know whether he can.
    pub fn address(&self) -> u64 {
        self.memory.base().as_ptr() as u64
    }

    /// See [`RegionTable::address`].
    pub const SCRATCH_OFFSET: u64 = SCRATCH_OFFSET as u64;

    /// Takes memory for the lines that come next: a failing first touch of
    /// them would be SIGBUS.
    fn take_lines(&mut self) -> Result<(), MemoryError> {
        let (first, bytes) = (self.declared.len(), LINES_AT_ONCE * ENTRY_BYTES);
        let key = "the number of regions that are registered at once";
        self.memory.commit_range("the table of regions", key, first * ENTRY_BYTES, bytes)?;
        if let Some(head) = head(&self.memory) {
            // Release pairs with the peers' Acquire: they look at no line
            // before its memory is there.
            head.lines.store((first + LINES_AT_ONCE) as u64, Ordering::Release);
        }
        Ok(())
    }

    /// Declares memory of the application, which is lent until the region is
    /// destroyed.
    ///
    /// # Errors
    /// [`RegionError::TooMany`], [`RegionError::Memory`],
    /// [`RegionError::ReadOnlyMemory`].
    pub fn declare(
        &mut self,
        buffer: Buffer,
        options: impl Into<RegionOptions>,
    ) -> Result<RegionKey, RegionError> {
        let options = options.into();
        if options.protection.write && buffer.access() != Access::Write {
            return Err(RegionError::ReadOnlyMemory);
        }
        let place = match buffer.segments() {
            [one] => Place::One(*one),
            many => Place::List { address: many.as_ptr().expose_provenance(), count: many.len() as u64 },
        };
        let total_bytes = buffer.total_bytes();
        self.enter(RegionMemory::Lent(buffer), options, total_bytes, place)
    }

    /// Allocates zeroed memory that peers can map, and declares it.
    ///
    /// # Errors
    /// [`RegionError::TooMany`] or [`RegionError::Memory`].
    pub fn allocate(
        &mut self,
        bytes: usize,
        options: impl Into<RegionOptions>,
    ) -> Result<RegionKey, RegionError> {
        let (memory, descriptor) = SharedMemory::create("a shared region", "its size", bytes.max(1), true)?;
        let place = Place::Shared { descriptor: descriptor.as_raw_fd() as u64 };
        self.enter(RegionMemory::Shared { memory, descriptor }, options.into(), bytes as u64, place)
    }

    /// A free index: the one that was given back last, whose line is at hand.
    fn free_index(&mut self) -> Result<u16, RegionError> {
        if let Some(index) = self.free.pop() {
            return Ok(index);
        }
        let next = u16::try_from(self.declared.len()).map_err(|_| RegionError::TooMany(MAX_REGIONS))?;
        if usize::from(next) % LINES_AT_ONCE == 0 {
            self.take_lines()?;
        }
        self.declared.push(None);
        Ok(next)
    }

    fn enter(
        &mut self,
        holding: RegionMemory,
        options: RegionOptions,
        total_bytes: u64,
        place: Place,
    ) -> Result<RegionKey, RegionError> {
        if !self.memory.is_usable_here() {
            return Err(RegionError::NotRegistered);
        }
        let index = self.free_index()?;
        // Never 0, so that no handle is; after 2^48 regions they come again.
        self.generation = ((self.generation + 1) & GENERATION_MASK).max(1);
        let handle = self.generation << INDEX_BITS | u64::from(index);
        let RegionOptions { protection, single_use } = options;
        let what = Description { total_bytes, protection, single_use, place };
        if let Some(words) = words(&self.memory, index) {
            words.describe(self.generation, &what);
        }
        self.declared[usize::from(index)] = Some(RegisteredRegion { handle, what, holding });
        Ok(RegionKey::new(self.owner, handle, total_bytes))
    }

    /// Takes a region back, used up or not: no copy begins any more. Gives the
    /// memory that was lent for it; of an allocated one there is none.
    ///
    /// # Errors
    /// [`RegionError::NotRegistered`].
    pub fn destroy(&mut self, key: &RegionKey) -> Result<Option<Buffer>, RegionError> {
        self.find(key)?;
        let index = key.index();
        if let Some(words) = words(&self.memory, index) {
            words.clear();
        }
        self.free.push(index);
        Ok(match self.declared[usize::from(index)].take() {
            Some(RegisteredRegion { holding: RegionMemory::Lent(buffer), .. }) => Some(buffer),
            _ => None,
        })
    }

    /// A region, whether used up or not.
    fn find(&self, key: &RegionKey) -> Result<&RegisteredRegion, RegionError> {
        let there = self.declared.get(usize::from(key.index())).and_then(Option::as_ref);
        there
            .filter(|d| d.handle == key.handle() && d.what.total_bytes == key.total_bytes())
            .filter(|_| key.owner() == self.owner && self.memory.is_usable_here())
            .ok_or(RegionError::NotRegistered)
    }

    /// The key of this table's region with this [`RegionKey::handle`].
    ///
    /// # Errors
    /// [`RegionError::NotRegistered`].
    pub fn key_of(&self, handle: u64) -> Result<RegionKey, RegionError> {
        let there = self.declared.get(usize::from(handle as u16)).and_then(Option::as_ref);
        let declared = there.filter(|d| d.handle == handle).ok_or(RegionError::NotRegistered)?;
        Ok(RegionKey::new(self.owner, handle, declared.what.total_bytes))
    }

    /// The descriptor of a shared region, for a peer that asks for it.
    pub fn shared_descriptor(&self, key: &RegionKey) -> Option<&OwnedFd> {
        match &self.find(key).ok()?.holding {
            RegionMemory::Shared { descriptor, .. } => Some(descriptor),
            RegionMemory::Lent(_) => None,
        }
    }

    /// The memory of a region that was allocated here.
    pub fn shared_memory(&self, key: &RegionKey) -> Option<&SharedMemory> {
        match &self.find(key).ok()?.holding {
            RegionMemory::Shared { memory, .. } => Some(memory),
            RegionMemory::Lent(_) => None,
        }
    }

    /// What peers may do with a region of this process that is not used up.
    ///
    /// # Errors
    /// [`RegionError::NotRegistered`] or [`RegionError::UsedUp`].
    pub fn protection_of(&self, key: &RegionKey) -> Result<Protection, RegionError> {
        let declared = self.find(key)?;
        self.unused(declared)?;
        Ok(declared.what.protection)
    }

    /// The entry by which a region of single use is used up, if this is one and
    /// it has not been. That alone the shared words tell: all else that stands
    /// there a peer may have written.
    fn unused(&self, declared: &RegisteredRegion) -> Result<Option<(&Words, Entry)>, RegionError> {
        if !declared.what.single_use {
            return Ok(None);
        }
        let key = RegionKey::new(self.owner, declared.handle, declared.what.total_bytes);
        let words = words(&self.memory, key.index()).ok_or(RegionError::NotRegistered)?;
        let entry = words.read(key.generation())?;
        // A peer has made it one of many uses.
        if entry.is_single_use() { Ok(Some((words, entry))) } else { Err(RegionError::NotRegistered) }
    }

    /// Begins a copy by a region's key in its own process, as a peer would:
    /// checks the protection and the range, and uses a region of single use up.
    ///
    /// # Errors
    /// [`RegionError::NotRegistered`], [`RegionError::UsedUp`],
    /// [`RegionError::Forbidden`], [`RegionError::OutOfBounds`].
    pub fn begin_own(
        &self,
        key: &RegionKey,
        direction: Direction,
        offset: u64,
        bytes: u64,
    ) -> Result<(), RegionError> {
        let declared = self.find(key)?;
        let once = self.unused(declared)?;
        declared.what.protection.allows(direction)?;
        in_bounds(offset, bytes, declared.what.total_bytes)?;
        once.map_or(Ok(()), |(words, mut entry)| words.begin_use(&mut entry))
    }

    /// Copies between a region of this process and other memory of it, as a
    /// peer would: the protection holds, and single use.
    ///
    /// # Errors
    /// As [`RegionTable::begin_own`].
    pub fn copy_own(
        &self,
        key: &RegionKey,
        direction: Direction,
        offset: u64,
        local: &mut Buffer,
    ) -> Result<(), RegionError> {
        self.begin_own(key, direction, offset, local.total_bytes())?;
        self.copy_as_owner(key, direction, offset, local)
    }

    /// The same for the owner, whom no protection and no use binds; but memory
    /// that was lent for reading only is not written.
    ///
    /// # Errors
    /// [`RegionError::NotRegistered`], [`RegionError::OutOfBounds`],
    /// [`RegionError::ReadOnlyMemory`].
    pub fn copy_as_owner(
        &self,
        key: &RegionKey,
        direction: Direction,
        offset: u64,
        local: &mut Buffer,
    ) -> Result<(), RegionError> {
        let bytes = local.total_bytes();
        self.copy_piece(key, direction, offset, local, 0, bytes)
    }

    /// As [`RegionTable::copy_as_owner`], for the `bytes` bytes of `local` from
    /// `local_offset` on.
    ///
    /// # Errors
    /// As [`RegionTable::copy_as_owner`].
    pub fn copy_piece(
        &self,
        key: &RegionKey,
        direction: Direction,
        offset: u64,
        local: &mut Buffer,
        local_offset: u64,
        bytes: u64,
    ) -> Result<(), RegionError> {
        let declared = self.find(key)?;
        in_bounds(offset, bytes, declared.what.total_bytes)?;
        match &declared.holding {
            RegionMemory::Lent(buffer) if direction == Direction::Put && buffer.access() != Access::Write => {
                return Err(RegionError::ReadOnlyMemory);
            }
            RegionMemory::Lent(buffer) => copy_lent(buffer, direction, offset, local, local_offset, bytes),
            RegionMemory::Shared { memory, .. } => {
                copy_shared(memory, direction, offset, local, local_offset, bytes)
            }
        };
        Ok(())
    }

    /// A part of a region, as the other side of a copy with another region. It
    /// must not outlive the region.
    pub(super) fn view(
        &self,
        key: &RegionKey,
        offset: u64,
        bytes: u64,
        wanted: Access,
    ) -> Result<Buffer, RegionError> {
        let declared = self.find(key)?;
        in_bounds(offset, bytes, declared.what.total_bytes)?;
        let view = match &declared.holding {
            RegionMemory::Lent(buffer) if wanted == Access::Write && buffer.access() != Access::Write => {
                return Err(RegionError::ReadOnlyMemory);
            }
            RegionMemory::Lent(buffer) => view_lent(buffer, offset, bytes, wanted),
            RegionMemory::Shared { memory, .. } => view_shared(memory, offset, bytes),
        };
        view.ok_or(RegionError::NotRegistered)
    }
}

impl Drop for RegionTable {
    /// Peers keep the table mapped: it must not name memory that is no longer
    /// lent. A forked child has no part of it.
    fn drop(&mut self) {
        for index in 1..self.declared.len() as u32 {
            if let Some(words) = words(&self.memory, index as u16) {
                words.clear();
            }
        }
    }
}

#[cfg(test)]
#[path = "table_tests.rs"]
mod tests;
