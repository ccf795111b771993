//! An endpoint that says anything to anybody, most of it nearly right.

use lmt_core::mechanism::{Cookie, Interval, Model};
use lmt_core::rendezvous::packet::{Cts, Demote, Done, Fail, GiveUp, Retry};
use lmt_core::rendezvous::{MechanismTag, Packet, ReceiveId, Rts, SendId, TransferKey};

use super::medium::MECHANISMS;
use super::{Frame, Message, World};

impl World {
    /// Keeps the names by which the others' transfers are known to it.
    pub(super) fn overhear(&mut self, from: usize, frame: Frame) {
        let Frame::Packet { bytes, .. } = frame else { return };
        match Packet::decode(&bytes) {
            Ok(Packet::Rts(p)) => self.overheard.push((from, TransferKey::Send(p.send_id))),
            Ok(Packet::Cts(p)) => self.overheard.push((from, TransferKey::Receive(p.receive_id))),
            Ok(Packet::Demote(p)) => self.overheard.push((from, TransferKey::Receive(p.receive_id))),
            _ => {}
        }
    }

    /// The entry for a message that only the hostile endpoint knows of.
    pub(super) fn hostile_message(&mut self, from: usize, to: usize) -> usize {
        self.messages.push(Message {
            from,
            to,
            tag: self.rng.below(5),
            total_bytes: 0,
            eager: false,
            candidates: 0,
            send_id: None,
            cancel_asked: false,
            arrived: false,
            withdrawn: false,
            receive: None,
            result: None,
        });
        self.medium.faults.push(0);
        self.messages.len() - 1
    }

    pub(super) fn attack(&mut self, from: usize) {
        let (to, known) = match self.rng.pick(&self.overheard).copied() {
            Some((to, key)) if self.rng.chance(70) => (to, Some(key)),
            _ => (self.rng.below(self.case.endpoints as u64) as usize, None),
        };
        if to == from {
            return;
        }
        for _ in 0..=self.rng.below(3) {
            let packet = self.any_packet(known);
            let mut bytes = vec![0; Packet::MAX_BYTES];
            let used = packet.encode(&mut bytes);
            bytes.truncate(used);
            if self.rng.chance(5) {
                let at = self.rng.below(used as u64) as usize;
                bytes[at] = self.rng.next() as u8;
            }
            self.emit(from, to, Frame::Packet { bytes, message: None });
        }
    }

    /// A number that is often some transfer's of the addressee.
    fn any_id(&mut self) -> u64 {
        match self.rng.below(4) {
            0 => self.rng.next(),
            _ => (1 + self.rng.below(4)) << 32 | self.rng.below(12),
        }
    }

    fn any_interval(&mut self) -> Interval {
        let max_bytes = self.case.max_bytes;
        match self.rng.below(4) {
            0 => Interval { start: self.rng.next(), end: self.rng.next() },
            1 => Interval { start: 0, end: self.rng.below(max_bytes + 1) },
            _ => Interval { start: self.rng.below(max_bytes), end: self.rng.below(max_bytes + 2) },
        }
    }

    fn any_packet(&mut self, known: Option<TransferKey>) -> Packet {
        let (mut send_id, mut receive_id) = (SendId(self.any_id()), ReceiveId(self.any_id()));
        match known {
            Some(TransferKey::Send(id)) => send_id = id,
            Some(TransferKey::Receive(id)) => receive_id = id,
            None => {}
        }
        let to_send = known.map_or(self.rng.chance(50), |key| matches!(key, TransferKey::Send(_)));
        let to = if to_send { TransferKey::Send(send_id) } else { TransferKey::Receive(receive_id) };
        let attempt = if self.rng.chance(60) { 0 } else { self.rng.below(4) as u8 };
        let interval = self.any_interval();
        let cookie = Cookie::new(&self.rng.next().to_le_bytes()).unwrap();
        let mechanism = match self.rng.below(5) {
            0 => MechanismTag(self.rng.next() as u32),
            number => MECHANISMS[number as usize - 1],
        };
        let model = Model::ALL[self.rng.below(Model::ALL.len() as u64) as usize];
        let (errno, for_good) = (self.rng.below(99) as i32, self.rng.chance(10));
        match self.rng.below(9) {
            0 => Packet::Rts(Rts { send_id, total_bytes: interval.end, attempt, mechanism, model, cookie }),
            1 => {
                let interval = self.rng.chance(50).then_some(interval);
                Packet::Cts(Cts { send_id, receive_id, attempt, interval, shared: false, cookie })
            }
            2 => Packet::Done(Done { to, attempt, shared: false }),
            3 => {
                let (remaining, shared) = (interval, self.rng.chance(50));
                Packet::Demote(Demote { send_id, receive_id, attempt, remaining, errno, for_good, shared })
            }
            4 => Packet::Fail(Fail { receive_id, attempt, front: interval.start, errno, for_good }),
            5 => Packet::Retry(Retry { receive_id, attempt, mechanism, model, interval, cookie }),
            6 => Packet::GiveUp(GiveUp { to, errno }),
            7 => Packet::Cancel { send_id },
            _ => Packet::CancelReply { send_id, cancelled: self.rng.chance(50) },
        }
    }
}
