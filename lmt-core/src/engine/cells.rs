//! Cells for messages to a peer that sends as much itself: they come back with its messages.

use super::Engine;
use super::peer::{Connection, Peer};
use super::requests::PeerId;
use super::traffic::Traffic;
use crate::inbox::InboxReceiver;
use crate::rendezvous::PeerKey;

/// Shorter messages find cells enough.
const ABOVE_BYTES: u64 = 4 << 10;

/// A send takes in what is there before fewer cells are left than so many bytes take, or so
/// many messages like its own: so it seldom waits.
const AHEAD_BYTES: u64 = 512 << 10;
const AHEAD: u64 = 8;
/// So many cells of messages it takes in at most, and as often it looks in vain: as long as
/// two messages of 64 KiB take.
const LOOKS: u32 = 512;

impl Engine {
    /// Before a message of so many bytes is sent: where it finds too few cells and its receiver
    /// sends as much, takes in what comes from there, since each message brings cells with it.
    /// A receiver that sends nothing meanwhile is not waited for again before it does.
    #[inline]
    pub(super) fn make_room(&mut self, to: PeerId, bytes: u64) {
        if bytes > ABOVE_BYTES {
            self.wait_for_cells(to, bytes);
        }
    }

    fn wait_for_cells(&mut self, to: PeerId, bytes: u64) {
        let Ok(key) = self.traffic.key_named(to) else { return };
        let most_in_vain = self.direct_looks().min(LOOKS);
        let ahead_bytes = bytes.saturating_mul(AHEAD).min(AHEAD_BYTES).max(bytes);
        let (mut taken, mut in_vain) = (0, 0);
        while taken < LOOKS && self.traffic.lacks_cells(key, ahead_bytes, bytes, &self.inbox) {
            if self.poll_inbox() {
                taken += 1;
            } else if !self.traffic.lacks_cells(key, bytes, bytes, &self.inbox) {
                break;
            } else if in_vain == most_in_vain {
                self.traffic.has_waited_in_vain(key);
                break;
            } else {
                in_vain += 1;
            }
        }
        if taken > 0 {
            // What came may be to be answered, and nobody else does it before the next call.
            self.traffic.settle();
        }
    }
}

impl Traffic {
    /// Whether there are too few cells now for `needed_bytes` of messages of `bytes` that could
    /// go in them, while as much as one has come from their receiver since that was last waited
    /// for in vain.
    fn lacks_cells(&mut self, key: PeerKey, needed_bytes: u64, bytes: u64, credits: &InboxReceiver) -> bool {
        let came_bytes = self.came_bytes(key);
        let own_cell_bytes = self.config.cell_bytes;
        let Peer { connection, eager_max_bytes, came_before, announced_left, ordered, .. } =
            &mut self.peers[key as usize];
        let Connection::Up(link) = connection else { return false };
        let is_two_way = came_bytes.wrapping_sub(*came_before) >= bytes;
        if !is_two_way || bytes > *eager_max_bytes || !link.inbox.has_box() || !ordered.is_empty() {
            return false;
        }
        let charge_bytes = link.charge_of(needed_bytes, link.cell_bytes(own_cell_bytes));
        if link.inbox.lacks_pair_cells(needed_bytes) || !link.may_keep(charge_bytes, credits, key) {
            return true;
        }
        *announced_left = 0;
        false
    }

    fn has_waited_in_vain(&mut self, key: PeerKey) {
        let came_bytes = self.came_bytes(key);
        self.peers[key as usize].came_before = came_bytes;
    }

    /// How much has come from a peer, by whatever way.
    fn came_bytes(&self, key: PeerKey) -> u64 {
        let by_mechanisms = self.transfers.received_bytes(key);
        self.peers[key as usize].eager.received.bytes.wrapping_add(by_mechanisms)
    }
}
