//! Messages that a built-in rule announces, and that go in cells all the same where these are
//! found to be better.

use super::peer::{Connection, Peer};
use super::traffic::Traffic;
use crate::inbox::InboxReceiver;
use crate::rendezvous::PeerKey;

impl Traffic {
    /// Whether a message that a built-in rule has announced goes in cells all the same: where the
    /// application uses its buffers between messages, and no more than one has gone in cells that
    /// did not come back. Then lines cross between the cores whichever way it takes, and by cells
    /// without an announcement. Nothing that was announced is under way to its peer then, nor were
    /// the last ones several at once, as those of a window.
    pub(super) fn is_better_in_cells(&mut self, key: PeerKey, bytes: u64, credits: &InboxReceiver) -> bool {
        let may_be = self.transfers.sends_to(key) == 0;
        let Peer { connection, beyond_max_bytes, ordered, .. } = &mut self.peers[key as usize];
        let Connection::Up(link) = connection else { return false };
        if bytes > (*beyond_max_bytes).min(link.max_bytes) || !may_be || !ordered.is_empty() {
            return false;
        }
        let charge_bytes = link.charge_of(bytes, link.cell_bytes(self.config.cell_bytes));
        link.may_keep(charge_bytes, credits, key)
            && !link.inbox.is_ahead(bytes)
            && !link.inbox.lacks_pair_cells(bytes)
    }
}
