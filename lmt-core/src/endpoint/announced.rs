//! Packets of the rendezvous protocol on their way in, and the messages that they announce.

use super::blocking_receive::PolledReceive;
use super::cells::OVERHEAD_BYTES;
use super::state::Traffic;
use super::unexpected::Unexpected;
use crate::queue::Delivery;
use crate::rendezvous::{Incoming, PacketWords, Rts, SendId};
use crate::requests::ids::RequestId;
use crate::requests::label::Label;
use crate::vocabulary::identity::PeerKey;

impl Traffic {
    /// A receive was found for an announced message.
    pub(super) fn accept(&mut self, key: PeerKey, label: Label, rts: &Rts, request: RequestId) {
        self.release(key, OVERHEAD_BYTES);
        let Some(buffer) = self.requests.get_mut(request).and_then(|r| r.buffer.take()) else { return };
        self.note_match(key, label, request);
        self.transfers.matched(key, rts, buffer, request.to_raw());
    }

    /// A packet of the rendezvous protocol, in a cell.
    pub(super) fn packet(
        &mut self,
        key: PeerKey,
        label: Label,
        delivery: &Delivery<'_>,
        awaited: Option<&mut PolledReceive>,
    ) {
        let mut words = PacketWords::empty();
        words.fill(|words| delivery.copy_to_words(words));
        let packet = match words.decode() {
            Ok(packet) => packet,
            Err(error) => {
                tracing::warn!(%error, "a peer sent a packet that cannot be read; it is ignored");
                return;
            }
        };
        tracing::trace!(peer = %self.peers[key as usize].id, ?packet, "got a packet");
        match self.transfers.packet(key, &packet) {
            Ok(Incoming::Rts(rts)) => self.announced(key, label, rts, awaited),
            Ok(Incoming::Withdraw { send_id }) => self.withdraw(key, send_id),
            Ok(Incoming::Handled) => {}
            Err(error) => tracing::debug!(%error, "a packet of the rendezvous protocol was ignored"),
        }
    }

    fn announced(&mut self, key: PeerKey, label: Label, rts: &Rts, awaited: Option<&mut PolledReceive>) {
        let bound = self.peers[key as usize].bound;
        match bound.then(|| self.request_for(key, &label, rts.total_bytes, awaited)).flatten() {
            Some(request) => self.accept(key, label, rts, request),
            None => {
                self.unexpected(key, label, Unexpected::Rts(*rts));
            }
        }
    }

    /// The sender takes an announced message back, if nothing matched it yet.
    fn withdraw(&mut self, key: PeerKey, send_id: SendId) {
        let is_it = |m: &Unexpected| matches!(m, Unexpected::Rts(rts) if rts.send_id == send_id);
        let parked = &mut self.peers[key as usize].parked;
        let found = match parked.iter().position(|(_, m)| is_it(m)) {
            Some(at) => parked.remove(at).is_some(),
            None => self.matchers.take_unexpected(key, &mut |m| is_it(&m.content)).is_some(),
        };
        if found {
            self.release(key, OVERHEAD_BYTES);
        }
        self.transfers.withdrawn(key, send_id, found);
    }
}
