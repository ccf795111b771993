//! A request that has no answer yet, and what becomes of the answer.

use lmt::Direction;

use super::errand::Piece;
use crate::lend::{Kept, Room};

/// What an answer is awaited for.
#[derive(Debug)]
pub enum Awaited {
    /// An atomic operation that is told of, if it has a context.
    Atomic {
        /// Whether it counts as a read or a write.
        direction: Direction,
        /// Whether anybody knows its context.
        has_context: bool,
        /// Where what was there goes.
        result: Kept,
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
    pub(super) answer_bytes: u64,
    /// Where they come to, if there are any: from there they go to the caller's memory,
    /// which may be no memory any more.
    pub(super) room: Option<Room>,
}

impl Asked {
    /// One that is still to be given its id.
    pub(super) fn new(awaited: Awaited, answer_bytes: u64) -> Self {
        let room = (answer_bytes > 0).then(|| Room::new(answer_bytes as usize));
        Self { id: 0, awaited, answer_bytes, room }
    }

    /// What the answer has brought, when it has ended.
    pub(super) fn answer(&self) -> &[u8] {
        self.room.as_ref().map_or(&[], |room| room.received(self.answer_bytes as usize))
    }
}
