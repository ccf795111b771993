//! Messages of an endpoint to itself: they never leave the process. A send finds the receive
//! that waits for it, or waits among the unexpected messages until one comes; then there is
//! one copy, from the one's memory to the other's.

use super::state::Traffic;
use super::unexpected::{Arrived, Unexpected};
use crate::matching::Matcher;
use crate::memory::buffer::{Buffer, copy_between};
use crate::requests::ids::RequestId;
use crate::requests::label::Label;
use crate::requests::options::SendMode;
use crate::requests::outcome::{Status, received};
use crate::requests::table::Waiting;
use crate::vocabulary::identity::PeerKey;

impl Traffic {
    /// A message to oneself never leaves the process.
    pub(super) fn send_to_self(
        &mut self,
        key: PeerKey,
        label: Label,
        buffer: Buffer,
        mode: SendMode,
    ) -> RequestId {
        let Label { tag, space, immediate } = label;
        let bytes = buffer.total_bytes();
        let done = Ok(Status { peer: self.name(key), tag, bytes, immediate });
        if let Some(receive) = self.receive_for(key, &label, bytes) {
            let copied = match self.requests.get_mut(receive).and_then(|r| r.buffer.as_mut()) {
                Some(target) => copy_between(&buffer, target),
                None => 0,
            };
            self.requests.complete(receive, received(self.name(key), &label, bytes, copied));
            return self.requests.done(done);
        }
        if mode == SendMode::Standard && bytes <= self.config.eager_max_bytes {
            let mut data = self.store.take(bytes as usize);
            buffer.read_at(0, &mut data);
            let connection = self.peers[key as usize].ended_connections;
            let content = Unexpected::Eager { data, charge_bytes: 0, connection };
            self.matchers.of(space).keep(key, tag, Arrived { immediate, content });
            return self.requests.done(done);
        }
        let id = self.requests.begin(buffer, Some(key), label, Waiting::Queued);
        let arrived = Arrived { immediate, content: Unexpected::Local(id) };
        let handle = self.matchers.of(space).keep(key, tag, arrived);
        self.requests.set_waiting(id, Waiting::Local(space, handle));
        id
    }

    /// A message to oneself: one copy, from the send's memory to the receive's.
    pub(super) fn join_local(&mut self, label: &Label, send: RequestId, receive: RequestId) {
        let key = self.by_id.get(&self.id).copied().unwrap_or_default();
        let source = self.requests.get_mut(send).and_then(|r| r.buffer.take());
        let Some(source) = source else { return };
        let total = source.total_bytes();
        let copied = match self.requests.get_mut(receive).and_then(|r| r.buffer.as_mut()) {
            Some(target) => copy_between(&source, target),
            None => 0,
        };
        let status =
            Status { peer: self.name(key), tag: label.tag, bytes: total, immediate: label.immediate };
        self.requests.complete(send, Ok(status));
        self.requests.complete(receive, received(self.name(key), label, total, copied));
    }
}
