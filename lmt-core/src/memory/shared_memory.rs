//! Memory that two processes share: a sealed memfd, mapped.
//!
//! No name in a file system, so nothing is left behind after any death, and no
//! limit of /dev/shm applies. The seals keep every holder from changing the
//! size, so that no peer can make an access fault (memfd_create(2), fcntl(2),
//! F_ADD_SEALS).
#![allow(unsafe_code)] // Touches pages that were mapped here.

use std::hint::black_box;
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU8, Ordering};

use memmap2::{Advice, MmapOptions, MmapRaw};
use nix::errno::Errno;
use nix::fcntl::{FallocateFlags, FcntlArg, SealFlag, fallocate, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::stat::fstat;
use nix::sys::statfs::{TMPFS_MAGIC, fstatfs};

use super::limits::{Available, PAGES, available, ensure_available};
use crate::base::errno_advice::{advice, is_memory};
use crate::base::fork_guard::Origin;
use crate::vocabulary::error::MemoryError;

const PAGE_BYTES: usize = 4096;

/// Why a peer's memory was not mapped.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AttachError {
    /// It can change its size under us.
    #[error(
        "the peer's shared memory is not sealed against shrinking and growing; it must be a memfd with both seals"
    )]
    NotSealed,
    /// It is a memfd of huge pages, or no memfd: accesses may fault.
    #[error("the peer's shared memory is not an ordinary memfd; accesses to it could fault")]
    NotOrdinary,
    /// It is too small or too large.
    #[error("the peer's shared memory has {bytes} bytes; it must have {min_bytes} to {max_bytes}")]
    WrongSize {
        /// Its size.
        bytes: u64,
        /// The least that makes sense.
        min_bytes: u64,
        /// The most that is accepted.
        max_bytes: u64,
    },
    /// What it contains is not what it should be.
    #[error("the peer's shared memory is not laid out as expected: {what}")]
    WrongContent {
        /// What is wrong.
        what: &'static str,
    },
    /// A system call failed.
    #[error("{call} on the peer's shared memory failed: {errno}; {}", advice(call, *errno))]
    System {
        /// Which call.
        call: &'static str,
        /// What the kernel said.
        errno: Errno,
    },
}

/// A system call that failed, by its name.
type Failure = (&'static str, Errno);

/// The error of memory for `purpose`: how much there is where it is short, else
/// what the kernel answered.
fn failed(
    purpose: &'static str,
    key: &'static str,
    needed_bytes: u64,
    (call, errno): Failure,
) -> MemoryError {
    if !is_memory(errno) {
        return MemoryError::Call { purpose, call, errno };
    }
    let now = available(needed_bytes);
    let limit = format!("{call}: {errno}; {}", now.limit);
    Available { limit, ..now }.short(purpose, key, needed_bytes).into()
}

/// The number of an error of the system.
fn errno_of(error: &std::io::Error) -> Errno {
    Errno::from_raw(error.raw_os_error().unwrap_or(libc::EINVAL))
}

/// A length as the kernel takes it.
fn length(bytes: usize) -> Result<libc::off_t, Errno> {
    libc::off_t::try_from(bytes).map_err(|_| Errno::EFBIG)
}

/// A shared mapping, unmapped when dropped. A forked child does not have it:
/// there, [`SharedMemory::is_usable_here`] is false and nothing may touch it.
///
/// It may move between threads and be shared by them: it is an address range of
/// the process, tied to no thread, and offers no access but through the raw
/// pointer, whose users answer for theirs.
#[derive(Debug)]
pub struct SharedMemory {
    map: ManuallyDrop<MmapRaw>,
    origin: Origin,
}

impl SharedMemory {
    /// Makes `bytes` bytes of zeroed shared memory; the descriptor is for
    /// handing to peers. With `commit` all of it is allocated now, so that no
    /// later write can fail (a failing one is SIGBUS); without, pages are
    /// taken as they are touched, see [`SharedMemory::commit_range`].
    /// `purpose` and `key` (a configuration key) go into the error.
    ///
    /// # Errors
    /// [`MemoryError`] when memory, address space, file size or descriptors do
    /// not suffice, or the kernel refuses a call.
    pub fn create(
        purpose: &'static str,
        key: &'static str,
        bytes: usize,
        commit: bool,
    ) -> Result<(Self, OwnedFd), MemoryError> {
        Self::create_partly(purpose, key, bytes, if commit { bytes } else { 0 })
    }

    /// The same, with only the first `committed_bytes` bytes allocated now.
    pub(crate) fn create_partly(
        purpose: &'static str,
        key: &'static str,
        bytes: usize,
        committed_bytes: usize,
    ) -> Result<(Self, OwnedFd), MemoryError> {
        let needed = bytes as u64;
        ensure_available(purpose, key, needed, committed_bytes != 0)?;
        Self::make(bytes, committed_bytes).map_err(|failure| failed(purpose, key, needed, failure))
    }

    fn make(bytes: usize, committed_bytes: usize) -> Result<(Self, OwnedFd), Failure> {
        let by = |call| move |errno: Errno| (call, errno);
        let flags = MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING;
        let fd = memfd_create("lmt", flags).map_err(by("memfd_create"))?;
        let length_bytes = length(bytes).map_err(by("ftruncate"))?;
        nix::unistd::ftruncate(&fd, length_bytes).map_err(by("ftruncate"))?;
        if committed_bytes != 0 {
            let committed = length(committed_bytes).map_err(by("fallocate"))?;
            retry(|| fallocate(&fd, FallocateFlags::empty(), 0, committed)).map_err(by("fallocate"))?;
        }
        let seals = SealFlag::F_SEAL_SHRINK | SealFlag::F_SEAL_GROW | SealFlag::F_SEAL_SEAL;
        fcntl(&fd, FcntlArg::F_ADD_SEALS(seals)).map_err(by("fcntl(F_ADD_SEALS)"))?;
        Ok((Self::map(&fd, bytes)?, fd))
    }

    /// Maps the memory that a peer made, and closes the descriptor.
    ///
    /// # Errors
    /// [`AttachError`] when the memory could change its size or fault, has a
    /// size outside `min_bytes..=max_bytes`, or the kernel refuses.
    pub fn attach(fd: OwnedFd, min_bytes: usize, max_bytes: usize) -> Result<Self, AttachError> {
        let seals = match fcntl(&fd, FcntlArg::F_GET_SEALS) {
            Ok(bits) => SealFlag::from_bits_retain(bits),
            Err(Errno::EINVAL) => return Err(AttachError::NotOrdinary), // No memfd at all.
            Err(errno) => return Err(AttachError::System { call: "fcntl(F_GET_SEALS)", errno }),
        };
        if !seals.contains(SealFlag::F_SEAL_SHRINK | SealFlag::F_SEAL_GROW) {
            return Err(AttachError::NotSealed);
        }
        let kind = fstatfs(fd.as_fd()).map_err(|errno| AttachError::System { call: "fstatfs", errno })?;
        if kind.filesystem_type() != TMPFS_MAGIC {
            return Err(AttachError::NotOrdinary);
        }
        let stat = fstat(&fd).map_err(|errno| AttachError::System { call: "fstat", errno })?;
        let bytes = u64::try_from(stat.st_size).unwrap_or(0);
        let (least, most) = (min_bytes as u64, max_bytes as u64);
        if !(least..=most).contains(&bytes) {
            return Err(AttachError::WrongSize { bytes, min_bytes: least, max_bytes: most });
        }
        // No more than `max_bytes`, so it fits.
        Self::map(&fd, bytes as usize).map_err(|(call, errno)| AttachError::System { call, errno })
    }

    fn map(fd: &OwnedFd, bytes: usize) -> Result<Self, Failure> {
        let map = MmapOptions::new().len(bytes).map_raw(fd).map_err(|error| ("mmap", errno_of(&error)))?;
        // On failure its own drop unmaps it.
        map.advise(Advice::DontFork).map_err(|error| ("madvise(MADV_DONTFORK)", errno_of(&error)))?;
        Ok(Self { map: ManuallyDrop::new(map), origin: Origin::here() })
    }

    /// The first byte.
    #[inline]
    pub fn base(&self) -> NonNull<u8> {
        // SAFETY: it is what mmap(2) gave without MAP_FIXED, which POSIX never places at address
        // zero (mmap(3p)).
        unsafe { NonNull::new_unchecked(self.map.as_mut_ptr()) }
    }

    /// How many bytes are mapped.
    #[inline]
    pub fn len(&self) -> usize {
        self.map.len()
    }

    /// Whether nothing is mapped.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether this is the process that mapped it, and no forked child.
    #[inline]
    pub fn is_usable_here(&self) -> bool {
        self.origin.is_this_process()
    }

    /// Allocates the pages of `bytes` bytes from `offset` on, so that no later
    /// write to them can fail. What lies past the end is left out.
    ///
    /// # Errors
    /// [`MemoryError`] when the kernel has not got them, or a limit is near past
    /// which it would kill: free memory, or that of the process's cgroup.
    pub fn commit_range(
        &self,
        purpose: &'static str,
        key: &'static str,
        offset: usize,
        bytes: usize,
    ) -> Result<(), MemoryError> {
        let start = offset.min(self.len()) / PAGE_BYTES * PAGE_BYTES;
        let end = offset.saturating_add(bytes).min(self.len());
        if start >= end || bytes == 0 {
            return Ok(());
        }
        let needed = (end - start) as u64;
        PAGES.take(needed).map_err(|limit| limit.short(purpose, key, needed))?;
        let result = loop {
            match self.map.advise_range(Advice::PopulateWrite, start, end - start) {
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                other => break other,
            }
        };
        match result {
            Ok(()) => Ok(()),
            // Before Linux 5.14: no such advice, so touch each page.
            Err(e) if e.raw_os_error() == Some(libc::EINVAL) => {
                self.touch(start, end);
                Ok(())
            }
            Err(error) => {
                Err(failed(purpose, key, needed, ("madvise(MADV_POPULATE_WRITE)", errno_of(&error))))
            }
        }
    }

    /// Asks for huge pages where the kernel gives them to shared memory
    /// (madvise(2), MADV_HUGEPAGE; `shmem_enabled` of transparent huge pages).
    /// Most systems do not, and then nothing changes.
    pub(crate) fn advise_huge_pages(&self) {
        let _ = self.map.advise(Advice::HugePage);
    }

    /// Writes to each page from `start` to `end` without changing it.
    fn touch(&self, start: usize, end: usize) {
        for offset in (start..end).step_by(PAGE_BYTES) {
            // SAFETY: `offset < end <= len`, so the address is within the mapping.
            let byte = unsafe { self.base().as_ptr().add(offset) };
            // SAFETY: a mapped, writable byte for as long as `self` is
            // borrowed; peers that use it at the same time do so atomically or
            // are misbehaving, which costs them their own data only.
            let byte = unsafe { AtomicU8::from_ptr(byte) };
            // Relaxed: nothing is communicated; it is a read-modify-write so
            // that what a peer stores at this moment is not lost, with a zero
            // that the compiler does not see, or it would drop the write.
            byte.fetch_or(black_box(0), Ordering::Relaxed);
        }
    }
}

impl Drop for SharedMemory {
    fn drop(&mut self) {
        // In a forked child the range is not ours (MADV_DONTFORK): something
        // else may be mapped there by now.
        if self.origin.is_this_process() {
            // SAFETY: dropped once, here; `self.map` is not used afterwards.
            unsafe { ManuallyDrop::drop(&mut self.map) };
        }
    }
}

/// Gives the memory of a part of a memfd back, which reads as zeros then; the
/// pages are the kernel's again at once (fallocate(2), FALLOC_FL_PUNCH_HOLE).
///
/// # Errors
/// The kernel's refusal.
pub fn give_back(fd: &OwnedFd, range: std::ops::Range<u64>) -> Result<(), Errno> {
    let start = i64::try_from(range.start).map_err(|_| Errno::EFBIG)?;
    let bytes = i64::try_from(range.end.saturating_sub(range.start)).map_err(|_| Errno::EFBIG)?;
    let flags = FallocateFlags::FALLOC_FL_PUNCH_HOLE | FallocateFlags::FALLOC_FL_KEEP_SIZE;
    retry(|| fallocate(fd, flags, start, bytes))
}

fn retry(mut call: impl FnMut() -> nix::Result<()>) -> nix::Result<()> {
    loop {
        match call() {
            Err(Errno::EINTR) => {}
            other => return other,
        }
    }
}

#[cfg(test)]
#[path = "shared_memory_tests.rs"]
mod tests;
