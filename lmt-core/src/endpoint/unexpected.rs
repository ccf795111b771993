//! Messages that have come before their receive: what is kept of each.

use super::unexpected_store::PooledBytes;
use crate::rendezvous::Rts;
use crate::requests::ids::RequestId;
use crate::requests::table::Requests;

/// A message that no receive was waiting for.
#[derive(Debug)]
pub(crate) enum Unexpected {
    /// All its bytes, what the sender was charged for them, and which of the
    /// peer's connections they came over.
    Eager { data: PooledBytes, charge_bytes: u64, connection: u32 },
    /// It is still arriving, in the peer's assembly.
    /// Whether its immediate number is in a piece to come.
    Arriving { total_bytes: u64, awaits_immediate: bool },
    /// Its announcement.
    Rts(Rts),
    /// One from this endpoint to itself, whose bytes the send still holds.
    Local(RequestId),
}

impl Unexpected {
    /// The message's length; for a local one, that of the sender's buffer.
    pub fn total_bytes(&self, requests: &Requests) -> u64 {
        match self {
            Self::Eager { data, .. } => data.len() as u64,
            Self::Arriving { total_bytes, .. } => *total_bytes,
            Self::Rts(rts) => rts.total_bytes,
            Self::Local(id) => {
                requests.get(*id).and_then(|r| r.buffer.as_ref()).map_or(0, |b| b.total_bytes())
            }
        }
    }
}

/// An unexpected message, and its immediate number.
#[derive(Debug)]
pub(crate) struct Arrived {
    pub immediate: Option<u32>,
    pub content: Unexpected,
}

/// The parts of [`Unexpected::Eager`].
pub(super) struct Eager {
    pub data: PooledBytes,
    pub charge_bytes: u64,
    pub connection: u32,
}
