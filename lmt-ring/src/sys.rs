//! A pool's memory: mapped, its slots looked at, its cells copied through.
#![allow(unsafe_code)] // The only file of this crate with unsafe code.

use std::os::fd::OwnedFd;
use std::ptr::NonNull;

use lmt_copy::Distance;
use lmt_core::buffer::{Access, Buffer};
use lmt_core::cursor::Cursor;
use lmt_core::error::MemoryError;
use lmt_core::memory_limits::spare_address_space;
use lmt_core::shared_memory::{AttachError, SharedMemory};

use crate::slot::Slot;

const PURPOSE: &str = "the pool of rings";
const PEERS_PURPOSE: &str = "mapping the peer's pool of rings";
const KEY: &str = "ring_bytes or max_rings";
/// A pool is mapped only where so many times its length of address space is left:
/// of each peer one is mapped, and there are other mechanisms.
const SPARE_TIMES: u64 = 8;

/// A pool's memory, made here or by a peer, sealed and mapped.
#[derive(Debug)]
pub(crate) struct Mapping(SharedMemory);

impl Mapping {
    /// Makes a pool of `bytes` bytes, without memory yet, and the descriptor
    /// for peers.
    pub(crate) fn create(bytes: u64) -> Result<(Self, OwnedFd), MemoryError> {
        spare_address_space(PURPOSE, KEY, bytes, SPARE_TIMES)?;
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        let (memory, fd) = SharedMemory::create(PURPOSE, KEY, bytes, false)?;
        Ok((Self(memory), fd))
    }

    /// Whether a peer's pool of `bytes` bytes may be mapped.
    pub(crate) fn spare(bytes: u64) -> Result<(), MemoryError> {
        Ok(spare_address_space(PEERS_PURPOSE, KEY, bytes, SPARE_TIMES)?)
    }

    /// Maps a peer's pool, which must be of just `bytes` bytes for good.
    pub(crate) fn attach(fd: OwnedFd, bytes: u64) -> Result<Self, AttachError> {
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        SharedMemory::attach(fd, bytes, bytes).map(Self)
    }

    /// Takes memory for `bytes` bytes from `offset` on now, rather than at the
    /// first touch, where want of it would kill the process.
    pub(crate) fn commit(&self, offset: u64, bytes: u64) -> Result<(), MemoryError> {
        self.0.commit_range(PURPOSE, KEY, offset as usize, bytes as usize)
    }

    /// Where `bytes` bytes from `offset` on stand, if they lie in the mapping
    /// and this is not a forked child, which does not have it.
    #[inline]
    fn at(&self, offset: u64, bytes: u64) -> Option<NonNull<u8>> {
        let end = offset.checked_add(bytes)?;
        if end > self.0.len() as u64 || !self.0.is_usable_here() {
            return None;
        }
        // SAFETY: `offset` is at most the mapping's length, checked above, so
        // the result is within it or just behind it.
        Some(unsafe { self.0.base().add(offset as usize) })
    }

    /// The slot at `offset`, if there is one.
    #[inline]
    pub(crate) fn slot(&self, offset: u64) -> Option<&Slot> {
        let at = self.at(offset, size_of::<Slot>() as u64)?.cast::<Slot>();
        if !at.is_aligned() {
            return None;
        }
        // SAFETY: mapped for as long as the borrow, aligned, and made of atomics
        // alone, for which every value is valid; every process touches slots
        // only as such, and cells lie elsewhere. The seals keep the file from
        // shrinking under it.
        Some(unsafe { at.as_ref() })
    }

    /// Copies the next `bytes` bytes of `data` into the pool at `offset`. False
    /// when there are not so many, or the place is outside.
    #[inline]
    pub(crate) fn copy_in(&self, offset: u64, data: &Buffer, from: &mut Cursor, bytes: u64) -> bool {
        let Some(cell) = self.at(offset, bytes) else { return false };
        let mut done = 0;
        while done < bytes {
            let Some(piece) = from.take(data.segments(), bytes - done) else { return false };
            let address = data.segments()[piece.index].address + piece.offset as usize;
            let source: *const u8 = std::ptr::with_exposed_provenance(address);
            // SAFETY: `done` is below `bytes`, which lie in the mapping.
            let target = unsafe { cell.add(done as usize) };
            // SAFETY: the source is part of a segment of a buffer, whose maker
            // promised valid memory that nobody writes; the target lies within
            // the mapping, which is ours, so the two cannot overlap.
            unsafe {
                lmt_copy::copy_toward(target.as_ptr(), source, piece.bytes as usize, Distance::Peer);
            }
            done += piece.bytes;
        }
        true
    }

    /// Copies `bytes` bytes at `offset` of the pool to the next place in `data`,
    /// as `way` says. False when there is not so much room, the buffer is lent for
    /// reading, or the place is outside.
    #[inline]
    pub(crate) fn copy_out(
        &self,
        offset: u64,
        data: &mut Buffer,
        to: &mut Cursor,
        bytes: u64,
        way: CopyOut,
    ) -> bool {
        let Some(cell) = self.at(offset, bytes).filter(|_| data.access() == Access::Write) else {
            return false;
        };
        let mut done = 0;
        while done < bytes {
            let Some(piece) = to.take(data.segments(), bytes - done) else { return false };
            let address = data.segments()[piece.index].address + piece.offset as usize;
            let target: *mut u8 = std::ptr::with_exposed_provenance_mut(address);
            // SAFETY: `done` is below `bytes`, which lie in the mapping.
            let source = unsafe { cell.add(done as usize) };
            // SAFETY: the target is part of a segment of a buffer that is lent
            // for writing and borrowed exclusively; the source lies within the
            // mapping, which is ours, so the two cannot overlap. A peer that
            // breaks the rules may write it at the same time; bytes have no
            // invalid values, so only bytes of messages are garbled.
            unsafe { empty(target, source.as_ptr(), piece.bytes as usize, way) };
            done += piece.bytes;
        }
        true
    }
}

/// How a cell's bytes are copied out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CopyOut {
    /// Through the caches.
    Cached,
    /// Past them, since they do not hold what is in flight.
    Streamed,
}

/// A copy out of a cell.
///
/// # Safety
/// As for [`std::ptr::copy_nonoverlapping`].
#[inline]
unsafe fn empty(target: *mut u8, source: *const u8, bytes: usize, way: CopyOut) {
    match way {
        // SAFETY: the caller's promise.
        CopyOut::Cached => unsafe { lmt_copy::copy_nonoverlapping(target, source, bytes) },
        // SAFETY: the caller's promise.
        CopyOut::Streamed => unsafe { lmt_copy::copy_streaming(target, source, bytes) },
    }
}

#[cfg(test)]
#[path = "sys_tests.rs"]
pub(crate) mod tests;
