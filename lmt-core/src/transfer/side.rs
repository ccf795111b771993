//! What is kept of each side of a transfer while it is in flight, and what is told when it
//! has ended.

use crate::mechanism::Handle;
use crate::memory::buffer::Buffer;
use crate::memory::prefault::Prefault;
use crate::rendezvous::{Received, TransferError};
use crate::vocabulary::identity::PeerKey;
use crate::vocabulary::model::Model;
use crate::vocabulary::transfer::Interval;

/// One side of a transfer: the memory it uses, and who waits for it.
pub(super) struct Side {
    pub(super) buffer: Buffer,
    /// How far the buffer is faulted in, if the peer is to write it.
    pub(super) prefault: Option<Prefault>,
    pub(super) handle: Option<Handle>,
    /// The last `handle` there was, for counting.
    pub(super) carrier: Option<Handle>,
    /// What is to be started when the packets before it are sent.
    pub(super) held_start: Option<Interval>,
    pub(super) token: u64,
    pub(super) peer: PeerKey,
    /// Who may be reading its memory.
    pub(super) reader: Option<PeerKey>,
    /// Who copies, at the last attempt.
    pub(super) model: Model,
}

impl Side {
    pub(super) const fn new(buffer: Buffer, token: u64, peer: PeerKey) -> Self {
        let (prefault, handle, carrier, reader) = (None, None, None, None);
        let (model, held_start) = (Model::Get, None);
        Self { buffer, prefault, handle, carrier, held_start, token, peer, reader, model }
    }
}

/// A transfer that has ended, with the memory that it no longer uses.
#[derive(Debug)]
pub enum Ended {
    /// A send.
    Send {
        /// What the caller gave to [`super::Transfers::send`].
        token: u64,
        /// Whether the message arrived.
        result: Result<(), TransferError>,
    },
    /// A receive.
    Receive {
        /// What the caller gave to [`super::Transfers::matched`].
        token: u64,
        /// What arrived.
        result: Result<Received, TransferError>,
    },
}

/// The slot of a transfer's name: the machine reuses slots, and names carry a
/// generation above the slot's number.
pub(super) const fn index_of(name: u64) -> usize {
    name as u32 as usize
}

pub(super) fn place(sides: &mut Vec<Option<Side>>, index: usize, side: Side) {
    if sides.len() <= index {
        sides.resize_with(index + 1, || None);
    }
    sides[index] = Some(side);
}

/// What is left of one side of a transfer when that is over.
pub(super) struct Over {
    pub(super) token: u64,
    pub(super) peer: PeerKey,
    pub(super) carrier: Option<Handle>,
    pub(super) bytes: u64,
}

/// Drops a side where it lies.
pub(super) fn over(sides: &mut [Option<Side>], name: u64) -> Option<Over> {
    let slot = sides.get_mut(index_of(name))?;
    let Side { token, peer, carrier, ref buffer, .. } = *slot.as_ref()?;
    let over = Over { token, peer, carrier, bytes: buffer.total_bytes() };
    *slot = None;
    Some(over)
}
