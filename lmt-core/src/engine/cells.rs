//! Cells for messages to a peer that sends as much in cells itself: they come back with its
//! messages.

use super::Engine;
use super::peer::{Connection, Peer};
use super::requests::PeerId;
use super::traffic::Traffic;
use crate::inbox::InboxReceiver;
use crate::rendezvous::PeerKey;

/// Shorter messages find cells enough.
const ABOVE_BYTES: u64 = 4 << 10;

/// A send takes in what is there while the cells that are left hold less than so many
/// messages like its own, or so many bytes: so it seldom waits.
const AHEAD: u64 = 8;
const AHEAD_BYTES: u64 = 512 << 10;
/// So many pieces of messages it takes in at most: as many as nine of 64 KiB have.
const MOST_TAKEN: u32 = 64;
/// So often it looks in vain: as long as two messages of 64 KiB take.
const MOST_IN_VAIN: u32 = 512;
/// After each wait in vain twice as much has to come before the next one, up to so many times.
const MOST_DOUBLED: u8 = 10;

/// What a send knows of the cells that come back from a peer.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Returns {
    /// How much had come from it in cells when they were last waited for in vain, in bytes.
    before_bytes: u64,
    /// How often they were, since the last time that they came.
    in_vain: u8,
}

impl Returns {
    /// Whether as much has come as goes with a message of so many bytes.
    const fn are_likely(self, came_bytes: u64, bytes: u64) -> bool {
        came_bytes.wrapping_sub(self.before_bytes) >> self.in_vain >= bytes
    }

    /// They were waited for in vain.
    fn fail(&mut self, came_bytes: u64) {
        let in_vain = (self.in_vain + 1).min(MOST_DOUBLED);
        *self = Self { before_bytes: came_bytes, in_vain };
    }
}

/// Whether there are cells.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Room {
    /// For this message, or nobody is to wait for them.
    Enough,
    /// For this message and few more.
    Little,
    /// Too few for it.
    None,
}

impl Engine {
    /// Before a message of so many bytes is sent: where it finds few cells and its receiver
    /// sends as much in cells, takes in what has come, since each message brings cells with
    /// it; and waits a moment where there are too few. A receiver that sends nothing meanwhile
    /// is not waited for again before it does.
    #[inline]
    pub(super) fn make_room(&mut self, to: PeerId, bytes: u64) {
        if bytes > ABOVE_BYTES {
            self.wait_for_cells(to, bytes);
        }
    }

    fn wait_for_cells(&mut self, to: PeerId, bytes: u64) {
        let Ok(key) = self.traffic.key_named(to) else { return };
        let most_in_vain = self.direct_looks().min(MOST_IN_VAIN);
        let most_bytes = self.most_at_once();
        let came_bytes = self.traffic.came_bytes(key);
        let (mut taken, mut in_vain) = (0, 0);
        let mut room = self.traffic.room(key, bytes, &self.inbox);
        while room != Room::Enough && taken < MOST_TAKEN {
            if self.traffic.transfers.at_once_bytes() >= most_bytes {
                break;
            }
            if self.poll_inbox() {
                taken += 1;
            } else if room == Room::Little || in_vain == most_in_vain {
                break;
            } else {
                in_vain += 1;
            }
            room = self.traffic.room(key, bytes, &self.inbox);
        }
        self.traffic.learn_of_returns(key, came_bytes, room);
        if taken > 0 {
            self.has_taken_in();
        }
    }

    /// A send has taken something in, as otherwise progress does.
    fn has_taken_in(&mut self) {
        // What comes within a call tells nothing of what the application does between calls.
        self.traffic.transfers.forgets_the_last();
        // Who is about to sleep is to look at what has ended, and what was drained is to be told.
        (self.took_in, self.idle) = (true, 0);
        // What came may be to be answered, and nobody else does it before the next call.
        self.traffic.settle();
        if !self.traffic.busy.is_empty() {
            self.traffic.flush_all(&self.inbox);
        }
    }
}

impl Traffic {
    /// Whether a message that could go in cells finds some, where they come back.
    fn room(&mut self, key: PeerKey, bytes: u64, credits: &InboxReceiver) -> Room {
        let came_bytes = self.came_bytes(key);
        let own_cell_bytes = self.config.cell_bytes;
        let Peer { connection, eager_max_bytes, returns, ordered, .. } = &mut self.peers[key as usize];
        let Connection::Up(link) = connection else { return Room::Enough };
        let come_back = link.inbox.has_pair_cells() && returns.are_likely(came_bytes, bytes);
        if !come_back || bytes > *eager_max_bytes || !ordered.is_empty() {
            return Room::Enough;
        }
        let mut lacks = |bytes: u64| {
            let charge_bytes = link.charge_of(bytes, link.cell_bytes(own_cell_bytes));
            link.inbox.lacks_pair_cells(bytes) || !link.may_keep(charge_bytes, credits, key)
        };
        let ahead_bytes = (bytes * AHEAD).min(AHEAD_BYTES).max(bytes);
        match (lacks(ahead_bytes), lacks(bytes)) {
            (_, true) => Room::None,
            (true, false) => Room::Little,
            (false, false) => Room::Enough,
        }
    }

    /// What became of a look for cells, before which so much had come.
    fn learn_of_returns(&mut self, key: PeerKey, before_bytes: u64, room: Room) {
        let came_bytes = self.came_bytes(key);
        let Peer { returns, announced_left, .. } = &mut self.peers[key as usize];
        if room == Room::None {
            returns.fail(came_bytes);
        } else if came_bytes != before_bytes {
            // While they come back nothing has to be announced for want of them.
            (returns.in_vain, *announced_left) = (0, 0);
        }
    }

    /// How much has come from a peer in cells.
    fn came_bytes(&self, key: PeerKey) -> u64 {
        self.peers[key as usize].eager.received.bytes
    }
}

#[cfg(test)]
#[path = "cells_tests.rs"]
mod tests;
