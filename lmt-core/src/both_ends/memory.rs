//! The lines in shared memory: made by the endpoint whose messages they are for, and
//! mapped by its peers.
#![allow(unsafe_code)] // Touches words of pages that were mapped here.

use std::os::fd::OwnedFd;
use std::sync::atomic::AtomicU64;

use super::line::Words;
use crate::memory::shared_memory::SharedMemory;

/// How many lines an endpoint has: so many messages of a mechanism can come in
/// by both ends at once; more come in by the receiver alone.
pub(super) const LINES: u32 = 64;

/// The sender's word stands a pair of cache lines behind the shared one, since
/// processors fetch pairs.
const RETIRED_OFFSET: usize = 128;

const LINE_BYTES: usize = 256;

const BYTES: usize = LINES as usize * LINE_BYTES;

impl Words<'_> {
    /// Asks for the shared word, which the other end has changed last, before this end
    /// changes it: read first, its cache line would cross once to be read and once to be
    /// written.
    #[inline]
    pub(super) fn prefetch_for_write(self) {
        lmt_copy::prefetch_for_write(self.shared.as_ptr().cast(), size_of::<AtomicU64>());
    }

    /// Asks for both words of a line that is to be opened soon: the one that is written
    /// then, and the one that is read.
    #[inline]
    pub(super) fn prefetch(self) {
        self.prefetch_for_write();
        lmt_copy::prefetch(self.retired.as_ptr().cast_const().cast(), size_of::<AtomicU64>());
    }
}

/// Lines, of this endpoint or a peer's.
#[derive(Debug)]
pub(super) struct Lines(SharedMemory);

impl Lines {
    /// Makes lines, with the descriptor for peers; `None` where there is no
    /// memory for them, which costs the help of senders and nothing else.
    pub(super) fn create() -> Option<(Self, OwnedFd)> {
        let (memory, fd) = SharedMemory::create("claims of both ends", "mechanism", BYTES, true).ok()?;
        Some((Self(memory), fd))
    }

    /// Maps a peer's lines.
    pub(super) fn attach(fd: OwnedFd) -> Option<Self> {
        SharedMemory::attach(fd, BYTES, BYTES).ok().map(Self)
    }

    /// The words of a line, if there is such a line and this is no forked
    /// child, which does not have them.
    #[inline]
    pub(super) fn words(&self, line: u32) -> Option<Words<'_>> {
        if line >= LINES || !self.0.is_usable_here() {
            return None;
        }
        let offset = line as usize * LINE_BYTES;
        Some(Words { shared: self.word(offset), retired: self.word(offset + RETIRED_OFFSET) })
    }

    /// The word at `offset`, which is a multiple of 8 below [`BYTES`].
    fn word(&self, offset: usize) -> &AtomicU64 {
        debug_assert!(offset.is_multiple_of(8) && offset < BYTES);
        // SAFETY: callers give offsets below BYTES, the mapping's length.
        let at = unsafe { self.0.base().as_ptr().add(offset) };
        // SAFETY: 8 bytes of the mapping, which lives as long as the borrow;
        // aligned, since the mapping begins with a page and `offset` is a
        // multiple of 8. All processes touch them as atomics only, and the
        // seals keep the file from shrinking under them.
        unsafe { AtomicU64::from_ptr(at.cast()) }
    }
}
