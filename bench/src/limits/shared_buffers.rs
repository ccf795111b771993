//! Buffers that both processes have mapped.
#![allow(unsafe_code)] // Lends memory of a mapping.

use std::fs::{File, OpenOptions};
use std::io;

use memmap2::{MmapOptions, MmapRaw};

use super::copy::{Stores, copy};
use super::sys::memory_file;
use crate::memory::mix;

pub(super) const PURPOSE: &str = "the buffers that both processes map";

pub(super) const KEY: &str = "--sizes";

/// Which of a process's two buffers.
#[derive(Clone, Copy, Debug)]
pub(super) enum Part {
    Outgoing,
    Incoming,
}

/// Both buffers of both processes, in one memfd that both have mapped.
#[derive(Debug)]
pub(super) struct SharedBuffers {
    map: MmapRaw,
    pub(super) file: File,
    /// Length of each of the four.
    pub(super) bytes: usize,
}

impl SharedBuffers {
    /// Filled as the buffers of all other patterns are: some processors store zeros past the
    /// caches at twice the speed of anything else.
    pub(super) fn create(bytes: usize) -> io::Result<Self> {
        let file = memory_file(PURPOSE, KEY, bytes.saturating_mul(4))?;
        let mut made = Self::map(file, bytes)?;
        for side in [0, 1] {
            for (part, byte) in [(Part::Outgoing, 1), (Part::Incoming, 2)] {
                made.lend(side, part, 0, bytes, |data| mix(data, byte));
            }
        }
        Ok(made)
    }

    pub(super) fn open(card: &str, bytes: usize) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).open(card)?;
        if file.metadata()?.len() < 4 * bytes as u64 {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the shared buffers are too short"));
        }
        Self::map(file, bytes)
    }

    /// Maps the memory with all its pages present, as malloc'ed buffers that
    /// were written are.
    fn map(file: File, bytes: usize) -> io::Result<Self> {
        let map = MmapOptions::new().len(4 * bytes).populate().map_raw(&file)?;
        Ok(Self { map, file, bytes })
    }

    /// Where `bytes` bytes from `offset` on of a buffer of process `side` are.
    fn place(&self, side: usize, part: Part, offset: usize, bytes: usize) -> *mut u8 {
        assert!(side < 2 && offset <= self.bytes && bytes <= self.bytes - offset, "beyond the buffer");
        let buffer = 2 * side + usize::from(matches!(part, Part::Incoming));
        // SAFETY: buffer is at most 3 and offset at most the length of one, so
        // the sum lies inside the mapping of four.
        unsafe { self.map.as_mut_ptr().add(buffer * self.bytes + offset) }
    }

    /// Copies between the sender's outgoing buffer and the receiver's incoming.
    pub(super) fn transfer(&self, sender: usize, from: usize, into: usize, bytes: usize, stores: Stores) {
        let from = self.place(sender, Part::Outgoing, from, bytes);
        let into = self.place(1 - sender, Part::Incoming, into, bytes);
        // SAFETY: both are mapped for `bytes` bytes, and lie in different
        // buffers. While a message is on its way nobody writes the sender's
        // bytes, and each of the receiver's is written by the one process whose
        // part it is, and read after the flag that says that it was.
        unsafe { copy(into, from, bytes, stores) };
    }

    /// Lends a message's bytes to its only user.
    pub(super) fn lend<R>(
        &mut self,
        side: usize,
        part: Part,
        offset: usize,
        bytes: usize,
        work: impl FnOnce(&mut [u8]) -> R,
    ) -> R {
        let place = self.place(side, part, offset, bytes);
        // SAFETY: mapped for `bytes` bytes, as `place` proved; any byte is
        // valid. `self` is borrowed mutably, so this process has no other
        // reference; the other process touches these bytes only between the
        // flags that begin and end a message, where this is not called.
        work(unsafe { std::slice::from_raw_parts_mut(place, bytes) })
    }
}
