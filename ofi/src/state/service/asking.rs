//! The side that asks.

use lmt::buffer::Buffer;
use lmt::{Direction, Label, PeerId, Reported, Source, TagMatch, Wanted};

use super::super::Surroundings;
use super::super::completion::Entry;
use super::super::endpoint::Endpoint;
use super::super::finish::Outlet;
use super::super::ops::{Kind, Op};
use super::wire::{HEAD_BYTES, Request, What};
use super::{ANSWER_BIT, MOST_ASKED, Piece, REQUEST_TAG, SERVICE};
use crate::abi::{Errno, FiAddr, flags};
use crate::atomic::Action;
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
    /// The operands behind [`HEAD_BYTES`] of anything.
    pub message: Vec<u8>,
    /// Where what was there goes; empty if it does not.
    pub result: Buffer,
    /// What its completion hands back; none if its end is told to nobody.
    pub context: Option<usize>,
    /// Whether its good end is told.
    pub reports: bool,
}

/// What an answer is awaited for.
#[derive(Debug)]
pub enum Awaited {
    /// An atomic operation that is told of, if it has a context.
    Atomic {
        /// Whether it counts as a read or a write.
        direction: Direction,
        /// Whether anybody knows its context.
        has_context: bool,
    },
    /// A piece of an errand, or that its end is told.
    Piece(Piece),
}

/// A request without an answer.
#[derive(Debug)]
pub struct Asked {
    /// By which the answer names it.
    pub id: u64,
    /// What becomes of it.
    pub awaited: Awaited,
    /// How many bytes the answer is to bring.
    pub answer_bytes: u64,
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
}

impl Endpoint {
    /// Whether this number of the address vector means this endpoint itself.
    pub(super) fn is_self(&self, around: &Surroundings, number: FiAddr) -> bool {
        let vector = self.vector_of(around);
        let place = vector.and_then(|vector| vector.place(number));
        place.is_some_and(|place| place.address.id() == self.engine.id())
    }

    /// Begins an atomic operation.
    ///
    /// # Errors
    /// [`Errno::AGAIN`]: too much is under way; [`Errno::MSGSIZE`]: too many elements;
    /// [`Errno::INVAL`]: none, or the operands or the result do not fit them, or the
    /// peer is unknown.
    pub fn atomic(&mut self, around: &mut Surroundings, mut atomic: Atomic) -> Result<(), Errno> {
        let (action, count) = (atomic.action, atomic.count);
        let bytes = count * action.datatype.bytes();
        let answer_bytes = if action.fetches() { bytes as u64 } else { 0 };
        if count > action.most() {
            return Err(Errno::MSGSIZE);
        }
        let operand_bytes = atomic.message.len().saturating_sub(HEAD_BYTES);
        if count == 0
            || operand_bytes != bytes * action.operands()
            || atomic.result.total_bytes() != answer_bytes
        {
            return Err(Errno::INVAL);
        }
        if self.is_self(around, atomic.peer) {
            self.atomic_here(around, &mut atomic);
            return Ok(());
        }
        let peer = self.peer(around, atomic.peer)?;
        let (direction, op_flags) = (atomic.direction(), atomic.flags());
        let Atomic { key, offset, mut message, result, context, reports, .. } = atomic;
        let what = What::Atomic(action);
        let request = Request { what, id: 0, key, offset, count: count as u32, rest_bytes: 0 };
        let awaited = Awaited::Atomic { direction, has_context: context.is_some() };
        let asked = Asked { id: 0, awaited, answer_bytes };
        let told = Told { context: context.unwrap_or_default(), flags: op_flags, reports };
        self.ask(around, peer, request, &mut message, result, asked, told)
    }

    /// The same on memory of this endpoint's own domain.
    fn atomic_here(&mut self, around: &mut Surroundings, atomic: &mut Atomic) {
        let (direction, flags) = (atomic.direction(), atomic.flags());
        let Atomic { action, count, key, offset, message, result, context, reports, .. } = atomic;
        let mut old = Vec::new();
        let operands = message.get(HEAD_BYTES..).unwrap_or_default();
        let done =
            around.exposed.atomic(&mut around.touch, (*action, *count), (*key, *offset), operands, &mut old);
        result.write_at(0, &old);
        let entry = Entry::bare(context.unwrap_or_default(), flags);
        self.settle(around, Outlet::Remote(direction), entry, *reports, context.is_some(), done);
    }

    /// Whether one more request may be without an answer.
    ///
    /// # Errors
    /// [`Errno::AGAIN`]: too many are.
    pub(super) const fn check_room(&self) -> Result<(), Errno> {
        if self.service.asked < MOST_ASKED { Ok(()) } else { Err(Errno::AGAIN) }
    }

    /// Sends a request, whose head is written to the beginning of `message`, and
    /// receives its answer in `answer`.
    #[expect(clippy::too_many_arguments, reason = "each is of another kind, and there are three callers")]
    pub(super) fn ask(
        &mut self,
        around: &mut Surroundings,
        peer: PeerId,
        mut request: Request,
        message: &mut [u8],
        answer: Buffer,
        mut asked: Asked,
        told: Told,
    ) -> Result<(), Errno> {
        self.check_room()?;
        let id = (self.service.last_id + 1) & !ANSWER_BIT;
        (request.id, asked.id) = (id, id);
        message.get_mut(..HEAD_BYTES).ok_or(Errno::INVAL)?.copy_from_slice(&request.to_head());
        // The answer's receive first: who is dead is refused before anything leaves.
        let tags = TagMatch { tag: ANSWER_BIT | id, ignore: 0 };
        let receive = self.begin_receive(Source::Peer(peer), Wanted { space: SERVICE, tags }, answer)?;
        let Told { context, flags, reports } = told;
        let number =
            self.ops.insert(Op { context, flags, reports, request: receive, kind: Kind::Asked(asked) });
        let label = Label { tag: REQUEST_TAG, space: SERVICE, immediate: None };
        let sent = match self.engine.send_directly(peer, label, message) {
            Some(_) => Ok(()),
            None => self.send_copy(around, peer, label, message, Some((number, id))),
        };
        if let Err(error) = sent {
            let op = self.ops.remove(number);
            // Nobody is told of its end, as of no request's that was never reported.
            let _taken = self.engine.cancel(receive);
            if self.engine.report(receive, u64::MAX).is_none() {
                // A peer has answered what it was not asked: the answer's room stays.
                let _kept = std::mem::ManuallyDrop::new(op);
            }
            return Err(error);
        }
        self.service.last_id = id;
        self.service.asked += 1;
        if let Some(result) = self.engine.report(receive, number)
            && let Some(op) = self.ops.remove(number)
        {
            self.ended(around, op, result);
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
        around: &mut Surroundings,
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
            &Awaited::Atomic { direction, has_context } => {
                self.settle(around, Outlet::Remote(direction), entry, reports, has_context, done);
            }
            Awaited::Piece(piece) => self.piece_done(around, piece, asked.answer_bytes, done),
        }
    }
}

/// What is to be told of an operation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Told {
    pub context: usize,
    pub flags: u64,
    pub reports: bool,
}
