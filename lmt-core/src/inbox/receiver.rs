//! The receiving end of the own inbox.

use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;

use super::drain::{Arrival, Drain};
use super::layout::{Credit, Geometry, HEADER_WORDS, INLINE_BYTES, InboxMemory};
use super::ring::{LINE_WORDS, Ring};
use crate::buffer::Buffer;
use crate::error::MemoryShort;

const INLINE_WORDS: usize = LINE_WORDS - HEADER_WORDS;

/// Takes messages out of the own inbox. For one thread at a time.
#[derive(Debug)]
pub struct InboxReceiver {
    memory: InboxMemory,
    drain: Drain,
    malformed_messages: u64,
}

/// What a line says, copied and checked.
#[derive(Clone, Copy, Debug)]
struct Message {
    arrival: Arrival,
    aux: u32,
    tag: u64,
    bytes: usize,
    words: [u64; INLINE_WORDS],
}

impl InboxReceiver {
    /// Makes an inbox; the descriptor is for handing to senders.
    ///
    /// # Errors
    /// [`MemoryShort`] when there is not enough for `geometry`.
    pub fn create(geometry: Geometry) -> Result<(Self, OwnedFd), MemoryShort> {
        let (memory, fd) = InboxMemory::create(geometry)?;
        let drain = Drain::new(geometry.cells(), geometry.lazy_cells());
        Ok((Self { memory, drain, malformed_messages: 0 }, fd))
    }

    /// The sizes.
    pub fn geometry(&self) -> &Geometry {
        self.memory.geometry()
    }

    /// Whether this is the process that made it, and no forked child; in a
    /// child nothing else may be called.
    #[inline]
    pub fn is_usable_here(&self) -> bool {
        self.memory.is_usable_here()
    }

    /// The next message, if there is one. Messages of one sender come in the
    /// order they were sent. It takes the same time for any number of peers.
    #[inline]
    pub fn poll(&mut self) -> Option<Delivery<'_>> {
        let message = self.next_message()?;
        Some(Delivery { inbox: self, message })
    }

    #[inline]
    fn next_message(&mut self) -> Option<Message> {
        let ring = self.memory.ring();
        // Bounded, for a peer may write garbage as fast as this drops it.
        for _ in 0..ring.slots() {
            let arrival = self.drain.find(&ring)?;
            match copy_and_check(&ring, arrival, self.memory.geometry()) {
                Some(message) => return Some(message),
                None => {
                    self.malformed_messages += 1;
                    self.drain.consume(&ring, arrival);
                }
            }
        }
        None
    }

    /// Asks senders to ring the doorbell, and says whether the caller may
    /// sleep until one does: false when a message is there already.
    ///
    /// Before sleeping it passes over senders that stopped between claim and
    /// publish, if others' messages wait behind them.
    pub fn prepare_sleep(&mut self) -> bool {
        self.drain.prepare_sleep(&self.memory.ring())
    }

    /// After sleeping, or instead of it: senders need not ring any more.
    pub fn cancel_sleep(&mut self) {
        self.drain.cancel_sleep(&self.memory.ring());
    }

    /// Frees the slots that `sender` claimed and will never publish, its
    /// process being known dead; returns how many. What it published is still
    /// delivered: give its number to another only when
    /// [`InboxReceiver::holds_messages_of`] says that none is left.
    pub fn release_dead(&mut self, sender: u16) -> usize {
        self.drain.release_dead(&self.memory.ring(), sender)
    }

    /// Whether a message of `sender` waits to be polled. Looks at every slot.
    pub fn holds_messages_of(&self, sender: u16) -> bool {
        self.drain.holds_messages_of(&self.memory.ring(), sender)
    }

    /// What `peer` last stored in its line of the credit table; none if its
    /// number is too high. Untrusted, as all that a peer writes.
    #[inline]
    pub fn credit(&self, peer: u16) -> Option<Credit> {
        self.memory.credit(peer.into())
    }

    /// Clears a peer's credit, before its number is given to another.
    pub fn clear_credit(&mut self, peer: u16) {
        self.memory.store_credit(peer.into(), Credit::default());
    }

    /// How many messages were dropped because their header was impossible: a
    /// peer with a bug, or worse.
    pub fn malformed_messages(&self) -> u64 {
        self.malformed_messages
    }
}

/// One copy of the line, then checks on the copy.
#[inline]
fn copy_and_check(ring: &Ring<'_>, arrival: Arrival, geometry: &Geometry) -> Option<Message> {
    // Relaxed throughout: the Acquire of the publish word orders them after
    // the sender's stores.
    let line = &ring.line(arrival.position).words;
    let length_and_aux = line[1].load(Ordering::Relaxed);
    let tag = line[2].load(Ordering::Relaxed);
    let words = std::array::from_fn(|n| line[HEADER_WORDS + n].load(Ordering::Relaxed));
    let bytes = length_and_aux as u32 as usize;
    let fits = bytes <= INLINE_BYTES || bytes <= geometry.cell_bytes();
    let known = usize::from(arrival.publish.owner()) < geometry.max_peers();
    let aux = (length_and_aux >> 32) as u32;
    (fits && known).then_some(Message { arrival, aux, tag, bytes, words })
}

/// A message in the inbox; dropping it ends it and frees its slot.
///
/// Forgetting it instead (`std::mem::forget`) makes the next poll deliver the
/// same message again.
#[derive(Debug)]
pub struct Delivery<'a> {
    inbox: &'a mut InboxReceiver,
    message: Message,
}

impl Delivery<'_> {
    /// The sender's number, below `max_peers`. It is what the message says;
    /// a misbehaving peer can write another's.
    #[inline]
    pub fn sender(&self) -> u16 {
        self.message.arrival.publish.owner()
    }

    /// The envelope's kind.
    #[inline]
    pub fn kind(&self) -> u8 {
        self.message.arrival.publish.kind()
    }

    /// The envelope's aux.
    #[inline]
    pub fn aux(&self) -> u32 {
        self.message.aux
    }

    /// The envelope's tag.
    #[inline]
    pub fn tag(&self) -> u64 {
        self.message.tag
    }

    /// How many bytes the message has; at most a cell's.
    #[inline]
    pub fn bytes(&self) -> usize {
        self.message.bytes
    }

    /// Copies as many bytes as there are and fit; returns how many. The sender
    /// can still change a cell while it is copied: check the copy, not the cell.
    #[inline]
    pub fn copy_to(&self, target: &mut [u8]) -> usize {
        let bytes = self.message.bytes.min(target.len());
        let target = &mut target[..bytes];
        if self.message.bytes <= INLINE_BYTES {
            unpack(&self.message.words, target);
        } else {
            self.inbox.memory.read_cell(self.slot(), target);
        }
        bytes
    }

    /// Copies the message to `buffer` from its byte `offset` on; returns how
    /// many bytes fitted.
    #[inline]
    pub fn copy_to_buffer(&self, buffer: &mut Buffer, offset: u64) -> usize {
        if self.message.bytes <= INLINE_BYTES {
            let mut short = [0; INLINE_BYTES];
            unpack(&self.message.words, &mut short);
            buffer.write_at(offset, &short[..self.message.bytes])
        } else {
            self.inbox.memory.read_cell_to(self.slot(), self.message.bytes, buffer, offset)
        }
    }

    #[inline]
    fn slot(&self) -> usize {
        self.inbox.memory.ring().slot(self.message.arrival.position)
    }
}

impl Drop for Delivery<'_> {
    #[inline]
    fn drop(&mut self) {
        self.inbox.drain.consume(&self.inbox.memory.ring(), self.message.arrival);
    }
}

/// Lays words out as bytes, as far as `target` goes.
#[inline]
fn unpack(words: &[u64; INLINE_WORDS], target: &mut [u8]) {
    let (whole, rest) = target.as_chunks_mut::<8>();
    let mut words = words.iter();
    for (chunk, word) in whole.iter_mut().zip(&mut words) {
        *chunk = word.to_le_bytes();
    }
    if let Some(word) = words.next() {
        for (byte, value) in rest.iter_mut().zip(word.to_le_bytes()) {
            *byte = value;
        }
    }
}
