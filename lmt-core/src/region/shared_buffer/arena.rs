//! One piece of shared memory from which buffers are cut: lines for leases, then
//! the buffers.
#![allow(unsafe_code)] // Views mapped memory as leases and as bytes.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use nix::fcntl::{FallocateFlags, fallocate};

use super::lease::LeaseWord;
use crate::memory::limits::available;
use crate::memory::shared_memory::SharedMemory;
use crate::vocabulary::error::{MemoryError, MemoryShort};

/// Leases that can be open in one arena at once.
pub const LEASES: u32 = 1024;

/// Where the buffers begin; before that, a line for each lease.
pub const HEAD_BYTES: usize = LEASES as usize * size_of::<LeaseWord>();

pub(super) const PURPOSE: &str = "a shared buffer";

pub(super) const KEY: &str = "its length";

/// What is shorter is not asked of the limits, which takes longer than to take
/// the memory.
const CHECKED_BYTES: usize = 1 << 20;

/// Shared memory of this process from which buffers are cut.
#[derive(Debug)]
pub struct Arena {
    id: u32,
    memory: SharedMemory,
    descriptor: OwnedFd,
}

impl Arena {
    /// Makes one of this many bytes, the leases' among them, of which it takes
    /// memory for these only.
    pub(super) fn create(id: u32, bytes: usize) -> Result<Self, MemoryError> {
        let (memory, descriptor) = SharedMemory::create(PURPOSE, KEY, bytes, false)?;
        memory.commit_range(PURPOSE, KEY, 0, HEAD_BYTES)?;
        memory.advise_huge_pages();
        Ok(Self { id, memory, descriptor })
    }

    /// Its number in this process; none is given twice.
    pub const fn id(&self) -> u32 {
        self.id
    }

    /// Its bytes, the leases' among them.
    pub fn bytes(&self) -> usize {
        self.memory.len()
    }

    /// A descriptor of it, to be handed to a peer.
    ///
    /// # Errors
    /// The process has no descriptor left.
    pub fn descriptor(&self) -> io::Result<OwnedFd> {
        self.descriptor.try_clone()
    }

    /// Whether this is the process that made it, and no forked child.
    #[inline]
    pub fn is_usable_here(&self) -> bool {
        self.memory.is_usable_here()
    }

    /// Where it is mapped.
    #[inline]
    pub(super) fn base_address(&self) -> usize {
        self.memory.base().as_ptr().expose_provenance()
    }

    /// One of its leases.
    pub(super) fn lease(&self, line: u32) -> Option<&LeaseWord> {
        lease_in(&self.memory, line)
    }

    /// Takes the memory of these bytes, zeroed. They may have been used before,
    /// or not; then `used` says so.
    pub(super) fn commit(&self, offset: usize, bytes: usize, used: bool) -> Result<(), MemoryError> {
        if bytes >= CHECKED_BYTES {
            check_limits(bytes)?;
        }
        let has_no_pages = used && self.return_pages(offset, bytes);
        self.memory.commit_range(PURPOSE, KEY, offset, bytes)?;
        if used && !has_no_pages {
            // SAFETY: `offset` was cut out of this arena, so the address lies
            // within the mapping.
            let start = unsafe { self.memory.base().as_ptr().add(offset) };
            // SAFETY: as many bytes from there do, too, and no reference to
            // them is left: the buffer that had them is gone.
            unsafe { start.write_bytes(0, bytes) };
        }
        Ok(())
    }

    /// Gives the pages of these bytes back to the kernel, if they are whole ones
    /// and many; returns whether it has. What is read there after is zero.
    pub(super) fn return_pages(&self, offset: usize, bytes: usize) -> bool {
        let whole = offset.is_multiple_of(super::PAGE_BYTES) && bytes.is_multiple_of(super::PAGE_BYTES);
        if !whole || bytes < super::RETURNED_BYTES {
            return false;
        }
        let flags = FallocateFlags::FALLOC_FL_PUNCH_HOLE | FallocateFlags::FALLOC_FL_KEEP_SIZE;
        // Both fit: the file is no longer than `off_t` counts.
        let (start, length) = (offset as libc::off_t, bytes as libc::off_t);
        fallocate(self.descriptor.as_fd(), flags, start, length).is_ok()
    }
}

fn check_limits(bytes: usize) -> Result<(), MemoryShort> {
    let now = available(bytes as u64);
    match now.bytes {
        // The address space is taken already.
        Some(left) if left < bytes as u64 && now.uncommitted_bytes().is_none() => Err(MemoryShort {
            purpose: PURPOSE,
            needed_bytes: bytes as u64,
            available: left.to_string(),
            limit: now.limit,
            key: KEY,
        }),
        _ => Ok(()),
    }
}

/// A lease in an arena of this process or, mapped here, of a peer; none if the
/// memory has no such line.
pub fn lease_in(memory: &SharedMemory, line: u32) -> Option<&LeaseWord> {
    if line >= LEASES || memory.len() < HEAD_BYTES || !memory.is_usable_here() {
        return None;
    }
    let at = memory.base().as_ptr().wrapping_add(line as usize * size_of::<LeaseWord>());
    // SAFETY: the mapping is page-aligned, lives as long as `memory`, and the
    // line lies in it, aligned to 64. A lease is an atomic, which any bytes are
    // valid for and which other processes may change.
    Some(unsafe { &*at.cast::<LeaseWord>() })
}
