//! Sends in the Both model for which this end is ready to help before it hears of their
//! receiver ([`crate::mechanism::Lmt::open`]): who finds such a message with a receive at
//! hand meets the sender and copies with it, without any answer
//! ([`crate::mechanism::Lmt::meet`]).

use super::Transfers;
use super::exposed::{self, Exposed};
use crate::buffer::Buffer;
use crate::mechanism::{Cookie, Fault, Interval, Model, Plan, Role, Step, Unavailable};
use crate::mechanisms::Handle;
use crate::rendezvous::{Candidates, Choice, PeerKey, Rts, SendId};
use crate::shared_buffer::is_shared;

/// After so many turns of other transfers in a row, one that was opened has one: its
/// receiver may wait for what this end has said that it would copy.
const TURNS_BETWEEN: u32 = 8;

/// So many messages are not opened at most while receivers do not meet this end.
const MOST_UNOPENED: u16 = 512;

impl Transfers {
    /// Opens a message, if its first way may be met. One that its mechanism had better pass on
    /// goes the general way, in which it is passed on.
    #[inline]
    pub(super) fn open(
        &mut self,
        peer: PeerKey,
        buffer: &Buffer,
        candidates: &Candidates,
        cookie: &mut Cookie,
    ) -> Option<(Choice, Handle)> {
        let first = *candidates.as_slice().first()?;
        let is_short = (1..=Self::MEETING_BYTES).contains(&buffer.total_bytes());
        if first.model != Model::Both || !is_short || !self.may_meet || !self.are_left_alone() {
            return None;
        }
        let meetings = &mut self.window(peer).meetings;
        if !meetings.is_due() {
            meetings.pass();
            return None;
        }
        let whole = Interval { start: 0, end: buffer.total_bytes() };
        let may_pass_on = candidates.may_pass_on(1);
        let plan = self.told(Plan { may_pass_on, ..Plan::new(Role::Sender, Model::Both, whole) });
        let opened = self.mechanisms.open(first.mechanism, peer, &plan, buffer, cookie)?;
        Some((first, opened))
    }

    /// Its receiver was not met, but takes the general way: it may not know this end's
    /// lines, have others to receive from, or a buffer that is too short.
    pub(super) fn was_not_met(&mut self, peer: PeerKey) {
        self.window(peer).meetings.fail(2, MOST_UNOPENED);
    }

    /// Whether a receiver may meet the sender of a message that goes to `buffer`. Into shared
    /// memory it does so only by what knows that: others' senders are to learn it from an
    /// answer.
    pub(super) fn may_be_met(&self, rts: &Rts, buffer: &Buffer) -> bool {
        let fits = (1..=Self::MEETING_BYTES.min(buffer.total_bytes())).contains(&rts.total_bytes);
        fits && self.may_meet && (self.mechanisms.is_of_shared(rts.mechanism) || !is_shared(buffer))
    }

    /// Announces it.
    pub(super) fn announce_opened(&mut self, send: Exposed, choice: Choice, cookie: &Cookie) -> SendId {
        let send_id = self.announce_exposed(send, choice, cookie);
        if let Some(slot) = exposed::slot_of(send_id) {
            self.opened.push_back(slot);
        }
        send_id
    }

    /// Whether those that were opened have their turn, before others.
    #[inline]
    pub(super) fn is_turn_of_opened(&mut self) -> bool {
        if self.opened.is_empty() {
            return false;
        }
        self.turns_since_opened += 1;
        self.machine.active() == 0 || self.turns_since_opened > TURNS_BETWEEN
    }

    /// Helps with the next that can be helped with, by at most `quota_bytes`; returns whether
    /// there was one, or one has ended.
    pub(super) fn help(&mut self, quota_bytes: u64) -> bool {
        self.turns_since_opened = 0;
        for _ in 0..self.opened.len().min(Self::MOST_PASSED_OVER) {
            let Some(slot) = self.opened.pop_front() else { break };
            let Some(send) = self.exposed.get_mut(slot) else { continue };
            let Some(opened) = send.opened else { continue };
            match self.mechanisms.step(opened, &mut send.buffer, quota_bytes) {
                Ok(Step { bytes, done: false }) => {
                    send.copied_bytes = send.copied_bytes.saturating_add(bytes);
                    self.opened.push_back(slot);
                    if bytes > 0 {
                        return true;
                    }
                }
                Ok(Step { done: true, .. }) => {
                    self.leave_one(slot, opened);
                    return true;
                }
                // Who cannot help leaves: its receiver does without.
                Err(fault) => {
                    self.note_failed_help(slot, fault);
                    self.leave_one(slot, opened);
                    return true;
                }
            }
        }
        false
    }

    /// Leaves all of them, before a sleep.
    pub(super) fn leave_opened(&mut self) {
        while let Some(slot) = self.opened.pop_front() {
            if let Some(opened) = self.exposed.get(slot).and_then(|send| send.opened) {
                self.leave_one(slot, opened);
            }
        }
    }

    /// A sender that can help no more at all proposes that no more.
    #[cold]
    fn note_failed_help(&mut self, slot: u64, fault: Fault) {
        let Fault::Demote { errno, for_good: true, sentence } = fault else { return };
        let Some(send) = self.exposed.get(slot) else { return };
        if let Some(Choice { mechanism, .. }) = send.candidates.as_slice().first().copied() {
            let reason = Unavailable { errno, sentence };
            self.mechanisms.give_up(send.peer, mechanism, Model::Put, Role::Sender, reason);
        }
    }

    /// Leaves one: if its receiver has not said that it has all, a packet will.
    fn leave_one(&mut self, slot: u64, opened: Handle) {
        if self.mechanisms.leave(opened) {
            if let Some(send) = self.exposed.get(slot) {
                let peer = send.peer;
                self.window(peer).meetings.succeed();
            }
            self.end_exposed(slot, Ok(()), 0);
        }
    }
}

#[cfg(test)]
#[path = "opening_tests.rs"]
mod tests;
