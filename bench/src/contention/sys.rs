//! Locking and pinning pages of another process, and nothing else.
#![allow(unsafe_code)]

use std::io;
use std::num::NonZeroUsize;
use std::ptr::NonNull;

use nix::sys::mman::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use nix::unistd::Pid;

/// Addresses into which nothing can be copied.
#[derive(Debug)]
pub(super) struct Sink {
    start: NonNull<libc::c_void>,
    bytes: NonZeroUsize,
}

impl Sink {
    /// Reserves so many bytes of addresses; no memory is taken.
    pub fn reserve(bytes: usize) -> io::Result<Self> {
        let bytes = NonZeroUsize::new(bytes).ok_or(io::ErrorKind::InvalidInput)?;
        let flags = MapFlags::MAP_PRIVATE | MapFlags::MAP_NORESERVE;
        // SAFETY: a new anonymous mapping at an address of the kernel's choice
        // touches no memory of anybody.
        let start = unsafe { mmap_anonymous(None, bytes, ProtFlags::PROT_NONE, flags) }?;
        Ok(Self { start, bytes })
    }

    /// Lets the kernel lock and pin all pages of the other process's `bytes` bytes
    /// from `address` on; it finds only then that they cannot be copied here.
    ///
    /// The kernel takes the pages of as many as fit into two pages of pointers at a
    /// time (`process_vm_rw_single_vec` in mm/process_vm_access.c): 1024 where pages
    /// have 4 KiB. What is longer is not all pinned.
    ///
    /// # Errors
    /// What the kernel says otherwise than EFAULT; or it did copy.
    pub fn pin(&self, pid: Pid, address: u64, bytes: usize) -> io::Result<()> {
        if bytes > self.bytes.get() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let ours = libc::iovec { iov_base: self.start.as_ptr(), iov_len: bytes };
        let there = usize::try_from(address).map_err(io::Error::other)?;
        let theirs = libc::iovec { iov_base: there as *mut libc::c_void, iov_len: bytes };
        // SAFETY: both lists are one live entry long. `ours` lies inside the
        // mapping, which lives as long as `self` and which nobody may write:
        // the kernel answers EFAULT instead. `theirs` is only looked up in the
        // other process.
        let copied = unsafe { libc::process_vm_readv(pid.as_raw(), &ours, 1, &theirs, 1, 0) };
        match (copied, io::Error::last_os_error()) {
            (-1, error) if error.raw_os_error() == Some(libc::EFAULT) => Ok(()),
            (-1, error) => Err(error),
            _ => Err(io::Error::other("the kernel copied to where nothing can be written")),
        }
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        // SAFETY: the mapping is this object's own, and nothing refers to it any
        // more. An error would leave addresses reserved, which harms nobody.
        let _ = unsafe { munmap(self.start, self.bytes.get()) };
    }
}

#[cfg(test)]
#[path = "sys_tests.rs"]
mod tests;
