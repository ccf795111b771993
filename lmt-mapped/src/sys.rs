//! A peer's arena, mapped here, and the copies between it and a message.
#![allow(unsafe_code)] // Copies between mapped and lent memory.

use lmt_core::buffer::Buffer;
use lmt_core::cursor::{Cursor, Extent};
use lmt_core::mapped_copy::{PieceCopy, copy_mapped};
use lmt_core::mapping_cache::Length;
use lmt_core::mechanism::Role;
use lmt_core::shared_buffer::{LeaseWord, lease_in};
use lmt_core::shared_memory::SharedMemory;

use crate::cookie::WirePart;

/// A peer's arena.
#[derive(Debug)]
pub(crate) struct Mapping(SharedMemory);

/// A piece of it, which was checked to lie within.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Piece {
    pub offset: u64,
    pub bytes: u64,
}

impl Extent for Piece {
    fn extent_bytes(&self) -> u64 {
        self.bytes
    }
}

impl Length for Mapping {
    fn length_bytes(&self) -> u64 {
        self.0.len() as u64
    }
}

impl Mapping {
    pub fn new(memory: SharedMemory) -> Self {
        Self(memory)
    }

    pub fn bytes(&self) -> u64 {
        self.0.len() as u64
    }

    pub fn lease(&self, line: u32) -> Option<&LeaseWord> {
        lease_in(&self.0, line)
    }

    /// The address of `bytes` bytes from `offset` on, if they lie in it.
    fn at(&self, offset: u64, bytes: u64) -> Option<*mut u8> {
        let end = offset.checked_add(bytes)?;
        if end > self.bytes() || !self.0.is_usable_here() {
            return None;
        }
        Some(self.0.base().as_ptr().wrapping_add(offset as usize))
    }

    /// Copies a list of pieces out, once: the peer may change it meanwhile.
    pub fn read_list(&self, [offset, bytes]: WirePart) -> Option<Vec<WirePart>> {
        let source = self.at(offset, bytes)?;
        let mut list = vec![[0u64; 2]; usize::try_from(bytes).ok()? / size_of::<WirePart>()];
        let room = list.len() * size_of::<WirePart>();
        // SAFETY: `at` has checked that `bytes` bytes, which `room` is no more
        // than, are mapped there; the vector is as long, and apart from them.
        // Any bytes are valid numbers.
        unsafe { std::ptr::copy_nonoverlapping(source, list.as_mut_ptr().cast(), room) };
        Some(list)
    }

    /// Copies up to `max_bytes` between `data`, from `local_at` on, and the
    /// pieces, from `remote_at` on: into `data` for a receiver, out of it for a
    /// sender. Returns how many bytes; fewer where either ends, or where `data`
    /// is not lent for that.
    pub fn copy(
        &self,
        role: Role,
        data: &mut Buffer,
        local_at: &mut Cursor,
        pieces: &[Piece],
        remote_at: &mut Cursor,
        max_bytes: u64,
    ) -> u64 {
        let remote = |most| {
            let far = remote_at.take(pieces, most)?;
            Some((self.at(pieces[far.index].offset + far.offset, far.bytes)?, far.bytes))
        };
        let copy = |PieceCopy { target, source, bytes, distance }: PieceCopy| {
            // SAFETY: one end has `bytes` bytes mapped (`at`), of any values; the other
            // lies in a segment that is lent for this and borrowed exclusively here
            // (`copy_mapped`). They are two mappings, so they do not overlap. A peer that
            // uses its memory meanwhile garbles its own message.
            unsafe { lmt_copy::copy_toward(target, source, bytes, distance) };
            true
        };
        copy_mapped(role, data, local_at, max_bytes, remote, copy)
    }
}

#[cfg(test)]
#[path = "sys_tests.rs"]
mod tests;
