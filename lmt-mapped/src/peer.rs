//! What is kept for a peer, and for a transfer.

use std::collections::VecDeque;
use std::sync::Arc;

use lmt_core::cursor::Cursor;
use lmt_core::mechanism::{Hello, Plan};
use lmt_core::process::PeerProcess;
use lmt_core::shared_buffer;

use crate::cookie::{Described, Offered};
use crate::news::MappingMessage;
use crate::sys::{Mapping, Piece};

/// A peer that could not map an arena is asked again after so many messages.
const RETRY_REFUSED_AFTER: u32 = 4096;

/// A peer, with what the two have told each other.
#[derive(Debug)]
pub struct MappedPeer {
    /// Names it in the cache of mappings.
    pub(crate) number: u64,
    /// Its process.
    pub(crate) process: Arc<PeerProcess>,
    news: VecDeque<MappingMessage>,
    /// Arenas of this process whose descriptors it was given.
    told: Vec<u32>,
    /// Arenas of this process that it could not map, and for how many more
    /// messages that is believed.
    refused: Vec<(u32, u32)>,
    /// [`shared_buffer::given_up`] when `told` was last looked through.
    given_up: u32,
    /// Its arenas that it was asked for.
    pub(crate) wanted: Vec<u32>,
    /// Its arenas that could not be mapped, or are no more; one failed transfer
    /// each tells of it.
    pub(crate) failed: Vec<(u32, String)>,
}

impl MappedPeer {
    pub(crate) fn new(number: u64, process: Arc<PeerProcess>) -> Self {
        Self {
            number,
            process,
            news: VecDeque::new(),
            told: Vec::new(),
            refused: Vec::new(),
            given_up: shared_buffer::given_up(),
            wanted: Vec::new(),
            failed: Vec::new(),
        }
    }

    pub(crate) fn oob_message(&mut self) -> Option<Hello> {
        self.news.pop_front().map(MappingMessage::encode)
    }

    pub(crate) fn tell(&mut self, news: MappingMessage) {
        self.news.push_back(news);
    }

    /// Sees to it that the peer has, or gets, the descriptor of an arena.
    /// Returns false where it could not map it.
    pub(crate) fn introduce(&mut self, id: u32) -> bool {
        self.announce_removed_arenas();
        if let Some(at) = self.refused.iter().position(|(refused, _)| *refused == id) {
            self.refused[at].1 -= 1;
            if self.refused[at].1 > 0 {
                return false;
            }
            self.refused.swap_remove(at);
            self.told.retain(|told| *told != id);
        }
        if !self.told.contains(&id) {
            self.told.push(id);
            self.hand_over(id, shared_buffer::arena(id).as_deref());
        }
        true
    }

    /// Sends an arena's descriptor; or none, where there is none to send.
    fn hand_over(&mut self, id: u32, arena: Option<&shared_buffer::Arena>) {
        let descriptor = arena.and_then(|arena| arena.descriptor().ok());
        self.tell(MappingMessage::Arena(id, descriptor));
    }

    /// The peer need not keep the mappings of arenas that are no more.
    fn announce_removed_arenas(&mut self) {
        let given_up = shared_buffer::given_up();
        if std::mem::replace(&mut self.given_up, given_up) == given_up {
            return;
        }
        let Self { told, news, refused, .. } = self;
        told.retain(|id| {
            let is_there = shared_buffer::arena(*id).is_some();
            if !is_there {
                news.push_back(MappingMessage::Gone(*id));
            }
            is_there
        });
        refused.retain(|(id, _)| told.contains(id));
    }

    /// The peer asks for an arena again.
    pub(crate) fn answer(&mut self, id: u32) {
        // Only those that it was told of are its business.
        if !self.told.contains(&id) {
            return self.tell(MappingMessage::Gone(id));
        }
        match shared_buffer::arena(id) {
            Some(arena) => self.hand_over(id, Some(&arena)),
            None => self.tell(MappingMessage::Gone(id)),
        }
    }

    /// The peer could not map an arena of this process.
    pub(crate) fn note_unmappable(&mut self, id: u32) {
        if self.told.contains(&id) && !self.refused.iter().any(|(refused, _)| *refused == id) {
            self.refused.push((id, RETRY_REFUSED_AFTER));
        }
    }

    /// Notes why an arena of the peer is not to be had.
    pub(crate) fn fail(&mut self, id: u32, why: String) {
        self.wanted.retain(|wanted| *wanted != id);
        self.failed.retain(|(failed, _)| *failed != id);
        // As many as an honest peer has transfers for; the oldest are stale.
        if self.failed.len() >= 64 {
            self.failed.remove(0);
        }
        self.failed.push((id, why));
    }
}

/// A transfer in flight.
#[derive(Debug)]
pub struct MappedTransfer {
    pub(crate) plan: Plan,
    pub(crate) left_bytes: u64,
    pub(crate) far: RemoteMemory,
    /// This end's memory, if the other may copy it.
    pub(crate) _offered: Option<Offered>,
}

impl MappedTransfer {
    /// One of which nothing is known yet.
    pub(crate) const fn new(plan: Plan) -> Self {
        Self { plan, left_bytes: 0, far: RemoteMemory::Unknown, _offered: None }
    }
}

/// Held by each transfer that waits for a mapping: by their number it is known
/// whether one that comes late is still waited for.
pub(crate) type PendingMapping = Arc<()>;

/// The other end's memory.
#[derive(Debug)]
pub(crate) enum RemoteMemory {
    /// Not known, or not this end's business.
    Unknown,
    /// The mappings that it needs are waited for.
    AwaitingMapping { described: Described, _looker: PendingMapping },
    /// It is mapped.
    Found(Found),
}

/// The other end's memory, mapped. Dropped, this end copies nothing any more,
/// and the other may have it back.
#[derive(Debug)]
pub(crate) struct Found {
    pub mapping: Arc<Mapping>,
    /// The line and the generation of the lease, where there is one.
    pub lease: Option<(u32, u32)>,
    pub pieces: Pieces,
    /// The offset in the message at which the pieces begin.
    pub start: u64,
    pub local_at: Cursor,
    pub remote_at: Cursor,
}

/// Mostly one, which needs no list in the heap.
#[derive(Debug)]
pub(crate) enum Pieces {
    One([Piece; 1]),
    Many(Vec<Piece>),
}

impl Pieces {
    pub fn as_slice(&self) -> &[Piece] {
        match self {
            Self::One(one) => one,
            Self::Many(many) => many,
        }
    }
}

impl Drop for Found {
    fn drop(&mut self) {
        // In a forked child there is no lease here, and the parent's goes on.
        if let Some((line, generation)) = self.lease
            && let Some(lease) = self.mapping.lease(line)
        {
            lease.done(generation);
        }
    }
}
