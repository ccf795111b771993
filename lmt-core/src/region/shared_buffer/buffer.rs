//! [`SharedBuffer`]: the memory as its owner sees it.
#![allow(unsafe_code)] // Views a block of an arena as a slice.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::Arc;

use super::arena::Arena;
use super::registry;
use super::registry::BlockName;
use crate::vocabulary::error::MemoryError;

/// Memory of this process that peers can map. It is a `[u8]`, and is given back
/// when it is dropped; memory that a peer is still copying then goes back when
/// the peer is done or dead.
pub struct SharedBuffer {
    arena: Arc<Arena>,
    offset: usize,
    bytes: usize,
}

/// Allocates `bytes` bytes, zeroed, for messages: a transfer from or to them is
/// one copy in user space, without a system call, and by both ends where both
/// buffers are such. Any endpoint of the process can use them, for any peer, and
/// any other memory works as before.
///
/// They begin at a cache line, from 4096 bytes on at a page. The memory is taken
/// at once, so that a later access cannot fail, and on the NUMA node of the
/// thread that calls. To allocate takes about as long as to write the bytes, so
/// buffers are to be used again and again.
///
/// A peer to or from which one of these buffers has gone can read and write all
/// of them that share its arena (64 MiB; buffers above 32 MiB are by themselves),
/// at any time. That is no more than peers can do anyway where process_vm_writev
/// works; where it is refused to them on purpose, allocate only what they may
/// see. Processes of other users never get so far unless `allow_other_users` is
/// set.
///
/// A forked child does not inherit them: to touch one there is a panic, to drop
/// one is nothing. It can allocate its own.
///
/// ```
/// let mut buffer = lmt_core::shared_buffer::alloc(1 << 20)?;
/// assert!(buffer.iter().all(|byte| *byte == 0));
/// buffer[..5].copy_from_slice(b"hello");
/// # Ok::<(), lmt_core::error::MemoryError>(())
/// ```
///
/// # Errors
/// [`MemoryError`] when memory, address space, file size or descriptors do not
/// suffice (memfd_create(2), mmap(2)).
pub fn alloc(bytes: usize) -> Result<SharedBuffer, MemoryError> {
    let (arena, offset) = registry::this_process().take(bytes, true)?;
    Ok(SharedBuffer { arena, offset, bytes })
}

/// As [`alloc`], but memory is taken when it is touched, and who touches it when
/// there is none left is killed by SIGBUS: for tests with messages longer than
/// memory. What was used before is not zeroed.
///
/// # Errors
/// [`MemoryError`].
#[doc(hidden)]
pub fn alloc_uncommitted(bytes: usize) -> Result<SharedBuffer, MemoryError> {
    let (arena, offset) = registry::this_process().take(bytes, false)?;
    Ok(SharedBuffer { arena, offset, bytes })
}

impl SharedBuffer {
    #[inline]
    fn first(&self) -> NonNull<u8> {
        assert!(
            self.arena.is_usable_here(),
            "a shared buffer belongs to the process that allocated it; a forked child allocates its own"
        );
        let address = self.arena.base_address() + self.offset;
        NonNull::new(std::ptr::with_exposed_provenance_mut(address)).unwrap_or(NonNull::dangling())
    }

    /// The arena that it is cut out of.
    pub const fn arena(&self) -> &Arc<Arena> {
        &self.arena
    }

    /// Where it begins in its arena.
    pub const fn offset(&self) -> usize {
        self.offset
    }

    pub(super) fn block(&self) -> BlockName {
        (self.arena.base_address(), self.offset)
    }
}

impl Deref for SharedBuffer {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: the registry has given `bytes` mapped and initialized bytes
        // from here on to this buffer alone until it is dropped. An honest peer
        // writes them only while they are lent to an operation, when nobody has
        // a reference; a dishonest one changes bytes, all values of which are
        // valid (the documentation of `alloc` says so).
        unsafe { std::slice::from_raw_parts(self.first().as_ptr(), self.bytes) }
    }
}

impl DerefMut for SharedBuffer {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and `self` is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.first().as_ptr(), self.bytes) }
    }
}

impl Drop for SharedBuffer {
    fn drop(&mut self) {
        if let Some(registry) = registry::existing().filter(|_| self.arena.is_usable_here()) {
            registry.give_back(&self.arena, self.offset);
        }
    }
}

impl fmt::Debug for SharedBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let arena = self.arena.id();
        f.debug_struct("SharedBuffer")
            .field("bytes", &self.bytes)
            .field("arena", &arena)
            .finish_non_exhaustive()
    }
}
