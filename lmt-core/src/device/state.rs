//! The parts of a [`DeviceLayer`](super::DeviceLayer) that its connections drive as well: announcing, passing
//! on, and ending what a dead peer leaves.

use std::collections::VecDeque;

use super::port::NO_ENVELOPE;
use super::{Inner, Link, PACKET_MAX_BYTES, PacketTransport, Peer, PendingPacket, PendingSend};
use crate::base::cpu_set::CpuSet;
use crate::region::shared_buffer::is_shared;
use crate::rendezvous::{Packet, TransferError};
use crate::requests::ids::{PeerId, RequestId};
use crate::requests::outcome::{OperationError, Status};
use crate::requests::table::{State, Waiting};
use crate::selection::Message;
use crate::transfer::Ended;
use crate::vocabulary::error::PeerError;
use crate::vocabulary::identity::{EndpointId, PeerKey};

impl Inner {
    pub(super) fn key_of(&mut self, id: EndpointId) -> Option<PeerKey> {
        if let Some(&key) = self.by_id.get(&id) {
            return Some(key);
        }
        if self.peers.len() >= self.config.max_peers as usize {
            return None;
        }
        let key = self.peers.len() as PeerKey;
        let (early, packets) = (VecDeque::new(), VecDeque::new());
        let link = Link::None;
        let (address, cpus) = (None, CpuSet::EMPTY);
        self.peers.push(Peer { id, address, link, cpus, ended_connections: 0, early, packets });
        self.by_id.insert(id, key);
        Some(key)
    }

    pub(super) fn announce(&mut self, key: PeerKey, early: PendingSend) {
        let PendingSend { request: id, envelope, hints } = early;
        let Some(buffer) = self.requests.get_mut(id).and_then(|r| r.buffer.take()) else { return };
        let message = Message {
            bytes: buffer.total_bytes(),
            contiguous: buffer.is_contiguous(),
            shared: self.transfers.shared_ends(key, is_shared(&buffer)),
            hints,
            readers: self.transfers.other_readers(key),
        };
        let mechanisms = self.transfers.mechanism_status();
        let candidates = self.selection.candidates(key, mechanisms, &self.config, &message);
        self.envelopes.insert(id, envelope);
        let send_id = self.transfers.send(key, buffer, candidates, id.to_raw());
        self.requests.set_waiting(id, Waiting::Sending(send_id));
        self.settle();
    }

    pub(super) fn cancel(&mut self, id: RequestId) {
        let Some(request) = self.requests.get(id) else { return };
        let key = request.peer.unwrap_or_default();
        match request.state {
            State::Waiting(Waiting::Sending(send_id)) => {
                self.transfers.cancel(send_id);
                self.settle();
            }
            State::Waiting(Waiting::Queued) => {
                self.peers[key as usize].early.retain(|early| early.request != id);
                self.requests.complete(id, Err(OperationError::Cancelled));
            }
            _ => {}
        }
    }

    /// Passes on what the transfers have produced.
    pub(super) fn settle(&mut self) {
        while let Some((key, packet)) = self.transfers.pop_packet() {
            let envelope = match &packet {
                Packet::Rts(rts) => self
                    .transfers
                    .token_of(rts.send_id)
                    .and_then(|token| self.envelopes.remove(&RequestId::from_raw(token)))
                    .unwrap_or(NO_ENVELOPE),
                _ => NO_ENVELOPE,
            };
            self.peers[key as usize].packets.push_back(PendingPacket { packet, envelope });
        }
        while let Some(ended) = self.transfers.pop_ended() {
            self.finish(ended);
        }
    }

    fn finish(&mut self, ended: Ended) {
        let (token, outcome) = match ended {
            Ended::Send { token, result, .. } => (token, result.map(|()| None)),
            Ended::Receive { token, result } => (token, result.map(Some)),
        };
        let id = RequestId::from_raw(token);
        let Some(request) = self.requests.get(id) else { return };
        let (key, label, bytes) = (request.peer.unwrap_or_default(), request.label, request.bytes);
        let peer = PeerId::first(key);
        let result = match outcome {
            Ok(None) => Ok(Status { peer, tag: label.tag, bytes, immediate: None }),
            Ok(Some(done)) => {
                crate::requests::outcome::received(peer, &label, done.total_bytes, done.received_bytes)
            }
            Err(error) => Err(match (&error, &self.peers[key as usize].link) {
                (TransferError::PeerDead, Link::Up) => {
                    // A mechanism has seen it first: the connection is to know
                    // before the embedder begins anything else.
                    self.death_seen = true;
                    PeerError::Dead { id: self.peers[key as usize].id }.into()
                }
                (TransferError::PeerDead, Link::Gone(why)) => why.clone().into(),
                _ => OperationError::of_transfer(error, self.peers[key as usize].id),
            }),
        };
        self.requests.complete(id, result);
    }

    /// Gives the port what waits for it.
    pub(super) fn flush(&mut self, port: &mut impl PacketTransport) -> bool {
        let mut moved = false;
        for (key, peer) in self.peers.iter_mut().enumerate() {
            while let Some(waiter) = peer.packets.front() {
                let mut bytes = [0; PACKET_MAX_BYTES];
                let length = usize::from(waiter.envelope.1);
                bytes[0] = waiter.envelope.1;
                bytes[1..=length].copy_from_slice(&waiter.envelope.0[..length]);
                let total = 1 + length + waiter.packet.encode(&mut bytes[1 + length..]);
                if port.send_packet(PeerId::first(key as PeerKey), &bytes[..total]).is_err() {
                    break;
                }
                peer.packets.pop_front();
                moved = true;
            }
        }
        moved
    }

    /// Ends everything that is in flight with a peer.
    pub(super) fn fail_peer(&mut self, key: PeerKey, error: PeerError) {
        let peer = &mut self.peers[key as usize];
        tracing::debug!(peer = %peer.id, %error, "a connection ended");
        peer.link = Link::Gone(error.clone());
        peer.ended_connections = peer.ended_connections.wrapping_add(1);
        peer.packets.clear();
        peer.early.clear();
        self.transfers.peer_dead(key);
        self.selection.forget(key);
        self.settle();
        for request in self.requests.naming(key) {
            self.envelopes.remove(&request);
            self.requests.complete(request, Err(error.clone().into()));
        }
    }
}
