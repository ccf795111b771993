//! Short messages that are announced while their receivers have them in their caches.

use super::label::Label;
use super::peer::Connection;
use super::requests::{Request, RequestId, Waiting};
use super::traffic::{OVERHEAD_BYTES, Traffic, Unexpected};
use crate::buffer::Buffer;
use crate::inbox::InboxReceiver;
use crate::mechanism::SharedEnds;
use crate::rendezvous::{PeerKey, Rts};
use crate::selection::{Hints, Message};
use crate::shared_buffer::is_shared;
use crate::transfers::{Receipt, Transfers};

impl Traffic {
    /// A message has gone in cells.
    #[inline]
    pub(super) fn went_in_cells(&mut self, key: PeerKey, bytes: u64) {
        if bytes > self.peers[key as usize].eager_max_bytes {
            // As one that was announced, which is over when its receiver has it.
            self.transfers.ends(bytes);
        }
        if bytes >= self.peers[key as usize].at_hand_min_bytes {
            self.transfers.went_in_cells(key, bytes);
        }
    }

    /// Whether a short message of contiguous bytes had better be copied by its receiver alone.
    #[inline]
    pub(super) fn is_at_hand(&mut self, key: PeerKey, bytes: u64) -> bool {
        let peer = &self.peers[key as usize];
        bytes >= peer.at_hand_min_bytes
            && !self.adaptive.is_on()
            && self.transfers.is_at_hand(key, bytes)
            && matches!(peer.connection, Connection::Up(_))
    }

    /// Announces a short message for its receiver to copy it alone; gives the buffer back
    /// where that does not go.
    pub(super) fn send_at_hand(
        &mut self,
        key: PeerKey,
        label: Label,
        buffer: Buffer,
        hints: Hints,
        credits: &InboxReceiver,
    ) -> Result<RequestId, Buffer> {
        let bytes = buffer.total_bytes();
        let peer = &mut self.peers[key as usize];
        let Connection::Up(link) = &mut peer.connection else { return Err(buffer) };
        // The receiver may keep it.
        let may_go = peer.ordered.is_empty() && link.may_keep(bytes + OVERHEAD_BYTES, credits, key);
        let shared = self.transfers.shared_ends(key, is_shared(&buffer));
        if !may_go || shared != SharedEnds::default() {
            return Err(buffer);
        }
        let (contiguous, readers) = (buffer.is_contiguous(), self.transfers.other_readers(key));
        let message = Message { bytes, contiguous, shared, hints, readers };
        let mechanisms = self.transfers.standings();
        let candidates = self.selection.candidates(key, mechanisms, &self.config, &message);
        let Some(ways) = self.transfers.ways_of_short(key, &buffer, candidates) else { return Err(buffer) };
        let id = self.requests.insert(Request::announced(bytes, key, label));
        let send_id = self.transfers.send_short(key, buffer, &ways, id.to_raw());
        self.requests.set_waiting(id, Waiting::Sending(send_id));
        self.settle_by(Some(credits));
        if self.peers[key as usize].has_output() {
            self.flush(key, credits);
        }
        Ok(id)
    }

    /// Copies a short message that nobody receives yet at once, as if it had come in cells:
    /// its sender may wait for no more than that this process looks.
    pub(super) fn copy_short(&mut self, key: PeerKey, rts: &Rts) -> Option<Unexpected> {
        if !rts.short || rts.total_bytes > Transfers::AT_ONCE_BYTES {
            return None;
        }
        let mut data = self.store.take(rts.total_bytes as usize);
        let copy = |buffer: &mut Buffer| self.transfers.get_at_once(key, rts, buffer, Receipt::Kept);
        if crate::buffer::lend_mut(&mut data, copy).is_none() {
            self.store.give_back(data);
            return None;
        }
        while self.send_packet(None) {}
        let connection = self.peers[key as usize].ended_connections;
        let charge_bytes = rts.total_bytes + OVERHEAD_BYTES;
        Some(Unexpected::Eager { data, charge_bytes, connection, by_mechanism: true })
    }
}
