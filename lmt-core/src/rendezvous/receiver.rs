//! The receiver's side of the protocol.

use super::errno_text::of_errno;
use super::machine::Machine;
use super::packet::{Cts, Demote, Done, Fail, Packet, ReceiveId, Retry, Rts, SendId, TransferKey};
use super::side::{Inbound, Phase};
use super::types::{Action, ProtocolError, Received, TransferError};
use crate::vocabulary::identity::PeerKey;
use crate::vocabulary::model::{Model, Role};
use crate::vocabulary::transfer::{Cookie, Interval};

impl Machine {
    /// A receive with room for `capacity_bytes` has matched this message of
    /// `peer`: brings in what fits.
    pub fn matched(&mut self, peer: PeerKey, rts: &Rts, capacity_bytes: u64) -> ReceiveId {
        let received_bytes = rts.total_bytes.min(capacity_bytes);
        let id = ReceiveId(self.receives.insert(Inbound::new(peer, rts, received_bytes)));
        if received_bytes == 0 {
            self.has_received(id, false);
        } else {
            self.prepare_receive(id);
        }
        id
    }

    /// A matched message comes into shared buffers, which its sender is to learn.
    pub fn matched_into_shared(&mut self, id: ReceiveId) {
        if let Some(inbound) = self.receives.get_mut(id.0) {
            inbound.shared = true;
        }
    }

    /// A receive has matched a short message that came with the id of a
    /// synchronous send: lets its sender know.
    pub fn matched_eager(&mut self, peer: PeerKey, send_id: SendId) {
        let packet = Packet::Done(Done::new(TransferKey::Send(send_id), 0, false));
        self.packets.push_back((peer, packet));
    }

    fn prepare_receive(&mut self, id: ReceiveId) {
        let key = TransferKey::Receive(id);
        let Some(side) = self.side_mut(key) else { return };
        side.phase = Phase::Preparing;
        let (peer, mechanism, plan) = (side.peer, side.mechanism, side.plan());
        self.actions.push_back(Action::Prepare { key, peer, mechanism, plan });
    }

    /// This side is prepared: starts, asks the sender to, or both.
    pub(super) fn answer(&mut self, id: ReceiveId, cookie: &Cookie) {
        let key = TransferKey::Receive(id);
        let Some(inbound) = self.receives.get(id.0) else { return };
        let side = &inbound.side;
        let (peer, model, interval) = (side.peer, side.model, side.interval);
        if !matches!(model, Model::Get | Model::Stream) {
            let (send_id, receive_id, attempt) = (inbound.send_id, id, side.attempt);
            let is_cut = interval.end < inbound.offered_end;
            let (shared, interval) = (inbound.shared, is_cut.then_some(interval));
            let packet = Packet::Cts(Cts { send_id, receive_id, attempt, interval, shared, cookie: *cookie });
            self.packets.push_back((peer, packet));
        }
        if model == Model::Put {
            self.enter(key, Phase::Waiting);
        } else {
            self.enter(key, Phase::Starting);
            self.actions.push_back(Action::Start { key, interval });
        }
    }

    /// Everything is here: tells the sender, unless it knows.
    pub(super) fn has_received(&mut self, id: ReceiveId, sender_knows: bool) {
        self.finish(TransferKey::Receive(id));
        let Some(inbound) = self.receives.get(id.0) else { return };
        let (peer, attempt) = (inbound.side.peer, inbound.side.attempt);
        if !sender_knows {
            let packet = Packet::Done(Done::new(TransferKey::Send(inbound.send_id), attempt, inbound.shared));
            self.packets.push_back((peer, packet));
        }
        self.complete(id);
    }

    fn complete(&mut self, id: ReceiveId) {
        let Some(inbound) = self.receives.get(id.0) else { return };
        let (total_bytes, received_bytes) = (inbound.total_bytes, inbound.received_bytes);
        let truncated = received_bytes < total_bytes;
        self.end_receive(id, Ok(Received { total_bytes, received_bytes, truncated }));
    }

    /// DONE from the sender, who wrote everything.
    pub(super) fn on_sent(&mut self, peer: PeerKey, id: ReceiveId, attempt: u8) -> Result<(), ProtocolError> {
        let key = TransferKey::Receive(id);
        if !self.knows(peer, key)? {
            return Ok(());
        }
        let packet = "DONE";
        let Some(side) = self.side(key) else { return Ok(()) };
        if !side.is_present(attempt, id.0, packet)? {
            return Ok(());
        }
        if side.model != Model::Put || side.phase != Phase::Waiting {
            return Err(ProtocolError::OutOfPlace { id: id.0, packet });
        }
        self.complete(id);
        Ok(())
    }

    pub(super) fn on_fail(&mut self, peer: PeerKey, fail: &Fail) -> Result<(), ProtocolError> {
        let key = TransferKey::Receive(fail.receive_id);
        if !self.knows(peer, key)? {
            return Ok(());
        }
        let (id, packet) = (fail.receive_id.0, "FAIL");
        let Some(side) = self.side_mut(key) else { return Ok(()) };
        if !side.is_present(fail.attempt, id, packet)? {
            return Ok(());
        }
        let Interval { start, end } = side.interval;
        match (side.phase, side.model) {
            // It crossed this side's own DEMOTE.
            (Phase::Failed, _) => return Ok(()),
            (Phase::Waiting, Model::Put) if fail.front < start || fail.front > end => {
                let (start, end) = (fail.front, fail.front);
                return Err(ProtocolError::BadInterval { id, packet, start, end });
            }
            (Phase::Waiting, Model::Put) => side.moved_bytes = fail.front - start,
            // What lies between the two processes is lost; what has been
            // counted here is not.
            (Phase::Starting | Phase::Active, Model::Cooperative | Model::Both | Model::Stream) => {}
            _ => return Err(ProtocolError::OutOfPlace { id, packet }),
        }
        let sentence = format!("it failed on the sender's side {}", of_errno(fail.errno));
        self.note(key, Role::Sender, fail.errno, false, sentence);
        self.demote(fail.receive_id, fail.errno, false);
        Ok(())
    }

    /// The present attempt is over: says what is missing, if anything is.
    pub(super) fn demote(&mut self, id: ReceiveId, errno: i32, for_good: bool) {
        let key = TransferKey::Receive(id);
        let Some(side) = self.side_mut(key) else { return };
        side.interval.start = side.front();
        side.moved_bytes = 0;
        if side.interval.bytes() == 0 {
            return self.has_received(id, false);
        }
        self.finish(key);
        self.enter(key, Phase::Failed);
        let Some(inbound) = self.receives.get(id.0) else { return };
        let side = &inbound.side;
        let (peer, attempt, remaining) = (side.peer, side.attempt, side.interval);
        let Inbound { send_id, shared, .. } = *inbound;
        let demote = Demote { send_id, receive_id: id, attempt, remaining, errno, for_good, shared };
        self.packets.push_back((peer, Packet::Demote(demote)));
    }

    pub(super) fn on_retry(&mut self, peer: PeerKey, retry: &Retry) -> Result<(), ProtocolError> {
        if !self.knows(peer, TransferKey::Receive(retry.receive_id))? {
            return Ok(());
        }
        let (id, packet) = (retry.receive_id.0, "RETRY");
        let Some(inbound) = self.receives.get_mut(id) else { return Ok(()) };
        let side = &mut inbound.side;
        if side.phase != Phase::Failed || Some(retry.attempt) != side.attempt.checked_add(1) {
            return Err(ProtocolError::OutOfPlace { id, packet });
        }
        let Interval { start, end } = retry.interval;
        if retry.interval != side.interval {
            return Err(ProtocolError::BadInterval { id, packet, start, end });
        }
        side.attempt = retry.attempt;
        (side.mechanism, side.model) = (retry.mechanism, retry.model);
        inbound.remote_cookie = retry.cookie;
        inbound.offered_end = end;
        self.prepare_receive(retry.receive_id);
        Ok(())
    }

    /// Ends a receive and forgets it.
    pub(super) fn end_receive(&mut self, id: ReceiveId, result: Result<Received, TransferError>) {
        let key = TransferKey::Receive(id);
        self.finish(key);
        if self.forget(key) {
            self.actions.push_back(Action::CompleteReceive { id, result });
        }
    }
}
