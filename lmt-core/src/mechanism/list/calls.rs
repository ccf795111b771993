//! The calls of a transfer, of declared memory and of out-of-band messages.

use std::collections::VecDeque;

use super::Mechanisms;
use super::erased::unknown;
#[cfg(doc)]
use crate::mechanism::Lmt;
use crate::mechanism::oob_message::OobMessage;
use crate::mechanism::{Direction, Left, RegisteredCopy};
use crate::memory::buffer::Buffer;
use crate::vocabulary::identity::{MechanismTag, PeerKey};
use crate::vocabulary::transfer::{Cookie, Fault, Interval, Plan, Step};

/// A transfer in flight in one mechanism's table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Handle {
    pub(super) mechanism: u32,
    pub(super) handle: u64,
    pub(super) peer: PeerKey,
}

impl Mechanisms {
    /// See [`Lmt::prepare`].
    pub(crate) fn prepare(
        &mut self,
        tag: MechanismTag,
        peer: PeerKey,
        plan: &Plan,
        data: &Buffer,
        cookie: &mut Cookie,
    ) -> Result<Handle, Fault> {
        let at = self.position(tag).ok_or_else(unknown)?;
        let prepared = self.list[at].lmt.prepare(peer, plan, data, cookie);
        self.collect(peer, at);
        let handle = prepared.inspect_err(|fault| self.count_fault(peer, at, fault))?;
        Ok(Handle { mechanism: at as u32, handle, peer })
    }

    /// See [`Lmt::start`].
    pub(crate) fn start(&mut self, h: Handle, remote: &Cookie, interval: Interval) -> Result<(), Fault> {
        let at = h.mechanism as usize;
        let started = self.list[at].lmt.start(h.peer, h.handle, remote, interval);
        self.collect(h.peer, at);
        started.inspect_err(|fault| self.count_fault(h.peer, at, fault))
    }

    /// See [`Lmt::step`].
    #[inline]
    pub(crate) fn step(&mut self, h: Handle, data: &mut Buffer, max_bytes: u64) -> Result<Step, Fault> {
        let at = h.mechanism as usize;
        let outcome = self.list[at].lmt.step(h.peer, h.handle, data, max_bytes);
        // Behind any step: one that moved bytes may be the last for long.
        self.collect(h.peer, at);
        match &outcome {
            Ok(step) if step.bytes > 0 => {
                self.count(h.peer, at, |c| c.bytes = c.bytes.saturating_add(step.bytes));
            }
            Ok(_) => {}
            Err(fault) => self.count_fault(h.peer, at, fault),
        }
        outcome
    }

    /// Whether a mechanism reaches the peer's declared memory in this
    /// direction, as far as the probe could tell.
    pub(crate) fn reaches(&self, peer: PeerKey, only: Option<&[String]>, direction: Direction) -> bool {
        let Some(mechanism_status) = self.mechanism_status.get(peer as usize) else { return false };
        let able = |at: usize| {
            self.list[at].copies_registered
                && mechanism_status.get(at).is_some_and(|s| match direction {
                    Direction::Get => s.ours.read,
                    Direction::Put => s.ours.write,
                })
        };
        match only {
            None => (0..self.list.len()).any(able),
            Some(names) => self.meant_by(names).any(able),
        }
    }

    /// In which order mechanisms are tried for gets or puts: these first, then the
    /// others that `only` names, or all.
    pub(crate) fn one_sided_order(
        &self,
        first: impl Iterator<Item = MechanismTag>,
        only: Option<&[String]>,
    ) -> Box<[usize]> {
        let mut order: Vec<usize> = Vec::with_capacity(self.list.len());
        let mut add = |at: usize| {
            if !order.contains(&at) {
                order.push(at);
            }
        };
        first.filter_map(|tag| self.position(tag)).for_each(&mut add);
        match only {
            None => (0..self.list.len()).for_each(add),
            Some(names) => self.meant_by(names).for_each(add),
        }
        order.into()
    }

    /// Copies by the first mechanism, in this order, that reaches the peer's memory. See
    /// [`super::super::Regions::copy_registered`].
    ///
    /// # Errors
    /// [`Fault::PeerDead`], or one sentence that says why each of them cannot,
    /// with the errno of the last that tried.
    pub(crate) fn copy_registered(
        &mut self,
        peer: PeerKey,
        order: &[usize],
        local: &mut Buffer,
        copy: &RegisteredCopy<'_>,
    ) -> Result<u64, Fault> {
        let (mut reasons, mut refused_by) = (Vec::new(), 0);
        for &at in order {
            let standing = self.mechanism_status.get(peer as usize).and_then(|s| s.get(at));
            let refusal = standing.and_then(|s| {
                let able = match copy.direction {
                    Direction::Get => s.ours.read,
                    Direction::Put => s.ours.write,
                };
                s.reason.as_ref().filter(|_| !able)
            });
            let Some(mechanism) = self.list.get_mut(at) else { continue };
            if let Some(refusal) = refusal {
                reasons.push(format!("{}: {refusal}", mechanism.description.name));
                continue;
            }
            match mechanism.lmt.copy_registered(peer, local, copy) {
                Ok(bytes) => {
                    self.count(peer, at, |c| c.bytes = c.bytes.saturating_add(bytes));
                    return Ok(bytes);
                }
                Err(Fault::PeerDead) => return Err(Fault::PeerDead),
                Err(fault) => {
                    if let Fault::Demote { errno, .. } = fault
                        && errno != 0
                    {
                        refused_by = errno;
                    }
                    reasons.push(format!("{}: {fault}", mechanism.description.name));
                }
            }
        }
        let sentence = if reasons.is_empty() { "there is none".into() } else { reasons.join("; ") };
        Err(Fault::Demote { errno: refused_by, for_good: false, sentence })
    }

    /// See [`super::super::SharedCompletion::leave`].
    pub(crate) fn leave(&mut self, h: Handle) -> bool {
        let Left { both_know, copied_by_peer } = self.list[h.mechanism as usize].lmt.leave(h.peer, h.handle);
        self.count(h.peer, h.mechanism as usize, |c| {
            c.bytes = c.bytes.saturating_sub(copied_by_peer);
            c.peer_bytes = c.peer_bytes.saturating_add(copied_by_peer);
        });
        both_know
    }

    /// See [`Lmt::finish`].
    pub(crate) fn finish(&mut self, h: Handle) {
        let at = h.mechanism as usize;
        self.list[at].lmt.finish(h.peer, h.handle);
        self.collect(h.peer, at);
    }

    /// Takes what a mechanism has for the peer after a call for it.
    #[inline]
    fn collect(&mut self, peer: PeerKey, at: usize) {
        if !self.list[at].has_oob_messages {
            return;
        }
        while let Some(oob_message) = self.list[at].lmt.oob_message(peer) {
            let mechanism = self.tags[at];
            self.oob_messages.push_back((peer, OobMessage { mechanism, content: oob_message }));
        }
    }

    /// Whether there are out-of-band messages to be handed over.
    #[inline]
    pub(crate) fn has_oob_messages(&self) -> bool {
        !self.oob_messages.is_empty()
    }

    /// The out-of-band messages to be handed over, in order.
    pub(crate) fn take_oob_messages(&mut self) -> VecDeque<(PeerKey, OobMessage)> {
        std::mem::take(&mut self.oob_messages)
    }

    /// Keeps an out-of-band message for later. All that a peer has are put back in order, so
    /// none overtakes another.
    pub(crate) fn put_back(&mut self, peer: PeerKey, oob_message: OobMessage) {
        self.oob_messages.push_back((peer, oob_message));
    }

    /// Takes an out-of-band message from a peer. Returns whether there is such a mechanism.
    pub(crate) fn take_oob_message(&mut self, peer: PeerKey, oob_message: OobMessage) -> bool {
        let at = self.position(oob_message.mechanism);
        if let Some(at) = at {
            self.list[at].lmt.take_oob_message(peer, oob_message.content);
            self.collect(peer, at);
        }
        at.is_some()
    }
}
