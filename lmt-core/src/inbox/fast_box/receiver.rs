//! The reading ends: the boxes of one endpoint.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::memory::{ANNEX_BYTES, BoxMemory, CELLS, LINES, PIECE_BYTES, Place};
use super::pair::PairCells;
use super::place::{IN_ANNEX, Part};
use super::ring::Reader;
use super::sender::{BoxSender, PART_WORD};
use crate::buffer::Buffer;
use crate::error::MemoryError;
use crate::inbox::layout::INLINE_BYTES;
use crate::inbox::receiver::Header;
use crate::inbox::ring::LINE_WORDS;

/// Takes messages out of one box.
#[derive(Debug)]
struct BoxReceiver {
    memory: Arc<BoxMemory>,
    reader: Reader,
    /// The cells that change their owner, once the peer has a box, too.
    pair: Option<Arc<PairCells>>,
    /// The number of the peer whose box it is.
    sender: u16,
    /// For handing to the peer, as often as there is an attempt to connect; none once it is
    /// connected.
    descriptor: Option<OwnedFd>,
    /// For so many more messages their annexes are asked for...
    awaits_annex: u16,
    /// ...by as many bytes as the last one had.
    awaited_bytes: u16,
}

/// For so many messages behind one in its line's annex those of the next are asked for: as
/// many as have one until the same comes again. Where none comes, nothing is asked for: its
/// pages would be in no page table of this process, and each look would walk through those
/// in vain.
const ANNEXES_AWAITED: u16 = LINES as u16;

impl BoxReceiver {
    fn create(sender: u16) -> Result<Self, MemoryError> {
        let (memory, descriptor) = BoxMemory::create()?;
        let (memory, reader) = (Arc::new(memory), Reader::new(CELLS));
        let descriptor = Some(descriptor);
        Ok(Self { memory, reader, pair: None, sender, descriptor, awaits_annex: 0, awaited_bytes: 0 })
    }

    /// Whether there is a message; while there is none, its annex is asked for, where others
    /// have come in theirs.
    #[inline]
    fn look(&self) -> bool {
        let is_ready = self.reader.find(&self.memory.words()).is_some();
        if !is_ready && self.awaits_annex > 0 {
            self.memory.await_annex(self.reader.line_number(), self.awaited_bytes.into());
        }
        is_ready
    }

    /// The next message. What it says is still to be checked.
    #[inline]
    fn find(&self) -> Option<Header> {
        let shared = self.memory.words();
        let kind = self.reader.find(&shared)?;
        Some(Header::copy(self.reader.line(&shared), self.sender, kind))
    }

    /// Where a message's bytes are, if what its line says is possible.
    #[inline]
    fn body_of(&self, header: &Header) -> Body {
        let bytes = header.bytes;
        if bytes <= INLINE_BYTES {
            return Body::Inline;
        }
        // Relaxed: as in `Header::copy`.
        match self.reader.line(&self.memory.words())[PART_WORD].load(Ordering::Relaxed) {
            0 if bytes <= PIECE_BYTES => Body::Cell,
            0 => Body::Impossible { with_cell: true },
            IN_ANNEX if bytes <= ANNEX_BYTES => Body::Annex { bytes: bytes as u16 },
            word => match Part::from_word(word, bytes).filter(|_| self.pair.is_some()) {
                Some(part) => Body::Part(part),
                None => Body::Impossible { with_cell: false },
            },
        }
    }

    /// Where the found message is, if it is neither in its line nor in a pair's cell.
    #[inline]
    fn place(&self, body: Body) -> Place {
        match body {
            Body::Annex { bytes } => Place::Annex { line: self.reader.line_number(), bytes: bytes.into() },
            _ => Place::Cell(self.reader.cell()),
        }
    }

    /// Ends the message that was found.
    #[inline(always)] // The path of a short message.
    fn consume(&mut self, body: Body) {
        let shared = self.memory.words();
        let with_cell = matches!(body, Body::Cell | Body::Impossible { with_cell: true });
        self.reader.consume(&shared, with_cell);
        (self.awaits_annex, self.awaited_bytes) = match body {
            Body::Annex { bytes } => (ANNEXES_AWAITED, bytes),
            _ => (self.awaits_annex.saturating_sub(1), self.awaited_bytes),
        };
        if let (Body::Part(Part { cell, .. }), Some(pair)) = (body, &self.pair) {
            pair.keep(cell);
        }
    }
}

/// Where the bytes of a message in a box are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Body {
    /// In its line.
    Inline,
    /// In its line's annex, so many bytes.
    Annex { bytes: u16 },
    /// In the next cell of the box's ring.
    Cell,
    /// In a cell that changes its owner.
    Part(Part),
    /// Nowhere: its line is garbage.
    Impossible { with_cell: bool },
}

/// After so many messages from boxes the inbox is looked at first.
const IN_A_ROW: u32 = 2;

/// The boxes that an endpoint reads, at most so many. They and the inbox are
/// looked at in turn, so that none keeps the others waiting; and two of them by
/// each poll, so that it takes the same time however many there are.
#[derive(Debug, Default)]
pub(crate) struct Boxes {
    list: Vec<BoxReceiver>,
    most: usize,
    /// Senders that were told that they have none.
    without: Vec<u16>,
    /// The box from which the last message of a box came: every poll looks at
    /// it ...
    hot: usize,
    /// ... after the others when the last message of all was from it.
    hot_came_last: bool,
    /// Which box a poll looks at beside it.
    other: usize,
    /// How many messages came from boxes since the inbox had its turn.
    in_a_row: u32,
}

impl Boxes {
    pub(crate) fn allow(&mut self, most: usize) {
        self.most = most;
    }

    /// The descriptor of a sender's box; made now if there may be one more.
    /// None when there may not, or memory is short; and then none until
    /// [`Boxes::close`], so that all greetings of a connection say the same.
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
                    .then(|| BoxReceiver::create(sender).inspect_err(refused).ok())
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
    pub(crate) fn pair(&mut self, sender: u16, writer: &mut BoxSender, mine: bool) {
        let Some(one) = self.list.iter_mut().find(|one| one.sender == sender) else { return };
        let pair = match (&one.pair, mine) {
            // Of an earlier attempt to connect: what was handed over is.
            (Some(pair), true) => pair.clone(),
            (None, true) => Arc::new(PairCells::mine(one.memory.clone())),
            (_, false) => writer.make_pair(),
        };
        writer.use_pair(pair.clone());
        one.pair = Some(pair);
    }

    pub(crate) fn has(&self, sender: u16) -> bool {
        self.list.iter().any(|one| one.sender == sender)
    }

    /// Gives up a sender's box and what is left in it.
    pub(crate) fn close(&mut self, sender: u16) {
        self.list.retain(|one| one.sender != sender);
        self.without.retain(|one| *one != sender);
        (self.hot, self.hot_came_last, self.other) = (0, false, 0);
    }

    pub(crate) fn inbox_had_its_turn(&mut self) {
        if !self.is_inbox_due() {
            // The other box was looked at before.
            self.look_elsewhere(self.other);
        }
        self.hot_came_last = false;
        self.in_a_row = 0;
    }

    #[inline]
    fn is_ready(&self, at: usize) -> bool {
        self.list.get(at).is_some_and(BoxReceiver::look)
    }

    /// The box to take a message from before the inbox is looked at.
    #[inline]
    pub(crate) fn first_look(&self) -> Option<usize> {
        if !self.hot_came_last && self.is_ready(self.hot) {
            return Some(self.hot);
        }
        self.is_ready(self.other).then_some(self.other)
    }

    /// The box to take a message from after the inbox had none. When there is
    /// none either, the next poll looks at another box.
    #[inline]
    pub(crate) fn last_look(&mut self) -> Option<usize> {
        if self.hot_came_last && self.is_ready(self.hot) {
            return Some(self.hot);
        }
        self.look_elsewhere(self.other);
        None
    }

    /// The box behind number `at` is looked at next; the one behind that where every poll looks
    /// at the first anyway, or its turn would be spent on that.
    #[inline]
    fn look_elsewhere(&mut self, at: usize) {
        let behind = |at: usize| if at + 1 < self.list.len() { at + 1 } else { 0 };
        let next = behind(at);
        self.other = if next == self.hot { behind(next) } else { next };
    }

    /// Whether the inbox is looked at first, so that boxes that are never empty
    /// do not keep it waiting.
    #[inline]
    pub(crate) fn is_inbox_due(&self) -> bool {
        self.in_a_row >= IN_A_ROW
    }

    /// Gives the turn to a box in which something is, if there is one.
    pub(crate) fn look_at_all(&mut self) {
        if !self.is_ready(self.other)
            && let Some(at) = (0..self.list.len()).find(|at| self.is_ready(*at))
        {
            self.other = at;
        }
    }

    /// The next message of box number `at`, and where its bytes are.
    #[inline(always)] // The path of a short message.
    pub(crate) fn find(&self, at: usize) -> Option<(Header, Body)> {
        let one = self.list.get(at)?;
        let header = one.find()?;
        Some((header, one.body_of(&header)))
    }

    /// Ends the message that was found in box number `at`.
    #[inline(always)] // The path of a short message.
    pub(crate) fn consume(&mut self, at: usize, body: Body) {
        self.had_its_turn(at);
        if let Some(one) = self.list.get_mut(at) {
            one.consume(body);
        }
    }

    /// A message has come from box number `at`: others are looked at before the next.
    #[inline(always)] // The path of a short message.
    fn had_its_turn(&mut self, at: usize) {
        self.in_a_row = if self.in_a_row >= IN_A_ROW { 0 } else { self.in_a_row + 1 };
        if at == self.hot {
            // Where it was taken without a look at the other one, that keeps its turn.
            if self.hot_came_last {
                self.look_elsewhere(self.other);
            }
            self.hot_came_last = true;
            if self.other == self.hot {
                self.look_elsewhere(self.other);
            }
        } else {
            (self.hot, self.hot_came_last) = (at, false);
            self.look_elsewhere(at);
        }
    }

    /// The line of the message found in box `at`.
    #[inline]
    pub(crate) fn line(&self, at: usize) -> &[AtomicU64; LINE_WORDS] {
        let one = &self.list[at];
        one.reader.line(&one.memory.words())
    }

    /// Copies the first bytes of the message found in box `at`, which are not in
    /// its line.
    #[inline]
    pub(crate) fn read(&self, at: usize, body: Body, target: &mut [u8]) {
        let Some(one) = self.list.get(at) else { return };
        match (body, &one.pair) {
            (Body::Part(part), Some(pair)) => pair.memory.read_part(part, target),
            _ => one.memory.read(one.place(body), target),
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
        match (body, &one.pair) {
            (Body::Part(part), Some(pair)) => pair.memory.read_part_to(part, bytes, buffer, offset),
            _ => one.memory.read_to(one.place(body), bytes, buffer, offset),
        }
    }

    /// Whether nothing is in any of them.
    pub(crate) fn are_empty(&self) -> bool {
        self.list.iter().all(|one| one.find().is_none())
    }

    /// Whether a message of a sender waits in its box.
    pub(crate) fn holds_messages_of(&self, sender: u16) -> bool {
        self.list.iter().any(|one| one.sender == sender && one.find().is_some())
    }
}
