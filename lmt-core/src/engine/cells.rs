//! Cells for messages to a peer that sends as much in cells itself: they come back with its
//! messages.

use super::Engine;
use super::peer::{Connection, Link, Peer};
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

/// Of what comes announced such a part counts as come in cells: it brings none, but who
/// announces for want of them goes back to cells as soon as some have come.
const ANNOUNCED_PART: u64 = 8;

/// What a send knows of the cells that come back from a peer.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Returns {
    /// How much had come when they were last waited for in vain ([`Traffic::came_bytes`]).
    before_bytes: u64,
    /// How much had come by whatever way when messages were announced last for want of cells
    /// and that was found to be over, in bytes.
    announced_bytes: u64,
}

impl Returns {
    /// Whether as much has come as goes with a message of so many bytes.
    const fn are_likely(self, came_bytes: u64, bytes: u64) -> bool {
        came_bytes.wrapping_sub(self.before_bytes) >= bytes
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
    TooLittle,
}

impl Engine {
    /// Before a message of so many bytes is sent: where it finds few cells and its receiver
    /// sends as much in cells, takes in what has come, since each message brings cells with
    /// it; and waits a moment where there are too few. A receiver that sends nothing meanwhile
    /// is not waited for again before it does.
    #[inline]
    pub(super) fn make_room(&mut self, to: PeerId, bytes: u64) {
        if bytes > ABOVE_BYTES
            && let Ok(key) = self.traffic.key_named(to)
            && self.traffic.may_want_cells(key, bytes, &self.inbox)
        {
            self.wait_for_cells(key, bytes);
        }
    }

    fn wait_for_cells(&mut self, key: PeerKey, bytes: u64) {
        let most_in_vain = self.direct_looks().min(MOST_IN_VAIN);
        let most_bytes = self.most_at_once();
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
        self.traffic.learn_of_returns(key, bytes, room);
        if taken > 0 {
            self.has_taken_in();
        }
    }

    /// A send has taken something in, as otherwise progress does.
    fn has_taken_in(&mut self) {
        // Who is about to sleep is to look at what has ended, and what was drained is to be told.
        (self.took_in, self.idle) = (true, 0);
        // What came may be to be answered, and nobody else does it before the next call.
        self.traffic.settle();
        if !self.traffic.busy.is_empty() {
            self.traffic.flush_all(&self.inbox);
        }
    }
}

/// So much room is to be there for messages of so many bytes.
#[inline]
fn ahead_bytes(bytes: u64) -> u64 {
    bytes.saturating_mul(AHEAD).min(AHEAD_BYTES).max(bytes)
}

/// Whether a link lacks cells, or room that its peer grants, for so many bytes of messages.
#[inline]
pub(super) fn lacks(
    link: &mut Link,
    bytes: u64,
    own_cell_bytes: u32,
    credits: &InboxReceiver,
    key: PeerKey,
) -> bool {
    let charge_bytes = link.charge_of(bytes, link.cell_bytes(own_cell_bytes));
    link.inbox.lacks_pair_cells(bytes) || !link.may_keep(charge_bytes, credits, key)
}

impl Traffic {
    /// Whether few cells are left for a message that could go in some, or messages are announced
    /// for want of them: known at once, for each message.
    #[inline]
    fn may_want_cells(&mut self, key: PeerKey, bytes: u64, credits: &InboxReceiver) -> bool {
        let own_cell_bytes = self.config.cell_bytes;
        let Peer { connection, eager_max_bytes, announced_left, .. } = &mut self.peers[key as usize];
        let Connection::Up(link) = connection else { return false };
        if bytes > *eager_max_bytes || !link.inbox.has_pair_cells() {
            return false;
        }
        *announced_left > 0 || lacks(link, ahead_bytes(bytes), own_cell_bytes, credits, key)
    }

    /// Whether a message that [`Self::may_want_cells`] finds some, where they come back.
    fn room(&mut self, key: PeerKey, bytes: u64, credits: &InboxReceiver) -> Room {
        let came_bytes = self.came_bytes(key);
        let own_cell_bytes = self.config.cell_bytes;
        let Peer { connection, returns, ordered, .. } = &mut self.peers[key as usize];
        let Connection::Up(link) = connection else { return Room::Enough };
        if !returns.are_likely(came_bytes, bytes) || !ordered.is_empty() {
            return Room::Enough;
        }
        let mut lacks = |bytes| lacks(link, bytes, own_cell_bytes, credits, key);
        if !lacks(ahead_bytes(bytes)) {
            return Room::Enough;
        }
        if lacks(bytes) { Room::TooLittle } else { Room::Little }
    }

    /// What became of a look for cells for a message of so many bytes.
    fn learn_of_returns(&mut self, key: PeerKey, bytes: u64, room: Room) {
        let came_bytes = self.came_bytes(key);
        let announced_bytes = self.transfers.received_bytes(key);
        let Peer { connection, returns, announced_left, eager, .. } = &mut self.peers[key as usize];
        let all_bytes = eager.received.bytes.wrapping_add(announced_bytes);
        if room == Room::TooLittle {
            returns.before_bytes = came_bytes;
        }
        // Where as much comes by whatever way, and there are cells for several again, they may
        // last; for fewer it would go now the one way and now the other.
        let is_two_way = all_bytes.wrapping_sub(returns.announced_bytes) >= bytes;
        let has_cells = |link: &Link| !link.inbox.lacks_pair_cells(ahead_bytes(bytes));
        if *announced_left > 0 && is_two_way && matches!(connection, Connection::Up(link) if has_cells(link))
        {
            (*announced_left, returns.announced_bytes) = (0, all_bytes);
        }
    }

    /// How much has come from a peer, as far as it makes cells likely to come back.
    fn came_bytes(&self, key: PeerKey) -> u64 {
        let announced_bytes = self.transfers.received_bytes(key);
        self.peers[key as usize].eager.received.bytes.wrapping_add(announced_bytes / ANNOUNCED_PART)
    }
}

#[cfg(test)]
#[path = "cells_tests.rs"]
mod tests;
