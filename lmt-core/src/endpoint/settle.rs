//! How operations end: by a transfer that has ended, or taken back.

use super::peer::Connection;
use super::state::Traffic;
use crate::matching::Matcher;
use crate::rendezvous::{Received, TransferError};
use crate::requests::ids::RequestId;
use crate::requests::multi_receive::MultiReceive;
use crate::requests::outcome::{OperationError, Status, received};
use crate::requests::table::{State, Waiting};
use crate::vocabulary::identity::PeerKey;

impl Traffic {
    /// Passes on what there is.
    pub fn settle(&mut self) {
        self.settle_by(None);
    }

    /// Takes an operation back if nothing has matched it yet. Returns whether
    /// it is certain already that it was; if not, its result will tell.
    pub fn cancel(&mut self, id: RequestId) -> bool {
        let Some(request) = self.requests.get(id) else { return false };
        let State::Waiting(waiting) = &request.state else { return false };
        let key = request.peer;
        let cancelled = match *waiting {
            Waiting::Posted(space, handle) => self.matchers.of(space).cancel_posted(handle).is_some(),
            Waiting::MultiReceive(MultiReceive { space, posted, .. }) => {
                posted.is_some_and(|handle| self.matchers.of(space).cancel_posted(handle).is_some())
            }
            Waiting::Local(space, handle) => self.matchers.of(space).remove_unexpected(handle).is_some(),
            Waiting::Queued => key.is_some_and(|key| self.unqueue_eager(key, id)),
            Waiting::Sending(send_id) => {
                self.transfers.cancel(send_id);
                self.settle();
                return self.requests.is_done(id);
            }
            // Its buffer is in use only during a turn.
            Waiting::OneSided => true,
            Waiting::Matched => false,
        };
        if cancelled {
            self.synchronous.remove(&id);
            self.requests.complete(id, Err(OperationError::Cancelled));
        }
        cancelled
    }

    pub(super) fn sent(&mut self, request: RequestId, result: Result<(), TransferError>) {
        let Some(entry) = self.requests.get(request) else { return };
        let (key, label, bytes) = (entry.peer.unwrap_or_default(), entry.label, entry.bytes);
        let (tag, immediate) = (label.tag, label.immediate);
        let result = match result {
            Ok(()) => Ok(Status { peer: self.name(key), tag, bytes, immediate }),
            Err(error) => Err(self.failure(key, error)),
        };
        self.requests.complete(request, result);
    }

    pub(super) fn arrived(&mut self, request: RequestId, result: Result<Received, TransferError>) {
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
                let reasons = self.transfers.mechanism_status().reasons(key);
                let reason = if reasons.is_empty() { error.to_string() } else { reasons };
                crate::vocabulary::error::PeerError::NoMechanism { id: peer.id, reason }.into()
            }
            _ => OperationError::of_transfer(error, peer.id),
        }
    }
}
