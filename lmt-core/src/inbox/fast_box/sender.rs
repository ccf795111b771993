//! The writing end of a box.

use std::os::fd::OwnedFd;

use super::memory::{BoxMemory, CELLS, PIECE_BYTES};
use super::ring::{BoxFull, Writer};
use crate::buffer::Buffer;
use crate::inbox::layout::INLINE_BYTES;
use crate::inbox::sender::Payload;
use crate::shared_memory::AttachError;

/// Puts messages into the box that one peer made for this endpoint.
#[derive(Debug)]
pub(crate) struct BoxSender {
    memory: BoxMemory,
    writer: Writer,
}

impl BoxSender {
    /// Attaches to the box behind `fd`.
    ///
    /// # Errors
    /// [`AttachError`] when it is none, or could fault.
    pub(crate) fn attach(fd: OwnedFd) -> Result<Self, AttachError> {
        let memory = BoxMemory::attach(fd)?;
        let writer = Writer::new(&memory.words(), CELLS);
        Ok(Self { memory, writer })
    }

    /// Whether a message of `bytes` bytes, in pieces, fits as a whole now.
    #[inline]
    pub(crate) fn has_room_for(&mut self, bytes: u64) -> bool {
        let pieces = bytes.div_ceil(PIECE_BYTES as u64).max(1);
        self.writer.has_room_for(&self.memory.words(), pieces)
    }

    /// Publishes one message of at most [`super::PIECE_BYTES`] bytes. `words`
    /// are the line's from 1 on, with the payload if it is inline.
    #[inline]
    pub(crate) fn send(
        &mut self,
        words: &[u64],
        bytes: usize,
        kind: u8,
        payload: &Payload<'_>,
    ) -> Result<(), BoxFull> {
        let shared = self.memory.words();
        let with_cell = bytes > INLINE_BYTES;
        let cell = self.writer.reserve(&shared, with_cell)?;
        if with_cell {
            let memory = &self.memory;
            let put_part = |buffer: &Buffer, range| memory.write_from(cell, buffer, range);
            payload.write(|at, bytes| memory.write(cell, at, bytes), put_part);
        }
        self.writer.publish(&shared, words, kind, with_cell);
        Ok(())
    }
}
