//! What the mechanisms have done.

use super::{Handle, Mechanisms};
use crate::vocabulary::identity::PeerKey;
use crate::vocabulary::model::Role;
use crate::vocabulary::transfer::Fault;

/// What one mechanism has done with one peer, seen from this process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Messages, sent or received, that it brought to a good end. One that
    /// went from mechanism to mechanism counts for the last.
    pub messages: u64,
    /// Bytes that this process's own steps moved: in the Get model what was
    /// received, in Put what was sent, in Cooperative both, in Both its own
    /// share of either; and what its gets and puts of declared memory moved.
    pub bytes: u64,
    /// Bytes of messages received in the Both model that the sender copied.
    pub peer_bytes: u64,
    /// How often it could not go on in this process.
    pub demotions: u64,
    /// Those of the messages that this process sent.
    pub sent: Tally,
    /// Those that it received.
    pub received: Tally,
}

impl Counters {
    /// Adds what was counted elsewhere.
    pub fn add(&mut self, other: &Self) {
        self.messages += other.messages;
        self.bytes += other.bytes;
        self.peer_bytes += other.peer_bytes;
        self.demotions += other.demotions;
        self.sent.add(other.sent);
        self.received.add(other.received);
    }
}

/// Messages, and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// How many.
    pub messages: u64,
    /// Their lengths together, whoever copied them.
    pub bytes: u64,
}

impl Tally {
    /// One more message.
    #[inline]
    pub const fn count(&mut self, bytes: u64) {
        self.messages = self.messages.wrapping_add(1);
        self.bytes = self.bytes.wrapping_add(bytes);
    }

    /// Adds another tally.
    pub const fn add(&mut self, other: Self) {
        self.messages = self.messages.wrapping_add(other.messages);
        self.bytes = self.bytes.wrapping_add(other.bytes);
    }
}

impl Mechanisms {
    /// Begins to count anew for a peer; what was counted stays in the totals.
    pub(super) fn count_anew(&mut self, peer: PeerKey) {
        let index = peer as usize;
        if self.counters.len() <= index {
            self.counters.resize_with(index + 1, Vec::new);
        }
        let fresh = vec![Counters::default(); self.list.len()];
        let counted = std::mem::replace(&mut self.counters[index], fresh);
        self.past.resize(self.list.len(), Counters::default());
        self.past.iter_mut().zip(&counted).for_each(|(past, counted)| past.add(counted));
    }

    /// What each mechanism has done with this peer, by name.
    pub fn counters(&self, peer: PeerKey) -> impl Iterator<Item = (&'static str, Counters)> {
        let known = self.counters.get(peer as usize).map_or(&[][..], Vec::as_slice);
        self.list.iter().map(|m| m.description.name).zip(known.iter().copied())
    }

    pub(super) fn count(&mut self, peer: PeerKey, at: usize, change: impl FnOnce(&mut Counters)) {
        if let Some(counters) = self.counters.get_mut(peer as usize).and_then(|c| c.get_mut(at)) {
            change(counters);
        }
    }

    /// What each mechanism has done with all peers, by name.
    pub fn totals(&self) -> impl Iterator<Item = (&'static str, Counters)> {
        self.list.iter().enumerate().map(|(at, mechanism)| {
            let mut total = self.past.get(at).copied().unwrap_or_default();
            self.counters.iter().filter_map(|counted| counted.get(at)).for_each(|c| total.add(c));
            (mechanism.description.name, total)
        })
    }

    /// Counts a message of `bytes` that `h` brought to its end.
    pub(crate) fn count_message(&mut self, h: Handle, role: Role, bytes: u64) {
        self.count(h.peer, h.mechanism as usize, |c| {
            c.messages += 1;
            match role {
                Role::Sender => c.sent.count(bytes),
                Role::Receiver => c.received.count(bytes),
            }
        });
    }

    pub(super) fn count_fault(&mut self, peer: PeerKey, at: usize, fault: &Fault) {
        match fault {
            Fault::Demote { .. } => self.count(peer, at, |c| c.demotions += 1),
            Fault::PeerDead => {}
        }
    }
}
