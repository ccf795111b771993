//! The receiving end of the own inbox.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};

use zerocopy::IntoBytes;

use super::drain::{Arrival, Drain};
use super::fast_box::{Body, BoxSender, Boxes};
use super::layout::{Credit, Geometry, HEADER_WORDS, INLINE_BYTES, InboxMemory};
use super::ring::{LINE_WORDS, Ring};
use crate::buffer::Buffer;
use crate::error::MemoryError;

/// Takes messages out of the own inbox, and out of the fast boxes beside it.
/// For one thread at a time.
#[derive(Debug)]
pub struct InboxReceiver {
    memory: InboxMemory,
    drain: Drain,
    boxes: Boxes,
    malformed_messages: u64,
}

/// A copy of what a line says, but for the bytes in it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Header {
    pub sender: u16,
    pub kind: u8,
    pub aux: u32,
    pub tag: u64,
    pub bytes: usize,
}

/// Where something was found.
enum Looked {
    /// In the box with this place in the list.
    Box(usize),
    Inbox(Place, Header),
}

/// Where a message lies.
#[derive(Clone, Copy, Debug)]
enum Place {
    Inbox(Arrival),
    /// Next in the box with this place in the list.
    Box(usize, Body),
}

impl InboxReceiver {
    /// Makes an inbox; the descriptor is for handing to senders.
    ///
    /// # Errors
    /// [`MemoryError`] when there is not enough for `geometry`.
    pub fn create(geometry: Geometry) -> Result<(Self, OwnedFd), MemoryError> {
        let (memory, fd) = InboxMemory::create(geometry)?;
        let drain = Drain::new(geometry.cells(), geometry.lazy_cells());
        Ok((Self { memory, drain, boxes: Boxes::default(), malformed_messages: 0 }, fd))
    }

    /// Lets up to `most` senders have a fast box.
    pub fn allow_boxes(&mut self, most: usize) {
        self.boxes.allow(most);
    }

    /// The descriptor of a fast box for this sender, which it has from now on if
    /// there may be one more. `None` when there may not, or memory is short: it
    /// then uses the inbox, until [`InboxReceiver::close_box`].
    ///
    /// # Errors
    /// No descriptor is left.
    pub fn open_box(&mut self, sender: u16) -> io::Result<Option<OwnedFd>> {
        self.boxes.open(sender)
    }

    /// The sender is connected: it has its box, if it gets one, and the descriptor is closed.
    pub fn box_handed_over(&mut self, sender: u16) {
        self.boxes.handed_over(sender);
    }

    pub(super) fn pair(&mut self, sender: u16, writer: &mut BoxSender, mine: bool) {
        self.boxes.pair(sender, writer, mine);
    }

    /// Whether this sender has a fast box.
    pub fn has_box(&self, sender: u16) -> bool {
        self.boxes.has(sender)
    }

    /// Takes a sender's fast box away, with what was not polled. What the
    /// sender writes into it later goes nowhere.
    pub fn close_box(&mut self, sender: u16) {
        self.boxes.close(sender);
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
    /// order they were sent. It takes the same time for any number of peers: one
    /// look at the inbox, one at the fast box from which the last message came,
    /// and one at another, each in its turn.
    #[inline(always)] // The path of a short message.
    pub fn poll(&mut self) -> Option<Delivery<'_>> {
        let (place, header) = self.next_message()?;
        Some(Delivery { inbox: self, place, header })
    }

    #[inline(always)] // The path of a short message.
    fn next_message(&mut self) -> Option<(Place, Header)> {
        match self.look()? {
            Looked::Box(at) => self.next_in_box(at),
            Looked::Inbox(place, header) => Some((place, header)),
        }
    }

    /// One look at the inbox, and one at each of two boxes, until something is found.
    #[inline(always)] // The path of a short message.
    fn look(&mut self) -> Option<Looked> {
        if self.boxes.is_inbox_due()
            && let Some((place, header)) = self.next_in_inbox()
        {
            return Some(Looked::Inbox(place, header));
        }
        if let Some(at) = self.boxes.first_look() {
            return Some(Looked::Box(at));
        }
        if let Some((place, header)) = self.next_in_inbox() {
            return Some(Looked::Inbox(place, header));
        }
        self.boxes.last_look().map(Looked::Box)
    }

    /// As [`InboxReceiver::poll`], after a look at every fast box.
    pub fn poll_thoroughly(&mut self) -> Option<Delivery<'_>> {
        self.boxes.look_at_all();
        self.poll()
    }

    /// The next message of a box that has one; none when all that is there is
    /// impossible.
    #[inline(always)] // The path of a short message.
    fn next_in_box(&mut self, at: usize) -> Option<(Place, Header)> {
        let (header, body) = self.boxes.find(at)?;
        if matches!(body, Body::Impossible { .. }) {
            return self.next_behind_garbage(at, body);
        }
        Some((Place::Box(at, body), header))
    }

    /// The same where the first message is impossible.
    #[cold]
    fn next_behind_garbage(&mut self, at: usize, mut body: Body) -> Option<(Place, Header)> {
        // Bounded, for a peer may write garbage as fast as this drops it.
        for _ in 0..self.memory.ring().slots() {
            self.malformed_messages += 1;
            self.boxes.consume(at, body);
            let (header, next) = self.boxes.find(at)?;
            body = next;
            if !matches!(body, Body::Impossible { .. }) {
                return Some((Place::Box(at, body), header));
            }
        }
        None
    }

    #[inline(always)] // The path of a short message.
    fn next_in_inbox(&mut self) -> Option<(Place, Header)> {
        if self.drain.is_empty(&self.memory.ring()) { None } else { self.take_from_inbox() }
    }

    fn take_from_inbox(&mut self) -> Option<(Place, Header)> {
        let ring = self.memory.ring();
        // Bounded, for a peer may write garbage as fast as this drops it.
        for _ in 0..ring.slots() {
            let arrival = self.drain.find(&ring)?;
            match copy_and_check(&ring, arrival, self.memory.geometry()) {
                Some(header) => return Some((Place::Inbox(arrival), header)),
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
        if !self.drain.prepare_sleep(&self.memory.ring()) {
            return false;
        }
        // After the fence in `Drain::prepare_sleep`, which pairs with the one
        // that a sender makes between its message and its look at `sleeping`.
        let asleep = self.boxes.are_empty();
        if !asleep {
            self.cancel_sleep();
        }
        asleep
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
        self.drain.holds_messages_of(&self.memory.ring(), sender) || self.boxes.holds_messages_of(sender)
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
fn copy_and_check(ring: &Ring<'_>, arrival: Arrival, geometry: &Geometry) -> Option<Header> {
    let (sender, kind) = (arrival.publish.owner(), arrival.publish.kind());
    let header = Header::copy(&ring.line(arrival.position).words, sender, kind);
    let fits = header.bytes <= INLINE_BYTES || header.bytes <= geometry.cell_bytes();
    let known = usize::from(sender) < geometry.max_peers();
    (fits && known).then_some(header)
}

impl Header {
    /// A published line's.
    #[inline]
    pub(crate) fn copy(line: &[AtomicU64; LINE_WORDS], sender: u16, kind: u8) -> Self {
        // Relaxed throughout: the Acquire of the publish word orders them after
        // the sender's stores.
        let length_and_aux = line[1].load(Ordering::Relaxed);
        Self {
            sender,
            kind,
            aux: (length_and_aux >> 32) as u32,
            tag: line[2].load(Ordering::Relaxed),
            bytes: length_and_aux as u32 as usize,
        }
    }
}

/// A message in the inbox; dropping it ends it and frees its slot.
///
/// Forgetting it instead (`std::mem::forget`) makes the next poll deliver the
/// same message again.
#[derive(Debug)]
pub struct Delivery<'a> {
    inbox: &'a mut InboxReceiver,
    place: Place,
    header: Header,
}

impl Delivery<'_> {
    /// The sender's number, below `max_peers`. It is what the message says;
    /// a misbehaving peer can write another's.
    #[inline]
    pub fn sender(&self) -> u16 {
        self.header.sender
    }

    /// The envelope's kind.
    #[inline]
    pub fn kind(&self) -> u8 {
        self.header.kind
    }

    /// The envelope's aux.
    #[inline]
    pub fn aux(&self) -> u32 {
        self.header.aux
    }

    /// The envelope's tag.
    #[inline]
    pub fn tag(&self) -> u64 {
        self.header.tag
    }

    /// How many bytes the message, or the piece of one, has.
    #[inline]
    pub fn bytes(&self) -> usize {
        self.header.bytes
    }

    /// Copies as many bytes as there are and fit; returns how many. The sender
    /// can still change a cell while it is copied: check the copy, not the cell.
    #[inline(always)] // The path of a short message.
    pub fn copy_to(&self, target: &mut [u8]) -> usize {
        let bytes = self.header.bytes.min(target.len());
        let target = &mut target[..bytes];
        if self.header.bytes <= INLINE_BYTES {
            unpack(&self.line()[HEADER_WORDS..], target);
            return bytes;
        }
        self.copy_from_cell(target)
    }

    /// The same to words, which are little-endian then.
    #[inline(always)] // The path of a short message.
    pub fn copy_to_words(&self, target: &mut [u64]) -> usize {
        let bytes = self.header.bytes.min(size_of_val(target));
        if self.header.bytes > INLINE_BYTES {
            return self.copy_from_cell(&mut target.as_mut_bytes()[..bytes]);
        }
        // Relaxed: the Acquire of the publish word orders them after the sender's
        // stores.
        let words = self.line()[HEADER_WORDS..].iter().map(|word| word.load(Ordering::Relaxed));
        target.iter_mut().zip(words).take(bytes.div_ceil(8)).for_each(|(to, word)| *to = word.to_le());
        bytes
    }

    fn copy_from_cell(&self, target: &mut [u8]) -> usize {
        match self.place {
            Place::Inbox(arrival) => self.inbox.memory.read_cell(self.slot(arrival), target),
            Place::Box(at, body) => self.inbox.boxes.read(at, body, target),
        }
        target.len()
    }

    /// Copies the message to `buffer` from its byte `offset` on; returns how
    /// many bytes fitted.
    #[inline]
    pub fn copy_to_buffer(&self, buffer: &mut Buffer, offset: u64) -> usize {
        let bytes = self.header.bytes;
        if bytes <= INLINE_BYTES {
            if offset == 0
                && let Some(target) = buffer.first_bytes_mut(bytes)
            {
                unpack(&self.line()[HEADER_WORDS..], target);
                return bytes;
            }
            let mut short = [0; INLINE_BYTES];
            unpack(&self.line()[HEADER_WORDS..], &mut short[..bytes]);
            return buffer.write_at(offset, &short[..bytes]);
        }
        match self.place {
            Place::Inbox(arrival) => {
                self.inbox.memory.read_cell_to(self.slot(arrival), bytes, buffer, offset)
            }
            Place::Box(at, body) => self.inbox.boxes.read_to(at, body, bytes, buffer, offset),
        }
    }

    #[inline]
    fn slot(&self, arrival: Arrival) -> usize {
        self.inbox.memory.ring().slot(arrival.position)
    }

    #[inline]
    fn line(&self) -> &[AtomicU64; LINE_WORDS] {
        match self.place {
            Place::Inbox(arrival) => &self.inbox.memory.ring().line(arrival.position).words,
            Place::Box(at, _) => self.inbox.boxes.line(at),
        }
    }
}

impl Drop for Delivery<'_> {
    #[inline(always)] // The path of a short message.
    fn drop(&mut self) {
        match self.place {
            Place::Inbox(arrival) => {
                self.inbox.drain.consume(&self.inbox.memory.ring(), arrival);
                self.inbox.boxes.inbox_had_its_turn();
            }
            Place::Box(at, body) => self.inbox.boxes.consume(at, body),
        }
    }
}

/// Copies the first bytes out of a line's `words`, as many as `target` has and they hold.
#[inline(always)] // The path of a short message.
pub(super) fn unpack(words: &[AtomicU64], target: &mut [u8]) {
    let mut left = target;
    for word in words {
        if left.is_empty() {
            break;
        }
        // Relaxed: the Acquire of the publish word orders them after the sender's stores.
        let bytes = word.load(Ordering::Relaxed).to_le_bytes();
        let (part, behind) = left.split_at_mut(left.len().min(bytes.len()));
        match <&mut [u8; 8]>::try_from(&mut *part) {
            Ok(whole) => *whole = bytes,
            Err(_) => part.iter_mut().zip(bytes).for_each(|(byte, value)| *byte = value),
        }
        left = behind;
    }
}
