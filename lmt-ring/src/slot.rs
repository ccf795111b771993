//! What two processes say to each other about one message in a ring: two cache
//! lines, of which each side writes one, but for the word `hold`.
//!
//! `hold` is the message's tag and its state. The sender opens it; then it only
//! changes by compare-and-swap or swap:
//!
//! ```text
//! OPEN ──receiver──► ATTACHED ──receiver──► CLOSED_WHOLE | CLOSED_EARLY
//!   └────sender────► WITHDRAWN
//! ```
//!
//! So of a withdrawal and an attachment just one happens. The flag LEFT, set by
//! a sender that looks no more, lies over OPEN and ATTACHED; the receiver's last
//! swap brings it to light, and only then a packet has to tell the sender.
//!
//! Cells that are in flight belong to nobody: the sender has written their
//! numbers into `cells`, and the receiver says of each, in order, whether it goes
//! back (`returned`) or stays with the receiver. What is not emptied when `hold`
//! is closed or withdrawn is the sender's again.

use crate::sync::{AtomicU64, Ordering};

/// Bytes of a cache line.
pub(crate) const LINE_BYTES: u64 = 64;
/// Numbers of cells that one message can have in flight.
pub(crate) const CELLS_IN_FLIGHT: u64 = 48;
const WORDS: usize = CELLS_IN_FLIGHT as usize / 8;
/// `produced`, when the sender gives nothing more and wants its cells back.
pub(crate) const ABANDONED: u64 = u64::MAX;

/// What the sender writes.
#[derive(Debug)]
#[repr(C, align(128))]
pub(crate) struct SenderLine {
    /// Bytes of the message that stand in its cells, or [`ABANDONED`].
    produced: AtomicU64,
    /// How many cells the sender had at hand when it began; from bit 32 on how far behind a
    /// cell's begin its bytes begin; and from bit 40 on how many it may fill in all.
    begin: AtomicU64,
    /// The number of the message's k-th cell in byte k modulo 48.
    cells: [AtomicU64; WORDS],
}

/// What the receiver writes, but for `hold`.
#[derive(Debug)]
#[repr(C, align(128))]
pub(crate) struct ReceiverLine {
    hold: AtomicU64,
    /// Cells that are emptied.
    emptied: AtomicU64,
    /// Bit k modulo 64: the message's k-th cell goes back to the sender.
    returned: AtomicU64,
}

/// The two lines.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Slot {
    sender: SenderLine,
    receiver: ReceiverLine,
}

/// Where a message stands, as `hold` says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum State {
    /// No receiver has come yet.
    Open,
    /// A receiver empties cells.
    Attached,
    /// The sender has taken it back.
    Withdrawn,
    /// The receiver has all that it wants.
    Whole,
    /// The receiver goes without having all.
    Early,
    /// Another message's, or garbage.
    Other,
}

const OPEN: u64 = 1;
const ATTACHED: u64 = 2;
const WITHDRAWN: u64 = 3;
const CLOSED_WHOLE: u64 = 4;
const CLOSED_EARLY: u64 = 5;
const STATES: u64 = 7;
const LEFT: u64 = 8;
const TAG_SHIFT: u32 = 4;
/// The parts of [`SenderLine::begin`].
const CELLS_AT_BEGIN: u64 = 0xffff_ffff;
const SHIFT_SHIFT: u32 = 32;
const BYTES_SHIFT: u32 = 40;
/// In the place of a number of bytes: it is this or more.
const MANY_BYTES: u64 = (1 << (64 - BYTES_SHIFT)) - 1;

fn state_of(hold: u64, tag: u64) -> State {
    if hold >> TAG_SHIFT != tag {
        return State::Other;
    }
    match hold & STATES {
        OPEN => State::Open,
        ATTACHED => State::Attached,
        WITHDRAWN => State::Withdrawn,
        CLOSED_WHOLE => State::Whole,
        CLOSED_EARLY => State::Early,
        _ => State::Other,
    }
}

impl Slot {
    #[cfg(any(test, loom))]
    pub(crate) fn new() -> Self {
        let word = || AtomicU64::new(0);
        Self {
            sender: SenderLine { produced: word(), begin: word(), cells: std::array::from_fn(|_| word()) },
            receiver: ReceiverLine { hold: word(), emptied: word(), returned: word() },
        }
    }

    /// Owner of the pool: makes it a slot in which nothing was ever sent.
    #[cfg(not(loom))]
    pub(crate) fn clear(&self) {
        // Relaxed: the ring is no peer's yet; its first message's `open` releases.
        self.receiver.hold.store(0, Ordering::Relaxed);
    }

    /// Sender: begins the message `tag`, which is below 2^48, of at most `total_bytes` bytes,
    /// which begin `shift_bytes` behind each cell's begin, less than a line.
    pub(crate) fn open(&self, tag: u64, cells_at_begin: u64, shift_bytes: u64, total_bytes: u64) {
        // Relaxed: nobody may look at these before `hold` names the tag.
        self.sender.produced.store(0, Ordering::Relaxed);
        let begin = total_bytes.min(MANY_BYTES) << BYTES_SHIFT
            | (shift_bytes % LINE_BYTES) << SHIFT_SHIFT
            | cells_at_begin & CELLS_AT_BEGIN;
        self.sender.begin.store(begin, Ordering::Relaxed);
        self.receiver.emptied.store(0, Ordering::Relaxed);
        // Release: who attaches by this word sees the three stores above.
        self.receiver.hold.store(tag << TAG_SHIFT | OPEN, Ordering::Release);
    }

    /// Sender: names the message's `k`-th cell, before it is filled.
    #[inline]
    pub(crate) fn name_cell(&self, k: u64, cell: u8) {
        let at = (k % CELLS_IN_FLIGHT) as usize;
        let (word, shift) = (&self.sender.cells[at / 8], 8 * (at % 8));
        // Relaxed: only this side writes it, and `publish` releases it. The byte
        // was that of a cell that the receiver has emptied.
        let others = word.load(Ordering::Relaxed) & !(0xff << shift);
        word.store(others | u64::from(cell) << shift, Ordering::Relaxed);
    }

    /// Sender: `produced` bytes stand in the cells.
    #[inline]
    pub(crate) fn publish(&self, produced: u64) {
        // Release: the receiver's acquire of it sees the bytes and cell numbers.
        self.sender.produced.store(produced, Ordering::Release);
    }

    /// Sender: how many cells are emptied, and how the message stands.
    #[inline]
    pub(crate) fn emptied(&self, tag: u64) -> (u64, State) {
        // Acquire, first: who sees it closed sees all that was emptied before.
        let state = state_of(self.receiver.hold.load(Ordering::Acquire), tag);
        // Acquire: the receiver has read a cell's bytes before it says so, and
        // this side may write it after; `returned` was written before it too.
        (self.receiver.emptied.load(Ordering::Acquire), state)
    }

    /// Sender: whether the emptied cell `k` goes back to it.
    #[inline]
    pub(crate) fn is_returned(&self, k: u64) -> bool {
        // Relaxed: written before the `emptied` that was acquired, and not again
        // before the sender has named 64 more cells, of which it has 48 at most.
        self.receiver.returned.load(Ordering::Relaxed) >> (k % 64) & 1 == 1
    }

    /// Sender: takes the message back if no receiver has come. Otherwise tells
    /// the receiver that nothing more comes, unless all is given.
    pub(crate) fn withdraw(&self, tag: u64, is_all_given: bool) -> bool {
        let mut hold = self.receiver.hold.load(Ordering::Relaxed);
        while state_of(hold, tag) == State::Open {
            // AcqRel: of this and `attach` just one happens; nothing is passed
            // along, but the next `open` of this slot must come after it.
            let withdrawn = tag << TAG_SHIFT | WITHDRAWN;
            match self.receiver.hold.compare_exchange(hold, withdrawn, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return true,
                Err(now) => hold = now,
            }
        }
        if !is_all_given {
            // Relaxed: it carries nothing but itself.
            self.sender.produced.store(ABANDONED, Ordering::Relaxed);
        }
        false
    }

    /// Sender: looks no more. Returns whether the receiver has it all already.
    pub(crate) fn leave(&self, tag: u64) -> bool {
        let mut hold = self.receiver.hold.load(Ordering::Acquire);
        loop {
            match state_of(hold, tag) {
                State::Open | State::Attached => {}
                state => return state == State::Whole,
            }
            // AcqRel: the receiver's last swap sees the flag, or this the end.
            let left = hold | LEFT;
            match self.receiver.hold.compare_exchange(hold, left, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return false,
                Err(now) => hold = now,
            }
        }
    }

    /// Receiver: whether the message `tag` is in this slot.
    pub(crate) fn has(&self, tag: u64) -> bool {
        // Relaxed: a look; `attach` acquires.
        state_of(self.receiver.hold.load(Ordering::Relaxed), tag) == State::Open
    }

    /// Receiver: comes for the message `tag`; false when it was taken back.
    pub(crate) fn attach(&self, tag: u64) -> bool {
        let mut hold = self.receiver.hold.load(Ordering::Acquire);
        while state_of(hold, tag) == State::Open {
            let attached = hold & !STATES | ATTACHED;
            // AcqRel: see `withdraw`; acquires what `open` released.
            match self.receiver.hold.compare_exchange(hold, attached, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return true,
                Err(now) => hold = now,
            }
        }
        false
    }

    /// Receiver: how many bytes stand there, or [`ABANDONED`]; unchecked.
    #[inline]
    pub(crate) fn produced(&self) -> u64 {
        // Acquire: pairs with `publish`.
        self.sender.produced.load(Ordering::Acquire)
    }

    /// Receiver: how many cells the sender had at hand; unchecked.
    #[inline]
    pub(crate) fn cells_at_begin(&self) -> u64 {
        self.begin() & CELLS_AT_BEGIN
    }

    /// Receiver: how far behind a cell's begin its bytes begin; less than a line,
    /// whatever stands there.
    #[inline]
    pub(crate) fn shift_bytes(&self) -> u64 {
        (self.begin() >> SHIFT_SHIFT) % LINE_BYTES
    }

    /// Receiver: whether its sender may fill just so many bytes, and no more; unchecked.
    #[inline]
    pub(crate) fn ends_at(&self, bytes: u64) -> bool {
        let told = self.begin() >> BYTES_SHIFT;
        told == bytes && told != MANY_BYTES
    }

    #[inline]
    fn begin(&self) -> u64 {
        // Relaxed: released with `hold`, which was acquired when attaching.
        self.sender.begin.load(Ordering::Relaxed)
    }

    /// Receiver: the number of the `k`-th cell; unchecked.
    #[inline]
    pub(crate) fn cell(&self, k: u64) -> u8 {
        let at = (k % CELLS_IN_FLIGHT) as usize;
        // Relaxed: released with `produced`.
        (self.sender.cells[at / 8].load(Ordering::Relaxed) >> (8 * (at % 8))) as u8
    }

    /// Receiver: has emptied the `k`-th cell, which goes back or stays.
    #[inline]
    pub(crate) fn empty(&self, k: u64, goes_back: bool) {
        // Relaxed: only this side writes it, and `emptied` releases it.
        let others = self.receiver.returned.load(Ordering::Relaxed) & !(1 << (k % 64));
        self.receiver.returned.store(others | u64::from(goes_back) << (k % 64), Ordering::Relaxed);
        // Release: the cell's bytes are read before the sender may write it.
        self.receiver.emptied.store(k + 1, Ordering::Release);
    }

    /// Receiver: goes, with all that it wants or without. Returns whether the
    /// sender will see it; otherwise it has left and must be told.
    pub(crate) fn close(&self, tag: u64, is_whole: bool) -> bool {
        let closed = if is_whole { CLOSED_WHOLE } else { CLOSED_EARLY };
        // AcqRel: releases what was emptied; pairs with `leave`.
        let before = self.receiver.hold.swap(tag << TAG_SHIFT | closed, Ordering::AcqRel);
        before & LEFT == 0
    }
}

#[cfg(all(test, not(loom)))]
#[path = "slot_tests.rs"]
mod tests;

#[cfg(all(test, loom))]
#[path = "slot_loom_models.rs"]
mod loom_models;
