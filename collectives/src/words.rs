//! The words of the board, and what ranks tell each other by them. No part of it knows
//! where they are, so loom runs what ships.
//!
//! Every word has one writer, the rank whose line it is in, but for the two of the
//! head. A rank polls the others' lines, which stay in its cache until they are
//! written: one line a rank, nothing that grows with the square of the ranks but the
//! tables of blocks.
//!
//! What others write is untrusted: every value of a word means something, and what is
//! taken from a line is compared with what this rank knows.
#![cfg_attr(not(loom), forbid(unsafe_code))] // A model has cells for memory.

use crate::call::Block;
use crate::layout::{LINE_BYTES, Layout, MAGIC};
use crate::sync::{AtomicU64, Ordering, fence};

const WORDS: usize = 8;

/// A cache line of words.
#[repr(C, align(64))]
#[derive(Debug)]
pub(crate) struct Line([AtomicU64; WORDS]);

#[cfg(not(loom))]
const _: () = assert!(size_of::<Line>() == LINE_BYTES as usize && align_of::<Line>() == 64);

impl Line {
    /// One in which nothing was written.
    #[cfg(not(loom))]
    pub const fn new() -> Self {
        Self([const { AtomicU64::new(0) }; WORDS])
    }

    #[cfg(loom)]
    pub fn new() -> Self {
        Self(std::array::from_fn(|_| AtomicU64::new(0)))
    }
}

/// Where a board's lines are.
pub(crate) trait Lines {
    /// A line, counted from the board's beginning; [`Layout`] has it.
    fn line(&self, line: u64) -> &Line;
}

/// Words of the head's lines.
mod head {
    /// `layout::MAGIC`, the number of ranks and the bytes of a slot: written once.
    pub const MAGIC: usize = 0;
    pub const SIZE: usize = 1;
    pub const SLOT_BYTES: usize = 2;
    /// Line 1: why the group is broken, or 0.
    pub const BROKEN: usize = 0;
    /// Line 2: how many ranks sleep.
    pub const SLEEPERS: usize = 0;
}

/// Words of a rank's own line.
mod rank {
    /// Calls that have ended, all before them too.
    pub const ENDED: usize = 0;
    /// Not 0 while it sleeps.
    pub const ASLEEP: usize = 1;
    /// Not 0 once it has left the group.
    pub const LEFT: usize = 2;
}

/// Words of a card's first line.
mod card {
    /// The call's number in the upper half, the point in the lower.
    pub const PROGRESS: usize = 0;
    /// What the call is, as a hash.
    pub const SIGNATURE: usize = 1;
    /// By rounds of meeting, from the second on: the call's number, and in the lowest
    /// bit whether signatures differ.
    pub const MET: usize = 2;
    /// The most rounds after the first: 8 to the power of them and one more ranks.
    pub const ROUNDS: usize = 5;
    /// Where in the memory of this rank's slots that of the call begins, in bytes.
    pub const SLOT: usize = 7;
}

/// What a rank shows of its call beside its signature, as the second line of its card
/// has it: what others say in their error if theirs is another, and where its memory is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Notice {
    /// The call in two words, see `signature`.
    pub call: [u64; 2],
    /// Of input, output and scratch memory: the region's handle and its bytes.
    pub regions: [(u64, u64); 3],
}

/// A board's words, as one rank uses them.
#[derive(Debug)]
pub(crate) struct Words<L> {
    pub(crate) lines: L,
    pub(crate) layout: Layout,
    pub(crate) rank: u32,
}

impl<L: Lines> Words<L> {
    /// Writes the head, before anybody else has the board.
    pub fn begin(&self) {
        let line = self.lines.line(0);
        // Relaxed: the key by which others find the board goes to them in a message.
        line.0[head::SIZE].store(self.layout.size.into(), Ordering::Relaxed);
        line.0[head::SLOT_BYTES].store(self.layout.slot_bytes, Ordering::Relaxed);
        line.0[head::MAGIC].store(MAGIC, Ordering::Relaxed);
    }

    /// Whether the head says what this rank expects.
    pub fn is_sound(&self) -> bool {
        let line = self.lines.line(0);
        // Relaxed: written before the message that named the board was sent.
        let word = |at: usize| line.0[at].load(Ordering::Relaxed);
        word(head::MAGIC) == MAGIC
            && word(head::SIZE) == u64::from(self.layout.size)
            && word(head::SLOT_BYTES) == self.layout.slot_bytes
    }

    /// The ranks that this one looks at in a round of a meeting.
    pub fn partners_in(&self, round: u32) -> impl Iterator<Item = u32> + use<L> {
        self.layout.partners_in(self.rank, round)
    }

    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    fn card(&self, rank: u32, call: u32) -> &Line {
        self.lines.line(self.layout.card(rank, call))
    }

    fn notice_line(&self, rank: u32, call: u32) -> &Line {
        self.lines.line(self.layout.card(rank, call) + 1)
    }

    // How far ranks are.

    /// Says that this rank has come to a point of a call, which is not 0.
    pub fn publish(&self, call: u32, point: u32) {
        let word = u64::from(call) << 32 | u64::from(point);
        // Release: whoever sees the point (`point_of`) sees what was done before it.
        self.card(self.rank, call).0[card::PROGRESS].store(word, Ordering::Release);
    }

    /// The point to which a rank has come in a call; none if it has not begun it.
    pub fn point_of(&self, rank: u32, call: u32) -> Option<u32> {
        // Acquire: see `publish`.
        let word = self.card(rank, call).0[card::PROGRESS].load(Ordering::Acquire);
        // No point is 0, so memory that nobody wrote is none of call 0.
        ((word >> 32) as u32 == call && word as u32 != 0).then_some(word as u32)
    }

    /// Shows what this rank's call is; before it publishes a point of it.
    pub fn show(&self, call: u32, signature: u64, notice: &Notice) {
        // Relaxed, all of them: `publish` comes after them.
        self.card(self.rank, call).0[card::SIGNATURE].store(signature, Ordering::Relaxed);
        let line = self.notice_line(self.rank, call);
        let regions = notice.regions.iter().flat_map(|&(handle, bytes)| [handle, bytes]);
        for (word, value) in line.0.iter().zip(notice.call.into_iter().chain(regions)) {
            word.store(value, Ordering::Relaxed);
        }
    }

    /// Says where this rank's slot of a call begins; before it publishes.
    pub fn place_slot(&self, call: u32, begin: u64) {
        // Relaxed: `publish` comes after it.
        self.card(self.rank, call).0[card::SLOT].store(begin, Ordering::Relaxed);
    }

    /// Where a rank says that its slot of a call begins; only once its point was seen.
    pub fn slot_of(&self, rank: u32, call: u32) -> u64 {
        // Relaxed: written before the point that was seen.
        self.card(rank, call).0[card::SLOT].load(Ordering::Relaxed)
    }

    /// What a rank's call is; only once its point was seen.
    pub fn signature_of(&self, rank: u32, call: u32) -> u64 {
        // Relaxed: written before the point that was seen.
        self.card(rank, call).0[card::SIGNATURE].load(Ordering::Relaxed)
    }

    /// What a rank shows of its call; only once it was met.
    pub fn notice_of(&self, rank: u32, call: u32) -> Notice {
        let line = self.notice_line(rank, call);
        // Relaxed: written before the point that was seen.
        let word = |at: usize| line.0[at].load(Ordering::Relaxed);
        Notice {
            call: [word(0), word(1)],
            regions: [(word(2), word(3)), (word(4), word(5)), (word(6), word(7))],
        }
    }

    /// Says that this rank has met all that it was to meet in this round (from 1 on),
    /// and whether all of them call the same.
    pub fn publish_arrival(&self, call: u32, round: u32, differs: bool) {
        let word = u64::from(call) << 1 | u64::from(differs);
        let words = &self.card(self.rank, call).0;
        // Release: whoever sees it (`arrival_of`) sees what the ranks that this one has
        // met have shown, since this rank has seen that.
        words[card::MET + (round as usize - 1) % card::ROUNDS].store(word + (1 << 33), Ordering::Release);
    }

    /// Whether a rank has met all of a round, and if so whether calls differ.
    pub fn arrival_of(&self, rank: u32, call: u32, round: u32) -> Option<bool> {
        // Acquire: see `publish_arrival`.
        let word =
            self.card(rank, call).0[card::MET + (round as usize - 1) % card::ROUNDS].load(Ordering::Acquire);
        // The bit above the call's number tells call 0 from memory that nobody wrote.
        (word >> 1 == u64::from(call) | 1 << 32).then_some(word & 1 != 0)
    }

    /// Says that this rank has ended all calls before `call`.
    pub fn publish_ended(&self, call: u32) {
        // Release: who takes the ended calls' cards and slots anew comes after what was
        // read from them.
        self.rank_line(self.rank).0[rank::ENDED].store(call.into(), Ordering::Release);
    }

    /// Says that this rank has left the group and begins no further call.
    pub fn leave(&self) {
        // Release: who sees it sees the calls that this rank has ended.
        self.rank_line(self.rank).0[rank::LEFT].store(1, Ordering::Release);
    }

    /// Whether a rank has left the group.
    pub fn has_left(&self, rank: u32) -> bool {
        // Acquire: see `leave`.
        self.rank_line(rank).0[rank::LEFT].load(Ordering::Acquire) != 0
    }

    /// Before which call a rank has ended all.
    pub fn ended_of(&self, rank: u32) -> u32 {
        // Acquire: see `publish_ended`.
        self.rank_line(rank).0[rank::ENDED].load(Ordering::Acquire) as u32
    }

    fn rank_line(&self, rank: u32) -> &Line {
        self.lines.line(self.layout.rank_line(rank))
    }

    // What breaks the group.

    /// Why the group is broken, or 0.
    pub fn broken(&self) -> u64 {
        // Acquire: pairs with the exchange below.
        self.lines.line(1).0[head::BROKEN].load(Ordering::Acquire)
    }

    /// Breaks the group for all, for this reason, which must not be 0; the first
    /// reason counts.
    pub fn break_for(&self, reason: u64) {
        let word = &self.lines.line(1).0[head::BROKEN];
        // AcqRel: who sees the reason sees what its writer has done, and the other way
        // about. A failure means that there is a reason already.
        let _first = word.compare_exchange(0, reason, Ordering::AcqRel, Ordering::Acquire);
    }

    // Leaving. Who writes to another's memory says before that it has come to the call,
    // then looks whether that memory is still declared; who takes its memory back looks
    // after that for those that have come. The fences see to it that at least one of the
    // two sees the other.

    /// To be called between what is said and what is looked at.
    pub fn fence_of_leaving(&self) {
        // SeqCst: pairs with the other's.
        fence(Ordering::SeqCst);
    }

    // Sleeping. A sleeper says so, then looks again; who publishes looks for sleepers
    // after that. The fences see to it that at least one of the two sees the other.

    /// Says that this rank is about to sleep: from now on those that publish ring. It
    /// looks once more at what it waits for before it does.
    pub fn fall_asleep(&self) {
        // Relaxed: ordered by the fence against the looks that follow.
        self.rank_line(self.rank).0[rank::ASLEEP].store(1, Ordering::Relaxed);
        self.lines.line(2).0[head::SLEEPERS].fetch_add(1, Ordering::Relaxed);
        // SeqCst: pairs with that of `sleepers`.
        fence(Ordering::SeqCst);
    }

    /// It is awake.
    pub fn wake_up(&self) {
        // Relaxed: a ring too many does no harm.
        self.rank_line(self.rank).0[rank::ASLEEP].store(0, Ordering::Relaxed);
        self.lines.line(2).0[head::SLEEPERS].fetch_sub(1, Ordering::Relaxed);
    }

    /// The ranks that sleep, or are about to; to be asked after something was published.
    pub fn sleepers(&self) -> impl Iterator<Item = u32> + '_ {
        // SeqCst: pairs with that of `fall_asleep`.
        fence(Ordering::SeqCst);
        // Relaxed: after the fence either this sees the sleeper, or the sleeper's
        // look sees what was published before.
        let any = self.lines.line(2).0[head::SLEEPERS].load(Ordering::Relaxed) != 0;
        let ranks = if any { 0..self.layout.size } else { 0..0 };
        let asleep = |&rank: &u32| self.rank_line(rank).0[rank::ASLEEP].load(Ordering::Relaxed) != 0;
        ranks.filter(move |rank| *rank != self.rank && asleep(rank))
    }

    // Tables.

    /// Shows where in this rank's memory a rank's block is.
    pub fn show_block(&self, call: u32, of: u32, block: Block) {
        let (line, word) = self.layout.table_entry(self.rank, call, of);
        let line = self.lines.line(line);
        // Relaxed: `publish` comes after them.
        line.0[word].store(block.offset, Ordering::Relaxed);
        line.0[word + 1].store(block.bytes, Ordering::Relaxed);
    }

    /// Where in a rank's memory another's block is; only once it was met.
    pub fn shown_block(&self, rank: u32, call: u32, of: u32) -> Block {
        let (line, word) = self.layout.table_entry(rank, call, of);
        let line = self.lines.line(line);
        // Relaxed: written before the meeting.
        Block {
            offset: line.0[word].load(Ordering::Relaxed),
            bytes: line.0[word + 1].load(Ordering::Relaxed),
        }
    }
}

#[cfg(all(test, loom))]
#[path = "words_loom_tests.rs"]
mod loom_tests;
