//! The table of an endpoint's regions, in shared memory: its owner writes it,
//! peers read it.
#![allow(unsafe_code)] // Views shared memory as atomics, and mapped memory as bytes.

use std::os::fd::OwnedFd;

use super::{Direction, Protection, RegionError, RegionKey};
use crate::buffer::{Access, Buffer, Segment};
use crate::error::MemoryShort;
use crate::identity::EndpointId;
use crate::shared_memory::{AttachError, SharedMemory};
use crate::sync::{AtomicU64, Ordering, fence};

/// Regions that one endpoint can have declared at a time.
pub(crate) const REGIONS: u32 = 1024;

const ENTRY_BYTES: usize = 64;
const TABLE_BYTES: usize = REGIONS as usize * ENTRY_BYTES;

const VALID: u64 = 1;
const READ: u64 = 2;
const WRITE: u64 = 4;
const SHARED: u64 = 8;
const LIST: u64 = 16;

/// One entry, four words of a cache line. The owner writes all of them, the
/// first last: generation in the upper half, flags in the lower.
#[repr(C, align(64))]
struct Words([AtomicU64; 8]);

const _: () = assert!(size_of::<Words>() == ENTRY_BYTES);

/// Where a region's bytes are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    /// One piece of the owner's private memory.
    One(Segment),
    /// A list of pieces: the address of the array in the owner, and how many.
    List { address: usize, count: u64 },
    /// Memory that peers map.
    Shared,
}

/// An entry as copied out of a table, not checked further.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub total_bytes: u64,
    pub protection: Protection,
    pub place: Place,
}

fn words(memory: &SharedMemory, index: u32) -> Option<&Words> {
    if index >= REGIONS || memory.len() < TABLE_BYTES {
        return None;
    }
    let at = memory.base().as_ptr().wrapping_add(index as usize * ENTRY_BYTES);
    // SAFETY: the mapping is page-aligned, lives as long as `memory`, and is at
    // least TABLE_BYTES long, so entry `index` lies in it, aligned to 64.
    // Words is all atomics, which any bytes are valid for and which may be
    // changed by other processes.
    Some(unsafe { &*at.cast::<Words>() })
}

/// Reads an entry as one: the first word is read again at the end.
fn read(memory: &SharedMemory, key: &RegionKey) -> Option<Entry> {
    let w = &words(memory, key.index)?.0;
    // Acquire pairs with the owner's Release store of this word, so that the
    // others are seen as they were written for it.
    let first = w[0].load(Ordering::Acquire);
    if first >> 32 != u64::from(key.generation) || first & VALID == 0 {
        return None;
    }
    // Relaxed: between the two reads of the first word, which order them.
    let [total, address, count] = [1, 2, 3].map(|i: usize| w[i].load(Ordering::Relaxed));
    // The fence keeps the reads above before the one below (a seqlock's end).
    fence(Ordering::Acquire);
    // Relaxed: ordered by the fence.
    if w[0].load(Ordering::Relaxed) != first {
        return None;
    }
    if total != key.total_bytes {
        return None;
    }
    let place = match (first & SHARED != 0, first & LIST != 0) {
        (true, _) => Place::Shared,
        (false, true) => Place::List { address: address as usize, count },
        (false, false) => Place::One(Segment { address: address as usize, bytes: total as usize }),
    };
    let protection = Protection { read: first & READ != 0, write: first & WRITE != 0 };
    Some(Entry { total_bytes: total, protection, place })
}

impl Entry {
    /// Checks a copy against the entry.
    pub fn allows(&self, direction: Direction, offset: u64, bytes: u64) -> Result<(), RegionError> {
        let allowed = match direction {
            Direction::Get => self.protection.read,
            Direction::Put => self.protection.write,
        };
        if !allowed {
            return Err(RegionError::Forbidden(direction));
        }
        self.holds(offset, bytes)
    }

    /// Checks a range against the region's length.
    fn holds(&self, offset: u64, bytes: u64) -> Result<(), RegionError> {
        match offset.checked_add(bytes) {
            Some(end) if end <= self.total_bytes => Ok(()),
            _ => Err(RegionError::OutOfBounds { offset, bytes, total_bytes: self.total_bytes }),
        }
    }
}

/// A peer's table, mapped here.
#[derive(Debug)]
pub(crate) struct RemoteTable {
    memory: SharedMemory,
}

impl RemoteTable {
    pub fn attach(fd: OwnedFd) -> Result<Self, AttachError> {
        Ok(Self { memory: SharedMemory::attach(fd, TABLE_BYTES, TABLE_BYTES)? })
    }

    pub fn look_up(&self, key: &RegionKey) -> Result<Entry, RegionError> {
        read(&self.memory, key).ok_or(RegionError::NotDeclared)
    }

    /// Looks again after a copy out of the region: still declared means that
    /// the bytes were the region's.
    pub fn look_again(&self, key: &RegionKey) -> Result<(), RegionError> {
        // Keeps the copy's reads before the look (a seqlock's end); pairs with
        // the owner's Release fence in `clear`, after which it may reuse the
        // memory.
        fence(Ordering::Acquire);
        self.look_up(key).map(|_| ())
    }
}

/// The memory of a declared region, and where peers get it if it is shared.
#[derive(Debug)]
enum Holding {
    /// The owner's own memory; the array is what a list entry points to.
    Lent { buffer: Buffer, _list: Box<[Segment]> },
    /// Allocated here, to be mapped by peers.
    Shared { memory: SharedMemory, descriptor: OwnedFd },
}

/// This endpoint's regions.
#[derive(Debug)]
pub(crate) struct RegionTable {
    owner: EndpointId,
    memory: SharedMemory,
    descriptor: OwnedFd,
    holdings: Vec<Option<Holding>>,
    generation: u32,
}

impl RegionTable {
    pub fn create(owner: EndpointId) -> Result<Self, MemoryShort> {
        let (memory, descriptor) =
            SharedMemory::create("the table of regions", "max_peers", TABLE_BYTES, false)?;
        Ok(Self { owner, memory, descriptor, holdings: Vec::new(), generation: 0 })
    }

    /// The table's memory, for peers.
    pub fn descriptor(&self) -> &OwnedFd {
        &self.descriptor
    }

    /// Declares memory of the application.
    pub fn declare(&mut self, buffer: Buffer, protection: Protection) -> Result<RegionKey, RegionError> {
        if protection.write && buffer.access() != Access::Write {
            return Err(RegionError::ReadOnlyMemory);
        }
        let total = buffer.total_bytes();
        let list: Box<[Segment]> = buffer.segments().into();
        let (flags, address, count) = match &*list {
            [one] => (0, one.address, 0),
            many => (LIST, many.as_ptr().expose_provenance(), many.len() as u64),
        };
        let holding = Holding::Lent { buffer, _list: list };
        self.enter(holding, protection, flags, [total, address as u64, count])
    }

    /// Allocates memory that peers can map, and declares it.
    pub fn allocate(&mut self, bytes: usize, protection: Protection) -> Result<RegionKey, RegionError> {
        let (memory, descriptor) = SharedMemory::create("a shared region", "its size", bytes.max(1), true)?;
        let holding = Holding::Shared { memory, descriptor };
        self.enter(holding, protection, SHARED, [bytes as u64, 0, 0])
    }

    fn enter(
        &mut self,
        holding: Holding,
        protection: Protection,
        flags: u64,
        rest: [u64; 3],
    ) -> Result<RegionKey, RegionError> {
        let free = self.holdings.iter().position(Option::is_none).unwrap_or(self.holdings.len());
        let full = || RegionError::TooMany(REGIONS);
        let index = u32::try_from(free).ok().filter(|index| *index < REGIONS).ok_or_else(full)?;
        // The page must be there: a failing first touch would be SIGBUS.
        self.memory.commit_range("the table of regions", "max_peers", free * ENTRY_BYTES, ENTRY_BYTES)?;
        self.generation = self.generation.wrapping_add(1);
        let w = &words(&self.memory, index).ok_or_else(full)?.0;
        // Relaxed: nobody reads them before the first word says valid, and who
        // still reads the entry before finds the first word changed: `destroy`
        // has set it to 0, with the fence there.
        rest.iter().zip(&w[1..]).for_each(|(value, word)| word.store(*value, Ordering::Relaxed));
        let rights = if protection.read { READ } else { 0 } | if protection.write { WRITE } else { 0 };
        // Release pairs with the Acquire in `read`.
        w[0].store(u64::from(self.generation) << 32 | VALID | flags | rights, Ordering::Release);
        if free == self.holdings.len() {
            self.holdings.push(None);
        }
        self.holdings[free] = Some(holding);
        Ok(RegionKey { owner: self.owner, index, generation: self.generation, total_bytes: rest[0] })
    }

    /// Takes a region back: no copy begins any more.
    pub fn destroy(&mut self, key: &RegionKey) -> Result<(), RegionError> {
        self.look_up(key)?;
        self.clear(key.index);
        if let Some(holding) = self.holdings.get_mut(key.index as usize) {
            *holding = None;
        }
        Ok(())
    }

    fn clear(&self, index: u32) {
        if let Some(w) = words(&self.memory, index) {
            // Relaxed: the fence orders it.
            w.0[0].store(0, Ordering::Relaxed);
            // Pairs with the Acquire fence in `read` (a seqlock's begin): a
            // reader that sees a later write to the entry's other words sees
            // this 0, or the next generation, when it looks again.
            fence(Ordering::Release);
        }
    }

    /// An entry of one's own table.
    pub fn look_up(&self, key: &RegionKey) -> Result<Entry, RegionError> {
        if key.owner != self.owner || !self.memory.is_usable_here() {
            return Err(RegionError::NotDeclared);
        }
        read(&self.memory, key).ok_or(RegionError::NotDeclared)
    }

    /// The descriptor of a shared region, for a peer that asks for it.
    pub fn shared_descriptor(&self, key: &RegionKey) -> Option<&OwnedFd> {
        self.look_up(key).ok()?;
        match self.holdings.get(key.index as usize)? {
            Some(Holding::Shared { descriptor, .. }) => Some(descriptor),
            _ => None,
        }
    }

    /// The memory of a region that was allocated here.
    pub fn shared_memory(&self, key: &RegionKey) -> Option<&SharedMemory> {
        self.look_up(key).ok()?;
        match self.holdings.get(key.index as usize)? {
            Some(Holding::Shared { memory, .. }) => Some(memory),
            _ => None,
        }
    }

    /// Copies between a region of this process and other memory of it, as a
    /// peer would: the protection holds.
    pub fn copy_own(
        &self,
        key: &RegionKey,
        direction: Direction,
        offset: u64,
        local: &mut Buffer,
    ) -> Result<(), RegionError> {
        self.look_up(key)?.allows(direction, offset, local.total_bytes())?;
        self.copy_as_owner(key, direction, offset, local)
    }

    /// The same for the owner, whom no protection binds; but memory that was
    /// lent for reading only is not written.
    pub fn copy_as_owner(
        &self,
        key: &RegionKey,
        direction: Direction,
        offset: u64,
        local: &mut Buffer,
    ) -> Result<(), RegionError> {
        let bytes = local.total_bytes();
        self.look_up(key)?.holds(offset, bytes)?;
        match self.holdings.get(key.index as usize) {
            Some(Some(Holding::Lent { buffer, .. })) => {
                if direction == Direction::Put && buffer.access() != Access::Write {
                    return Err(RegionError::ReadOnlyMemory);
                }
                let mut done = 0;
                for piece in buffer.pieces(offset..offset + bytes) {
                    local_copy(piece, direction, local, done);
                    done += piece.bytes as u64;
                }
                Ok(())
            }
            Some(Some(Holding::Shared { memory, .. })) => {
                copy_shared(memory, direction, offset, local, 0, bytes);
                Ok(())
            }
            _ => Err(RegionError::NotDeclared),
        }
    }
}

impl Drop for RegionTable {
    /// Peers keep the table mapped: it must not name memory that is no longer
    /// lent. A forked child has no part of it.
    fn drop(&mut self) {
        if self.memory.is_usable_here() {
            (0..self.holdings.len() as u32).for_each(|index| self.clear(index));
        }
    }
}

/// Maps the memory of a peer's shared region, which must be just as long as
/// the peer's table says.
pub(crate) fn attach_shared(fd: OwnedFd, key: &RegionKey) -> Result<SharedMemory, AttachError> {
    let bytes = usize::try_from(key.total_bytes).unwrap_or(usize::MAX).max(1);
    SharedMemory::attach(fd, bytes, bytes)
}

/// Copies up to `bytes` between shared memory, from `offset` on, and `local`,
/// from `local_offset` on; what lies past the end of the shared memory is left
/// out. Returns how many bytes.
pub(crate) fn copy_shared(
    memory: &SharedMemory,
    direction: Direction,
    offset: u64,
    local: &mut Buffer,
    local_offset: u64,
    bytes: u64,
) -> u64 {
    let start = offset.min(memory.len() as u64);
    let bytes = bytes.min(memory.len() as u64 - start) as usize;
    let address = memory.base().as_ptr().expose_provenance() + start as usize;
    local_copy(Segment { address, bytes }, direction, local, local_offset)
}

/// Copies between one piece of memory that is reachable here and `local`, from
/// `local_offset` on. The piece must have been checked to lie in a mapping or a
/// lent buffer, one lent for writing if it is to be written.
fn local_copy(piece: Segment, direction: Direction, local: &mut Buffer, local_offset: u64) -> u64 {
    let copied = match direction {
        Direction::Get => {
            let from = std::ptr::with_exposed_provenance::<u8>(piece.address);
            // SAFETY: the callers cut the piece out of memory that is mapped
            // and readable here, and that `local` does not overlap: it is
            // lent to that operation only. Peers may write shared memory
            // meanwhile; any bytes are valid, and no reference is made.
            unsafe { local.write_raw(local_offset, from, piece.bytes) }
        }
        Direction::Put => {
            let to = std::ptr::with_exposed_provenance_mut::<u8>(piece.address);
            // SAFETY: as above, and writable: the callers have checked that it
            // was lent for writing, or it is shared memory.
            unsafe { local.read_raw(local_offset, to, piece.bytes) }
        }
    };
    copied as u64
}

/// The most pieces of a region's list that are taken from a peer.
const LIST_MAX: u64 = 1 << 20;

/// Fetches the list of a region's pieces out of its owner by `get`, which
/// copies the given remote segment into the buffer. Checks it: its pieces must
/// add up to the region's length.
pub(crate) fn fetch_list<E: From<RegionError>>(
    entry: &Entry,
    get: impl FnOnce(Segment, &mut Buffer) -> Result<(), E>,
) -> Result<Vec<Segment>, E> {
    let (address, count) = match entry.place {
        Place::One(segment) => return Ok(vec![segment]),
        Place::Shared => return Ok(Vec::new()),
        Place::List { address, count } => (address, count),
    };
    if count > LIST_MAX {
        return Err(RegionError::NotDeclared.into());
    }
    let mut list = vec![[0u8; size_of::<Segment>()]; count as usize];
    let raw = Segment::of_mut(list.as_flattened_mut());
    // SAFETY: the vector outlives the buffer, and is not touched until the
    // buffer's last use, below.
    let lent = unsafe { Buffer::new(&[raw], Access::Write) };
    let mut buffer = lent.map_err(|_| RegionError::NotDeclared)?;
    get(Segment { address, bytes: raw.bytes }, &mut buffer)?;
    drop(buffer);
    let word = |bytes: &[u8]| bytes.try_into().map_or(0, usize::from_ne_bytes);
    let segment = |raw: &[u8; 16]| Segment { address: word(&raw[..8]), bytes: word(&raw[8..]) };
    let list: Vec<Segment> = list.iter().map(segment).collect();
    let total = list.iter().try_fold(0u64, |sum, s| sum.checked_add(s.bytes as u64));
    if total == Some(entry.total_bytes) { Ok(list) } else { Err(RegionError::NotDeclared.into()) }
}

#[cfg(test)]
#[path = "table_tests.rs"]
mod tests;
