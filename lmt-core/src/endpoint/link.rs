//! The rest of writing into a peer's inbox (`sending` has the way of a short message):
//! messages of several cells, and what the peer has given back.

use super::cells::{OVERHEAD_BYTES, envelope_of};
use super::peer::Link;
use crate::memory::buffer::Buffer;
use crate::queue::{InboxReceiver, Payload};
use crate::requests::label::Label;
use crate::vocabulary::identity::PeerKey;

/// What became of an attempt to write a message into a peer's inbox.
pub(super) enum Written {
    Whole,
    /// So many bytes of it; there is no more room now.
    Part(u64),
}

impl Link {
    /// Writes a message that takes several cells, from `sent_bytes` on.
    pub(super) fn write_pieces(
        &mut self,
        cell_bytes: u64,
        label: &Label,
        buffer: &Buffer,
        mut sent_bytes: u64,
        own_inbox: &InboxReceiver,
        key: PeerKey,
    ) -> Written {
        let total_bytes = buffer.total_bytes();
        // Once begun, a message goes on: the room for all of it was there.
        if sent_bytes == 0 && !self.may_keep(self.charge_of(total_bytes, cell_bytes), own_inbox, key) {
            return Written::Part(0);
        }
        loop {
            if !self.may_write(own_inbox, key) {
                return Written::Part(sent_bytes);
            }
            let bytes = self.inbox.piece_bytes(sent_bytes, total_bytes, cell_bytes);
            let (envelope, piece) = envelope_of(label, sent_bytes, bytes, total_bytes);
            let payload = Payload::Part(buffer, sent_bytes..sent_bytes + bytes);
            if self.write_piece(envelope, payload, bytes + OVERHEAD_BYTES, piece).is_err() {
                return Written::Part(sent_bytes);
            }
            sent_bytes += bytes;
            if sent_bytes == total_bytes {
                return Written::Whole;
            }
        }
    }

    /// Whether one more cell may be written; looks at what the peer has given
    /// back if that is needed.
    #[inline]
    pub(super) fn may_write(&mut self, own_inbox: &InboxReceiver, key: PeerKey) -> bool {
        if self.has_cell() {
            return true;
        }
        self.refresh(own_inbox, key);
        self.has_cell()
    }

    /// Whether the peer has room for so many unexpected bytes; as
    /// [`Self::may_write`].
    #[inline]
    pub(super) fn may_keep(&mut self, charge_bytes: u64, own_inbox: &InboxReceiver, key: PeerKey) -> bool {
        if self.has_bytes(charge_bytes) {
            return true;
        }
        self.refresh(own_inbox, key);
        self.has_bytes(charge_bytes)
    }

    #[cold]
    fn refresh(&mut self, own_inbox: &InboxReceiver, key: PeerKey) {
        self.returned = own_inbox.credit(key as u16).unwrap_or_default();
    }

    /// Wakes the peer.
    pub(super) fn ring(&self) {
        self.waker.wake();
    }
}
