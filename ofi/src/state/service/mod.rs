//! What a peer is asked to do with its own memory, by message: atomic operations,
//! which it does under its domain's lock, one after the other; reads and writes where
//! nothing of this process reaches its memory; and to tell of a write.
//!
//! A request is a message in a space of its own, so that no receive of a user matches
//! it; its answer is one with a tag of its own, for which a receive is posted that
//! names the peer. So a peer that dies ends what it was asked for with an error. Both
//! are served by whoever makes progress, as messages are.
//!
//! Every enabled endpoint has [`ROOMS`] receives posted for requests. They are served
//! in the order in which they came. What no receive waits for is bounded by what the
//! engine lets peers send unexpected.

pub mod asked;
pub mod asking;
mod carrying;
pub mod errand;
mod serving;
pub mod wire;

use std::collections::{HashSet, VecDeque};

use lmt::{Label, PeerId, Reported, Space};

use super::in_order::InOrder;
use super::table::Table;
use crate::lend::Room;
use errand::SoftwareRma;

/// Requests and answers.
const SERVICE: Space = match Space::new(2) {
    Some(space) => space,
    None => Space::FIRST,
};
const _: () = assert!(SERVICE.index() == 2);

/// The tag of requests; that of an answer has the highest bit and its request's id.
const REQUEST_TAG: u64 = 0;
const ANSWER_BIT: u64 = 1 << 63;

/// Receives posted for requests.
const ROOMS: usize = 8;
/// The most requests of an endpoint that have no answer yet.
const MAX_ASKED: usize = 1024;
/// While so many answers wait for room no request is received: no peers that keep to
/// the number of requests above need more.
const MAX_LATE: usize = 16 << 10;

/// A request that has come, or what became of its receive.
#[derive(Debug)]
pub(super) struct Arrived {
    room: Room,
    result: Reported,
}

/// An answer that waits for room.
#[derive(Debug)]
struct Late {
    to: PeerId,
    label: Label,
    bytes: Vec<u8>,
}

/// An endpoint's part of it.
#[derive(Debug, Default)]
pub struct Service {
    /// Requests in the order in which they came.
    arrived: InOrder<Arrived>,
    /// Answers that are still to be sent.
    late: VecDeque<Late>,
    /// Rooms that receive no request while too many answers wait.
    resting: Vec<Room>,
    /// Requests without an answer.
    asked: usize,
    /// The id of the last of them.
    last_id: u64,
    /// Reads and writes that are done by messages, or whose end is to be told.
    errands: Table<SoftwareRma>,
    /// Those that wait until there is room for a request.
    stalled: Vec<usize>,
    /// Peers whose memory nothing here reaches.
    out_of_reach: HashSet<PeerId>,
}

impl Service {
    /// Whether there is something to do without any event.
    #[inline]
    pub(super) fn needs_polling(&self) -> bool {
        self.arrived.is_due() || !self.late.is_empty() || !self.stalled.is_empty()
    }

    /// No number of the address vector means this peer any more.
    pub(super) fn forget_peer(&mut self, peer: PeerId) {
        self.out_of_reach.remove(&peer);
    }
}
