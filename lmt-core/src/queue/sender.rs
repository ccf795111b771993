//! The sending end of a peer's inbox.

use std::os::fd::OwnedFd;

use super::fast_box::{FastBoxError, FastBoxSender, PIECE_BYTES};
use super::header::{Envelope, first_word};
use super::layout::{Credit, Geometry, HEADER_WORDS, INLINE_BYTES, InboxMemory};
use super::payload::{Payload, Piece};
use super::receiver::InboxReceiver;
use super::ring::{Claimer, LINE_WORDS};
use crate::memory::buffer::Buffer;
use crate::memory::shared_memory::AttachError;

/// A message is on its way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use = "a sleeping receiver must be woken"]
pub struct Sent {
    /// The receiver sleeps: ring its doorbell.
    pub wake: bool,
}

/// Why a message was not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// No free slot now. Polling the own inbox in between avoids deadlock.
    #[error("the peer's inbox is full; try again once it has drained some")]
    Full {
        /// The receiver sleeps: ring its doorbell, for it may have to pass over
        /// a sender that stopped.
        wake: bool,
    },
    /// The message is longer than a cell.
    #[error("a message of {bytes} bytes does not fit a cell; it must have at most {most_bytes}")]
    TooLong {
        /// Its length.
        bytes: u64,
        /// The cell's.
        most_bytes: usize,
    },
}

/// Puts messages into one peer's inbox. For one thread at a time.
#[derive(Debug)]
pub struct InboxSender {
    memory: InboxMemory,
    claimer: Claimer,
    me: u16,
    /// All messages go there if the receiver made one for this sender.
    fast_box: Option<FastBoxSender>,
}

impl InboxSender {
    /// Attaches to the inbox behind `fd`, as sender number `me`, which its
    /// receiver gave out and gives to no other sender until this one is dead
    /// and released.
    ///
    /// # Errors
    /// [`AttachError`] when the memory is no inbox, could fault, or has no
    /// sender number `me`.
    pub fn attach(fd: OwnedFd, me: u16) -> Result<Self, AttachError> {
        let memory = InboxMemory::attach(fd)?;
        if usize::from(me) >= memory.geometry().max_peers() {
            return Err(AttachError::WrongContent { what: "the inbox has no room for this sender's number" });
        }
        Ok(Self { memory, claimer: Claimer::new(me), me, fast_box: None })
    }

    /// Uses the fast box behind `fd` from now on; before the first message.
    ///
    /// # Errors
    /// [`AttachError`] when the memory is no fast box, or could fault.
    pub fn use_fast_box(&mut self, fd: OwnedFd) -> Result<(), AttachError> {
        self.fast_box = Some(FastBoxSender::attach(fd)?);
        Ok(())
    }

    /// Whether messages go through a fast box.
    #[inline]
    pub fn has_fast_box(&self) -> bool {
        self.fast_box.is_some()
    }

    /// Shares the cells that change their owner between the box that this
    /// sender writes to and the one that `receiver` reads, in which both this
    /// process and the peer have a box; those of this process's own box if
    /// `mine`, of which the peer must say the opposite.
    pub fn share_handoff_cells(&mut self, receiver: &mut InboxReceiver, sender: u16, mine: bool) {
        if let Some(fast_box) = &mut self.fast_box {
            receiver.pair(sender, fast_box, mine);
        }
    }

    /// Whether a message of `bytes` bytes would go by other cells than those that the two
    /// processes hand each other, since too few of these are left.
    #[inline]
    pub fn lacks_handoff_cells(&self, bytes: u64) -> bool {
        self.fast_box.as_ref().is_some_and(|fast_box| fast_box.lacks_handoff_cells(bytes))
    }

    /// At most so many pieces a message of `bytes` bytes goes in, where whole ones
    /// have up to `cell_bytes`.
    #[inline]
    pub fn max_pieces(&self, bytes: u64, cell_bytes: u64) -> u64 {
        if bytes <= cell_bytes {
            return 1; // Without a division for the shortest.
        }
        if self.has_fast_box() { FastBoxSender::max_pieces(bytes) } else { bytes.div_ceil(cell_bytes) }
    }

    /// The length of the piece that comes next of a message of `total_bytes`
    /// bytes of which `sent_bytes` are sent, where whole messages have up to
    /// `cell_bytes`; longer ones of a fast box are cut as there is room.
    #[inline]
    pub(crate) fn piece_bytes(&self, sent_bytes: u64, total_bytes: u64, cell_bytes: u64) -> u64 {
        let most_bytes = match &self.fast_box {
            Some(fast_box) if total_bytes > cell_bytes => fast_box.max_piece_bytes(),
            _ => cell_bytes,
        };
        (total_bytes - sent_bytes).min(most_bytes)
    }

    /// The longest message that always goes in one piece, in bytes.
    #[inline]
    pub fn most_bytes(&self) -> usize {
        if self.has_fast_box() { PIECE_BYTES } else { self.memory.geometry().cell_bytes() }
    }

    /// The peer's sizes.
    pub fn geometry(&self) -> &Geometry {
        self.memory.geometry()
    }

    /// Whether this is the process that attached, and no forked child of it;
    /// in a child nothing else may be called.
    #[inline]
    pub fn is_usable_here(&self) -> bool {
        self.memory.is_usable_here()
    }

    /// Sends one message: up to [`INLINE_BYTES`] in one cache line, up to
    /// [`InboxSender::most_bytes`] through a cell, or more if
    /// [`InboxSender::piece_bytes`] has just said so. No allocation, no system call.
    ///
    /// # Errors
    /// [`SendError::Full`] when there is no free slot, and
    /// [`SendError::TooLong`]; in both cases nothing was sent.
    #[inline]
    pub fn send(&mut self, envelope: Envelope, payload: Payload<'_>) -> Result<Sent, SendError> {
        self.send_piece(envelope, payload, Piece::Whole)
    }

    /// The same with a piece of a message, as long as
    /// [`InboxSender::piece_bytes`] has just said. Unless it is the last, the
    /// receiver is not woken for it: the last piece, or [`SendError::Full`], sees
    /// to that.
    ///
    /// # Errors
    /// As [`InboxSender::send`].
    #[inline]
    pub fn send_piece(
        &mut self,
        envelope: Envelope,
        payload: Payload<'_>,
        piece: Piece,
    ) -> Result<Sent, SendError> {
        self.put(envelope, payload, piece, piece.is_end())
    }

    /// Asks the processor for what the next message of so many bytes will be written to: where one
    /// of that length has come, an answer of the same is likely, and the lines are on their way
    /// while it is made.
    #[inline(always)] // The path of a short message.
    pub(crate) fn prefetch_for_send(&self, bytes: usize) {
        if let Some(fast_box) = &self.fast_box {
            fast_box.prefetch_next_line(bytes);
        }
    }

    /// Whether the receiver sleeps, for all that was sent before, and this sender is
    /// the one to wake it.
    #[inline]
    fn wants_doorbell(&self) -> bool {
        self.memory.ring().wants_doorbell()
    }

    /// Sends; whether it is to be looked for a receiver that sleeps.
    #[inline(always)] // The path of a short message.
    fn put(
        &mut self,
        envelope: Envelope,
        payload: Payload<'_>,
        piece: Piece,
        looks: bool,
    ) -> Result<Sent, SendError> {
        if let Some(fast_box) = &mut self.fast_box
            && payload.bytes() <= INLINE_BYTES as u64
            && let Some(data) = payload.one_slice()
        {
            // Straight from where they are.
            let first = [first_word(&envelope, data.len()), envelope.tag];
            return match fast_box.send_in_line(first, data, envelope.kind) {
                Ok(()) => Ok(Sent { wake: looks && self.wants_doorbell() }),
                Err(_) => Err(SendError::Full { wake: self.wants_doorbell() }),
            };
        }
        self.put_in_cell(envelope, payload, piece, looks)
    }

    /// The same with what goes into a cell, or into the line of the inbox itself.
    fn put_in_cell(
        &mut self,
        envelope: Envelope,
        payload: Payload<'_>,
        piece: Piece,
        looks: bool,
    ) -> Result<Sent, SendError> {
        let bytes = payload.bytes();
        let most_bytes = self.most_bytes();
        let too_long = SendError::TooLong { bytes, most_bytes };
        if bytes > most_bytes as u64 && !self.has_fast_box() {
            return Err(too_long);
        }
        let bytes = bytes as usize;
        let ring = self.memory.ring();
        let mut words = [0; LINE_WORDS - 1];
        words[0] = first_word(&envelope, bytes);
        words[1] = envelope.tag;
        let inline = bytes <= INLINE_BYTES;
        let used = if inline { payload.pack(&mut words[HEADER_WORDS - 1..]) } else { 0 };
        let used = HEADER_WORDS - 1 + used;
        if let Some(fast_box) = &mut self.fast_box {
            return match fast_box.send(&mut words, used, bytes, envelope.kind, &payload, piece) {
                Ok(()) => Ok(Sent { wake: looks && ring.wants_doorbell() }),
                Err(FastBoxError::Full) => Err(SendError::Full { wake: ring.wants_doorbell() }),
                Err(FastBoxError::TooLong) => Err(too_long),
            };
        }
        let words = &words[..used];
        let start = self.claimer.start(&ring);
        let claimed = self.claimer.take(&ring, start).map_err(|full| SendError::Full { wake: full.wake })?;
        self.claimer.store_hint(&ring, &claimed);
        if !inline {
            let (memory, slot) = (&self.memory, ring.slot(claimed.position()));
            let put_part = |buffer: &Buffer, range| memory.write_cell_from(slot, buffer, range);
            payload.write(|at, bytes| memory.write_cell(slot, at, bytes), put_part);
        }
        self.claimer.write_words(&ring, &claimed, words);
        let wake = self.claimer.publish(&ring, claimed, envelope.kind);
        Ok(Sent { wake })
    }

    /// Tells the inbox's owner how much of what it sent to this endpoint has
    /// been drained and let go of.
    #[inline]
    pub fn store_credit(&self, credit: Credit) {
        self.memory.store_credit(self.me.into(), credit);
    }
}
