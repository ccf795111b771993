//! The side that asks.

use lmt::buffer::{Access, Buffer};
use lmt::{Direction, Label, PeerId, Reported, Source, TagMatch, Wanted};

use super::super::SharedState;
use super::super::completion::{CompletionTarget, Entry};
use super::super::endpoint::Endpoint;
use super::super::ops::{Kind, Op, token_of};
use super::asked::{Asked, Awaited};
use super::wire::{HEAD_BYTES, Request, What};
use super::{ANSWER_BIT, MAX_ASKED, REQUEST_TAG, SERVICE};
use crate::abi::{Errno, FiAddr, flags};
use crate::atomic::Action;
use crate::lend::Kept;
use crate::log::{self, Subsystem};
use crate::refuse;

/// An atomic operation on a peer's memory.
#[derive(Debug)]
pub struct Atomic {
    /// What, on which elements.
    pub action: Action,
    /// How many.
    pub count: usize,
    /// Whose memory.
    pub peer: FiAddr,
    /// Which region.
    pub key: u64,
    /// Where in it, in bytes.
    pub offset: u64,
    /// The operands, and what is compared.
    pub operands: [Kept; 2],
    /// Where what was there goes; empty if it does not.
    pub result: Kept,
    /// What its completion hands back; none if its end is told to nobody.
    pub context: Option<usize>,
    /// Whether its good end is told.
    pub reports: bool,
}

impl Atomic {
    const fn direction(&self) -> Direction {
        if self.action.fetches() { Direction::Get } else { Direction::Put }
    }

    const fn flags(&self) -> u64 {
        match self.direction() {
            Direction::Get => flags::ATOMIC | flags::READ,
            Direction::Put => flags::ATOMIC | flags::WRITE,
        }
    }

    /// A request's message, whose head is still to be written.
    ///
    /// # Errors
    /// As [`Kept::read`].
    fn message(&self, shared_state: &mut SharedState) -> Result<Vec<u8>, Errno> {
        let bytes = self.operands.each_ref().map(|one| one.total_bytes() as usize);
        let mut message = vec![0; HEAD_BYTES + bytes[0] + bytes[1]];
        let (first, second) = message[HEAD_BYTES..].split_at_mut(bytes[0]);
        self.operands[0].read(&mut shared_state.touch, 0, first)?;
        self.operands[1].read(&mut shared_state.touch, 0, second)?;
        Ok(message)
    }
}

impl Endpoint {
    /// Whether this number of the address vector means this endpoint itself.
    pub(super) fn is_self(&self, shared_state: &SharedState, number: FiAddr) -> bool {
        let vector = self.vector_of(shared_state);
        let place = vector.and_then(|vector| vector.place(number));
        place.is_some_and(|place| place.address.id() == self.engine.id())
    }

    /// Begins an atomic operation. Operands that cannot be read are told as its end.
    ///
    /// # Errors
    /// [`Errno::AGAIN`]: too much is in flight; [`Errno::MSGSIZE`]: too many elements;
    /// [`Errno::INVAL`]: none, or the operands or the result do not fit them, or the
    /// peer is unknown.
    pub fn atomic(&mut self, shared_state: &mut SharedState, atomic: Atomic) -> Result<(), Errno> {
        let (action, count) = (atomic.action, atomic.count);
        let bytes = count * action.datatype.bytes();
        let answer_bytes = if action.fetches() { bytes as u64 } else { 0 };
        if count > action.most() {
            return Err(Errno::MSGSIZE);
        }
        let operand_bytes: u64 = atomic.operands.iter().map(Kept::total_bytes).sum();
        if count == 0
            || operand_bytes != (bytes * action.operands()) as u64
            || atomic.result.total_bytes() != answer_bytes
        {
            return Err(Errno::INVAL);
        }
        let peer = self.peer(shared_state, atomic.peer)?;
        let mut message = match atomic.message(shared_state) {
            Ok(message) if self.is_self(shared_state, atomic.peer) => {
                let done = atomic_here(shared_state, &atomic, &message[HEAD_BYTES..]);
                self.atomic_done(shared_state, &atomic, done);
                return Ok(());
            }
            Ok(message) => message,
            Err(error) => {
                self.atomic_done(shared_state, &atomic, Err(error));
                return Ok(());
            }
        };
        let (direction, op_flags) = (atomic.direction(), atomic.flags());
        let Atomic { key, offset, result, context, reports, .. } = atomic;
        let what = What::Atomic(action);
        let request = Request { what, id: 0, key, offset, count: count as u32, rest_bytes: 0 };
        let awaited = Awaited::Atomic { direction, has_context: context.is_some(), result };
        let asked = Asked::new(awaited, answer_bytes);
        let told = Told { context: context.unwrap_or_default(), flags: op_flags, reports };
        self.ask(shared_state, peer, request, &mut message, asked, told)
    }

    /// Tells of an atomic operation that nobody was asked for.
    fn atomic_done(&mut self, shared_state: &mut SharedState, atomic: &Atomic, done: Result<(), Errno>) {
        let entry = Entry::bare(atomic.context.unwrap_or_default(), atomic.flags());
        let outlet = CompletionTarget::Remote(atomic.direction());
        self.settle(shared_state, outlet, entry, atomic.reports, atomic.context.is_some(), done);
    }

    /// Whether one more request may be without an answer.
    ///
    /// # Errors
    /// [`Errno::AGAIN`]: too many are.
    pub(super) const fn check_room(&self) -> Result<(), Errno> {
        if self.service.asked < MAX_ASKED { Ok(()) } else { Err(Errno::AGAIN) }
    }

    /// Sends a request, whose head is written to the beginning of `message`, and
    /// receives its answer.
    pub(super) fn ask(
        &mut self,
        shared_state: &mut SharedState,
        peer: PeerId,
        mut request: Request,
        message: &mut [u8],
        mut asked: Asked,
        told: Told,
    ) -> Result<(), Errno> {
        self.check_room()?;
        let id = (self.service.last_id + 1) & !ANSWER_BIT;
        (request.id, asked.id) = (id, id);
        message.get_mut(..HEAD_BYTES).ok_or(Errno::INVAL)?.copy_from_slice(&request.to_head());
        let answer = match &mut asked.room {
            Some(room) => room.for_a_receive()?,
            None => Buffer::empty(Access::Write),
        };
        // The answer's receive first: who is dead is refused before anything leaves.
        let tags = TagMatch { tag: ANSWER_BIT | id, ignore: 0 };
        let receive = self.begin_receive(Source::Peer(peer), Wanted { space: SERVICE, tags }, answer)?;
        let Told { context, flags, reports } = told;
        let number =
            self.ops.insert(Op { context, flags, reports, request: receive, kind: Kind::Asked(asked) });
        let label = Label { tag: REQUEST_TAG, space: SERVICE, immediate: None };
        let sent = if self.engine.inject(peer, label, message) {
            Ok(())
        } else {
            self.send_copy(shared_state, peer, label, message, Some((number, id)))
        };
        if let Err(error) = sent {
            let op = self.ops.remove(number);
            // Nobody is told of its end, as of no request's that was never reported.
            let _taken = self.engine.cancel(receive);
            if self.engine.report(receive, token_of(u64::MAX)).is_none() {
                // A peer has answered what it was not asked: the answer's room stays.
                let _kept = std::mem::ManuallyDrop::new(op);
            }
            return Err(error);
        }
        self.service.last_id = id;
        self.service.asked += 1;
        if let Some(result) = self.engine.report(receive, token_of(number))
            && let Some(op) = self.ops.remove(number)
        {
            self.ended(shared_state, op, result);
        }
        Ok(())
    }

    /// A request could not be sent after all: its answer will not come.
    pub(in super::super) fn request_lost(&mut self, answer: Option<(u64, u64)>) {
        let Some((number, id)) = answer else { return };
        if let Some(Op { kind: Kind::Asked(asked), request, .. }) = self.ops.get(number)
            && asked.id == id
        {
            // Its end is told as that of a receive that was taken back.
            let _cancelled = self.engine.cancel(*request);
        }
    }

    /// The receive of an answer has ended.
    pub(in super::super) fn answered(
        &mut self,
        shared_state: &mut SharedState,
        entry: Entry,
        reports: bool,
        asked: &Asked,
        result: Reported,
    ) {
        self.service.asked = self.service.asked.saturating_sub(1);
        let done = match result {
            Ok(status) => match status.immediate {
                Some(0) if status.bytes == asked.answer_bytes => Ok(()),
                Some(error @ 1..=4095) => Err(Errno(error as i32)),
                _ => Err(Errno::IO),
            },
            Err(error) => {
                log::warn(Subsystem::EpData, format_args!("a peer gives no answer: {error}"));
                Err(refuse::errno_of(&error))
            }
        };
        match &asked.awaited {
            Awaited::Atomic { direction, has_context, result } => {
                let done = done.and_then(|()| result.write(&mut shared_state.touch, 0, asked.answer()));
                self.settle(
                    shared_state,
                    CompletionTarget::Remote(*direction),
                    entry,
                    reports,
                    *has_context,
                    done,
                );
            }
            Awaited::Piece(piece) => self.piece_done(shared_state, piece, asked.answer(), done),
        }
    }
}

/// Does an atomic operation on memory of this endpoint's own domain.
fn atomic_here(shared_state: &mut SharedState, atomic: &Atomic, operands: &[u8]) -> Result<(), Errno> {
    let &Atomic { action, count, key, offset, .. } = atomic;
    let mut old = Vec::new();
    shared_state.exposed.atomic((action, count), (key, offset), operands, &mut old)?;
    atomic.result.write(&mut shared_state.touch, 0, &old)
}

/// What is to be told of an operation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Told {
    pub context: usize,
    pub flags: u64,
    pub reports: bool,
}
