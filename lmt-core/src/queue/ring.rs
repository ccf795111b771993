//! The ring that senders claim slots of: the senders' half of the algorithm.
//!
//! A position is a 64-bit count of claims; position `p` lives in slot
//! `p % slots` at lap `p / slots`. A sender takes a position by one
//! compare-and-swap of the slot's claim word, writes the message, and
//! publishes it by one store. Killed in between, it leaves a claim that names
//! it, and nothing else that anyone waits for.
//!
//! The tail hint only says where to start looking. What holds is this: every
//! position below it was passed for a reason that stays true, so that nobody
//! can claim it any more and the receiver need not wait for it:
//! - it is claimed, or was and is given back (its slot is at this lap or later);
//! - its slot is stuck at an earlier lap: the receiver passes such a slot over
//!   and frees it, when it does, for a position past every one that a sender
//!   can have passed ([`Drain`](super::drain::Drain) says how).

use super::words::{Claim, Publish, lap_of, laps_ahead};
use crate::base::sync::{AtomicU64, Ordering, fence};

/// Words of one line; a line is one cache line.
pub(crate) const LINE_WORDS: usize = 8;

/// One slot's message, or its header: word 0 publishes it.
#[repr(C, align(64))]
pub(crate) struct Line {
    /// Written by the sender that owns the slot's claim. Word 0 is stored with
    /// Release and polled with Acquire; that pair orders all else.
    pub(crate) words: [AtomicU64; LINE_WORDS],
}

/// Borrowed shared words of one inbox.
#[derive(Clone, Copy)]
pub(crate) struct Ring<'a> {
    /// One claim word for each slot; a power of two of them.
    pub(crate) claims: &'a [AtomicU64],
    /// One line for each slot.
    pub(crate) lines: &'a [Line],
    /// Where senders start looking for a free slot.
    pub(crate) tail_hint: &'a AtomicU64,
    /// 1 while the receiver wants a doorbell.
    pub(crate) sleeping: &'a AtomicU64,
}

impl<'a> Ring<'a> {
    #[inline]
    pub(crate) fn slots(&self) -> usize {
        self.claims.len()
    }

    #[inline]
    pub(crate) fn slot(&self, position: u64) -> usize {
        position as usize & (self.slots() - 1)
    }

    #[inline]
    pub(crate) fn lap(&self, position: u64) -> u64 {
        lap_of(position, self.slots())
    }

    #[inline]
    pub(crate) fn line(&self, position: u64) -> &'a Line {
        &self.lines[self.slot(position)]
    }

    /// Whether the receiver sleeps and this sender is the one to wake it; asked
    /// after something was published, here or in a fast box.
    #[inline]
    pub(crate) fn wants_doorbell(&self) -> bool {
        // Pairs with the fence in `Drain::prepare_sleep`: either this load sees
        // the receiver asleep or the receiver's last look sees the message, and
        // every claim that this sender has seen.
        fence(Ordering::SeqCst);
        // Relaxed: the fence orders it. The swap picks the one sender that
        // rings; AcqRel pairs with the swaps in `prepare_sleep`, `cancel_sleep`.
        self.sleeping.load(Ordering::Relaxed) != 0 && self.sleeping.swap(0, Ordering::AcqRel) != 0
    }
}

/// The ring has no free slot, or none that a bounded search found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use = "a sleeping receiver must be woken"]
pub(crate) struct RingFull {
    /// The receiver sleeps, and may have to pass over a stalled sender to make
    /// room: ring its doorbell.
    pub(crate) wake: bool,
}

/// A position that this sender has claimed and not yet published.
#[derive(Debug)]
#[must_use = "a claim that is not published holds its slot until its owner dies"]
pub(crate) struct Claimed {
    position: u64,
}

impl Claimed {
    #[inline]
    pub(crate) fn position(&self) -> u64 {
        self.position
    }
}

/// What one sender knows of the ring.
#[derive(Debug)]
pub(crate) struct Claimer {
    me: u16,
    /// One past the last position it claimed; it never claims below, so its
    /// messages stay in order whatever the hint says.
    next: u64,
    /// The last search found no slot: look before the next compare-and-swap,
    /// or every retry would take the line away from the receiver.
    was_full: bool,
}

impl Claimer {
    pub(crate) fn new(me: u16) -> Self {
        Self { me, next: 0, was_full: false }
    }

    /// Where to start looking.
    #[inline]
    pub(crate) fn start(&self, ring: &Ring<'_>) -> u64 {
        // Acquire pairs with the Release store in `store_hint`: what made the
        // other sender pass the positions below is then seen here too, so that
        // a stuck slot freed meanwhile is not passed over on a stale view.
        let hint = ring.tail_hint.load(Ordering::Acquire);
        if (hint.wrapping_sub(self.next) as i64) > 0 { hint } else { self.next }
    }

    /// Claims the first free position from `start` on.
    #[inline]
    pub(crate) fn take(&mut self, ring: &Ring<'_>, start: u64) -> Result<Claimed, RingFull> {
        if !self.was_full && self.try_claim(ring, start).is_ok() {
            return Ok(Claimed { position: start });
        }
        self.search(ring, start)
    }

    /// One compare-and-swap; on failure what the word says instead.
    #[inline]
    fn try_claim(&mut self, ring: &Ring<'_>, position: u64) -> Result<(), Claim> {
        let lap = ring.lap(position);
        let (free, mine) = (Claim::free(lap).raw(), Claim::claimed(lap, self.me).raw());
        // On success: Acquire pairs with the Release by which the receiver gave
        // the slot back, so its reads of the old message are over before the
        // new one is written. Release pairs with the receiver's Acquire of a
        // claim that it passes over: it then sees all that this sender has
        // published before. On failure: Acquire, see `search`.
        ring.claims[ring.slot(position)]
            .compare_exchange(free, mine, Ordering::AcqRel, Ordering::Acquire)
            .map_err(Claim::from_raw)?;
        self.next = position.wrapping_add(1);
        Ok(())
    }

    #[cold]
    fn search(&mut self, ring: &Ring<'_>, start: u64) -> Result<Claimed, RingFull> {
        let slots = ring.slots() as u64;
        let mut position = start;
        // The hint can lie laps behind: a jump, two laps of steps to the head
        // and one through the full ring. More means garbage.
        for _ in 0..4 * slots {
            // Acquire pairs with the receiver's Release of the slot: whoever
            // sees a slot given back sees every change made before it, of
            // other slots too. It is why no stuck slot is passed on a stale view.
            let word = Claim::from_raw(ring.claims[ring.slot(position)].load(Ordering::Acquire));
            let ahead = laps_ahead(word.lap(), ring.lap(position));
            if ahead == 0 && !word.is_claimed() {
                if self.try_claim(ring, position).is_ok() {
                    self.was_full = false;
                    return Ok(Claimed { position });
                }
            } else if ahead < 0 && !word.is_stuck() {
                break;
            }
            // A slot freed for lap L is at most one lap ahead of the receiver's
            // head, so all positions two laps before it are over.
            let jump = if ahead > 2 { (ahead as u64 - 2).wrapping_mul(slots) } else { 0 };
            position = position.wrapping_add(jump).wrapping_add(1);
        }
        self.was_full = true;
        Err(RingFull { wake: ring.wants_doorbell() })
    }

    /// Tells other senders to start behind this claim.
    #[inline]
    pub(crate) fn store_hint(&self, ring: &Ring<'_>, claimed: &Claimed) {
        // Release pairs with the Acquire in `start`. A late store may move the
        // hint back; that only makes searches longer.
        ring.tail_hint.store(claimed.position.wrapping_add(1), Ordering::Release);
    }

    /// Writes the line's words from 1 on.
    #[inline]
    pub(crate) fn write_words(&self, ring: &Ring<'_>, claimed: &Claimed, words: &[u64]) {
        let line = ring.line(claimed.position);
        for (target, word) in line.words[1..].iter().zip(words) {
            // Relaxed: ordered before the Release store of word 0 in `publish`.
            target.store(*word, Ordering::Relaxed);
        }
    }

    /// Publishes the message; true when the receiver wants the doorbell.
    #[inline]
    pub(crate) fn publish(&self, ring: &Ring<'_>, claimed: Claimed, kind: u8) -> bool {
        let word = Publish::new(ring.lap(claimed.position), self.me, kind);
        // Release pairs with the receiver's Acquire poll of this word.
        ring.line(claimed.position).words[0].store(word.raw(), Ordering::Release);
        ring.wants_doorbell()
    }
}
