//! The protocol of one lane: who may touch which buffer, and how a lane passes
//! from one transfer to the next.
//!
//! A lane has two words. `produced` is stored by the sender alone: how many
//! chunks stand in the buffers. `consumed` is moved forward by the receiver by
//! compare-and-swap, and taken back by the sender when its transfer ends. Each
//! word is a transfer's tag (high 40 bits) and a count of chunks modulo 2^24;
//! at most `buffers` chunks are ever between the two counts, so the modulus
//! does not show.
//!
//! Why reuse is safe although the receiver of an aborted transfer may still be
//! copying, or stand still just before its compare-and-swap: `close` swaps the
//! tag out of `consumed` before anything else is done with the lane. If the
//! stale receiver's compare-and-swap came first, then all it read was read
//! before `close`, and it is whole. If it comes later, it fails, whatever the
//! lane carries by then, and the receiver does not count the chunk it copied;
//! nor does it disturb the next transfer's counters. Tags repeat after 2^40
//! transfers of one endpoint, weeks at a million a second.
//!
//! Everything read here is written by a peer and untrusted: a count that cannot
//! be ends in [`Garbage`], and no count makes anyone leave the lane's buffers.

use crate::sync::{AtomicU64, Ordering};

const COUNT_BITS: u32 = 24;
const COUNT_MASK: u64 = (1 << COUNT_BITS) - 1;

/// The name of one transfer within the endpoint that sends it; never 0, which
/// stands for none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Tag(u64);

impl Tag {
    /// The first that an endpoint draws from.
    pub(crate) const FIRST: Self = Self(1);

    /// The tag with this number, if it is one.
    pub(crate) const fn new(number: u64) -> Option<Self> {
        if number == 0 || number >> (64 - COUNT_BITS) != 0 { None } else { Some(Self(number)) }
    }

    /// The tag after this one.
    pub(crate) const fn next(self) -> Self {
        let next = (self.0 + 1) & (u64::MAX >> COUNT_BITS);
        Self(if next == 0 { 1 } else { next })
    }

    /// Its number.
    pub(crate) const fn number(self) -> u64 {
        self.0
    }

    const fn with(self, low: u64) -> u64 {
        self.0 << COUNT_BITS | low & COUNT_MASK
    }

    /// The low part of `word` if it carries this tag.
    const fn low_of(self, word: u64) -> Option<u64> {
        if word >> COUNT_BITS == self.0 { Some(word & COUNT_MASK) } else { None }
    }
}

/// A peer's counter that no rule-abiding peer could have written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Garbage;

/// The two words of a lane, each on a cache line of its own.
#[derive(Clone, Copy)]
pub(crate) struct Words<'a> {
    /// Chunks put in; stored by the sender only.
    pub(crate) produced: &'a AtomicU64,
    /// Chunks taken out; moved by the receiver, opened and closed by the sender.
    pub(crate) consumed: &'a AtomicU64,
}

/// Says in a mailbox slot that the transfer `tag` goes through `lane`.
pub(crate) fn announce(slot: &AtomicU64, tag: Tag, lane: u32) {
    // Release: pairs with `look`'s Acquire, so that who finds the lane finds
    // its words opened.
    slot.store(tag.with(u64::from(lane)), Ordering::Release);
}

/// Empties a mailbox slot.
pub(crate) fn withdraw(slot: &AtomicU64) {
    // Relaxed: nothing is published; a reader that still sees the old word
    // finds the lane closed.
    slot.store(0, Ordering::Relaxed);
}

/// The lane of transfer `tag`, if the slot tells; unchecked.
pub(crate) fn look(slot: &AtomicU64, tag: Tag) -> Option<u32> {
    // Acquire: pairs with `announce`.
    tag.low_of(slot.load(Ordering::Acquire)).map(|lane| lane as u32)
}

/// The sender's end of a lane.
#[derive(Clone, Debug)]
pub(crate) struct Producer {
    tag: Tag,
    buffers: u32,
    produced: u64,
    consumed: u64,
}

impl Producer {
    /// Opens a lane that is new (all zero) or was closed.
    pub(crate) fn open(words: Words<'_>, tag: Tag, buffers: u32) -> Self {
        // Relaxed, both: `announce` publishes them. A stale receiver's
        // compare-and-swap fails on the old word (0) as on this one.
        words.consumed.store(tag.with(0), Ordering::Relaxed);
        words.produced.store(tag.with(0), Ordering::Relaxed);
        Self { tag, buffers, produced: 0, consumed: 0 }
    }

    /// Chunks that the receiver has taken out.
    pub(crate) const fn consumed(&self) -> u64 {
        self.consumed
    }

    /// Chunks that have been put in.
    pub(crate) const fn produced(&self) -> u64 {
        self.produced
    }

    /// Looks how far the receiver is.
    pub(crate) fn refresh(&mut self, words: Words<'_>) -> Result<(), Garbage> {
        // Acquire: pairs with the Release of `Consumer::release`: its reads of
        // a buffer come before our next writes to it.
        let word = words.consumed.load(Ordering::Acquire);
        let count = self.tag.low_of(word).ok_or(Garbage)?;
        let newly = count.wrapping_sub(self.consumed) & COUNT_MASK;
        if newly > self.produced - self.consumed {
            return Err(Garbage);
        }
        self.consumed += newly;
        Ok(())
    }

    /// The buffer that may be filled next, if one is free behind the `filling`
    /// ones that are being filled and not published yet.
    pub(crate) fn free_buffer(&self, filling: u64) -> Option<u32> {
        let next = self.produced + filling;
        (next - self.consumed < u64::from(self.buffers)).then(|| (next % u64::from(self.buffers)) as u32)
    }

    /// Hands the first buffer of [`Self::free_buffer`], filled, to the receiver.
    pub(crate) fn publish(&mut self, words: Words<'_>) {
        self.produced += 1;
        // Release: pairs with the Acquire of `Consumer::refresh`, which makes
        // the buffer's bytes visible.
        words.produced.store(self.tag.with(self.produced), Ordering::Release);
    }

    /// Takes the lane away from the receiver, whatever it is doing; returns the
    /// receiver's last word.
    pub(crate) fn close(words: Words<'_>) -> u64 {
        // A swap and not a store, with Acquire: it reads the receiver's last
        // compare-and-swap (Release), so all that the receiver counted was read
        // before what we do to the buffers from here on.
        words.consumed.swap(0, Ordering::Acquire)
    }
}

/// The receiver's end of a lane.
#[derive(Clone, Debug)]
pub(crate) struct Consumer {
    tag: Tag,
    buffers: u32,
    taken: u64,
    there: u64,
}

impl Consumer {
    /// The end of a lane that `look` has found.
    pub(crate) const fn new(tag: Tag, buffers: u32) -> Self {
        Self { tag, buffers, taken: 0, there: 0 }
    }

    /// Chunks taken out so far.
    pub(crate) const fn taken(&self) -> u64 {
        self.taken
    }

    /// Looks how far the sender is. A lane that carries another transfer by now
    /// has nothing new.
    pub(crate) fn refresh(&mut self, words: Words<'_>) -> Result<(), Garbage> {
        // Acquire: pairs with the Release of `Producer::publish`.
        let word = words.produced.load(Ordering::Acquire);
        let Some(count) = self.tag.low_of(word) else {
            return Ok(());
        };
        let ready = count.wrapping_sub(self.taken) & COUNT_MASK;
        if ready > u64::from(self.buffers) {
            return Err(Garbage);
        }
        self.there = self.taken + ready;
        Ok(())
    }

    /// The buffer that may be emptied next, if one is full behind the
    /// `emptying` ones that are being emptied and not given back yet.
    pub(crate) fn full_buffer(&self, emptying: u64) -> Option<u32> {
        let next = self.taken + emptying;
        (next < self.there).then(|| (next % u64::from(self.buffers)) as u32)
    }

    /// Gives the first buffer of [`Self::full_buffer`] back. `false`: the sender has
    /// closed the lane, and what was copied out of the buffer does not count.
    #[must_use]
    pub(crate) fn release(&mut self, words: Words<'_>) -> bool {
        let (old, new) = (self.tag.with(self.taken), self.tag.with(self.taken + 1));
        // Release on success: pairs with the Acquire of `Producer::refresh` and
        // of `close`: our reads of the buffer come before it is overwritten.
        // Relaxed on failure: nothing that the word guards is touched then.
        let swapped = words.consumed.compare_exchange(old, new, Ordering::Release, Ordering::Relaxed);
        if swapped.is_ok() {
            self.taken += 1;
        }
        swapped.is_ok()
    }
}

#[cfg(all(test, not(loom)))]
#[path = "lane_tests.rs"]
mod tests;

#[cfg(all(test, loom))]
#[path = "lane_loom_models.rs"]
mod loom_models;
