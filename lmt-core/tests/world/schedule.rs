//! Who acts next, until nobody can, and what must be true then.

use lmt_core::matching::Pattern;
use lmt_core::rendezvous::TransferError;

use super::{Outcome, World};

/// Turns in a row in which nothing but idle steps happened: a hang.
const HANG_TICKS: u64 = 50_000;
/// Turns in a row after which what moves nothing may be a stream that waits for
/// its receive.
const UNMATCHED_TICKS: u64 = 500;

const ANYTHING: Pattern = Pattern { source: None, tag: 0, ignore: u64::MAX };

impl World {
    /// Everything happens, until all requests are complete.
    pub(super) fn live(&mut self) {
        self.settle();
        // Whoever is hostile goes in the end, so that what it began ends too.
        if let Some(hostile) = self.case.hostile {
            self.die(hostile);
            self.settle();
        }
        loop {
            let mut changed = false;
            for end in 0..self.case.endpoints {
                while self.alive(end) && self.ends[end].matcher.unexpected() > 0 {
                    changed = true;
                    let pattern = if self.rng.chance(60) { self.pattern() } else { ANYTHING };
                    self.receive(end, pattern);
                    for _ in 0..self.rng.below(4) {
                        self.tick();
                    }
                }
            }
            self.settle();
            if !changed {
                break;
            }
        }
        for receive in 0..self.receives.len() {
            self.cancel_receive(receive);
        }
        self.settle();
    }

    fn settle(&mut self) {
        let mut idle = 0;
        while let Some(moved) = self.tick() {
            idle = if moved { 0 } else { idle + 1 };
            if idle > UNMATCHED_TICKS && self.has_unmatched() {
                // Streams that their receivers do not know of yet.
                return;
            }
            assert!(idle < HANG_TICKS, "a transfer takes turns for ever and gets nowhere");
        }
    }

    /// Whether a message waits for its receive.
    fn has_unmatched(&self) -> bool {
        (0..self.case.endpoints).any(|end| self.alive(end) && self.ends[end].matcher.unexpected() > 0)
    }

    /// Lets one thing happen, and says whether it was more than an idle step;
    /// `None` when nothing can happen any more.
    fn tick(&mut self) -> Option<bool> {
        self.ticks += 1;
        if let Some(dies) = self.case.dies
            && self.ticks == self.dies_at
        {
            self.die(dies);
        }
        let first = match self.rng.below(100) {
            0..40 => 0,
            40..75 => 1,
            75..97 => 2,
            _ => 3,
        };
        for kind in (first..4).chain(0..first) {
            let done = match kind {
                0 => self.deliver_one().then_some(true),
                1 => self.step_one(),
                2 => self.operate_one().then_some(true),
                _ => self.notice_one().then_some(true),
            };
            if done.is_some() {
                return done;
            }
        }
        None
    }

    fn die(&mut self, end: usize) {
        self.medium.dead[end] = true;
        let endpoints = self.case.endpoints;
        for other in 0..endpoints {
            self.links.entry((other, end)).or_default().clear();
            // It may have been cut off in the middle of its sending.
            let outgoing = self.links.entry((end, other)).or_default();
            outgoing.truncate(self.rng.below(outgoing.len() as u64 + 1) as usize);
        }
    }

    fn deliver_one(&mut self) -> bool {
        let endpoints = self.case.endpoints;
        let links = endpoints * endpoints;
        let first = self.rng.below(links as u64) as usize;
        for at in (first..links).chain(0..first) {
            let (from, to) = (at / endpoints, at % endpoints);
            if let Some(frame) = self.links.get_mut(&(from, to)).and_then(|link| link.pop_front()) {
                self.deliver(from, to, frame);
                return true;
            }
        }
        false
    }

    fn step_one(&mut self) -> Option<bool> {
        let first = self.rng.below(self.case.endpoints as u64) as usize;
        let order = (first..self.case.endpoints).chain(0..first);
        let end = order.into_iter().find(|end| self.alive(*end) && self.ends[*end].machine.active() > 0)?;
        Some(self.step(end))
    }

    fn operate_one(&mut self) -> bool {
        let first = self.rng.below(self.case.endpoints as u64) as usize;
        let mut order = (first..self.case.endpoints).chain(0..first);
        let able = |end: &usize| self.alive(*end) && self.ends[*end].operations_left > 0;
        let Some(end) = order.find(able) else { return false };
        self.ends[end].operations_left -= 1;
        if self.is_hostile(end) {
            self.attack(end);
        } else {
            self.operate(end);
        }
        true
    }

    fn notice_one(&mut self) -> bool {
        for dead in (0..self.case.endpoints).filter(|end| !self.alive(*end)).collect::<Vec<_>>() {
            for end in 0..self.case.endpoints {
                if self.alive(end) && self.ends[end].knows_dead.insert(dead) {
                    self.notice(end, dead);
                    return true;
                }
            }
        }
        false
    }

    /// Nothing is runnable: everything must be over, and well.
    pub(super) fn judge(&mut self) {
        for end in (0..self.case.endpoints).filter(|end| self.alive(*end)) {
            let end = &self.ends[end];
            assert_eq!((end.machine.active(), end.machine.transfers()), (0, 0), "a transfer hangs");
            assert!(end.sends.is_empty() && end.receives.is_empty(), "a request never completed");
            assert!(end.transfers.is_empty(), "a mechanism was never told to finish");
            assert_eq!((end.matcher.posted(), end.matcher.unexpected()), (0, 0));
        }
        for side in &self.medium.sides {
            assert!(side.finished || self.medium.dead[side.owner], "{:?} was not finished", side.key);
        }
        for number in 0..self.messages.len() {
            self.judge_message(number);
        }
        for receive in self.receives.iter().filter(|receive| !self.medium.dead[receive.at]) {
            let result = receive.result.as_ref().expect("every receive completes");
            assert!(*result != Outcome::Cancelled || receive.message.is_none(), "matched, then cancelled");
        }
    }

    fn judge_message(&self, number: usize) {
        let message = &self.messages[number];
        let sent = message.result.as_ref();
        let sender_lives = self.alive(message.from) && !self.is_hostile(message.from);
        assert!(sent.is_some() || !sender_lives, "every send completes");
        if !self.undisturbed(message) {
            return;
        }
        let faults = self.medium.faults[number];
        let received = message.receive.and_then(|receive| self.receives[receive].result.as_ref());
        match sent.expect("every send completes") {
            Ok(()) => assert!(matches!(received, Some(Outcome::Ended(Ok(_)))), "sent, but {received:?}"),
            Err(TransferError::Cancelled) => {
                assert!(message.cancel_asked && message.receive.is_none());
                assert_eq!(message.arrived, message.withdrawn);
            }
            Err(TransferError::NoMechanism { .. }) => {
                assert!(faults >= message.candidates && !self.case.reliable, "{faults} faults");
                let error = matches!(received, Some(Outcome::Ended(Err(TransferError::NoMechanism { .. }))));
                assert_eq!(error, message.arrived, "both ends learn of it");
            }
            error => panic!("{error:?} between two that live"),
        }
    }
}
