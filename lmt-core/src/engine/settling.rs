//! What the transfers have produced: packets to be sent, and operations that have
//! ended.

use super::peer::Connection;
use super::requests::{OperationError, RequestId, Status};
use super::traffic::{Traffic, received};
use crate::inbox::InboxReceiver;
use crate::rendezvous::{PeerKey, Received, TransferError};
use crate::transfers::Ended;

impl Traffic {
    /// Passes on what there is.
    pub fn settle(&mut self) {
        self.settle_by(None);
    }

    /// The same; an RTS is written at once where `credits` tell what room there is.
    pub fn settle_by(&mut self, credits: Option<&InboxReceiver>) {
        while self.send_packet(credits) {}
        while let Some(ended) = self.transfers.pop_ended() {
            self.ended = self.ended.wrapping_add(1);
            match ended {
                Ended::Send { token, result } => self.sent(RequestId::from_raw(token), result),
                Ended::Receive { token, result } => self.arrived(RequestId::from_raw(token), result),
            }
        }
    }

    fn sent(&mut self, request: RequestId, result: Result<(), TransferError>) {
        let Some(entry) = self.requests.get(request) else { return };
        let (key, label, bytes) = (entry.peer.unwrap_or_default(), entry.label, entry.bytes);
        let (tag, immediate) = (label.tag, label.immediate);
        let result = match result {
            Ok(()) => Ok(Status { peer: self.name(key), tag, bytes, immediate }),
            Err(error) => Err(self.failure(key, error)),
        };
        self.requests.complete(request, result);
    }

    fn arrived(&mut self, request: RequestId, result: Result<Received, TransferError>) {
        let Some(entry) = self.requests.get(request) else { return };
        let (key, label) = (entry.peer.unwrap_or_default(), entry.label);
        let result = match result {
            Ok(done) => received(self.name(key), &label, done.total_bytes, done.received_bytes),
            Err(error) => Err(self.failure(key, error)),
        };
        self.requests.complete(request, result);
    }

    /// A transfer's error, with the peer named.
    fn failure(&self, key: PeerKey, error: TransferError) -> OperationError {
        let peer = &self.peers[key as usize];
        match (&error, &peer.connection) {
            // With the reason for which the connection ended.
            (TransferError::PeerDead, Connection::Gone(error)) => error.clone().into(),
            (TransferError::NoMechanism { .. }, _) => {
                let reasons = self.transfers.standings().reasons(key);
                let reason = if reasons.is_empty() { error.to_string() } else { reasons };
                crate::error::PeerError::NoMechanism { id: peer.id, reason }.into()
            }
            _ => OperationError::of_transfer(error, peer.id),
        }
    }
}
