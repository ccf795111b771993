//! How an endpoint drives its machine.

use lmt_core::mechanism::{Fault, Plan};
use lmt_core::rendezvous::{Action, Incoming, MechanismTag, Packet, Rts, TransferError, TransferKey};

use super::oracle::Arrived;
use super::{Frame, Outcome, World};

impl World {
    /// Performs actions until there are none.
    pub(super) fn drain(&mut self, end: usize) {
        while let Some(action) = self.ends[end].machine.pop_action() {
            self.perform(end, action);
        }
        while let Some((peer, packet)) = self.ends[end].machine.pop_packet() {
            self.send_packet(end, peer as usize, packet);
        }
    }

    fn perform(&mut self, end: usize, action: Action) {
        match action {
            Action::Prepare { key, peer, mechanism, plan } => {
                self.prepare(end, key, peer as usize, mechanism, plan);
            }
            Action::Start { key, interval } => {
                let handle = self.ends[end].transfers[&key];
                let remote = *self.ends[end].machine.remote_cookie(key).expect("it is in flight");
                let result = self.medium.start(&mut self.rng, handle, &remote, interval);
                self.ends[end].machine.started(key, result);
            }
            Action::Leave { key } => {
                let handle = self.ends[end].transfers[&key];
                let both_know = self.medium.leave(handle);
                self.tally.known_by_both += u64::from(both_know);
                self.ends[end].machine.left(key, both_know);
            }
            Action::Finish { key } => {
                let handle = self.ends[end].transfers.remove(&key).expect("what finishes was prepared");
                self.medium.finish(handle);
            }
            Action::CompleteSend { id, result } => {
                assert!(!self.ends[end].transfers.contains_key(&TransferKey::Send(id)));
                let number = self.ends[end].sends.remove(&id).expect("a send completes once");
                self.complete_send(number, result);
            }
            Action::CompleteReceive { id, result } => {
                assert!(!self.ends[end].transfers.contains_key(&TransferKey::Receive(id)));
                let receive = self.ends[end].receives.remove(&id).expect("a receive completes once");
                self.complete_receive(receive, Outcome::Ended(result));
            }
            Action::Blacklist { peer, mechanism, model, role, .. } => {
                if role == lmt_core::mechanism::Role::Sender {
                    self.ends[end].blacklist.insert((peer as usize, mechanism, model));
                }
            }
        }
    }

    fn prepare(&mut self, end: usize, key: TransferKey, peer: usize, mechanism: MechanismTag, plan: Plan) {
        let (message, receive) = match key {
            TransferKey::Send(id) => (self.ends[end].sends[&id], None),
            TransferKey::Receive(id) => {
                let receive = self.ends[end].receives[&id];
                (self.receives[receive].message.unwrap(), Some(receive))
            }
        };
        // Preparing may take its time in a real driver, and something happen
        // meanwhile.
        if self.rng.chance(2)
            && let TransferKey::Send(id) = key
        {
            self.messages[message].cancel_asked = true;
            self.ends[end].machine.cancel(id);
        }
        if !self.alive(peer) && self.ends[end].knows_dead.insert(peer) {
            self.ends[end].machine.peer_dead(peer as u32);
            self.forget_peer(end, peer);
        }
        // Whatever a peer says, nothing outside the message and the buffer.
        let room_bytes = match receive {
            Some(receive) => self.receives[receive].capacity,
            None => self.messages[message].total_bytes,
        };
        assert!(plan.interval.end <= room_bytes, "{plan:?} of {room_bytes} bytes");
        let request = (key, mechanism, plan);
        let result = self.medium.prepare(&mut self.rng, (end, peer), request, (message, receive));
        let answer = result.map(|(handle, cookie)| {
            let before = self.ends[end].transfers.insert(key, handle);
            assert!(before.is_none(), "finish comes before the next prepare");
            cookie
        });
        let failed = matches!(answer, Err(Fault::Demote { .. }));
        self.tally.demoted += u64::from(failed);
        self.ends[end].machine.prepared(key, answer.as_ref().map_err(Clone::clone));
    }

    fn complete_send(&mut self, number: usize, result: Result<(), TransferError>) {
        match &result {
            Err(TransferError::Cancelled) => self.tally.cancelled += 1,
            Err(TransferError::NoMechanism { .. }) => self.tally.no_mechanism += 1,
            Err(TransferError::PeerDead) => {
                assert!(!self.alive(self.messages[number].to), "only the dead are called dead");
                self.tally.peer_dead += 1;
            }
            _ => self.tally.cancel_too_late += u64::from(self.messages[number].cancel_asked),
        }
        let before = self.messages[number].result.replace(result);
        assert!(before.is_none(), "a send completes once");
    }

    fn send_packet(&mut self, from: usize, to: usize, packet: Packet) {
        let message = match packet {
            Packet::Rts(rts) => Some(self.ends[from].sends[&rts.send_id]),
            _ => None,
        };
        let mut bytes = vec![0; Packet::MAX_BYTES];
        let used = packet.encode(&mut bytes);
        bytes.truncate(used);
        self.emit(from, to, Frame::Packet { bytes, message });
    }

    pub(super) fn emit(&mut self, from: usize, to: usize, frame: Frame) {
        if self.alive(to) {
            self.links.entry((from, to)).or_default().push_back(frame);
        }
    }

    pub(super) fn deliver(&mut self, from: usize, to: usize, frame: Frame) {
        if self.is_hostile(to) {
            return self.overhear(from, frame);
        }
        if self.ends[to].knows_dead.contains(&from) {
            return;
        }
        let (bytes, message) = match frame {
            Frame::Eager { message } => return self.arrive(from, to, message, None),
            Frame::Packet { bytes, message } => (bytes, message),
        };
        let packet = match Packet::decode(&bytes) {
            Ok(packet) => packet,
            Err(error) => {
                assert!(self.is_hostile(from), "{error}");
                return;
            }
        };
        match self.ends[to].machine.packet(from as u32, &packet) {
            Ok(Incoming::Rts(rts)) => {
                let message = message.unwrap_or_else(|| self.hostile_message(from, to));
                self.arrive(from, to, message, Some(*rts));
            }
            Ok(Incoming::Withdraw { send_id }) => {
                let found = self.ends[to].matcher.withdraw(from, send_id);
                if let Some(arrived) = found {
                    self.messages[arrived.message].withdrawn = true;
                }
                self.ends[to].machine.withdrawn(from as u32, send_id, found.is_some());
            }
            Ok(Incoming::Handled) => {}
            Err(error) => {
                assert!(self.is_hostile(from), "{error}: {packet:?}");
                self.tally.protocol_errors += 1;
            }
        }
        self.drain(to);
    }

    fn arrive(&mut self, from: usize, to: usize, number: usize, rts: Option<Rts>) {
        let message = &mut self.messages[number];
        assert!(!std::mem::replace(&mut message.arrived, true), "a message arrives once");
        assert_eq!(message.eager, rts.is_none());
        let tag = message.tag;
        if let Some(before) = self.ends[to].newest_from.insert(from, number) {
            assert!(before < number, "messages of a pair arrive in the order of their sends");
        }
        let send_id = rts.map_or(message.send_id, |rts| Some(rts.send_id));
        let arrived = Arrived { message: number, rts, send_id };
        let found = self.ends[to].matcher.arrive(from, tag, arrived);
        self.tally.max_unexpected = self.tally.max_unexpected.max(self.ends[to].matcher.unexpected());
        if let Some(receive) = found {
            self.matched(to, receive, from, arrived);
        }
    }

    /// One step of whoever's turn it is; whether anything moved.
    pub(super) fn step(&mut self, end: usize) -> bool {
        let quota_bytes = 1 + self.rng.below(self.case.max_bytes / 2 + 1);
        if self.rng.chance(2) {
            // As before a sleep.
            let before = self.ends[end].machine.active();
            self.ends[end].machine.rest();
            self.drain(end);
            return self.ends[end].machine.active() < before;
        }
        let Some((key, max_bytes)) = self.ends[end].machine.next_step(quota_bytes) else {
            panic!("active transfers, but none has a turn");
        };
        let handle = self.ends[end].transfers[&key];
        let result = self.medium.step(&mut self.rng, &mut self.buffers, handle, max_bytes);
        let moved = !matches!(result, Ok(step) if step.bytes == 0 && !step.done);
        self.tally.demoted += u64::from(result.is_err());
        self.ends[end].machine.stepped(key, result);
        self.drain(end);
        moved
    }

    /// An endpoint learns that a peer has died.
    pub(super) fn notice(&mut self, end: usize, dead: usize) {
        self.links.entry((dead, end)).or_default().clear();
        self.ends[end].machine.peer_dead(dead as u32);
        self.drain(end);
        self.forget_peer(end, dead);
    }

    fn forget_peer(&mut self, end: usize, dead: usize) {
        let (posted, _) = self.ends[end].matcher.gone(dead);
        for receive in posted {
            self.complete_receive(receive, Outcome::Ended(Err(TransferError::PeerDead)));
        }
    }
}
