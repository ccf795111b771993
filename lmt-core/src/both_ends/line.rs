//! The protocol of one line: who may copy which part of a message, and who
//! learns of its end.
//!
//! A line has two words. The shared one is (generation, state, front, back): the
//! receiver claims parts by moving `front` up, the sender by moving `back` down,
//! each by compare-and-swap, so a part is claimed once. `retired` is stored by
//! the sender alone: how much of what it claimed it has copied. The receiver
//! knows of its own.
//!
//! ```text
//! Open --sender joins--> Joined --receiver ends--> Ended    both know of the end
//!   ^-----sender leaves----'  '----receiver closes--> Closed   a packet says how it ends
//!   '--receiver ends or closes--> Closed --sender leaves--> Open    it copies nothing any more
//! ```
//!
//! # Why reuse is safe
//!
//! A generation is never used twice in a row of 2^24 uses of a line. A sender
//! that comes late finds another generation and cannot claim. It stores
//! `retired` only where the line cannot have been given to another message: with
//! a claim of its own in flight, for which the receiver waits before it lets the
//! line go ([`ReceiverEnd::is_quiescent`]), or in state Ended, in which the line is kept
//! until the sender has said in `retired` that it has gone.
//!
//! Everything read here is written by a peer and untrusted: each end keeps what
//! it knows by itself, and a word that cannot be is [`Garbage`], or, to the
//! sender, the end of its helping.

use crate::base::sync::{AtomicU64, Ordering};

const FIELD_BITS: u32 = 19;

const FIELD_MASK: u64 = (1 << FIELD_BITS) - 1;

const STATE_SHIFT: u32 = 2 * FIELD_BITS;

const GENERATION_SHIFT: u32 = STATE_SHIFT + 2;

/// In `retired`: the sender has gone.
const GONE: u64 = 1 << STATE_SHIFT;

/// The most units that a message may be divided into.
pub(super) const MAX_UNITS: u32 = FIELD_MASK as u32;

/// Generations are below this.
pub(super) const GENERATIONS: u32 = 1 << (64 - GENERATION_SHIFT);

/// A word that no rule-abiding peer could have written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Garbage;

/// The two words of a line, each on a pair of cache lines of its own.
#[derive(Clone, Copy, Debug)]
pub(super) struct Words<'a> {
    pub(super) shared: &'a AtomicU64,
    pub(super) retired: &'a AtomicU64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// The sender is not there.
    Open = 0,
    /// The sender is there.
    Joined = 1,
    /// The message is whole, and the sender is to find it here.
    Ended = 2,
    /// Over; a packet says how.
    Closed = 3,
}

/// The shared word, taken apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Shared {
    generation: u32,
    state: State,
    front: u32,
    back: u32,
}

impl Shared {
    fn unpack(word: u64) -> Self {
        let state = match word >> STATE_SHIFT & 3 {
            0 => State::Open,
            1 => State::Joined,
            2 => State::Ended,
            _ => State::Closed,
        };
        Self {
            generation: (word >> GENERATION_SHIFT) as u32,
            state,
            front: (word >> FIELD_BITS & FIELD_MASK) as u32,
            back: (word & FIELD_MASK) as u32,
        }
    }

    const fn pack(self) -> u64 {
        (self.generation as u64) << GENERATION_SHIFT
            | (self.state as u64) << STATE_SHIFT
            | (self.front as u64) << FIELD_BITS
            | self.back as u64
    }

    /// Puts `self` in the place of `seen`, or gives what stands there instead.
    fn replace(self, seen: Self, word: &AtomicU64, order: Ordering) -> Result<(), Self> {
        // Relaxed on failure: what is found is only tried again.
        let swapped = word.compare_exchange_weak(seen.pack(), self.pack(), order, Ordering::Relaxed);
        swapped.map(|_| ()).map_err(Self::unpack)
    }
}

/// What an end that is to claim sees of a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct View {
    /// First unit that the receiver has not claimed.
    pub(super) front: u32,
    /// Behind the last that the sender has not claimed.
    pub(super) back: u32,
    /// Whether the sender is there.
    pub(super) joined: bool,
}

impl View {
    /// Units that nobody has claimed.
    pub(super) const fn left(self) -> u32 {
        self.back - self.front
    }
}

/// The receiver's end of a line.
#[derive(Debug)]
pub(super) struct ReceiverEnd {
    generation: u32,
    units: u32,
    front: u32,
    /// As last seen.
    back: u32,
    joined: bool,
    /// What stood in `retired` when the line was opened.
    retired_before: u64,
}

impl ReceiverEnd {
    /// The end of a line that nobody uses, for a message of so many units.
    pub(super) const fn new(generation: u32, units: u32) -> Self {
        Self { generation, units, front: 0, back: units, joined: false, retired_before: 0 }
    }

    /// Opens the line, before the packet that names it goes out.
    pub(super) fn open(&mut self, words: Words<'_>) {
        // Relaxed: who stored it copies nothing any more.
        self.retired_before = words.retired.load(Ordering::Relaxed);
        let Self { generation, front, back, .. } = *self;
        let fresh = Shared { generation, state: State::Open, front, back };
        // Relaxed: the packet that names the line to the sender publishes it;
        // who has it by an old name fails by the generation.
        words.shared.store(fresh.pack(), Ordering::Relaxed);
    }

    pub(super) const fn generation(&self) -> u32 {
        self.generation
    }

    /// Takes a word in if it can be. Only this end moves the front; the sender
    /// moves the back down, and comes and goes.
    fn take(&mut self, seen: Shared) -> Result<View, Garbage> {
        let possible = seen.generation == self.generation
            && matches!(seen.state, State::Open | State::Joined)
            && seen.front == self.front
            && (self.front..=self.back).contains(&seen.back);
        if !possible {
            return Err(Garbage);
        }
        self.back = seen.back;
        self.joined = seen.state == State::Joined;
        Ok(View { front: seen.front, back: seen.back, joined: self.joined })
    }

    /// Claims as many units from the front as `want` says, at most those that
    /// are left; returns how many, 0 when none is left.
    pub(super) fn claim(&mut self, words: Words<'_>, want: impl Fn(View) -> u32) -> Result<u32, Garbage> {
        // Relaxed: a claim says who may copy, and what is copied was there before the line
        // was opened. What the sender has copied is taken over by `is_whole`.
        let mut seen = Shared::unpack(words.shared.load(Ordering::Relaxed));
        loop {
            let view = self.take(seen)?;
            let units = want(view).min(view.left());
            if units == 0 {
                return Ok(0);
            }
            let claimed = Shared { front: seen.front + units, ..seen };
            match claimed.replace(seen, words.shared, Ordering::Relaxed) {
                Ok(()) => {
                    self.front += units;
                    return Ok(units);
                }
                Err(other) => seen = other,
            }
        }
    }

    /// Units that the sender had claimed when this end looked last.
    pub(super) const fn claimed_by_sender(&self) -> u32 {
        self.units - self.back
    }

    /// Whether nothing was left to claim when this end looked last.
    pub(super) const fn is_all_claimed(&self) -> bool {
        self.front == self.back
    }

    /// Whether all is claimed and the sender has copied what it has claimed;
    /// asked when this end has copied its own.
    pub(super) fn is_whole(&mut self, words: Words<'_>) -> Result<bool, Garbage> {
        if self.front < self.back {
            // Relaxed: as in `claim`.
            self.take(Shared::unpack(words.shared.load(Ordering::Relaxed)))?;
        }
        if self.front < self.back {
            return Ok(false);
        }
        let (retired, _) = self.retired(words);
        if retired > self.claimed_by_sender() {
            return Err(Garbage);
        }
        Ok(retired == self.claimed_by_sender())
    }

    /// Units that the sender has copied, and whether it has gone.
    fn retired(&self, words: Words<'_>) -> (u32, bool) {
        // Acquire: pairs with the Release of `SenderEnd::retire` and of
        // `SenderEnd::leave`, which come behind the sender's last copy: what it has
        // written stands in the buffer, and nothing of it comes later.
        let word = words.retired.load(Ordering::Acquire);
        if (word >> GENERATION_SHIFT) as u32 == self.generation {
            return ((word & FIELD_MASK) as u32, word & GONE != 0);
        }
        // Nobody but this message's sender has anything to say here; it has not yet, or what it
        // said is lost: then it cannot be waited for.
        if word == self.retired_before { (0, false) } else { (u32::MAX, true) }
    }

    /// Ends a message that is whole. Returns whether the sender was there, and
    /// so learns of it here; then the line is the sender's until [`gone`].
    pub(super) fn end(&mut self, words: Words<'_>) -> Result<bool, Garbage> {
        // Relaxed: only the state counts.
        let mut seen = Shared::unpack(words.shared.load(Ordering::Relaxed));
        loop {
            let joined = self.take(seen)?.joined;
            let ended = Shared { state: if joined { State::Ended } else { State::Closed }, ..seen };
            // Release: pairs with the Acquire of the sender's look, after which
            // the message's memory is its own again: all was read before.
            match ended.replace(seen, words.shared, Ordering::Release) {
                Ok(()) => return Ok(joined),
                Err(other) => seen = other,
            }
        }
    }

    /// Ends a message that is not whole, or whose line is garbage: nothing can
    /// be claimed any more.
    pub(super) fn close(&mut self, words: Words<'_>) {
        let closed =
            Shared { generation: self.generation, state: State::Closed, front: self.front, back: self.back };
        // It takes back a permission; what the sender still has in flight
        // `is_quiescent` waits for. Acquire: pairs with the Release of `SenderEnd::leave`;
        // a sender that is not there has copied all that it claimed.
        let seen = Shared::unpack(words.shared.swap(closed.pack(), Ordering::Acquire));
        // Of a peer that lies nothing can be known: then nothing is waited for.
        if !self.take(seen).is_ok_and(|view| view.joined) {
            self.back = self.units;
        }
    }

    /// Whether the sender copies nothing any more, in a line that is closed.
    pub(super) fn is_quiescent(&self, words: Words<'_>) -> bool {
        let (retired, has_gone) = self.retired(words);
        has_gone || retired >= self.claimed_by_sender() || self.is_left(words)
    }

    /// Whether the sender has left a closed line: it says so where it cannot know what this end
    /// takes it to have claimed.
    fn is_left(&self, words: Words<'_>) -> bool {
        // Acquire: pairs with the Release of `SenderEnd::leave_closed`.
        let seen = Shared::unpack(words.shared.load(Ordering::Acquire));
        seen.generation == self.generation && seen.state == State::Open
    }
}

/// Whether the sender of an ended message has left the line.
pub(super) fn gone(words: Words<'_>, generation: u32) -> bool {
    // Acquire: pairs with the Release in `SenderEnd::leave`; the sender stores here
    // for this generation no more, so the line may be another message's.
    let word = words.retired.load(Ordering::Acquire);
    (word >> GENERATION_SHIFT) as u32 == generation && word & GONE != 0
}

/// What the sender finds at the line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Found {
    /// So many units are this end's now, behind the back.
    Claimed(u32),
    /// Nothing is left to claim.
    Nothing,
    /// The message is whole.
    Ended,
    /// A packet tells how it ends.
    Over,
}

/// The sender's end of a line.
#[derive(Debug)]
pub(super) struct SenderEnd {
    generation: u32,
    units: u32,
    /// As last seen.
    front: u32,
    back: u32,
    retired: u32,
    joined: bool,
    /// This message's line says what its receiver cannot have written there.
    is_spoilt: bool,
    outcome: Option<Found>,
}

impl SenderEnd {
    /// The end of a line that the receiver has named.
    pub(super) const fn new(generation: u32, units: u32) -> Self {
        let (front, back, retired) = (0, units, 0);
        Self { generation, units, front, back, retired, joined: false, is_spoilt: false, outcome: None }
    }

    /// First unit that this end has claimed.
    pub(super) const fn back(&self) -> u32 {
        self.back
    }

    /// Whether nothing is left to do at the line.
    pub(super) const fn is_over(&self) -> bool {
        self.outcome.is_some()
    }

    /// Takes a word in, or says that helping is over.
    fn take(&mut self, seen: Shared) -> Result<View, Found> {
        let expected = if self.joined { State::Joined } else { State::Open };
        let is_mine = seen.generation == self.generation
            && seen.back == self.back
            && (self.front..=self.back).contains(&seen.front);
        let over = match seen.state {
            state if state == expected && is_mine => {
                self.front = seen.front;
                return Ok(View { front: seen.front, back: seen.back, joined: self.joined });
            }
            State::Ended if is_mine && self.joined => Found::Ended,
            _ => Found::Over,
        };
        self.is_spoilt |=
            seen.generation == self.generation && matches!(seen.state, State::Open | State::Joined);
        self.outcome = Some(over);
        Err(over)
    }

    /// Claims as many units from the back as `want` says, joining with the first
    /// look that may claim.
    pub(super) fn claim(&mut self, words: Words<'_>, want: impl Fn(View) -> u32) -> Found {
        if let Some(outcome) = self.outcome {
            return outcome;
        }
        // Acquire: pairs with the Release of `ReceiverEnd::end`.
        let mut seen = Shared::unpack(words.shared.load(Ordering::Acquire));
        loop {
            let view = match self.take(seen) {
                Ok(view) => view,
                Err(over) => return over,
            };
            let units = want(view).min(view.left());
            if units == 0 && self.joined {
                return Found::Nothing;
            }
            let claimed = Shared { state: State::Joined, back: seen.back - units, ..seen };
            // Relaxed: a claim says who may copy, and no more; as on the
            // receiver's side.
            match claimed.replace(seen, words.shared, Ordering::Relaxed) {
                Ok(()) => {
                    self.joined = true;
                    self.back -= units;
                    return if units == 0 { Found::Nothing } else { Found::Claimed(units) };
                }
                // What the failed exchange read was read Relaxed.
                Err(_) => seen = Shared::unpack(words.shared.load(Ordering::Acquire)),
            }
        }
    }

    /// Looks whether the message has ended; claims nothing and does not join.
    pub(super) fn look(&mut self, words: Words<'_>) -> Found {
        if let Some(outcome) = self.outcome {
            return outcome;
        }
        // Acquire: pairs with the Release of `ReceiverEnd::end`.
        let seen = Shared::unpack(words.shared.load(Ordering::Acquire));
        self.take(seen).err().unwrap_or(Found::Nothing)
    }

    /// All that was claimed has been copied.
    pub(super) fn retire(&mut self, words: Words<'_>) {
        self.retired = self.units - self.back;
        // Release: pairs with the Acquire of `ReceiverEnd::retired`.
        words.retired.store(self.mark(0), Ordering::Release);
    }

    fn mark(&self, flag: u64) -> u64 {
        u64::from(self.generation) << GENERATION_SHIFT | flag | u64::from(self.retired)
    }

    /// Leaves the line. Returns whether the message is whole.
    pub(super) fn leave(&mut self, words: Words<'_>) -> bool {
        if self.retired < self.units - self.back {
            // A claim that failed: the receiver is not to wait for it. The line
            // is this message's until it knows. Release: pairs with the Acquire
            // of `ReceiverEnd::retired`; nothing is written behind it.
            words.retired.store(self.mark(GONE), Ordering::Release);
        }
        while self.outcome.is_none() && self.joined {
            // Acquire: pairs with the Release of `ReceiverEnd::end`.
            let seen = Shared::unpack(words.shared.load(Ordering::Acquire));
            if self.take(seen).is_err() {
                break;
            }
            let left = Shared { state: State::Open, ..seen };
            // Release: pairs with the Acquire of `ReceiverEnd::close`.
            if left.replace(seen, words.shared, Ordering::Release).is_ok() {
                self.outcome = Some(Found::Over);
            }
        }
        if self.is_spoilt && self.joined {
            // The receiver may wait for more than was ever claimed. Release: as above.
            words.retired.store(self.mark(GONE), Ordering::Release);
        }
        if self.joined && self.outcome == Some(Found::Over) {
            self.leave_closed(words);
        }
        let ended = self.outcome == Some(Found::Ended);
        if ended && self.joined {
            self.joined = false;
            // Release: pairs with the Acquire of `gone`: this is the last store.
            words.retired.store(self.mark(GONE), Ordering::Release);
        }
        // Who has not joined, or has left, is not to come back.
        self.outcome.get_or_insert(Found::Over);
        ended
    }
}

impl SenderEnd {
    /// Tells a receiver that has closed the line that this end copies nothing any more: a wild
    /// write before may have made it wait for more than was ever claimed.
    fn leave_closed(&self, words: Words<'_>) {
        // Relaxed: only what stands there counts.
        let mut seen = Shared::unpack(words.shared.load(Ordering::Relaxed));
        // Where the line is another message's already, its generation is another, too.
        while seen.generation == self.generation && seen.state == State::Closed {
            let left = Shared { state: State::Open, ..seen };
            // Release: pairs with the Acquire of `ReceiverEnd::is_left`; all copies are behind.
            match left.replace(seen, words.shared, Ordering::Release) {
                Ok(()) => return,
                Err(other) => seen = other,
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
#[path = "line_tests.rs"]
mod tests;

#[cfg(all(test, loom))]
#[path = "line_loom_tests.rs"]
mod loom_tests;
