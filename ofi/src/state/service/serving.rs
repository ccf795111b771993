//! The side that is asked.

use lmt::{Label, OperationError, PeerId, Reported, SendMode, Source, TagMatch, Wanted};

use super::super::Surroundings;
use super::super::completion::{Entry, Item};
use super::super::endpoint::Endpoint;
use super::super::finish::Outlet;
use super::super::ops::{Kind, Op};
use super::wire::{NoRequest, PIECE_BYTES, REQUEST_BYTES, Request, What};
use super::{ANSWER_BIT, Arrived, Late, MOST_LATE, REQUEST_TAG, ROOMS, SERVICE};
use crate::abi::{Errno, flags};
use crate::lend::{Owned, Room};
use crate::log::{self, Subsystem};

impl Endpoint {
    /// Begins to serve peers.
    ///
    /// # Errors
    /// The engine refuses a receive: this is a forked child.
    pub(in super::super) fn listen(&mut self, around: &mut Surroundings) -> Result<(), Errno> {
        (0..ROOMS).try_for_each(|_| self.listen_in(around, Room::new(REQUEST_BYTES)))
    }

    fn listen_in(&mut self, around: &mut Surroundings, mut room: Room) -> Result<(), Errno> {
        let tags = TagMatch { tag: REQUEST_TAG, ignore: 0 };
        let wanted = Wanted { space: SERVICE, tags };
        let request = self.begin_receive(Source::Any, wanted, room.for_a_receive()?)?;
        let ticket = self.service.arrived.enter();
        self.enter(around, Op::hidden(request, Kind::Serve { ticket, room }));
        Ok(())
    }

    /// A receive of a request has ended.
    pub(in super::super) fn arrived(&mut self, ticket: u64, room: Room, result: Reported) {
        self.service.arrived.end(ticket, Arrived { room, result });
    }

    /// Does what peers have asked for, and what has waited.
    #[cold]
    pub(in super::super) fn serve(&mut self, around: &mut Surroundings) {
        self.send_late(around);
        while self.takes_requests()
            && let Some(room) = self.service.resting.pop()
        {
            self.listen_again(around, room);
        }
        while let Some(Arrived { room, result }) = self.service.arrived.next() {
            match result.map_err(|error| *error) {
                Ok(status) => self.do_for(around, status.peer, room.received(status.bytes as usize)),
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
                self.listen_again(around, room);
            } else {
                self.service.resting.push(room);
            }
        }
        self.resume_stalled(around);
    }

    /// Whether answers find room, so that more requests are taken.
    fn takes_requests(&self) -> bool {
        self.service.late.len() < MOST_LATE
    }

    fn listen_again(&mut self, around: &mut Surroundings, room: Room) {
        if let Err(error) = self.listen_in(around, room) {
            log::warn(Subsystem::EpData, format_args!("peers cannot be served: {}", error.text()));
        }
    }

    fn do_for(&mut self, around: &mut Surroundings, peer: PeerId, message: &[u8]) {
        let mut answer = Vec::new();
        let (id, done) = match Request::read(message) {
            Ok((request, payload)) => (request.id, self.do_one(around, peer, &request, payload, &mut answer)),
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
        self.reply(around, Late { to: peer, label, bytes: answer });
    }

    fn do_one(
        &mut self,
        around: &mut Surroundings,
        peer: PeerId,
        request: &Request,
        payload: &[u8],
        answer: &mut Vec<u8>,
    ) -> Result<(), Errno> {
        let &Request { what, key, offset, count, rest_bytes, .. } = request;
        let count = count as usize;
        match what {
            What::Atomic(action) => around.exposed.atomic((action, count), (key, offset), payload, answer),
            What::Read if count > PIECE_BYTES => Err(Errno::MSGSIZE),
            What::Read => around.exposed.read(&mut around.touch, (key, offset), rest_bytes, count, answer),
            What::Write => around.exposed.write(&mut around.touch, (key, offset), rest_bytes, payload),
            What::Tell(data) => {
                let source = self.number_of(around, peer);
                self.tell_of_write(around, offset, data, source);
                Ok(())
            }
        }
    }

    /// A peer's write with a number has been done here.
    pub(super) fn tell_of_write(&self, around: &mut Surroundings, bytes: u64, data: u32, source: u64) {
        let flags = flags::RMA | flags::REMOTE_WRITE | flags::REMOTE_CQ_DATA;
        let (data, bytes) = (data.into(), bytes as usize);
        let entry = Entry { data, bytes, source, ..Entry::bare(0, flags) };
        self.push(around, Outlet::Receive, Item::Done(entry));
    }

    fn reply(&mut self, around: &mut Surroundings, late: Late) {
        if self.engine.inject(late.to, late.label, &late.bytes).is_some() {
            return;
        }
        // With any other error the peer is dead, and nobody waits.
        if let Err(Errno::AGAIN) = self.send_copy(around, late.to, late.label, &late.bytes, None) {
            self.service.late.push_back(late);
        }
    }

    /// Sends a copy of these bytes. If they are lost, `answer` says which operation
    /// waits in vain, by number and id.
    pub(super) fn send_copy(
        &mut self,
        around: &mut Surroundings,
        to: PeerId,
        label: Label,
        bytes: &[u8],
        answer: Option<(u64, u64)>,
    ) -> Result<(), Errno> {
        let (owned, buffer) = Owned::for_an_operation(bytes)?;
        let request = self.begin_send(to, label, buffer, SendMode::Standard)?;
        self.enter(around, Op::hidden(request, Kind::Service { owned, answer }));
        Ok(())
    }

    /// Tries the answers again that found no room; each peer's in turn, for one that
    /// takes nothing is not to hold up the others.
    fn send_late(&mut self, around: &mut Surroundings) {
        for _ in 0..self.service.late.len() {
            if let Some(late) = self.service.late.pop_front() {
                self.reply(around, late);
            }
        }
    }
}
