//! The packets of the rendezvous protocol, from the transfers to the peers' inboxes: an RTS goes
//! in order with the application's messages, all others ahead of them. What finds no room
//! waits in `outgoing`.

use super::cells::{OVERHEAD_BYTES, envelope_with, kind};
use super::peer::{Connection, Link, Outgoing, Peer};
use super::state::Traffic;
use crate::queue::{Envelope, InboxReceiver, Payload};
use crate::rendezvous::{Packet, Rts, SendId};
use crate::requests::ids::RequestId;
use crate::requests::label::Label;
use crate::transfer::Ended;
use crate::vocabulary::identity::{EndpointId, PeerKey};

impl Traffic {
    /// As [`Self::settle`]; an RTS is written at once where `own_inbox` tells what room there is.
    pub fn settle_by(&mut self, own_inbox: Option<&InboxReceiver>) {
        while self.send_packet(own_inbox) {}
        while let Some(ended) = self.transfers.pop_ended() {
            self.ended = self.ended.wrapping_add(1);
            match ended {
                Ended::Send { token, result } => self.sent(RequestId::from_raw(token), result),
                Ended::Receive { token, result } => self.arrived(RequestId::from_raw(token), result),
            }
        }
    }

    /// Writes or queues the next packet of the rendezvous protocol, if there is one: an
    /// RTS in order with the application's messages, all others ahead of them. Without
    /// `own_inbox` an RTS is queued.
    pub fn send_packet(&mut self, own_inbox: Option<&InboxReceiver>) -> bool {
        // It stays where it is until it is written: it is long, and its parts have just
        // been stored.
        let Some((key, packet)) = self.transfers.front_packet() else { return false };
        let key = *key;
        match packet {
            Packet::Rts(Rts { send_id, .. }) => {
                let send_id = *send_id;
                self.send_rts(key, send_id, own_inbox);
            }
            Packet::Cancel { send_id } => {
                let send_id = *send_id;
                self.send_cancel(key, send_id);
            }
            _ => self.send_control(key),
        }
        true
    }

    /// Sends the next packet, which is an RTS.
    fn send_rts(&mut self, key: PeerKey, send_id: SendId, own_inbox: Option<&InboxReceiver>) {
        let entry = self.transfers.token_of(send_id);
        let request = entry.and_then(|t| self.requests.get(RequestId::from_raw(t)));
        let label = request.map_or_else(Label::default, |r| r.label);
        let Some((_, packet)) = self.transfers.front_packet() else { return };
        let peer = &mut self.peers[key as usize];
        let is_next = peer.control.is_empty() && peer.ordered.is_empty();
        if !(is_next && own_inbox.is_some_and(|all| write_rts(key, peer, packet, &label, all))) {
            let packet = *packet;
            self.queue(key, Outgoing::Rts { packet, label, send_id });
        }
        self.transfers.drop_packet();
    }

    /// Sends the next packet, which takes a message back.
    fn send_cancel(&mut self, key: PeerKey, send_id: SendId) {
        if !self.unqueue_rts(key, send_id) {
            return self.send_control(key);
        }
        self.transfers.drop_packet();
        // The RTS never left: the peer cannot have matched it.
        let reply = Packet::CancelReply { send_id, cancelled: true };
        if let Err(error) = self.transfers.packet(key, &reply) {
            tracing::error!(%error, "cancelling an unsent message failed");
        }
    }

    /// Sends the next packet, which is no RTS: at once where there is room, for the peer
    /// waits for it.
    fn send_control(&mut self, key: PeerKey) {
        let Some((_, packet)) = self.transfers.front_packet() else { return };
        let Peer { id, connection, control, .. } = &mut self.peers[key as usize];
        if !(control.is_empty() && write_control(*id, connection, packet)) {
            control.push_back(*packet);
            self.mark_busy(key);
        }
        self.transfers.drop_packet();
    }

    /// Takes an RTS back that still waits in this process.
    fn unqueue_rts(&mut self, key: PeerKey, wanted: SendId) -> bool {
        let queue = &mut self.peers[key as usize].ordered;
        let is_it = |m: &Outgoing| matches!(m, Outgoing::Rts { send_id, .. } if *send_id == wanted);
        let at = queue.iter().position(is_it);
        at.and_then(|at| queue.remove(at)).is_some()
    }
}

impl Link {
    /// Writes a packet; whether there was a cell for it.
    fn write_packet(&mut self, envelope: Envelope, packet: &Packet, charge_bytes: u64) -> bool {
        let packet = packet.in_words();
        let (words, bytes) = packet.as_words();
        let sent = self.inbox.send(envelope, Payload::Words(words, bytes));
        self.note_sent(sent, charge_bytes).is_ok()
    }
}

/// Writes an RTS, which takes a cell and no room among the unexpected bytes: were it held
/// back for those, a receive that waits for this very message would never see it.
pub(super) fn write_rts(
    key: PeerKey,
    peer: &mut Peer,
    packet: &Packet,
    label: &Label,
    own_inbox: &InboxReceiver,
) -> bool {
    let Connection::Up(link) = &mut peer.connection else { return false };
    let envelope = envelope_with(label, kind::RTS, label.immediate.unwrap_or_default());
    let is_written = link.may_write(own_inbox, key) && link.write_packet(envelope, packet, OVERHEAD_BYTES);
    if is_written {
        tracing::trace!(peer = %peer.id, ?packet, ?label, "announced a message");
    }
    is_written
}

/// Writes a packet that needs no room in the peer's queues, if there is a cell for it.
pub(super) fn write_control(id: EndpointId, connection: &mut Connection, packet: &Packet) -> bool {
    let Connection::Up(link) = connection else { return false };
    let envelope = Envelope { kind: kind::CONTROL, aux: 0, tag: 0 };
    let is_written = link.write_packet(envelope, packet, 0);
    if is_written {
        tracing::trace!(peer = %id, ?packet, "sent a packet");
    }
    is_written
}
