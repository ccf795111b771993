//! A read or a write of a peer's memory, and its pieces where it goes by messages.

use lmt::buffer::Buffer;
use lmt::{Direction, PeerId};

use super::super::SharedState;
use super::wire::PIECE_BYTES;
use crate::abi::{Errno, FiAddr, flags};
use crate::lend::{Kept, Owned};

/// A read or a write.
#[derive(Clone, Copy, Debug)]
pub struct Remote {
    /// Whose memory.
    pub peer: FiAddr,
    /// Which region.
    pub key: u64,
    /// Where in it, in bytes.
    pub offset: u64,
    /// What its completion hands back; none if its end is told to nobody.
    pub context: Option<usize>,
    /// Whether its good end is told.
    pub reports: bool,
}

/// What the completion of a read or a write says that it was.
pub(in super::super) const fn flags_of(direction: Direction) -> u64 {
    match direction {
        Direction::Get => flags::RMA | flags::READ,
        Direction::Put => flags::RMA | flags::WRITE,
    }
}

/// A read or a write, until its end is told.
#[derive(Debug)]
pub struct SoftwareRma {
    /// Where in the peer's memory, and what is told of it.
    pub remote: Remote,
    /// Whose memory it is: the number may mean somebody else before the errand ends.
    pub(super) peer: PeerId,
    /// Which of the two.
    pub direction: Direction,
    /// The memory here.
    pub(super) kept: Kept,
    /// What nobody else keeps, of a write that was injected.
    #[expect(dead_code, reason = "it is kept, not looked at")]
    owned: Option<Owned>,
    /// What the peer's queue tells when it is done.
    pub(super) data: Option<u32>,
    pub(super) begun_bytes: u64,
    pub(super) has_begun: bool,
    pub(super) pending: u32,
    pub(super) error: Option<Errno>,
}

impl SoftwareRma {
    /// One that has not begun.
    pub fn new(
        remote: Remote,
        peer: PeerId,
        direction: Direction,
        buffer: &Buffer,
        owned: Option<Owned>,
        data: Option<u32>,
    ) -> Self {
        let kept = Kept::of(buffer);
        let (begun_bytes, has_begun, pending, error) = (0, false, 0, None);
        Self { remote, peer, direction, kept, owned, data, begun_bytes, has_begun, pending, error }
    }

    /// Whether anybody knows its context, to whom its end can be told.
    pub const fn has_context(&self) -> bool {
        self.remote.context.is_some()
    }

    /// Copies from or to memory of this endpoint's own domain, as its owner does for who
    /// asks by messages.
    pub(super) fn copy_here(&self, shared_state: &mut SharedState) -> Result<(), Errno> {
        let (exposed, touch) = (&shared_state.exposed, &mut shared_state.touch);
        let Remote { key, offset, .. } = self.remote;
        let (whole_bytes, mut start, mut piece) = (self.kept.total_bytes(), 0, Vec::new());
        loop {
            let rest_bytes = whole_bytes - start;
            let bytes = rest_bytes.min(PIECE_BYTES as u64) as usize;
            let there = (key, offset.checked_add(start).ok_or(Errno::INVAL)?);
            match self.direction {
                Direction::Get => {
                    piece.clear();
                    exposed.read(touch, there, rest_bytes, bytes, &mut piece)?;
                    self.kept.write(touch, start, &piece)?;
                }
                Direction::Put => {
                    piece.resize(bytes, 0);
                    self.kept.read(touch, start, &mut piece)?;
                    exposed.write(touch, there, rest_bytes, &piece)?;
                }
            }
            start += bytes as u64;
            if start == whole_bytes {
                return Ok(());
            }
        }
    }

    pub(super) fn is_begun(&self) -> bool {
        self.error.is_some() || (self.has_begun && self.begun_bytes == self.kept.total_bytes())
    }
}

/// A part of an errand that a peer is asked for.
#[derive(Debug)]
pub struct Piece {
    /// The errand's number.
    pub(super) errand: usize,
    /// Where in the errand's memory it begins.
    pub(super) start: u64,
}
