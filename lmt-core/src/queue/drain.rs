//! The receiver's half of the ring: what is published comes out, in order.
//!
//! The receiver polls only the publish word at its head, never the claims, so
//! a short message costs one cache line's way from core to core.
//!
//! A sender that stops between claim and publish would block everyone behind
//! it. So when the head is claimed, unpublished, and has claims behind it, the
//! receiver marks the claim stuck, remembers it, and goes on. A stuck slot is
//! looked at on each poll; published after all, it is delivered then. While it
//! is stuck, senders and receiver alike pass over its later positions.
//!
//! Freeing a stuck slot: a sender may have passed any of its positions up to
//! one lap ahead of the head. It is therefore freed for a position past those:
//! one lap after the first of its positions that the head has still to reach,
//! which the head then skips. No sender can have passed further: it would have
//! had to pass one lap after the head itself first, and the head's slot is
//! neither stuck (`skip_blocked` comes first, and one slot is never marked) nor
//! given back. All this is kept in private memory; nothing that a peer writes
//! moves the head anywhere but forward by one.

use super::ring::Ring;
use super::words::{Claim, Publish};
use crate::base::sync::{Ordering, fence};

/// How many polls in a row find nothing before one looks thoroughly, which
/// reads a claim word and so takes a cache line from the senders: rare enough
/// to stay out of a ping-pong, under 10 us in a polling loop all the same.
const EMPTY_POLLS: u32 = if cfg!(loom) { 3 } else { 1024 };

/// How the head treats a slot when it comes to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum SlotState {
    /// Waits for its message.
    Open,
    /// Its claim is stuck: passes.
    Stuck,
    /// It was freed for the lap after: passes once.
    PassOnce,
}

/// A claim that the head has passed over.
#[derive(Clone, Copy, Debug)]
struct Stuck {
    position: u64,
    owner: u16,
}

/// A published message: where it is, and what its publish word said.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub(crate) position: u64,
    pub(crate) publish: Publish,
    /// Which of the stuck claims it is, if it is one.
    stuck_index: Option<usize>,
}

/// What the receiver knows of the ring; all of it private.
#[derive(Debug)]
pub(crate) struct Drain {
    head: u64,
    /// Positions from here to the head are consumed and not yet given back.
    unreleased: u64,
    /// How many of those there may be.
    lazy: u64,
    slot_states: Box<[SlotState]>,
    /// How many roads are not open.
    blocked_slots: usize,
    /// In ascending position, capacity for all.
    stuck: Vec<Stuck>,
    /// Polls in a row that found nothing, with those that are idle and still to come.
    empty_polls: u32,
    /// So many of these are still to come: they look at one line alone, the head's...
    idle_polls: u32,
    idle_slot: usize,
    /// ...which has this stamp once the message is there.
    idle_stamp: u64,
}

impl Drain {
    /// For a ring of `slots` slots, all zero; up to `lazy` consumed slots wait
    /// to be given back together.
    pub(crate) fn new(slots: usize, lazy: usize) -> Self {
        Self {
            head: 0,
            unreleased: 0,
            lazy: lazy as u64,
            slot_states: vec![SlotState::Open; slots].into(),
            blocked_slots: 0,
            stuck: Vec::with_capacity(slots),
            empty_polls: 0,
            idle_polls: 0,
            idle_slot: 0,
            idle_stamp: 0,
        }
    }

    /// Whether [`Drain::find`] would find nothing and do nothing: known at once
    /// most of the time, and counted as a poll then.
    #[inline(always)] // Empty polls are most of a wait.
    pub(crate) fn is_empty(&mut self, ring: &Ring<'_>) -> bool {
        let is_idle = self.idle_polls > 0 && self.is_idle(ring);
        self.idle_polls -= u32::from(is_idle);
        is_idle
    }

    /// So many polls may be [`Drain::is_idle`] instead, which says so, and
    /// [`Drain::count_idle`] is told.
    #[inline]
    #[cfg_attr(loom, allow(dead_code))] // Its user needs real shared memory.
    pub(crate) const fn idle_polls(&self) -> u32 {
        self.idle_polls
    }

    /// Whether the line is still without the message that such a poll looks for.
    #[inline(always)] // As above.
    pub(crate) fn is_idle(&self, ring: &Ring<'_>) -> bool {
        debug_assert!(self.idle_polls > 0, "the line is the head's");
        // Relaxed: who finds it there looks again, in `published`.
        let word = ring.lines[self.idle_slot].words[0].load(Ordering::Relaxed);
        Publish::from_raw(word).stamp() != self.idle_stamp
    }

    /// So many polls were.
    #[cfg_attr(loom, allow(dead_code))] // As above.
    pub(crate) const fn count_idle(&mut self, polls: u32) {
        self.idle_polls = self.idle_polls.saturating_sub(polls);
    }

    /// The next message, if one is there. Give it to [`Drain::consume`].
    #[inline]
    pub(crate) fn find(&mut self, ring: &Ring<'_>) -> Option<Arrival> {
        let found = if self.blocked_slots == 0 { self.at_head(ring) } else { self.find_past_blocked(ring) };
        match found {
            Some(arrival) => {
                (self.empty_polls, self.idle_polls) = (0, 0);
                Some(arrival)
            }
            None => self.find_nothing(ring),
        }
    }

    #[inline]
    fn at_head(&self, ring: &Ring<'_>) -> Option<Arrival> {
        Self::published(ring, self.head).map(|publish| Arrival {
            position: self.head,
            publish,
            stuck_index: None,
        })
    }

    #[inline]
    fn published(ring: &Ring<'_>, position: u64) -> Option<Publish> {
        // Acquire pairs with the Release store in `Claimer::publish`: the rest
        // of the line and the cell are then the message's.
        let word = Publish::from_raw(ring.line(position).words[0].load(Ordering::Acquire));
        word.is_at(ring.lap(position)).then_some(word)
    }

    #[inline]
    fn find_nothing(&mut self, ring: &Ring<'_>) -> Option<Arrival> {
        // Nothing to do: now giving slots back delays no message. Half the
        // bound, lest every short exchange take claim lines from its sender.
        if self.head.wrapping_sub(self.unreleased) > self.lazy / 2 {
            self.release(ring);
        }
        self.empty_polls += 1;
        if self.empty_polls >= EMPTY_POLLS {
            return self.find_past_stalled(ring);
        }
        if self.blocked_slots == 0 {
            // Counted in advance: the next poll that gets here looks thoroughly. Who moves the head
            // takes them back.
            self.idle_polls = EMPTY_POLLS - 1 - self.empty_polls;
            self.empty_polls = EMPTY_POLLS - 1;
            let awaited = Publish::new(ring.lap(self.head), 0, 0);
            (self.idle_slot, self.idle_stamp) = (ring.slot(self.head), awaited.stamp());
        }
        None
    }

    #[cold]
    fn find_past_blocked(&mut self, ring: &Ring<'_>) -> Option<Arrival> {
        self.skip_blocked(ring);
        // The head first, then the stuck: if a sender published a stuck slot
        // and then the head's, the Acquire of the latter shows the former, and
        // it is delivered first, as it was sent. Among the stuck the same holds
        // by the Acquire in `mark_stalled`.
        let at_head = self.at_head(ring);
        let late = self.stuck.iter().enumerate().find_map(|(index, s)| {
            let publish = Self::published(ring, s.position)?;
            Some(Arrival { position: s.position, publish, stuck_index: Some(index) })
        });
        late.or(at_head)
    }

    /// Like [`Drain::find`], and passes over stalled senders if it must.
    #[cold]
    pub(crate) fn find_past_stalled(&mut self, ring: &Ring<'_>) -> Option<Arrival> {
        (self.empty_polls, self.idle_polls) = (0, 0);
        self.release(ring);
        for _ in 0..ring.slots() {
            let found = self.find_past_blocked(ring);
            if found.is_some() || !self.mark_stalled(ring) {
                return found;
            }
        }
        self.find_past_blocked(ring)
    }

    /// Passes over the head if its sender stalls others; false when it does
    /// not.
    fn mark_stalled(&mut self, ring: &Ring<'_>) -> bool {
        let slot = ring.slot(self.head);
        // Acquire pairs with the Release of the claim: all that this sender has
        // published before is seen from here on, so that two stuck claims of
        // one sender are found in order.
        let word = Claim::from_raw(ring.claims[slot].load(Ordering::Acquire));
        let last_open = self.stuck.len() + 1 >= ring.slots();
        if last_open || !word.is_pending_at(ring.lap(self.head)) || !self.others_wait(ring) {
            return false;
        }
        if Self::published(ring, self.head).is_some() {
            return true; // Meanwhile: no need to make a detour of it.
        }
        // Release pairs with the Acquire of a sender that passes this slot: it
        // must see the slots freed before, or it could pass those too, on a
        // stale view of when they were stuck. Relaxed on failure: nothing read.
        let marked = ring.claims[slot].compare_exchange(
            word.raw(),
            word.stuck().raw(),
            Ordering::Release,
            Ordering::Relaxed,
        );
        if marked.is_err() {
            return false; // Nobody but the receiver changes a claim: garbage.
        }
        self.release(ring);
        self.stuck.push(Stuck { position: self.head, owner: word.owner() });
        self.slot_states[slot] = SlotState::Stuck;
        self.blocked_slots += 1;
        self.step_over();
        true
    }

    /// Whether a sender is, or may be, behind the head: the first position
    /// that can be claimed is, or the head's is the last such position in the
    /// ring, so that senders find it full.
    fn others_wait(&self, ring: &Ring<'_>) -> bool {
        let mut behind = (1..ring.slots() as u64).map(|n| self.head.wrapping_add(n));
        behind.find(|p| self.slot_states[ring.slot(*p)] == SlotState::Open).is_none_or(|p| {
            // Relaxed: only a reason to look closer; no data depends on it.
            let word = Claim::from_raw(ring.claims[ring.slot(p)].load(Ordering::Relaxed));
            word.is_pending_at(ring.lap(p))
        })
    }

    /// Moves the head to an open road. There is one: not all slots are stuck.
    fn skip_blocked(&mut self, ring: &Ring<'_>) {
        while self.blocked_slots != 0 {
            let road = &mut self.slot_states[ring.slot(self.head)];
            match *road {
                SlotState::Open => return,
                SlotState::Stuck => {}
                SlotState::PassOnce => {
                    *road = SlotState::Open;
                    self.blocked_slots -= 1;
                }
            }
            self.release(ring);
            self.step_over();
        }
    }

    /// Moves the head on without anything to give back.
    fn step_over(&mut self) {
        self.head = self.head.wrapping_add(1);
        self.unreleased = self.head;
        self.idle_polls = 0;
    }

    /// Ends a message: its slot will be given back.
    #[inline]
    pub(crate) fn consume(&mut self, ring: &Ring<'_>, arrival: Arrival) {
        if let Some(index) = arrival.stuck_index {
            self.free_stuck(ring, index);
            return;
        }
        self.idle_polls = 0;
        self.head = self.head.wrapping_add(1);
        if self.head.wrapping_sub(self.unreleased) > self.lazy {
            self.release(ring);
        }
    }

    /// Gives back all that is consumed.
    fn release(&mut self, ring: &Ring<'_>) {
        while self.unreleased != self.head {
            let lap = ring.lap(self.unreleased).wrapping_add(1);
            Self::free(ring, ring.slot(self.unreleased), lap);
            self.unreleased = self.unreleased.wrapping_add(1);
        }
    }

    #[inline]
    fn free(ring: &Ring<'_>, slot: usize, lap: u64) {
        // Release pairs with the Acquire of the sender that claims the slot:
        // the reads of the old message are over by then. It also carries every
        // earlier change of other claims to whoever passes this one.
        ring.claims[slot].store(Claim::free(lap).raw(), Ordering::Release);
    }

    fn free_stuck(&mut self, ring: &Ring<'_>, index: usize) {
        self.skip_blocked(ring);
        let slot = ring.slot(self.stuck.remove(index).position);
        let distance = slot.wrapping_sub(ring.slot(self.head)) & (ring.slots() - 1);
        let passed = self.head.wrapping_add(distance as u64);
        self.slot_states[slot] = SlotState::PassOnce;
        Self::free(ring, slot, ring.lap(passed).wrapping_add(1));
    }

    /// Frees what a dead sender claimed and did not publish; returns how many
    /// slots. What it did publish is still delivered.
    pub(crate) fn release_dead(&mut self, ring: &Ring<'_>, owner: u16) -> usize {
        self.idle_polls = 0;
        let mut freed = 0;
        let mut index = 0;
        while let Some(stuck) = self.stuck.get(index).copied() {
            if stuck.owner == owner && Self::published(ring, stuck.position).is_none() {
                self.free_stuck(ring, index);
                freed += 1;
            } else {
                index += 1;
            }
        }
        self.skip_blocked(ring);
        for n in 0..ring.slots() as u64 {
            let position = self.head.wrapping_add(n);
            let (slot, lap) = (ring.slot(position), ring.lap(position));
            // Acquire as in `mark_stalled`.
            let word = Claim::from_raw(ring.claims[slot].load(Ordering::Acquire));
            let dead =
                self.slot_states[slot] == SlotState::Open && word.is_pending_at(lap) && word.owner() == owner;
            if dead && Self::published(ring, position).is_none() {
                self.slot_states[slot] = SlotState::PassOnce;
                self.blocked_slots += 1;
                Self::free(ring, slot, lap.wrapping_add(1));
                freed += 1;
            }
        }
        freed
    }

    /// Whether a published message of `owner` waits here.
    #[cfg_attr(loom, allow(dead_code))] // Its user needs real shared memory.
    pub(crate) fn holds_messages_of(&self, ring: &Ring<'_>, owner: u16) -> bool {
        let ahead = (0..ring.slots() as u64).map(|n| self.head.wrapping_add(n));
        let open = ahead.filter(|p| self.slot_states[ring.slot(*p)] == SlotState::Open);
        let mut waiting = open.chain(self.stuck.iter().map(|s| s.position));
        waiting.any(|p| Self::published(ring, p).is_some_and(|publish| publish.owner() == owner))
    }

    /// Asks for the doorbell, then looks once more: true when nothing is there
    /// and the receiver may sleep until a sender rings.
    pub(crate) fn prepare_sleep(&mut self, ring: &Ring<'_>) -> bool {
        // AcqRel, and a swap as all changes of this word: each sees the one
        // before it, so they stand in one order that all agree on. The fence
        // orders it against the messages.
        ring.sleeping.swap(1, Ordering::AcqRel);
        // Pairs with the fence in `Claimer::publish`.
        fence(Ordering::SeqCst);
        let asleep = self.find_past_stalled(ring).is_none();
        if !asleep {
            self.cancel_sleep(ring);
        }
        asleep
    }

    /// Takes the wish for a doorbell back; one may ring all the same.
    pub(crate) fn cancel_sleep(&self, ring: &Ring<'_>) {
        // AcqRel as above. A sender that swapped first rings once for nothing.
        ring.sleeping.swap(0, Ordering::AcqRel);
    }
}
