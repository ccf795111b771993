//! The pool's memory: made, sealed, checked, mapped, and copied through.
#![allow(unsafe_code)] // Maps memory and makes pieces of it.

use std::ops::Range;
use std::os::fd::OwnedFd;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

use lmt_copy::Distance;
use lmt_core::buffer::{Access, Buffer};
use lmt_core::cursor::Cursor;
use lmt_core::error::MemoryError;
use lmt_core::mechanism::Fault;
use lmt_core::memory_limits::spare_address_space;
use lmt_core::shared_memory::{AttachError, SharedMemory};

use crate::copier::Copier;
use crate::piece::Piece;

const PURPOSE: &str = "the pipeline's pool of buffers";
const PEERS_PURPOSE: &str = "mapping the peer's pool of buffers";
const POOL_KEY: &str = "pool_transfers";
/// A peer's pool is mapped only where so many times its length of address space is
/// left, so that the next peer can connect, if only for short messages.
const SPARE_TIMES: u64 = 2;

/// A pool's memory, made here or by a peer, sealed and mapped.
#[derive(Debug)]
pub(crate) struct Mapping(SharedMemory);

impl Mapping {
    /// Makes a pool of `bytes` bytes, without memory yet, and the descriptor
    /// for peers.
    pub(crate) fn create(bytes: u64) -> Result<(Self, OwnedFd), MemoryError> {
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        let (memory, fd) = SharedMemory::create(PURPOSE, POOL_KEY, bytes, false)?;
        Ok((Self(memory), fd))
    }

    /// Whether a peer's pool of `bytes` bytes may be mapped.
    pub(crate) fn spare(bytes: u64) -> Result<(), MemoryError> {
        Ok(spare_address_space(PEERS_PURPOSE, POOL_KEY, bytes, SPARE_TIMES)?)
    }

    /// Maps a peer's pool, which must be of just `bytes` bytes for good.
    pub(crate) fn attach(fd: OwnedFd, bytes: u64) -> Result<Self, AttachError> {
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        SharedMemory::attach(fd, bytes, bytes).map(Self)
    }

    /// Takes memory for `range` now, rather than at the first touch, where want
    /// of it would kill the process.
    pub(crate) fn commit(&self, range: Range<u64>) -> Result<(), MemoryError> {
        let bytes = range.end.saturating_sub(range.start) as usize;
        self.0.commit_range(PURPOSE, "buffer_bytes", range.start as usize, bytes)
    }

    /// Where `bytes` bytes from `offset` on stand, if they lie in the mapping
    /// and this is not a forked child, which does not have it.
    fn at(&self, offset: u64, bytes: u64) -> Option<NonNull<u8>> {
        let end = offset.checked_add(bytes)?;
        if end > self.0.len() as u64 || !self.0.is_usable_here() {
            return None;
        }
        // SAFETY: `offset` is at most the mapping's length, checked above, so
        // the result is within it or just behind it.
        Some(unsafe { self.0.base().add(offset as usize) })
    }

    /// The word at `offset`, if there is one.
    pub(crate) fn word(&self, offset: u64) -> Option<&AtomicU64> {
        let at = self.at(offset, 8).filter(|_| offset.is_multiple_of(8))?;
        // SAFETY: 8 bytes of the mapping, which lives as long as the borrow;
        // aligned, since the mapping begins with a page. Words are only ever
        // touched as atomics, by every process; buffers lie elsewhere. The
        // seals keep the file from shrinking under it.
        Some(unsafe { AtomicU64::from_ptr(at.as_ptr().cast()) })
    }

    /// Has `copier` copy `bytes` bytes of `data`, from `from` on, to `offset`.
    #[inline]
    pub(crate) fn copy_in<C: Copier>(
        &self,
        copier: &mut C,
        offset: u64,
        data: &Buffer,
        from: &mut Cursor,
        bytes: u64,
    ) -> Result<Begun<C::Ticket>, Fault> {
        let Some(slot) = self.at(offset, bytes) else {
            return Ok(Begun { bytes: 0, ticket: None });
        };
        let mut begun = 0;
        let ticket = copier.start(std::iter::from_fn(|| {
            let piece = from.take(data.segments(), bytes - begun)?;
            let address = data.segments()[piece.index].address + piece.offset as usize;
            // SAFETY: `begun` is below `bytes`, which lie in the mapping.
            let to = unsafe { slot.add(begun as usize) };
            begun += piece.bytes;
            let from = std::ptr::with_exposed_provenance(address);
            // SAFETY: the segment is of a lent buffer, the other end in the mapping, and
            // both have so many bytes; buffers do not lie in the mapping.
            Some(unsafe { Piece::new(from, to.as_ptr(), piece.bytes as usize, Distance::Peer) })
        }))?;
        Ok(Begun { bytes: begun, ticket })
    }

    /// Has `copier` copy `bytes` bytes at `offset` into `data`, from `to` on.
    /// Nothing is copied into a buffer that is lent for reading.
    #[inline]
    pub(crate) fn copy_out<C: Copier>(
        &self,
        copier: &mut C,
        offset: u64,
        data: &mut Buffer,
        to: &mut Cursor,
        bytes: u64,
    ) -> Result<Begun<C::Ticket>, Fault> {
        let Some(slot) = self.at(offset, bytes).filter(|_| data.access() == Access::Write) else {
            return Ok(Begun { bytes: 0, ticket: None });
        };
        let mut begun = 0;
        let ticket = copier.start(std::iter::from_fn(|| {
            let piece = to.take(data.segments(), bytes - begun)?;
            let address = data.segments()[piece.index].address + piece.offset as usize;
            // SAFETY: `begun` is below `bytes`, which lie in the mapping.
            let from = unsafe { slot.add(begun as usize) };
            begun += piece.bytes;
            let to = std::ptr::with_exposed_provenance_mut(address);
            // SAFETY: as in `copy_in`, and the buffer is lent for writing.
            Some(unsafe { Piece::new(from.as_ptr(), to, piece.bytes as usize, Distance::Near) })
        }))?;
        Ok(Begun { bytes: begun, ticket })
    }
}

/// What [`Mapping::copy_in`] and [`Mapping::copy_out`] have a copier do.
#[derive(Debug)]
pub(crate) struct Begun<T> {
    /// How many bytes there were: fewer than asked for where the mapping or the
    /// buffer ends.
    pub(crate) bytes: u64,
    /// The copy, if it is still in flight.
    pub(crate) ticket: Option<T>,
}

#[cfg(test)]
#[path = "sys_tests.rs"]
mod tests;
