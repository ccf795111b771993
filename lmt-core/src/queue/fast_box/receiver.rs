//! The reading ends: the boxes of one endpoint.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::memory::{CELLS, FastBoxMemory, LINE_BUFFER_BYTES, LINES, PIECE_BYTES, Place};
use super::pair::HandoffCells;
use super::place::{IN_LINE_BUFFER, Part};
use super::ring::Reader;
use super::sender::{FastBoxSender, PART_WORD};
use crate::memory::buffer::Buffer;
use crate::queue::header::Header;
use crate::queue::layout::INLINE_BYTES;
use crate::queue::ring::LINE_WORDS;
use crate::vocabulary::error::MemoryError;

/// Takes messages out of one box.
#[derive(Debug)]
struct FastBoxReceiver {
    memory: Arc<FastBoxMemory>,
    reader: Reader,
    /// The cells that change their owner, once the peer has a box, too.
    pair: Option<Arc<HandoffCells>>,
    /// The number of the peer whose box it is.
    sender: u16,
    /// For handing to the peer, as often as there is an attempt to connect; none once it is
    /// connected.
    descriptor: Option<OwnedFd>,
    /// For so many more messages their line buffers are asked for...
    line_buffer_prefetches: u16,
    /// ...by as many bytes as the last one had.
    prefetch_bytes: u16,
}

/// For so many messages behind one in its line's line buffer those of the next are asked for: as
/// many as have one until the same comes again. Where none comes, nothing is asked for: its
/// pages would be in no page table of this process, and each look would walk through those
/// in vain.
const LINE_BUFFER_PREFETCHES: u16 = LINES as u16;

impl FastBoxReceiver {
    fn create(sender: u16) -> Result<Self, MemoryError> {
        let (memory, descriptor) = FastBoxMemory::create()?;
        let (memory, reader) = (Arc::new(memory), Reader::new(CELLS));
        let descriptor = Some(descriptor);
        Ok(Self {
            memory,
            reader,
            pair: None,
            sender,
            descriptor,
            line_buffer_prefetches: 0,
            prefetch_bytes: 0,
        })
    }

    /// Whether there is a message; while there is none, its line buffer is asked for, where others
    /// have come in theirs.
    #[inline]
    fn look(&self) -> bool {
        let is_ready = self.has_message();
        if !is_ready && self.line_buffer_prefetches > 0 {
            self.memory.prefetch_line_buffer(self.reader.line_number(), self.prefetch_bytes.into());
        }
        is_ready
    }

    #[inline(always)] // The path of a short message.
    fn has_message(&self) -> bool {
        self.reader.find(&self.memory.words()).is_some()
    }

    /// Of the message that was found. What it says is still to be checked.
    #[inline(always)] // The path of a short message.
    fn header(&self) -> Header {
        let line = self.reader.line(&self.memory.words());
        // Relaxed: the look that found it was the Acquire.
        Header::copy(line, self.sender, line[0].load(Ordering::Relaxed) as u8)
    }

    /// Where a message's bytes are, as its line says.
    #[inline(always)] // The path of a short message.
    fn body_of(&self, header: &Header) -> Body {
        if header.bytes <= INLINE_BYTES {
            return Body::IN_LINE;
        }
        // Relaxed: as in `Header::copy`.
        Body(self.reader.line(&self.memory.words())[PART_WORD].load(Ordering::Relaxed))
    }

    /// Whether a message of so many bytes can be there.
    #[inline(always)] // The path of a short message.
    fn is_possible(&self, body: Body, bytes: usize) -> bool {
        match body {
            _ if bytes <= INLINE_BYTES => true,
            Body::IN_CELL => bytes <= PIECE_BYTES,
            Body::IN_LINE_BUFFER => bytes <= LINE_BUFFER_BYTES,
            _ => self.pair.is_some() && body.part(bytes).is_some(),
        }
    }

    /// Where the found message is, if it is neither in its line nor in a pair's cell.
    #[inline]
    fn place(&self, body: Body, bytes: usize) -> Place {
        match body {
            Body::IN_LINE_BUFFER => Place::LineBuffer { line: self.reader.line_number(), bytes },
            _ => Place::Cell(self.reader.cell()),
        }
    }

    /// Ends the message that was found.
    #[inline(always)] // The path of a short message.
    fn consume(&mut self, body: Body, bytes: usize) {
        self.reader.consume(&self.memory.words(), body == Body::IN_CELL);
        if body == Body::IN_LINE {
            self.line_buffer_prefetches = self.line_buffer_prefetches.saturating_sub(1);
        } else {
            self.consume_cell(body, bytes);
        }
    }

    fn consume_cell(&mut self, body: Body, bytes: usize) {
        if body == Body::IN_LINE_BUFFER && bytes <= LINE_BUFFER_BYTES {
            (self.line_buffer_prefetches, self.prefetch_bytes) = (LINE_BUFFER_PREFETCHES, bytes as u16);
            return;
        }
        self.line_buffer_prefetches = self.line_buffer_prefetches.saturating_sub(1);
        if let (Some(Part { cell, .. }), Some(pair)) = (body.part(bytes), &self.pair) {
            pair.keep(cell);
        }
    }
}

/// Where the bytes of a message in a box are: a copy of what its line says. One word, which stays in
/// a register.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Body(u64);

impl Body {
    /// In its line, which says nothing then.
    pub(crate) const IN_LINE: Self = Self(1);
    /// In the next cell of the box's ring.
    const IN_CELL: Self = Self(0);
    /// In its line's line buffer.
    const IN_LINE_BUFFER: Self = Self(IN_LINE_BUFFER);

    /// Where in a cell that changes its owner, if it is there.
    #[inline]
    fn part(self, bytes: usize) -> Option<Part> {
        Part::from_word(self.0, bytes)
    }
}

/// After so many messages from boxes the inbox is looked at first.
const IN_A_ROW: u32 = 2;

/// The boxes that an endpoint reads, at most so many. They and the inbox are
/// looked at in turn, so that none keeps the others waiting; and two of them by
/// each poll, so that it takes the same time however many there are.
#[derive(Debug, Default)]
pub(crate) struct FastBoxes {
    list: Vec<FastBoxReceiver>,
    most: usize,
    /// Senders that were told that they have none.
    without: Vec<u16>,
    /// The box from which the last message of a box came: every poll looks at
    /// it ...
    last_active: usize,
    /// ... after the others when the last message of all was from it.
    last_active_came_last: bool,
    /// Which box a poll looks at beside it.
    other: usize,
    /// How many messages came from boxes since the inbox had its turn.
    in_a_row: u32,
}

impl FastBoxes {
    pub(crate) fn allow(&mut self, most: usize) {
        self.most = most;
    }

    /// The descriptor of a sender's box; made now if there may be one more.
    /// None when there may not, or memory is short; and then none until
    /// [`FastBoxes::close`], so that all greetings of a connection say the same.
    ///
    /// # Errors
    /// No descriptor is left.
    pub(crate) fn open(&mut self, sender: u16) -> io::Result<Option<OwnedFd>> {
        if self.without.contains(&sender) {
            return Ok(None);
        }
        let at = match self.list.iter().position(|one| one.sender == sender) {
            Some(at) if self.list[at].descriptor.is_some() => at,
            earlier => {
                // One without is of an earlier connection.
                if earlier.is_some() {
                    self.close(sender);
                }
                let refused = |error: &MemoryError| tracing::info!(%error, "a peer gets no fast box");
                let made = (self.list.len() < self.most)
                    .then(|| FastBoxReceiver::create(sender).inspect_err(refused).ok())
                    .flatten();
                let Some(made) = made else {
                    self.without.push(sender);
                    return Ok(None);
                };
                self.list.push(made);
                self.list.len() - 1
            }
        };
        self.list[at].descriptor.as_ref().map(OwnedFd::try_clone).transpose()
    }

    /// The sender has its box: the descriptor is needed no more.
    pub(crate) fn handed_over(&mut self, sender: u16) {
        if let Some(one) = self.list.iter_mut().find(|one| one.sender == sender) {
            one.descriptor = None;
        }
    }

    /// Lets the box of `sender` and the one to it, `writer`, share cells that
    /// change their owner: this process's, or the peer's.
    pub(crate) fn pair(&mut self, sender: u16, writer: &mut FastBoxSender, mine: bool) {
        let Some(one) = self.list.iter_mut().find(|one| one.sender == sender) else { return };
        let pair = match (&one.pair, mine) {
            // Of an earlier attempt to connect: what was handed over is.
            (Some(pair), true) => pair.clone(),
            (None, true) => Arc::new(HandoffCells::mine(one.memory.clone())),
            (_, false) => writer.make_handoff_cells(),
        };
        writer.use_handoff_cells(pair.clone());
        one.pair = Some(pair);
    }

    pub(crate) fn has(&self, sender: u16) -> bool {
        self.list.iter().any(|one| one.sender == sender)
    }

    /// Gives up a sender's box and what is left in it.
    pub(crate) fn close(&mut self, sender: u16) {
        self.list.retain(|one| one.sender != sender);
        self.without.retain(|one| *one != sender);
        (self.last_active, self.last_active_came_last, self.other) = (0, false, 0);
    }

    pub(crate) fn note_inbox_turn(&mut self) {
        if !self.is_inbox_due() {
            // The other box was looked at before.
            self.poll_another_next(self.other);
        }
        self.last_active_came_last = false;
        self.in_a_row = 0;
    }

    #[inline]
    fn is_ready(&self, at: usize) -> bool {
        self.list.get(at).is_some_and(FastBoxReceiver::look)
    }

    /// Whether a look at one of them prefetches.
    pub(crate) fn are_prefetched(&self) -> bool {
        self.list.iter().any(|one| one.line_buffer_prefetches > 0)
    }

    /// Whether the boxes at which a poll looks are empty, where none of them prefetches; the next
    /// poll looks at another box then.
    #[inline(always)] // Empty polls are most of a wait.
    pub(crate) fn are_idle(&mut self) -> bool {
        match &self.list[..] {
            [one] => !one.has_message(),
            _ => self.several_are_idle(),
        }
    }

    #[inline(always)] // A call would save registers for all.
    fn several_are_idle(&mut self) -> bool {
        let is_idle = |at: usize| self.list.get(at).is_none_or(|one| !one.has_message());
        let are_idle = is_idle(self.last_active) && (self.other == self.last_active || is_idle(self.other));
        if are_idle && !self.list.is_empty() {
            self.poll_another_next(self.other);
        }
        are_idle
    }

    /// The box to take a message from before the inbox is looked at.
    #[inline(always)] // The path of a short message.
    pub(crate) fn first_to_poll(&self) -> Option<usize> {
        if !self.last_active_came_last && self.is_ready(self.last_active) {
            return Some(self.last_active);
        }
        // One box alone has one look a poll.
        (self.other != self.last_active && self.is_ready(self.other)).then_some(self.other)
    }

    /// The box to take a message from after the inbox had none. When there is
    /// none either, the next poll looks at another box.
    #[inline(always)] // The path of a short message.
    pub(crate) fn last_to_poll(&mut self) -> Option<usize> {
        if self.last_active_came_last && self.is_ready(self.last_active) {
            return Some(self.last_active);
        }
        if self.list.len() > 1 {
            self.poll_another_next(self.other);
        }
        None
    }

    /// The box behind number `at` is looked at next; the one behind that where every poll looks
    /// at the first anyway, or its turn would be spent on that.
    #[inline]
    fn poll_another_next(&mut self, at: usize) {
        let behind = |at: usize| if at + 1 < self.list.len() { at + 1 } else { 0 };
        let next = behind(at);
        self.other = if next == self.last_active { behind(next) } else { next };
    }

    /// Whether the inbox is looked at first, so that boxes that are never empty
    /// do not keep it waiting.
    #[inline]
    pub(crate) fn is_inbox_due(&self) -> bool {
        self.in_a_row >= IN_A_ROW
    }

    /// Gives the turn to a box in which something is; whether there is one.
    pub(crate) fn select_nonempty(&mut self) -> bool {
        if self.is_ready(self.other) {
            return true;
        }
        let found = (0..self.list.len()).find(|at| self.is_ready(*at));
        self.other = found.unwrap_or(self.other);
        found.is_some()
    }

    /// The message that a look has found in box number `at`: a copy of what its line says, where its
    /// bytes are, and whether they can be.
    #[inline(always)] // The path of a short message.
    pub(crate) fn found(&self, at: usize) -> (Header, Body, bool) {
        let one = &self.list[at];
        let header = one.header();
        let body = one.body_of(&header);
        (header, body, one.is_possible(body, header.bytes))
    }

    /// Ends the message that was found in box number `at`.
    #[inline(always)] // The path of a short message.
    pub(crate) fn consume(&mut self, at: usize, body: Body, bytes: usize) {
        self.note_turn(at);
        if let Some(one) = self.list.get_mut(at) {
            one.consume(body, bytes);
        }
    }

    /// A message has come from box number `at`: others are looked at before the next.
    #[inline(always)] // The path of a short message.
    fn note_turn(&mut self, at: usize) {
        self.in_a_row = if self.in_a_row >= IN_A_ROW { 0 } else { self.in_a_row + 1 };
        if self.list.len() > 1 {
            self.advance_turn(at);
        }
    }

    /// The same where there are others.
    #[inline]
    fn advance_turn(&mut self, at: usize) {
        if at == self.last_active {
            // Where it was taken without a look at the other one, that keeps its turn.
            if self.last_active_came_last {
                self.poll_another_next(self.other);
            }
            self.last_active_came_last = true;
            if self.other == self.last_active {
                self.poll_another_next(self.other);
            }
        } else {
            (self.last_active, self.last_active_came_last) = (at, false);
            self.poll_another_next(at);
        }
    }

    /// The line of the message found in box `at`.
    #[inline(always)] // The path of a short message.
    pub(crate) fn line(&self, at: usize) -> &[AtomicU64; LINE_WORDS] {
        let one = &self.list[at];
        one.reader.line(&one.memory.words())
    }

    /// Copies the first bytes of the message of `bytes` bytes that was found in box `at`, which are
    /// not in its line.
    #[inline]
    pub(crate) fn read(&self, at: usize, body: Body, bytes: usize, target: &mut [u8]) {
        let Some(one) = self.list.get(at) else { return };
        match (body.part(bytes), &one.pair) {
            (Some(part), Some(pair)) => pair.memory.read_part(part, target),
            _ => one.memory.read(one.place(body, bytes), target),
        }
    }

    /// The same, `bytes` of them, to a buffer; returns how many fitted.
    #[inline]
    pub(crate) fn read_to(
        &self,
        at: usize,
        body: Body,
        bytes: usize,
        buffer: &mut Buffer,
        offset: u64,
    ) -> usize {
        let Some(one) = self.list.get(at) else { return 0 };
        match (body.part(bytes), &one.pair) {
            (Some(part), Some(pair)) => pair.memory.read_part_to(part, bytes, buffer, offset),
            _ => one.memory.read_to(one.place(body, bytes), bytes, buffer, offset),
        }
    }

    /// Whether nothing is in any of them.
    pub(crate) fn are_empty(&self) -> bool {
        !self.list.iter().any(FastBoxReceiver::has_message)
    }

    /// Whether a message of a sender waits in its box.
    pub(crate) fn holds_messages_of(&self, sender: u16) -> bool {
        self.list.iter().any(|one| one.sender == sender && one.has_message())
    }
}
