//! The pool's memory: made, sealed, checked, mapped, and copied through.
#![allow(unsafe_code)] // The only file of this crate with unsafe code.

use std::num::NonZeroUsize;
use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

use lmt_core::buffer::{Access, Buffer};
use lmt_core::cursor::Cursor;
use nix::errno::Errno;
use nix::fcntl::{FallocateFlags, FcntlArg, SealFlag, fallocate, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::mman::{MapFlags, MmapAdvise, ProtFlags, madvise, mmap, munmap};
use nix::sys::stat::fstat;
use nix::sys::statfs::{HUGETLBFS_MAGIC, fstatfs};

/// Shared memory, mapped; it can neither shrink nor grow, by seals.
#[derive(Debug)]
pub(crate) struct Mapping {
    base: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the mapping belongs to no thread; what is behind it is only touched
// through atomics and copies of bytes.
unsafe impl Send for Mapping {}

/// Makes a memory file of `bytes` bytes, without a name and without memory yet,
/// whose size is fixed for good.
pub(crate) fn create(bytes: u64) -> Result<OwnedFd, Errno> {
    let fd = memfd_create("lmt-shm", MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING)?;
    nix::unistd::ftruncate(&fd, i64::try_from(bytes).map_err(|_| Errno::EFBIG)?)?;
    let seals = SealFlag::F_SEAL_SHRINK | SealFlag::F_SEAL_GROW | SealFlag::F_SEAL_SEAL;
    fcntl(&fd, FcntlArg::F_ADD_SEALS(seals))?;
    Ok(fd)
}

/// Whether a descriptor, from a peer, is memory of just this size for good.
pub(crate) fn is_sealed_memory(fd: &OwnedFd, bytes: u64) -> Result<bool, Errno> {
    let seals = SealFlag::from_bits_retain(fcntl(fd, FcntlArg::F_GET_SEALS)?);
    let fixed = SealFlag::F_SEAL_SHRINK | SealFlag::F_SEAL_GROW;
    // Huge pages may be missing when they are first touched: SIGBUS.
    let plain = fstatfs(fd)?.filesystem_type() != HUGETLBFS_MAGIC;
    Ok(seals.contains(fixed) && plain && u64::try_from(fstat(fd)?.st_size) == Ok(bytes))
}

/// Takes memory for `range` of the file now, rather than at the first touch,
/// where want of it would kill the process.
pub(crate) fn commit(fd: &OwnedFd, range: Range<u64>) -> Result<(), Errno> {
    allocate(fd, FallocateFlags::empty(), range)
}

/// Gives the memory of `range` back; it reads as zeros then.
pub(crate) fn give_back(fd: &OwnedFd, range: Range<u64>) -> Result<(), Errno> {
    allocate(fd, FallocateFlags::FALLOC_FL_PUNCH_HOLE | FallocateFlags::FALLOC_FL_KEEP_SIZE, range)
}

fn allocate(fd: &OwnedFd, flags: FallocateFlags, range: Range<u64>) -> Result<(), Errno> {
    let start = i64::try_from(range.start).map_err(|_| Errno::EFBIG)?;
    let bytes = i64::try_from(range.end.saturating_sub(range.start)).map_err(|_| Errno::EFBIG)?;
    loop {
        match fallocate(fd.as_fd(), flags, start, bytes) {
            Err(Errno::EINTR) => {}
            result => return result,
        }
    }
}

impl Mapping {
    /// Maps `bytes` bytes of a file that [`create`] made or
    /// [`is_sealed_memory`] approved. A forked child does not inherit it.
    pub(crate) fn new(fd: &OwnedFd, bytes: u64) -> Result<Self, Errno> {
        let length = usize::try_from(bytes).ok().and_then(NonZeroUsize::new).ok_or(Errno::EINVAL)?;
        let protection = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice replaces
        // nothing.
        let base = unsafe { mmap(None, length, protection, MapFlags::MAP_SHARED, fd, 0) }?.cast::<u8>();
        let mapping = Self { base, bytes: length.get() };
        // SAFETY: this is the mapping made above, whole; the advice changes
        // nothing in this process.
        unsafe { madvise(base.cast(), mapping.bytes, MmapAdvise::MADV_DONTFORK) }?;
        Ok(mapping)
    }

    /// Where `bytes` bytes from `offset` on stand, if they lie in the mapping.
    fn at(&self, offset: u64, bytes: u64) -> Option<NonNull<u8>> {
        let end = offset.checked_add(bytes)?;
        if end > self.bytes as u64 {
            return None;
        }
        // SAFETY: `offset` is at most the mapping's length, checked above, so
        // the result is within it or just behind it.
        Some(unsafe { self.base.add(offset as usize) })
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

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, whole, and every borrow of it has ended.
        // A failure could only leave it in place.
        let _ = unsafe { munmap(self.base.cast(), self.bytes) };
    }
}

#[cfg(test)]
#[path = "sys_tests.rs"]
mod tests;
