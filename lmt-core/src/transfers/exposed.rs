//! Sends without a transfer: in the Get model those of which a mechanism has nothing to keep
//! here ([`crate::mechanism::Lmt::expose`]). Until the receiver has said that it has the
//! message, or that it cannot have it so, there is only their memory.
#![forbid(unsafe_code)]

use crate::buffer::Buffer;
use crate::rendezvous::{Candidates, Packet, PeerKey, ProtocolError, SendId, TransferKey};
use crate::slab::{Slab, Standing};

/// One of them.
pub(super) struct Exposed {
    pub buffer: Buffer,
    /// Its ways; the first is the one by which it is announced.
    pub candidates: Candidates,
    pub token: u64,
    pub peer: PeerKey,
    /// Whether it was to be taken back.
    pub cancel_sent: bool,
    /// The transfer that it has become, once its receiver could not copy it so. That has
    /// the buffer then, and frees this slot when it ends.
    pub transfer: Option<SendId>,
}

impl Exposed {
    pub const fn new(buffer: Buffer, candidates: Candidates, token: u64, peer: PeerKey) -> Self {
        Self { buffer, candidates, token, peer, cancel_sent: false, transfer: None }
    }
}

/// All of them.
pub(super) struct ExposedSends(Slab<Exposed>);

/// Stands in their names, and in those of no transfer: there are never so many slots.
const MARK: u64 = 1 << 31;

impl Default for ExposedSends {
    fn default() -> Self {
        Self(Slab::new())
    }
}

/// The slot's name, where this names such a send.
#[inline]
pub(super) const fn slot_of(id: SendId) -> Option<u64> {
    if id.0 & MARK != 0 { Some(id.0 & !MARK) } else { None }
}

/// What the receiver knows the slot's send by.
pub(super) const fn name_of(slot: u64) -> SendId {
    SendId(slot | MARK)
}

/// Which send of this process a packet of its receiver is about.
#[inline]
pub(super) const fn about(packet: &Packet) -> Option<SendId> {
    match packet {
        Packet::Done(done) => match done.to {
            TransferKey::Send(id) => Some(id),
            TransferKey::Receive(_) => None,
        },
        Packet::Cts(cts) => Some(cts.send_id),
        Packet::Demote(demote) => Some(demote.send_id),
        Packet::CancelReply { send_id, .. } => Some(*send_id),
        _ => None,
    }
}

/// What the receiver of such a send cannot say of it.
#[cold]
pub(super) const fn out_of_place(slot: u64) -> ProtocolError {
    ProtocolError::OutOfPlace { id: name_of(slot).0, packet: "an answer to what its receiver copies at once" }
}

/// The same packet about another send.
pub(super) fn renamed(mut packet: Packet, id: SendId) -> Packet {
    match &mut packet {
        Packet::Done(done) => done.to = TransferKey::Send(id),
        Packet::Cts(cts) => cts.send_id = id,
        Packet::Demote(demote) => demote.send_id = id,
        Packet::CancelReply { send_id, .. } => *send_id = id,
        _ => {}
    }
    packet
}

impl ExposedSends {
    /// Takes one in; the name by which its receiver is to know it.
    #[inline(always)]
    pub fn insert(&mut self, send: Exposed) -> SendId {
        name_of(self.0.insert(send))
    }

    #[inline]
    pub fn get(&self, slot: u64) -> Option<&Exposed> {
        self.0.get(slot)
    }

    #[inline]
    pub fn get_mut(&mut self, slot: u64) -> Option<&mut Exposed> {
        self.0.get_mut(slot)
    }

    #[inline]
    pub fn discard(&mut self, slot: u64) {
        self.0.discard(slot);
    }

    /// The names of those to this peer.
    pub fn to(&self, peer: PeerKey) -> Vec<u64> {
        let all = (0..self.0.slots()).filter_map(|index| self.0.id_at(index));
        all.filter(|slot| self.0.get(*slot).is_some_and(|send| send.peer == peer)).collect()
    }

    /// The send that a peer names; nothing where it is over.
    ///
    /// # Errors
    /// The peer cannot honestly know that name.
    #[inline]
    pub fn named_by(&mut self, peer: PeerKey, slot: u64) -> Result<Option<&mut Exposed>, ProtocolError> {
        let SendId(id) = name_of(slot);
        match self.0.standing(slot) {
            Standing::Stale => Ok(None),
            Standing::Never => Err(ProtocolError::UnknownTransfer { id }),
            Standing::Live => match self.0.get_mut(slot) {
                Some(send) if send.peer == peer => Ok(Some(send)),
                _ => Err(ProtocolError::WrongPeer { id }),
            },
        }
    }
}
