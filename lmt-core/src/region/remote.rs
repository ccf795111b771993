//! A peer's table of regions, mapped here.

use std::os::fd::OwnedFd;

use super::entry::{Entry, Words};
use super::memory::{Head, head, words};
use super::{RegionError, RegionKey, TABLE_BYTES};
use crate::base::sync::Ordering;
use crate::mechanism::Direction;
use crate::memory::shared_memory::{AttachError, SharedMemory};
use crate::vocabulary::identity::EndpointId;

/// What a table begins with: "lmtreg" and the layout's version.
pub(super) const MAGIC: u64 = u64::from_ne_bytes(*b"lmtreg\0\x02");

/// The two words that an id is in a table's head.
pub(super) fn id_words(id: EndpointId) -> [u64; 2] {
    let bytes = id.to_bytes();
    let half = |bytes: &[u8]| bytes.try_into().map_or(0, u64::from_ne_bytes);
    [half(&bytes[..8]), half(&bytes[8..])]
}

/// A peer's table, mapped here: what it says is the peer's word.
#[derive(Debug)]
pub struct RemoteTable {
    memory: SharedMemory,
    owner: EndpointId,
}

impl RemoteTable {
    /// Maps the table whose descriptor the owner gave, and checks that it is
    /// that owner's.
    ///
    /// # Errors
    /// [`AttachError`]: it could change its size or fault, or is no table of
    /// this owner's.
    pub fn attach(fd: OwnedFd, owner: EndpointId) -> Result<Self, AttachError> {
        let memory = SharedMemory::attach(fd, TABLE_BYTES, TABLE_BYTES)?;
        // Relaxed: written before the descriptor was passed, which orders it.
        let is_his = |head: &Head| {
            head.magic.load(Ordering::Relaxed) == MAGIC
                && [0, 1].map(|half: usize| head.owner[half].load(Ordering::Relaxed)) == id_words(owner)
        };
        if !head(&memory).is_some_and(is_his) {
            let what = "it is no table of regions, or another owner's";
            return Err(AttachError::WrongContent { what });
        }
        Ok(Self { memory, owner })
    }

    /// What the owner's mapping of the table begins with
    /// ([`super::RegionTable::address`]).
    pub fn head_bytes(&self) -> [u8; 24] {
        let mut bytes = [0; 24];
        bytes[..8].copy_from_slice(&MAGIC.to_ne_bytes());
        bytes[8..].copy_from_slice(&self.owner.to_bytes());
        bytes
    }

    /// Whose table it is.
    pub const fn owner(&self) -> EndpointId {
        self.owner
    }

    /// The entry's words, if the owner has taken memory for them.
    fn words(&self, key: &RegionKey) -> Result<&Words, RegionError> {
        // Acquire pairs with the owner's Release: the line's memory is there.
        let lines = head(&self.memory).map_or(0, |head| head.lines.load(Ordering::Acquire));
        let there = key.owner() == self.owner && u64::from(key.index()) < lines;
        words(&self.memory, key.index()).filter(|_| there).ok_or(RegionError::NotRegistered)
    }

    /// What the owner says of a region, whatever it may be used for.
    ///
    /// # Errors
    /// [`RegionError::NotRegistered`] or [`RegionError::UsedUp`].
    pub fn look_up(&self, key: &RegionKey) -> Result<Entry, RegionError> {
        let entry = self.words(key)?.read(key.generation())?;
        if entry.total_bytes == key.total_bytes() { Ok(entry) } else { Err(RegionError::NotRegistered) }
    }

    /// The key of the region with this [`RegionKey::handle`].
    ///
    /// # Errors
    /// As [`RemoteTable::look_up`].
    pub fn key_of(&self, handle: u64) -> Result<RegionKey, RegionError> {
        let key = RegionKey::new(self.owner, handle, 0);
        let entry = self.words(&key)?.read(key.generation())?;
        Ok(RegionKey::new(self.owner, handle, entry.total_bytes))
    }

    /// Looks a region up for a copy, and uses it up if it is for one.
    pub(super) fn begin(
        &self,
        key: &RegionKey,
        direction: Direction,
        offset: u64,
        bytes: u64,
    ) -> Result<Entry, RegionError> {
        let mut entry = self.look_up(key)?;
        entry.allows(direction)?;
        entry.holds(offset, bytes)?;
        self.words(key)?.begin_use(&mut entry)?;
        Ok(entry)
    }

    /// Looks again: still declared means that what was read of its memory
    /// before was the region's.
    pub fn revalidate(&self, key: &RegionKey, entry: &Entry) -> Result<(), RegionError> {
        if self.words(key)?.is_still(entry) { Ok(()) } else { Err(RegionError::NotRegistered) }
    }
}

impl Entry {
    /// Checks a copy's direction against the protection.
    ///
    /// # Errors
    /// [`RegionError::Forbidden`].
    pub fn allows(&self, direction: Direction) -> Result<(), RegionError> {
        self.protection.allows(direction)
    }

    /// Checks a range against the region's length.
    ///
    /// # Errors
    /// [`RegionError::OutOfBounds`].
    pub fn holds(&self, offset: u64, bytes: u64) -> Result<(), RegionError> {
        in_bounds(offset, bytes, self.total_bytes)
    }
}

/// Checks a range against a length.
pub(super) fn in_bounds(offset: u64, bytes: u64, total_bytes: u64) -> Result<(), RegionError> {
    match offset.checked_add(bytes) {
        Some(end) if end <= total_bytes => Ok(()),
        _ => Err(RegionError::OutOfBounds { offset, bytes, total_bytes }),
    }
}
