//! The writing end of a box.

use std::os::fd::OwnedFd;

use super::memory::{BoxMemory, CELLS, PIECE_BYTES};
use super::ring::{BoxFull, Writer};
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
            match payload {
                Payload::Bytes(bytes) => self.memory.write(cell, 0, bytes),
                Payload::Part(buffer, range) => self.memory.write_from(cell, buffer, range.clone()),
                Payload::Two(first, second) => {
                    self.memory.write(cell, 0, first);
                    self.memory.write(cell, first.len(), second);
                }
            }
        }
        self.writer.publish(&shared, words, kind, with_cell);
        Ok(())
    }
}
