//! The pool's memory: made, sealed, checked, mapped, and copied through.
#![allow(unsafe_code)] // The only file of this crate with unsafe code.

use std::ops::Range;
use std::os::fd::OwnedFd;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

use lmt_core::buffer::{Access, Buffer};
use lmt_core::cursor::Cursor;
use lmt_core::error::MemoryShort;
use lmt_core::shared_memory::{AttachError, SharedMemory};
use nix::errno::Errno;
use nix::fcntl::{FallocateFlags, fallocate};

const PURPOSE: &str = "the pipeline's pool of buffers";

/// A pool's memory, made here or by a peer, sealed and mapped.
#[derive(Debug)]
pub(crate) struct Mapping(SharedMemory);

/// Gives the memory of `range` back; it reads as zeros then.
pub(crate) fn give_back(fd: &OwnedFd, range: Range<u64>) -> Result<(), Errno> {
    let start = i64::try_from(range.start).map_err(|_| Errno::EFBIG)?;
    let bytes = i64::try_from(range.end.saturating_sub(range.start)).map_err(|_| Errno::EFBIG)?;
    let flags = FallocateFlags::FALLOC_FL_PUNCH_HOLE | FallocateFlags::FALLOC_FL_KEEP_SIZE;
    loop {
        match fallocate(fd, flags, start, bytes) {
            Err(Errno::EINTR) => {}
            result => return result,
        }
    }
}

impl Mapping {
    /// Makes a pool of `bytes` bytes, without memory yet, and the descriptor
    /// for peers.
    pub(crate) fn create(bytes: u64) -> Result<(Self, OwnedFd), MemoryShort> {
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        let (memory, fd) = SharedMemory::create(PURPOSE, "pool_transfers", bytes, false)?;
        Ok((Self(memory), fd))
    }

    /// Maps a peer's pool, which must be of just `bytes` bytes for good.
    pub(crate) fn attach(fd: OwnedFd, bytes: u64) -> Result<Self, AttachError> {
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        SharedMemory::attach(fd, bytes, bytes).map(Self)
    }

    /// Takes memory for `range` now, rather than at the first touch, where want
    /// of it would kill the process.
    pub(crate) fn commit(&self, range: Range<u64>) -> Result<(), MemoryShort> {
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

    /// Copies `bytes` bytes of `data`, from `from` on, to `offset`; returns how
    /// many there were.
    pub(crate) fn copy_in(&self, offset: u64, data: &Buffer, from: &mut Cursor, bytes: u64) -> u64 {
        let Some(target) = self.at(offset, bytes) else {
            return 0;
        };
        let mut done = 0;
        while let Some(piece) = from.take(data.segments(), bytes - done) {
            let address = data.segments()[piece.index].address + piece.offset as usize;
            let source = std::ptr::with_exposed_provenance::<u8>(address);
            // SAFETY: `done` is below `bytes`, which lie in the mapping.
            let into = unsafe { target.add(done as usize) };
            // SAFETY: the piece lies in a segment of `data`, whose maker
            // promised valid memory that nobody writes; `piece.bytes` is at
            // most `bytes - done`, which the mapping has from `into` on. The
            // mapping is ours, so the two cannot overlap. A peer that breaks
            // the rules may write there at the same time; bytes have no
            // invalid values, so only its own message is garbled.
            unsafe { std::ptr::copy_nonoverlapping(source, into.as_ptr(), piece.bytes as usize) };
            done += piece.bytes;
        }
        done
    }

    /// Copies `bytes` bytes at `offset` into `data`, from `to` on; returns how
    /// many fitted. Writes nothing to a buffer that is lent for reading.
    pub(crate) fn copy_out(&self, offset: u64, data: &mut Buffer, to: &mut Cursor, bytes: u64) -> u64 {
        let Some(source) = self.at(offset, bytes).filter(|_| data.access() == Access::Write) else {
            return 0;
        };
        let mut done = 0;
        while let Some(piece) = to.take(data.segments(), bytes - done) {
            let address = data.segments()[piece.index].address + piece.offset as usize;
            let target = std::ptr::with_exposed_provenance_mut::<u8>(address);
            // SAFETY: `done` is below `bytes`, which lie in the mapping.
            let from = unsafe { source.add(done as usize) };
            // SAFETY: as in `copy_in`, with the directions exchanged; `data` is
            // lent for writing, checked above, and borrowed exclusively.
            unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), target, piece.bytes as usize) };
            done += piece.bytes;
        }
        done
    }
}

#[cfg(test)]
#[path = "sys_tests.rs"]
mod tests;
