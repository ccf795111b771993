//! What a mechanism needs to let a peer copy: where a message's memory is, and a
//! lease for as long as the peer may touch it.

use std::sync::Arc;

use super::arena::Arena;
use super::buffer::SharedBuffer;
use super::registry;
use super::registry::{BlockName, Registry};
use crate::base::process::PeerProcess;
use crate::memory::buffer::Buffer;
use crate::vocabulary::transfer::Interval;

/// Whether all of a message's memory is in shared buffers.
#[inline]
pub fn is_shared(data: &Buffer) -> bool {
    registry::existing().is_some_and(|registry| is_shared_in(registry, data))
}

fn is_shared_in(registry: &Registry, data: &Buffer) -> bool {
    let pieces = data.segments().iter().filter(|s| s.bytes > 0);
    data.total_bytes() > 0 && pieces.into_iter().all(|s| registry.has(s.address, s.bytes))
}

/// The arena of this process that has this number.
pub fn arena(id: u32) -> Option<Arc<Arena>> {
    registry::existing()?.arena(id)
}

/// How many arenas this process has given up: when it has changed, peers may be
/// told of those that are no more.
#[inline]
pub fn given_up() -> u32 {
    registry::existing().map_or(0, Registry::given_up)
}

/// Why memory cannot be offered.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OfferError {
    /// It is not, or not all of it, in shared buffers.
    #[error("the message is not in memory from lmt::alloc")]
    NotShared,
    /// Its pieces are in different arenas.
    #[error("the message's pieces are in buffers of different arenas; take them from one buffer")]
    Apart,
    /// The arena has no lease left.
    #[error("as many messages from buffers of one arena are in flight as there can be (1024)")]
    TooMany,
}

/// A piece of an offered message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Part {
    /// Where it begins, in the arena.
    pub offset: u64,
    /// How many bytes.
    pub bytes: u64,
}

/// A part of a message's memory, lent to a peer that may map it. Dropped, the
/// lease ends: a peer that has not begun never will, and from one that has, the
/// memory is kept until it is done or dead.
#[derive(Debug)]
pub struct Offer {
    arena: Arc<Arena>,
    lease: (u32, u32),
    /// The blocks that it is about; usually one.
    blocks: Blocks,
    process: Arc<PeerProcess>,
}

#[derive(Debug)]
enum Blocks {
    One([BlockName; 1]),
    Many(Vec<BlockName>),
}

impl Offer {
    /// Offers the part `interval` of a message's memory to a process; `parts` is
    /// told of its pieces, in order.
    ///
    /// # Errors
    /// [`OfferError`]: it cannot be mapped as one.
    pub fn new(
        data: &Buffer,
        interval: Interval,
        process: &Arc<PeerProcess>,
        mut parts: impl FnMut(Part),
    ) -> Result<Self, OfferError> {
        let registry = registry::existing().ok_or(OfferError::NotShared)?;
        let mut pieces = data.pieces(interval.start..interval.end);
        if let (Some(piece), None) = (pieces.next(), pieces.next()) {
            let found = registry.find_with_lease(piece.address, piece.bytes);
            let (place, lease) = found.ok_or(OfferError::NotShared)?;
            parts(Part { offset: place.offset as u64, bytes: piece.bytes as u64 });
            let (lease, blocks) = (lease.ok_or(OfferError::TooMany)?, Blocks::One([place.block]));
            return Ok(Self { arena: place.arena, lease, blocks, process: Arc::clone(process) });
        }
        let mut found: Option<(Arc<Arena>, Blocks)> = None;
        for piece in data.pieces(interval.start..interval.end) {
            let place = registry.find(piece.address, piece.bytes).ok_or(OfferError::NotShared)?;
            parts(Part { offset: place.offset as u64, bytes: piece.bytes as u64 });
            match &mut found {
                None => found = Some((place.arena, Blocks::One([place.block]))),
                Some((arena, _)) if arena.id() != place.arena.id() => return Err(OfferError::Apart),
                Some((_, blocks)) => blocks.add(place.block),
            }
        }
        let (arena, blocks) = found.ok_or(OfferError::NotShared)?;
        let lease = registry.open_lease(&arena).ok_or(OfferError::TooMany)?;
        Ok(Self { arena, lease, blocks, process: Arc::clone(process) })
    }

    /// Lets the lease hold for another buffer, too: what the peer reads to find
    /// the message's pieces.
    pub fn include(&mut self, buffer: &SharedBuffer) {
        self.blocks.add(buffer.block());
    }

    /// Where the memory is.
    pub const fn arena(&self) -> &Arc<Arena> {
        &self.arena
    }

    /// The line of the lease, for [`super::lease_in`].
    pub const fn line(&self) -> u32 {
        self.lease.0
    }

    /// Which lease of that line.
    pub const fn generation(&self) -> u32 {
        self.lease.1
    }
}

impl Blocks {
    fn add(&mut self, block: BlockName) {
        match self {
            Self::One([one]) if *one == block => {}
            Self::One([one]) => *self = Self::Many(vec![*one, block]),
            // Pieces of a list come in order of the message, mostly of memory.
            Self::Many(blocks) if blocks.last() == Some(&block) => {}
            Self::Many(blocks) => blocks.push(block),
        }
    }

    fn as_slice(&self) -> &[BlockName] {
        match self {
            Self::One(one) => one,
            Self::Many(blocks) => blocks,
        }
    }
}

impl Drop for Offer {
    fn drop(&mut self) {
        if let Some(registry) = registry::existing().filter(|_| self.arena.is_usable_here()) {
            registry.end_lease(&self.arena, self.lease, self.blocks.as_slice(), &self.process);
        }
    }
}
