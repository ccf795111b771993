//! Turns: which active transfer moves bytes next, what came of it, and how an end that has
//! nothing more to do leaves.

use super::machine::Machine;
use super::packet::TransferKey;
use super::side::{Phase, Side};
use super::types::Action;
use crate::vocabulary::transfer::{Fault, Step};

/// After so many turns of others in a row a helping send may look, without
/// copying, whether the receiver has ended the message.
const STEPS_BETWEEN_POLLS: usize = 8;

impl Machine {
    /// Whose turn it is, and how many bytes it may move: each active transfer
    /// gets `quota_bytes` in turn, so that a large one never starves a small
    /// one. The driver calls `Lmt::step` and answers with [`Self::stepped`].
    ///
    /// A helping send comes when no other transfer can move; and now and then,
    /// with no bytes to move, so that it sees its end.
    pub fn next_step(&mut self, quota_bytes: u64) -> Option<(TransferKey, u64)> {
        let others = self.active - self.active_helpers;
        if self.active_helpers == 0 {
            return self.next_of_ring(quota_bytes);
        }
        let all_idle = self.empty_steps >= others;
        if all_idle || self.turns >= STEPS_BETWEEN_POLLS {
            (self.turns, self.empty_steps) = (0, 0);
            return self.next_helper(if all_idle { quota_bytes } else { 0 });
        }
        self.turns += 1;
        self.next_of_ring(quota_bytes)
    }

    fn next_of_ring(&mut self, quota_bytes: u64) -> Option<(TransferKey, u64)> {
        while let Some(key) = self.ring.pop_front() {
            let Some(side) = self.side_mut(key) else { continue };
            if side.phase == Phase::Active && !side.is_helper() {
                let left = side.interval.bytes() - side.moved_bytes;
                self.ring.push_back(key);
                return Some((key, quota_bytes.min(left.max(1))));
            }
            side.in_ring = false;
        }
        None
    }

    fn next_helper(&mut self, max_bytes: u64) -> Option<(TransferKey, u64)> {
        while let Some(key) = self.helpers.pop_front() {
            let Some(side) = self.side_mut(key) else { continue };
            if side.phase == Phase::Active && side.is_helper() {
                self.helpers.push_back(key);
                return Some((key, max_bytes));
            }
            side.in_helpers = false;
        }
        None
    }

    /// The result of a step.
    pub fn stepped(&mut self, key: TransferKey, result: Result<Step, Fault>) {
        let Some(side) = self.side(key).filter(|side| side.phase == Phase::Active) else { return };
        let is_helper = side.is_helper();
        match result {
            Ok(Step { bytes, done }) => self.moved(key, bytes, done),
            Err(fault) => {
                if !is_helper {
                    self.empty_steps = 0;
                }
                self.failed(key, fault);
            }
        }
    }

    /// The result of a step that has moved so many bytes, and whether this end has done
    /// its part.
    pub fn moved(&mut self, key: TransferKey, bytes: u64, done: bool) {
        let Some(side) = self.side_mut(key) else { return };
        if side.phase != Phase::Active {
            return;
        }
        let (is_left, is_helper) = (side.model.is_left(), side.is_helper());
        if let Err(fault) = side.advance(bytes, done) {
            return self.stepped(key, Err(fault));
        }
        if !is_helper {
            self.empty_steps = if bytes == 0 && !done { self.empty_steps + 1 } else { 0 };
        }
        match key {
            _ if !done => {}
            _ if is_left => self.leave(key),
            TransferKey::Send(id) => self.has_sent(id),
            TransferKey::Receive(id) => self.has_received(id, false),
        }
    }

    /// Has every helping send leave, and every stream that has given everything,
    /// before the driver sleeps: who has left is
    /// told of the end by a packet, which wakes the sleeper. There is nothing to
    /// help with when nothing has moved for as long as it takes to fall asleep.
    pub fn rest(&mut self) {
        while let Some(key) = self.helpers.pop_front() {
            let Some(side) = self.side_mut(key) else { continue };
            side.in_helpers = false;
            if side.phase == Phase::Active && side.is_helper() {
                self.leave(key);
            }
        }
        for _ in 0..self.ring.len() {
            let Some(key) = self.ring.pop_front() else { return };
            self.ring.push_back(key);
            if self.side(key).is_some_and(Side::has_sent_all) {
                self.leave(key);
            }
        }
    }

    pub(super) fn leave(&mut self, key: TransferKey) {
        self.enter(key, Phase::Leaving);
        self.actions.push_back(Action::Leave { key });
    }

    /// The answer to `Action::Leave`: whether both ends know that the message is
    /// whole.
    pub fn left(&mut self, key: TransferKey, both_know: bool) {
        let Some(side) = self.side_mut(key) else { return };
        if side.phase != Phase::Leaving {
            return;
        }
        let pending_error = side.pending_error.take();
        match (key, side.leaving_for.take()) {
            (TransferKey::Receive(id), _) => self.has_received(id, both_know),
            (TransferKey::Send(id), _) if both_know => self.end_send(id, Ok(())),
            (TransferKey::Send(id), _) if pending_error.is_some() => {
                self.end_send(id, pending_error.map_or(Ok(()), Err))
            }
            (TransferKey::Send(id), Some((errno, for_good))) => self.fail(id, errno, for_good),
            (TransferKey::Send(_), None) => self.enter(key, Phase::Drained),
        }
    }

    /// Puts one end into another phase.
    pub(super) fn enter(&mut self, key: TransferKey, phase: Phase) {
        let Some(side) = self.side_mut(key) else { return };
        let was = std::mem::replace(&mut side.phase, phase);
        let (is, was, is_helper) = (phase == Phase::Active, was == Phase::Active, side.is_helper());
        let listed = if is_helper { &mut side.in_helpers } else { &mut side.in_ring };
        if is && !std::mem::replace(listed, true) {
            let list = if is_helper { &mut self.helpers } else { &mut self.ring };
            list.push_back(key);
        }
        self.count(is_helper, is, was);
    }

    pub(super) fn count(&mut self, is_helper: bool, is_active: bool, was_active: bool) {
        let (more, less) = (usize::from(is_active), usize::from(was_active));
        self.active = self.active + more - less;
        if is_helper {
            self.active_helpers = self.active_helpers + more - less;
        }
    }
}
