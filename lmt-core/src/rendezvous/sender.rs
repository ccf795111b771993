//! The sender's side of the protocol.

use super::errno_text::of_errno;
use super::machine::{Machine, demotion};
use super::packet::{Cts, Demote, Done, Fail, GiveUp, Packet, Retry, Rts, SendId, TransferKey};
use super::side::{Outgoing, Phase, Side};
use super::types::{Action, Candidates, ProtocolError, TransferError};
use crate::vocabulary::identity::{MechanismTag, PeerKey};
use crate::vocabulary::model::{Model, Role};
use crate::vocabulary::transfer::{Cookie, Fault, Interval};

impl Machine {
    /// Begins to send a message of `total_bytes` by the first of `candidates`
    /// that works. A message without bytes needs none.
    ///
    /// The message counts as sent, in the order between the two endpoints, when
    /// its RTS comes out as a packet.
    pub fn send(&mut self, peer: PeerKey, total_bytes: u64, candidates: &Candidates) -> SendId {
        let id = SendId(self.sends.insert(Outgoing {
            side: Side::new(peer, Role::Sender, Interval { start: 0, end: total_bytes }),
            total_bytes,
            candidates: *candidates,
            next_candidate: 0,
            announced: false,
            remote: None,
            remote_cookie: Cookie::empty(),
            cancel_sent: false,
        }));
        if total_bytes == 0 {
            self.announce(id, &Cookie::empty());
        } else {
            self.prepare_next(id);
        }
        id
    }

    /// The answer to `Action::Prepare`, which either side may have asked for.
    pub fn prepared(&mut self, key: TransferKey, result: Result<&Cookie, Fault>) {
        let Some(side) = self.side_mut(key) else { return };
        if side.phase != Phase::Preparing {
            return;
        }
        side.held = result.is_ok();
        side.phase = Phase::Waiting;
        if let Some(pending_error) = side.pending_error.take() {
            return self.end(key, pending_error);
        }
        match (key, result) {
            (TransferKey::Send(id), Ok(cookie)) => self.announce(id, cookie),
            (TransferKey::Receive(id), Ok(cookie)) => self.answer(id, cookie),
            (_, Err(fault)) => {
                let Some((errno, for_good, sentence)) = demotion(fault) else {
                    return self.end(key, TransferError::PeerDead);
                };
                self.note(key, key.role(), errno, for_good, sentence);
                match key {
                    TransferKey::Send(id) => self.prepare_next(id),
                    TransferKey::Receive(id) => self.demote(id, errno, for_good),
                }
            }
        }
    }

    /// Books a short message that the driver itself carries and whose sender
    /// wants to know when it is matched (a synchronous send): it completes when
    /// the receiver has called [`Self::matched_eager`]. Its id travels with it.
    pub fn send_synchronous_eager(&mut self, peer: PeerKey) -> SendId {
        let nothing = Interval::default();
        let mut side = Side::new(peer, Role::Sender, nothing);
        side.phase = Phase::Waiting;
        SendId(self.sends.insert(Outgoing {
            side,
            total_bytes: 0,
            candidates: Candidates::new(),
            next_candidate: 0,
            announced: true,
            remote: None,
            remote_cookie: Cookie::empty(),
            cancel_sent: false,
        }))
    }

    /// Takes a message back if no receive has matched it yet. It completes with
    /// [`TransferError::Cancelled`] then; otherwise it goes on as if nothing
    /// had been asked.
    pub fn cancel(&mut self, id: SendId) {
        let Some(outgoing) = self.sends.get_mut(id.0) else { return };
        let peer = outgoing.side.peer;
        match outgoing.side.phase {
            Phase::Preparing if !outgoing.announced => {
                outgoing.side.pending_error.get_or_insert(TransferError::Cancelled);
            }
            _ if outgoing.is_unanswered() && !outgoing.cancel_sent => {
                outgoing.cancel_sent = true;
                self.packets.push_back((peer, Packet::Cancel { send_id: id }));
            }
            _ => {}
        }
    }

    /// Prepares the next candidate, or gives up when there is none. A message
    /// that was never announced is announced all the same, by no mechanism: the
    /// receive that matches it must end with the error too.
    fn prepare_next(&mut self, id: SendId) {
        let Some(outgoing) = self.sends.get_mut(id.0) else { return };
        let side = &mut outgoing.side;
        let peer = side.peer;
        if let Some(choice) = outgoing.candidates.as_slice().get(outgoing.next_candidate) {
            outgoing.next_candidate += 1;
            (side.mechanism, side.model) = (choice.mechanism, choice.model);
            side.phase = Phase::Preparing;
            let mechanism = choice.mechanism;
            let (key, plan) = (TransferKey::Send(id), outgoing.side.plan());
            self.actions.push_back(Action::Prepare { key, peer, mechanism, plan });
            return;
        }
        if !outgoing.announced {
            (side.mechanism, side.model) = (MechanismTag(0), Model::Get);
            self.announce(id, &Cookie::empty());
            return;
        }
        let error = side.exhausted();
        if let (Some(remote), TransferError::NoMechanism { errno, .. }) = (outgoing.remote, &error) {
            let packet = Packet::GiveUp(GiveUp { to: TransferKey::Receive(remote), errno: *errno });
            self.packets.push_back((peer, packet));
        }
        self.end_send(id, Err(error));
    }

    /// Tells the receiver of the message, or of the next attempt at it.
    fn announce(&mut self, id: SendId, cookie: &Cookie) {
        let Some(outgoing) = self.sends.get_mut(id.0) else { return };
        let side = &mut outgoing.side;
        side.phase = Phase::Waiting;
        outgoing.announced = true;
        // What was said for an attempt before is not for this one.
        outgoing.remote_cookie = Cookie::empty();
        let (peer, attempt, mechanism, model) = (side.peer, side.attempt, side.mechanism, side.model);
        let packet = match outgoing.remote {
            None => {
                let total_bytes = outgoing.total_bytes;
                Packet::Rts(Rts { send_id: id, total_bytes, attempt, mechanism, model, cookie: *cookie })
            }
            Some(receive_id) => {
                let interval = side.interval;
                Packet::Retry(Retry { receive_id, attempt, mechanism, model, interval, cookie: *cookie })
            }
        };
        let interval = side.interval;
        self.packets.push_back((peer, packet));
        if model == Model::Stream && interval.bytes() > 0 {
            let key = TransferKey::Send(id);
            self.enter(key, Phase::Starting);
            self.actions.push_back(Action::Start { key, interval });
        }
    }

    pub(super) fn on_cts(&mut self, peer: PeerKey, cts: &Cts) -> Result<(), ProtocolError> {
        let key = TransferKey::Send(cts.send_id);
        if !self.knows(peer, key)? {
            return Ok(());
        }
        let (id, packet) = (cts.send_id.0, "CTS");
        let Some(outgoing) = self.sends.get_mut(id) else { return Ok(()) };
        let side = &mut outgoing.side;
        if !side.is_present(cts.attempt, id, packet)? {
            return Ok(());
        }
        let same_receive = outgoing.remote.is_none_or(|remote| remote == cts.receive_id);
        if side.phase != Phase::Waiting || matches!(side.model, Model::Get | Model::Stream) || !same_receive {
            return Err(ProtocolError::OutOfPlace { id, packet });
        }
        let interval = cts.interval.unwrap_or(side.interval);
        let Interval { start, end } = interval;
        // A shorter receive buffer cuts the end; nothing may move the start.
        if start != side.interval.start || end <= start || end > side.interval.end {
            return Err(ProtocolError::BadInterval { id, packet, start, end });
        }
        outgoing.remote = Some(cts.receive_id);
        outgoing.remote_cookie = cts.cookie;
        side.interval = interval;
        self.enter(key, Phase::Starting);
        self.actions.push_back(Action::Start { key, interval });
        Ok(())
    }

    /// DONE from the receiver.
    pub(super) fn on_received(
        &mut self,
        peer: PeerKey,
        id: SendId,
        attempt: u8,
    ) -> Result<(), ProtocolError> {
        let key = TransferKey::Send(id);
        if !self.knows(peer, key)? {
            return Ok(());
        }
        let packet = "DONE";
        let out_of_place = Err(ProtocolError::OutOfPlace { id: id.0, packet });
        let Some(side) = self.side(key) else { return Ok(()) };
        if !side.is_present(attempt, id.0, packet)? {
            return Ok(());
        }
        match side.phase {
            // Nothing is with the peer while the next attempt is prepared.
            Phase::Preparing => return out_of_place,
            // In the Put model this side knows best when all is written.
            Phase::Starting | Phase::Active if side.model == Model::Put => return out_of_place,
            _ => {}
        }
        self.end_send(id, Ok(()));
        Ok(())
    }

    pub(super) fn on_demote(&mut self, peer: PeerKey, demote: &Demote) -> Result<(), ProtocolError> {
        let key = TransferKey::Send(demote.send_id);
        if !self.knows(peer, key)? {
            return Ok(());
        }
        let (id, packet) = (demote.send_id.0, "DEMOTE");
        let Some(outgoing) = self.sends.get_mut(id) else { return Ok(()) };
        let side = &mut outgoing.side;
        if !side.is_present(demote.attempt, id, packet)? {
            return Ok(());
        }
        let same_receive = outgoing.remote.is_none_or(|remote| remote == demote.receive_id);
        if side.phase == Phase::Preparing || !same_receive {
            return Err(ProtocolError::OutOfPlace { id, packet });
        }
        let Interval { start, end } = demote.remaining;
        if start < side.interval.start || end <= start || end > side.interval.end {
            return Err(ProtocolError::BadInterval { id, packet, start, end });
        }
        outgoing.remote = Some(demote.receive_id);
        // A message that was announced by no mechanism says nothing new by
        // failing; why there was none is known here.
        let own_failure =
            side.phase == Phase::Failed || (side.mechanism == MechanismTag(0) && side.failure.is_some());
        self.finish(key);
        if !own_failure {
            let sentence = format!("it failed on the receiver's side {}", of_errno(demote.errno));
            self.note(key, Role::Receiver, demote.errno, demote.for_good, sentence);
        }
        self.enter(key, Phase::Waiting);
        if let Some(side) = self.side_mut(key) {
            side.interval = demote.remaining;
            side.moved_bytes = 0;
            // There are at most as many attempts as candidates.
            side.attempt = side.attempt.wrapping_add(1);
        }
        self.prepare_next(demote.send_id);
        Ok(())
    }

    pub(super) fn on_cancel_reply(
        &mut self,
        peer: PeerKey,
        id: SendId,
        cancelled: bool,
    ) -> Result<(), ProtocolError> {
        if !self.knows(peer, TransferKey::Send(id))? {
            return Ok(());
        }
        let Some(outgoing) = self.sends.get_mut(id.0) else { return Ok(()) };
        let unmatched = outgoing.is_unanswered();
        if !outgoing.cancel_sent || (cancelled && !unmatched) {
            return Err(ProtocolError::OutOfPlace { id: id.0, packet: "CANCEL_REPLY" });
        }
        if cancelled {
            self.end_send(id, Err(TransferError::Cancelled));
        }
        Ok(())
    }

    /// This side has nothing left to do for the attempt.
    pub(super) fn has_sent(&mut self, id: SendId) {
        let key = TransferKey::Send(id);
        let Some(outgoing) = self.sends.get(id.0) else { return };
        let (peer, attempt, model) = (outgoing.side.peer, outgoing.side.attempt, outgoing.side.model);
        match outgoing.remote {
            Some(remote) if model == Model::Put => {
                self.finish(key);
                let packet = Packet::Done(Done::new(TransferKey::Receive(remote), attempt, false));
                self.packets.push_back((peer, packet));
                self.end_send(id, Ok(()));
            }
            _ => self.enter(key, Phase::Drained),
        }
    }

    /// The mechanism failed on this side: the receiver is to say what is
    /// missing.
    pub(super) fn fail(&mut self, id: SendId, errno: i32, for_good: bool) {
        let key = TransferKey::Send(id);
        self.finish(key);
        self.enter(key, Phase::Failed);
        let Some(outgoing) = self.sends.get(id.0) else { return };
        let Some(receive_id) = outgoing.remote else { return };
        let (peer, attempt, front) = (outgoing.side.peer, outgoing.side.attempt, outgoing.side.front());
        let packet = Packet::Fail(Fail { receive_id, attempt, front, errno, for_good });
        self.packets.push_back((peer, packet));
    }

    /// Ends a send and forgets it.
    pub(super) fn end_send(&mut self, id: SendId, result: Result<(), TransferError>) {
        let key = TransferKey::Send(id);
        self.finish(key);
        if self.forget(key) {
            self.actions.push_back(Action::CompleteSend { id, result });
        }
    }
}
