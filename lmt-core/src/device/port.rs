//! What a [`DeviceLayer`](super::DeviceLayer) and its embedder pass to each other.

use crate::rendezvous::{Packet, Rts, SendId};
use crate::requests::ids::PeerId;
use crate::requests::outcome::OperationError;
use crate::vocabulary::identity::EndpointId;

/// The longest envelope in bytes.
pub const ENVELOPE_MAX_BYTES: usize = 64;

/// What the embedder writes on a message: its bytes and how many there are.
pub(super) type Envelope = ([u8; ENVELOPE_MAX_BYTES], u8);

pub(super) const NO_ENVELOPE: Envelope = ([0; ENVELOPE_MAX_BYTES], 0);

/// The longest packet that [`PacketTransport::send_packet`] is given, in bytes.
pub const PACKET_MAX_BYTES: usize = 1 + ENVELOPE_MAX_BYTES + Packet::MAX_BYTES;

/// The embedder's way of carrying packets to a peer.
///
/// Packets to one peer must arrive in the order in which they were sent, and
/// none may be lost.
pub trait PacketTransport {
    /// Sends a packet, or says that there is no room now; it is tried again
    /// in the next [`DeviceLayer::progress`](super::DeviceLayer::progress).
    ///
    /// # Errors
    /// [`TransportFull`]: not now.
    fn send_packet(&mut self, to: PeerId, packet: &[u8]) -> Result<(), TransportFull>;
}

/// There is no room for a packet now.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the embedder has no room for a packet now")]
pub struct TransportFull;

/// A message that a peer wants to send, to be matched by the embedder.
#[derive(Debug)]
#[must_use = "an announced message that is never matched keeps its sender waiting"]
pub struct Announcement {
    pub(super) origin: Source,
    pub(super) envelope: Envelope,
    pub(super) rts: Rts,
}

/// Where a packet came from: a send's number means something only to the
/// process that gave it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Source {
    /// Which device layer was told.
    pub layer: EndpointId,
    pub peer: PeerId,
    /// Over which of the peer's connections.
    pub connection: u32,
}

impl Announcement {
    /// Who announces it.
    pub const fn peer(&self) -> PeerId {
        self.origin.peer
    }

    /// What the sender's embedder wrote on it.
    pub fn envelope(&self) -> &[u8] {
        &self.envelope.0[..usize::from(self.envelope.1)]
    }

    /// The message's length in bytes.
    pub const fn bytes(&self) -> u64 {
        self.rts.total_bytes
    }

    /// Whether this is the message that a sender takes back.
    pub fn is(&self, withdrawal: &Withdrawal) -> bool {
        self.origin == withdrawal.origin && self.rts.send_id == withdrawal.send_id
    }
}

/// A sender takes an announced message back: look whether it is still
/// unmatched ([`Announcement::is`]) and answer by [`DeviceLayer::withdrawn`](super::DeviceLayer::withdrawn).
#[derive(Debug)]
#[must_use = "the sender waits for the answer"]
pub struct Withdrawal {
    pub(super) origin: Source,
    pub(super) send_id: SendId,
}

/// What a packet meant.
#[derive(Debug)]
// Boxing the announcement would allocate for every message.
#[allow(clippy::large_enum_variant)]
pub enum Arrival {
    /// A message to be matched.
    Announced(Announcement),
    /// A message to be forgotten, if it is not matched yet.
    Withdrawn(Withdrawal),
    /// Something between the two device layers.
    Handled,
}

/// Why a packet was not understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the packet of {bytes} bytes from {peer:?} was ignored: {reason}; pass exactly what the peer's send_packet was given"
)]
pub struct BadPacket {
    /// From whom.
    pub peer: PeerId,
    /// Its length in bytes.
    pub bytes: usize,
    /// What is wrong with it.
    pub reason: String,
}

/// Checks an embedder's envelope.
pub(super) fn pack(envelope: &[u8]) -> Result<Envelope, OperationError> {
    let mut bytes = [0; ENVELOPE_MAX_BYTES];
    let Some(target) = bytes.get_mut(..envelope.len()) else {
        let given = envelope.len();
        return Err(OperationError::System(format!(
            "the envelope has {given} bytes; it may have {ENVELOPE_MAX_BYTES}, so send the rest in the message"
        )));
    };
    target.copy_from_slice(envelope);
    Ok((bytes, envelope.len() as u8))
}
