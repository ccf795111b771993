//! The receiving end of the own inbox.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};

use zerocopy::IntoBytes;

use super::drain::{Arrival, Drain};
use super::fast_box::{Body, FastBoxSender, FastBoxes};
use super::header::Header;
use super::layout::{Credit, Geometry, HEADER_WORDS, INLINE_BYTES, InboxMemory};
use super::ring::{LINE_WORDS, Ring};
use crate::memory::buffer::Buffer;
use crate::vocabulary::error::MemoryError;

/// Takes messages out of the own inbox, and out of the fast boxes beside it.
/// For one thread at a time.
#[derive(Debug)]
pub struct InboxReceiver {
    memory: InboxMemory,
    drain: Drain,
    boxes: FastBoxes,
    /// What [`InboxReceiver::next`] has found last that was in no box.
    arrival: Option<Arrival>,
    /// What its line says.
    arrived: Header,
    malformed_messages: u64,
}

/// The next message: where it lies, and a copy of what its line says. All of it numbers, so that a
/// short one's stays in registers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Next {
    /// The place of its box in the list, or [`NO_FAST_BOX`].
    at: usize,
    body: Body,
    pub header: Header,
}

/// So many messages of boxes that are garbage one poll drops.
const MAX_GARBAGE: usize = 16;

/// A message that is in no box.
const NO_FAST_BOX: usize = usize::MAX;

impl InboxReceiver {
    /// Makes an inbox; the descriptor is for handing to senders.
    ///
    /// # Errors
    /// [`MemoryError`] when there is not enough for `geometry`.
    pub fn create(geometry: Geometry) -> Result<(Self, OwnedFd), MemoryError> {
        let (memory, fd) = InboxMemory::create(geometry)?;
        let drain = Drain::new(geometry.cells(), geometry.lazy_cells());
        Ok((
            Self {
                memory,
                drain,
                boxes: FastBoxes::default(),
                arrival: None,
                arrived: Header::default(),
                malformed_messages: 0,
            },
            fd,
        ))
    }

    /// Lets up to `most` senders have a fast box.
    pub fn allow_fast_boxes(&mut self, most: usize) {
        self.boxes.allow(most);
    }

    /// The descriptor of a fast box for this sender, which it has from now on if
    /// there may be one more. `None` when there may not, or memory is short: it
    /// then uses the inbox, until [`InboxReceiver::close_fast_box`].
    ///
    /// # Errors
    /// No descriptor is left.
    pub fn open_fast_box(&mut self, sender: u16) -> io::Result<Option<OwnedFd>> {
        self.boxes.open(sender)
    }

    /// The sender is connected: it has its box, if it gets one, and the descriptor is closed.
    pub fn fast_box_sent(&mut self, sender: u16) {
        self.boxes.handed_over(sender);
    }

    pub(super) fn pair(&mut self, sender: u16, writer: &mut FastBoxSender, mine: bool) {
        self.boxes.pair(sender, writer, mine);
    }

    /// Whether this sender has a fast box.
    pub fn has_fast_box(&self, sender: u16) -> bool {
        self.boxes.has(sender)
    }

    /// Takes a sender's fast box away, with what was not polled. What the
    /// sender writes into it later goes nowhere.
    pub fn close_fast_box(&mut self, sender: u16) {
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
    pub fn poll(&mut self) -> Option<Delivery<'_>> {
        let next = self.next()?;
        Some(self.deliver(next))
    }

    /// As [`InboxReceiver::poll`]. The message stays where it is until [`InboxReceiver::finish`],
    /// once; asked again before that, this may give another sender's.
    #[inline(always)] // The path of a short message.
    pub(crate) fn next(&mut self) -> Option<Next> {
        let at = self.look()?;
        self.next_at(at)
    }

    /// The same where [`InboxReceiver::look`], called last, has found something at `at`.
    #[inline(always)] // The path of a short message.
    pub(crate) fn next_at(&mut self, mut at: usize) -> Option<Next> {
        // Bounded, for a peer may write garbage as fast as this drops it.
        for _ in 0..MAX_GARBAGE {
            if at == NO_FAST_BOX {
                return Some(Next { at, body: Body::IN_LINE, header: self.arrived });
            }
            let (header, body, is_possible) = self.boxes.found(at);
            if is_possible {
                return Some(Next { at, body, header });
            }
            self.drop_garbage(at, body, header.bytes);
            at = self.look()?;
        }
        None
    }

    #[cold]
    fn drop_garbage(&mut self, at: usize, body: Body, bytes: usize) {
        self.malformed_messages += 1;
        self.boxes.consume(at, body, bytes);
    }

    /// One look at the inbox, and one at each of two boxes, until something is found: in which box,
    /// or [`NO_FAST_BOX`].
    #[inline(always)] // The path of a short message.
    pub(crate) fn look(&mut self) -> Option<usize> {
        let is_inbox_first = self.boxes.is_inbox_due();
        if is_inbox_first && self.is_in_inbox() {
            return Some(NO_FAST_BOX);
        }
        if let Some(at) = self.boxes.first_to_poll() {
            return Some(at);
        }
        if !is_inbox_first && self.is_in_inbox() {
            return Some(NO_FAST_BOX);
        }
        self.boxes.last_to_poll()
    }

    /// So many looks may be [`InboxReceiver::is_idle`] instead, as long as that says so and nothing
    /// else is called; then [`InboxReceiver::count_idle`] is to be told.
    #[inline]
    pub(crate) fn idle_polls(&self) -> u32 {
        if self.boxes.are_prefetched() { 0 } else { self.drain.idle_polls() }
    }

    /// Whether such a look would find nothing.
    #[inline(always)] // Empty polls are most of a wait.
    pub(crate) fn is_idle(&mut self) -> bool {
        self.boxes.are_idle() && self.drain.is_idle(&self.memory.ring())
    }

    /// So many looks were idle.
    pub(crate) const fn count_idle(&mut self, polls: u32) {
        self.drain.count_idle(polls);
    }

    /// The message as a [`Delivery`], which finishes it when it is dropped.
    pub(crate) fn deliver(&mut self, next: Next) -> Delivery<'_> {
        Delivery { inbox: self, next }
    }

    /// Ends a message and frees its place.
    #[inline(always)] // The path of a short message.
    pub(crate) fn finish(&mut self, next: Next) {
        if next.at == NO_FAST_BOX {
            self.finish_in_inbox();
        } else {
            self.boxes.consume(next.at, next.body, next.header.bytes);
        }
    }

    fn finish_in_inbox(&mut self) {
        if let Some(arrival) = self.arrival.take() {
            self.drain.consume(&self.memory.ring(), arrival);
            self.boxes.note_inbox_turn();
        }
    }

    /// As [`InboxReceiver::poll`], after a look at every fast box.
    pub fn poll_all(&mut self) -> Option<Delivery<'_>> {
        let next = self.next_of_all()?;
        Some(self.deliver(next))
    }

    /// As [`InboxReceiver::next`], after a look at every fast box.
    pub(crate) fn next_of_all(&mut self) -> Option<Next> {
        self.boxes.select_nonempty();
        self.next()
    }

    /// As [`InboxReceiver::look`], which has found nothing, at every fast box.
    pub(crate) fn look_at_all(&mut self) -> Option<usize> {
        self.boxes.select_nonempty().then(|| self.look()).flatten()
    }

    /// Whether a message is in the inbox itself: what its line says is copied then.
    #[inline(always)] // The path of a short message.
    fn is_in_inbox(&mut self) -> bool {
        !self.drain.is_empty(&self.memory.ring()) && self.find_in_inbox().is_some()
    }

    fn find_in_inbox(&mut self) -> Option<()> {
        let ring = self.memory.ring();
        // Bounded, for a peer may write garbage as fast as this drops it.
        for _ in 0..ring.slots() {
            let arrival = self.drain.find(&ring)?;
            match copy_and_check(&ring, arrival, self.memory.geometry()) {
                Some(header) => {
                    (self.arrival, self.arrived) = (Some(arrival), header);
                    return Some(());
                }
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

impl InboxReceiver {
    /// Copies the next message to `buffer` from its byte `offset` on; returns how many bytes fitted.
    /// The sender can still change a cell while it is copied.
    #[inline(always)] // The path of a short message.
    pub(crate) fn copy_to_buffer(&self, next: Next, buffer: &mut Buffer, offset: u64) -> usize {
        let bytes = next.header.bytes;
        if bytes <= INLINE_BYTES
            && offset == 0
            && let Some(target) = buffer.first_bytes_mut(bytes)
        {
            unpack(&self.line(next)[HEADER_WORDS..], target);
            return bytes;
        }
        self.copy_from_cell_or_in_pieces(next, buffer, offset)
    }

    /// The same for what is not both in its line and for one piece of memory.
    fn copy_from_cell_or_in_pieces(&self, next: Next, buffer: &mut Buffer, offset: u64) -> usize {
        let bytes = next.header.bytes;
        if bytes <= INLINE_BYTES {
            let mut short = [0; INLINE_BYTES];
            unpack(&self.line(next)[HEADER_WORDS..], &mut short[..bytes]);
            return buffer.write_at(offset, &short[..bytes]);
        }
        if next.at == NO_FAST_BOX {
            return self.memory.read_cell_to(self.slot(), bytes, buffer, offset);
        }
        self.boxes.read_to(next.at, next.body, bytes, buffer, offset)
    }

    /// Of the message that was found last in no box.
    fn position(&self) -> u64 {
        self.arrival.map_or(0, |arrival| arrival.position)
    }

    fn slot(&self) -> usize {
        self.memory.ring().slot(self.position())
    }

    #[inline(always)] // The path of a short message.
    fn line(&self, next: Next) -> &[AtomicU64; LINE_WORDS] {
        if next.at == NO_FAST_BOX {
            return &self.memory.ring().line(self.position()).words;
        }
        self.boxes.line(next.at)
    }
}

/// A message in the inbox; dropping it ends it and frees its slot.
///
/// Forgetting it instead (`std::mem::forget`) makes the next poll deliver the
/// same message again.
#[derive(Debug)]
pub struct Delivery<'a> {
    inbox: &'a mut InboxReceiver,
    next: Next,
}

impl Delivery<'_> {
    /// The sender's number, below `max_peers`. It is what the message says;
    /// a misbehaving peer can write another's.
    #[inline]
    pub fn sender(&self) -> u16 {
        self.next.header.sender
    }

    /// The envelope's kind.
    #[inline]
    pub fn kind(&self) -> u8 {
        self.next.header.kind
    }

    /// The envelope's aux.
    #[inline]
    pub fn aux(&self) -> u32 {
        self.next.header.aux
    }

    /// The envelope's tag.
    #[inline]
    pub fn tag(&self) -> u64 {
        self.next.header.tag
    }

    /// How many bytes the message, or the piece of one, has.
    #[inline]
    pub fn bytes(&self) -> usize {
        self.next.header.bytes
    }

    /// Copies as many bytes as there are and fit; returns how many. The sender
    /// can still change a cell while it is copied: check the copy, not the cell.
    pub fn copy_to(&self, target: &mut [u8]) -> usize {
        let bytes = self.bytes().min(target.len());
        let target = &mut target[..bytes];
        if self.bytes() <= INLINE_BYTES {
            unpack(&self.inbox.line(self.next)[HEADER_WORDS..], target);
            return bytes;
        }
        self.copy_from_cell(target)
    }

    /// The same to words, which are little-endian then.
    #[inline]
    pub fn copy_to_words(&self, target: &mut [u64]) -> usize {
        let bytes = self.bytes().min(size_of_val(target));
        if self.bytes() > INLINE_BYTES {
            return self.copy_from_cell(&mut target.as_mut_bytes()[..bytes]);
        }
        // Relaxed: the Acquire of the publish word orders them after the sender's
        // stores.
        let line = self.inbox.line(self.next);
        let words = line[HEADER_WORDS..].iter().map(|word| word.load(Ordering::Relaxed));
        target.iter_mut().zip(words).take(bytes.div_ceil(8)).for_each(|(to, word)| *to = word.to_le());
        bytes
    }

    fn copy_from_cell(&self, target: &mut [u8]) -> usize {
        let Next { at, body, header } = self.next;
        if at == NO_FAST_BOX {
            self.inbox.memory.read_cell(self.inbox.slot(), target);
        } else {
            self.inbox.boxes.read(at, body, header.bytes, target);
        }
        target.len()
    }

    /// Copies the message to `buffer` from its byte `offset` on; returns how
    /// many bytes fitted.
    pub fn copy_to_buffer(&self, buffer: &mut Buffer, offset: u64) -> usize {
        self.inbox.copy_to_buffer(self.next, buffer, offset)
    }
}

impl Drop for Delivery<'_> {
    fn drop(&mut self) {
        self.inbox.finish(self.next);
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
