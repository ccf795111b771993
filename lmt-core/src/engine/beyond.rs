//! Messages that a built-in rule announces, and that go in cells all the same where these are
//! found to be better.

use super::peer::{Connection, Peer};
use super::traffic::Traffic;
use crate::inbox::InboxReceiver;
use crate::mechanism::SharedEnds;
use crate::rendezvous::PeerKey;
use crate::selection::Message;

/// To compare longer messages takes as long as a single copy by both ends: each end reads all of
/// it twice, and of a copy half as much.
pub(super) const COMPARED_MOST_BYTES: u64 = 128 << 10;

impl Traffic {
    /// Whether a message that a built-in rule has announced goes in cells all the same. Nothing
    /// that was announced is under way to its peer then, nor were the last ones several at once, as
    /// those of a window. So it is where it is likely to say what an earlier one has said, for then
    /// it is only compared; and where the application uses its buffers between messages, and no
    /// more than one has gone in cells that did not come back. Then lines cross between the cores
    /// whichever way it takes, and by cells without an announcement.
    pub(super) fn is_better_in_cells(
        &mut self,
        key: PeerKey,
        message: &Message,
        data: &[u8],
        credits: &InboxReceiver,
    ) -> bool {
        let bytes = message.bytes;
        let left_alone = self.transfers.are_left_alone();
        let (may_be, is_private) = (self.transfers.is_alone(key), message.shared == SharedEnds::default());
        let Peer { connection, beyond_max_bytes, ordered, .. } = &mut self.peers[key as usize];
        let Connection::Up(link) = connection else { return false };
        if bytes > (*beyond_max_bytes).min(link.max_bytes) || !may_be || !ordered.is_empty() {
            return false;
        }
        let charge_bytes = link.charge_of(bytes, link.cell_bytes(self.config.cell_bytes));
        if !link.may_keep(charge_bytes, credits, key) {
            return false;
        }
        let most_in_use_bytes = self.config.in_use_eager_max_bytes;
        // What goes in cells for the one reason is not to count for the other: it does when it goes.
        (!left_alone
            && bytes <= most_in_use_bytes
            && !link.inbox.is_ahead(bytes)
            && !link.inbox.lacks_pair_cells(bytes))
            || (is_private && bytes <= COMPARED_MOST_BYTES && link.inbox.is_likely_to_stand(data))
    }
}
