//! The side that is asked.

use lmt::{Label, OperationError, PeerId, Reported, SendMode, Source, TagMatch, Wanted};

use super::super::SharedState;
use super::super::completion::{CompletionTarget, Entry, Item};
use super::super::endpoint::Endpoint;
use super::super::ops::{Kind, Op};
use super::wire::{NoRequest, PIECE_BYTES, REQUEST_BYTES, Request, What};
use super::{ANSWER_BIT, Arrived, Late, MAX_LATE, REQUEST_TAG, ROOMS, SERVICE};
use crate::abi::{Errno, flags};
use crate::lend::{Owned, Room};
use crate::log::{self, Subsystem};

impl Endpoint {
    /// Begins to serve peers.
    ///
    /// # Errors
    /// The engine refuses a receive: this is a forked child.
    pub(in super::super) fn listen(&mut self, shared_state: &mut SharedState) -> Result<(), Errno> {
        (0..ROOMS).try_for_each(|_| self.listen_in(shared_state, Room::new(REQUEST_BYTES)))
    }

    fn listen_in(&mut self, shared_state: &mut SharedState, mut room: Room) -> Result<(), Errno> {
        let tags = TagMatch { tag: REQUEST_TAG, ignore: 0 };
        let wanted = Wanted { space: SERVICE, tags };
        let request = self.begin_receive(Source::Any, wanted, room.for_a_receive()?)?;
        let ticket = self.service.arrived.enter();
        self.enter(shared_state, Op::hidden(request, Kind::Serve { ticket, room }));
        Ok(())
    }

    /// A receive of a request has ended.
    pub(in super::super) fn arrived(&mut self, ticket: u64, room: Room, result: Reported) {
        self.service.arrived.end(ticket, Arrived { room, result });
    }

    /// Does what peers have asked for, and what has waited.
    #[cold]
    pub(in super::super) fn serve(&mut self, shared_state: &mut SharedState) {
        self.send_late(shared_state);
        while self.takes_requests()
            && let Some(room) = self.service.resting.pop()
        {
            self.listen_again(shared_state, room);
        }
        while let Some(Arrived { room, result }) = self.service.arrived.next() {
            match result.map_err(|error| *error) {
                Ok(status) => self.do_for(shared_state, status.peer, room.received(status.bytes as usize)),
                Err(OperationError::Truncated { .. }) => {
                    log::warn(Subsystem::EpData, format_args!("a peer's request is too long; it is ignored"));
                }
                // Taken back, or this is a forked child: nothing can be received.
                Err(OperationError::Cancelled | OperationError::Forked) => continue,
                // Its sender has died, say. The room is for the others' requests.
                Err(error) => {
                    log::warn(
                        Subsystem::EpData,
                        format_args!("a peer's request has not come whole: {error}"),
                    );
                }
            }
            if self.takes_requests() {
                self.listen_again(shared_state, room);
            } else {
                self.service.resting.push(room);
            }
        }
        self.resume_stalled(shared_state);
    }

    /// Whether answers find room, so that more requests are taken.
    fn takes_requests(&self) -> bool {
        self.service.late.len() < MAX_LATE
    }

    fn listen_again(&mut self, shared_state: &mut SharedState, room: Room) {
        if let Err(error) = self.listen_in(shared_state, room) {
            log::warn(Subsystem::EpData, format_args!("peers cannot be served: {}", error.text()));
        }
    }

    fn do_for(&mut self, shared_state: &mut SharedState, peer: PeerId, message: &[u8]) {
        let mut answer = Vec::new();
        let (id, done) = match Request::read(message) {
            Ok((request, payload)) => {
                (request.id, self.do_one(shared_state, peer, &request, payload, &mut answer))
            }
            Err(NoRequest { id: Some(id), error }) => (id, Err(error)),
            Err(NoRequest { id: None, .. }) => {
                log::warn(Subsystem::EpData, format_args!("a peer's request is none; it is ignored"));
                return;
            }
        };
        if done.is_err() {
            answer.clear();
        }
        let error = done.err().map_or(0, |error| error.0 as u32);
        let label = Label { tag: ANSWER_BIT | id, space: SERVICE, immediate: Some(error) };
        self.reply(shared_state, Late { to: peer, label, bytes: answer });
    }

    fn do_one(
        &mut self,
        shared_state: &mut SharedState,
        peer: PeerId,
        request: &Request,
        payload: &[u8],
        answer: &mut Vec<u8>,
    ) -> Result<(), Errno> {
        let &Request { what, key, offset, count, rest_bytes, .. } = request;
        let count = count as usize;
        match what {
            What::Atomic(action) => {
                shared_state.exposed.atomic((action, count), (key, offset), payload, answer)
            }
            What::Read if count > PIECE_BYTES => Err(Errno::MSGSIZE),
            What::Read => {
                shared_state.exposed.read(&mut shared_state.touch, (key, offset), rest_bytes, count, answer)
            }
            What::Write => {
                shared_state.exposed.write(&mut shared_state.touch, (key, offset), rest_bytes, payload)
            }
            What::Tell(data) => {
                let source = self.number_of(shared_state, peer);
                self.tell_of_write(shared_state, offset, data, source);
                Ok(())
            }
        }
    }

    /// A peer's write with a number has been done here.
    pub(super) fn tell_of_write(&self, shared_state: &mut SharedState, bytes: u64, data: u32, source: u64) {
        let flags = flags::RMA | flags::REMOTE_WRITE | flags::REMOTE_CQ_DATA;
        let (data, bytes) = (data.into(), bytes as usize);
        let entry = Entry { data, bytes, source, ..Entry::bare(0, flags) };
        self.push(shared_state, CompletionTarget::Receive, Item::Done(entry));
    }

    fn reply(&mut self, shared_state: &mut SharedState, late: Late) {
        if self.engine.inject(late.to, late.label, &late.bytes) {
            return;
        }
        // With any other error the peer is dead, and nobody waits.
        if let Err(Errno::AGAIN) = self.send_copy(shared_state, late.to, late.label, &late.bytes, None) {
            self.service.late.push_back(late);
        }
    }

    /// Sends a copy of these bytes. If they are lost, `answer` says which operation
    /// waits in vain, by number and id.
    pub(super) fn send_copy(
        &mut self,
        shared_state: &mut SharedState,
        to: PeerId,
        label: Label,
        bytes: &[u8],
        answer: Option<(u64, u64)>,
    ) -> Result<(), Errno> {
        let (owned, buffer) = Owned::for_an_operation(bytes)?;
        let request = self.begin_send(to, label, buffer, SendMode::Standard)?;
        self.enter(shared_state, Op::hidden(request, Kind::Service { owned, answer }));
        Ok(())
    }

    /// Tries the answers again that found no room; each peer's in turn, for one that
    /// takes nothing is not to hold up the others.
    fn send_late(&mut self, shared_state: &mut SharedState) {
        for _ in 0..self.service.late.len() {
            if let Some(late) = self.service.late.pop_front() {
                self.reply(shared_state, late);
            }
        }
    }
}
