//! What the programs on the endpoints do.

use lmt_core::matching::Pattern;
use lmt_core::mechanism::{Interval, Model};
use lmt_core::rendezvous::{Candidates, Choice, Received, TransferError};

use super::medium::{GUARD, GUARD_BYTE, MECHANISMS, content};
use super::oracle::Arrived;
use super::{Frame, Message, Outcome, Receive, World};

const TAGS: u64 = 5;
const MODELS: [Model; 5] = Model::ALL;

impl World {
    pub(super) fn operate(&mut self, end: usize) {
        match self.rng.below(100) {
            0..48 => self.send(end),
            48..90 if self.rng.below(self.case.receive_one_in) == 0 => {
                let pattern = self.pattern();
                self.receive(end, pattern);
            }
            90..94 => self.cancel_some_send(end),
            94..97 => {
                let mine: Vec<_> = (0..self.receives.len()).filter(|r| self.receives[*r].at == end).collect();
                if let Some(receive) = self.rng.pick(&mine).copied() {
                    self.cancel_receive(receive);
                }
            }
            97..100 => self.matched_probe(end),
            _ => self.send(end),
        }
    }

    pub(super) fn pattern(&mut self) -> Pattern {
        let source = self.rng.below(self.case.endpoints as u64) as u32;
        let source = (!self.rng.chance(10)).then_some(source);
        let ignore = match self.rng.below(10) {
            0..8 => 0,
            8 => self.rng.below(8),
            _ => self.rng.next(),
        };
        Pattern { source, tag: self.rng.below(TAGS), ignore }
    }

    fn size(&mut self) -> u64 {
        match self.rng.below(10) {
            0 => 0,
            1..5 => self.rng.below(65),
            _ => self.rng.below(self.case.max_bytes + 1),
        }
    }

    fn send(&mut self, from: usize) {
        let to = self.rng.below(self.case.endpoints as u64) as usize;
        if self.ends[from].knows_dead.contains(&to) {
            return;
        }
        let total_bytes = self.size();
        let eager = total_bytes < 48 && self.rng.chance(60);
        let number = self.messages.len();
        self.messages.push(Message {
            from,
            to,
            tag: self.rng.below(TAGS),
            total_bytes,
            eager,
            candidates: 0,
            send_id: None,
            cancel_asked: false,
            arrived: false,
            withdrawn: false,
            receive: None,
            result: None,
        });
        self.medium.faults.push(0);
        if eager {
            self.tally.eager += 1;
            if self.rng.chance(70) {
                self.messages[number].result = Some(Ok(()));
                return self.emit(from, to, Frame::Eager { message: number });
            }
            let id = self.ends[from].machine.send_synchronous_eager(to as u32);
            self.messages[number].send_id = Some(id);
            self.ends[from].sends.insert(id, number);
            self.emit(from, to, Frame::Eager { message: number });
            if self.rng.chance(20) {
                self.cancel_send(number);
            }
            return;
        }
        let candidates = self.candidates(from, to);
        self.messages[number].candidates = candidates.as_slice().len() as u32;
        let id = self.ends[from].machine.send(to as u32, total_bytes, &candidates);
        self.messages[number].send_id = Some(id);
        self.ends[from].sends.insert(id, number);
        self.drain(from);
        if self.rng.chance(5) {
            self.cancel_send(number);
        }
    }

    fn candidates(&mut self, from: usize, to: usize) -> Candidates {
        let mut all = Candidates::new();
        for _ in 0..self.rng.below(6) {
            let mechanism = MECHANISMS[self.rng.below(3) as usize];
            let model = MODELS[self.rng.below(MODELS.len() as u64) as usize];
            if !self.ends[from].blacklist.contains(&(to, mechanism, model)) {
                all.push(Choice { mechanism, model });
            }
        }
        if self.case.reliable {
            all.push(Choice {
                mechanism: MECHANISMS[3],
                model: MODELS[self.rng.below(MODELS.len() as u64) as usize],
            });
        }
        all
    }

    fn cancel_some_send(&mut self, end: usize) {
        let mut mine: Vec<_> = self.ends[end].sends.values().copied().collect();
        mine.sort_unstable();
        if let Some(number) = self.rng.pick(&mine).copied() {
            self.cancel_send(number);
        }
    }

    fn cancel_send(&mut self, number: usize) {
        let message = &mut self.messages[number];
        let (from, id) = (message.from, message.send_id.unwrap());
        message.cancel_asked = true;
        self.ends[from].machine.cancel(id);
        self.drain(from);
    }

    fn new_receive(&mut self, at: usize, pattern: Pattern) -> usize {
        let capacity = if self.rng.chance(30) { self.size() } else { self.case.max_bytes };
        let (handle, message, result) = (None, None, None);
        self.receives.push(Receive { at, pattern, capacity, handle, message, result });
        let mut buffer = vec![0xee; capacity as usize + GUARD];
        buffer[capacity as usize..].fill(GUARD_BYTE);
        self.buffers.push(buffer);
        self.receives.len() - 1
    }

    pub(super) fn receive(&mut self, end: usize, pattern: Pattern) {
        if pattern.source.is_some_and(|source| self.ends[end].knows_dead.contains(&(source as usize))) {
            // Only what has come already can match; a driver probes for it.
            self.take(end, pattern);
            return;
        }
        let receive = self.new_receive(end, pattern);
        match self.ends[end].matcher.post(pattern, receive) {
            (handle, None) => self.receives[receive].handle = handle,
            (_, Some((source, arrived))) => self.matched(end, receive, source, arrived),
        }
    }

    /// Takes a waiting message out first and receives it later.
    fn matched_probe(&mut self, end: usize) {
        let pattern = self.pattern();
        self.take(end, pattern);
    }

    fn take(&mut self, end: usize, pattern: Pattern) {
        if let Some((source, arrived)) = self.ends[end].matcher.take(pattern) {
            self.tally.taken += 1;
            let receive = self.new_receive(end, pattern);
            self.matched(end, receive, source, arrived);
        }
    }

    pub(super) fn cancel_receive(&mut self, receive: usize) {
        let Receive { at, handle, .. } = self.receives[receive];
        let Some(handle) = handle.filter(|_| self.alive(at)) else { return };
        if self.ends[at].matcher.cancel(handle, receive) {
            self.tally.receives_cancelled += 1;
            self.complete_receive(receive, Outcome::Cancelled);
        }
    }

    /// A message and a receive have found each other.
    pub(super) fn matched(&mut self, end: usize, receive: usize, source: usize, arrived: Arrived) {
        let Arrived { message: number, rts, send_id } = arrived;
        let (message, request) = (&mut self.messages[number], &mut self.receives[receive]);
        assert!(request.pattern.accepts(source as u32, message.tag));
        assert_eq!((message.from, message.to), (source, end));
        assert!(message.receive.replace(receive).is_none(), "a message matches once");
        assert!(request.message.replace(number).is_none(), "a receive matches once");
        let capacity = request.capacity;
        if let Some(rts) = rts {
            let id = self.ends[end].machine.matched(source as u32, &rts, capacity);
            self.ends[end].receives.insert(id, receive);
            self.drain(end);
            return;
        }
        let total_bytes = message.total_bytes;
        if let Some(send_id) = send_id {
            self.ends[end].machine.matched_eager(source as u32, send_id);
            self.drain(end);
        }
        let received_bytes = total_bytes.min(capacity);
        for at in 0..received_bytes {
            self.buffers[receive][at as usize] = content(number, at);
        }
        let truncated = received_bytes < total_bytes;
        self.complete_receive(
            receive,
            Outcome::Ended(Ok(Received { total_bytes, received_bytes, truncated })),
        );
    }

    /// A receive is over: looks at every byte.
    pub(super) fn complete_receive(&mut self, receive: usize, outcome: Outcome) {
        let request = &self.receives[receive];
        let (room, guard) = self.buffers[receive].split_at(request.capacity as usize);
        assert!(guard.iter().all(|byte| *byte == GUARD_BYTE), "written past the end");
        match &outcome {
            Outcome::Ended(Ok(received)) => {
                let number = request.message.expect("what arrives has been matched");
                let message = &self.messages[number];
                self.tally.received += 1;
                self.tally.truncated += u64::from(received.truncated);
                assert_eq!(received.truncated, received.total_bytes > request.capacity);
                assert_eq!(received.received_bytes, received.total_bytes.min(request.capacity));
                if !self.is_hostile(message.from) {
                    assert_eq!(received.total_bytes, message.total_bytes);
                    let whole = Interval { start: 0, end: received.received_bytes };
                    let right = (whole.start..whole.end).all(|at| room[at as usize] == content(number, at));
                    assert!(right, "message {number} did not arrive whole");
                    assert!(room[whole.end as usize..].iter().all(|byte| *byte == 0xee), "more was written");
                }
            }
            Outcome::Ended(Err(TransferError::PeerDead)) => self.tally.peer_dead += 1,
            _ => {}
        }
        let before = self.receives[receive].result.replace(outcome);
        assert!(before.is_none(), "a receive completes once");
    }
}
