//! What is sent and received without a transfer: see [`super::exposed`] for its sends, and
//! [`crate::mechanism::Lmt::get_at_once`] for what receivers do.

use super::exposed::{self, Exposed};
use super::{Ended, Side, Transfers, index_of, place};
use crate::buffer::{Access, Buffer};
use crate::mechanism::{Cookie, Model};
use crate::rendezvous::{
    Candidates, Choice, Demote, Done, Packet, PeerKey, ProtocolError, Received, Rts, SendId, TransferError,
    TransferKey,
};
use crate::shared_buffer::is_shared;

impl Transfers {
    /// Announces it, and counts it as read.
    pub(super) fn announce_exposed(&mut self, send: Exposed, choice: Choice, cookie: &Cookie) -> SendId {
        let (peer, total_bytes) = (send.peer, send.buffer.total_bytes());
        let Choice { mechanism, model } = choice;
        let send_id = self.exposed.insert(send);
        self.readers.replace(None, Some(peer));
        let rts = Rts { send_id, total_bytes, attempt: 0, mechanism, model, cookie: *cookie };
        self.machine.announce_exposed(peer, rts);
        send_id
    }

    /// The way by which a message is announced without a transfer, if it can be.
    #[inline]
    pub(super) fn expose(
        &mut self,
        peer: PeerKey,
        buffer: &Buffer,
        candidates: &Candidates,
        cookie: &mut Cookie,
    ) -> Option<Choice> {
        let first = *candidates.as_slice().first()?;
        let may_be = first.model == Model::Get && buffer.total_bytes() > 0;
        (may_be && self.mechanisms.expose(first.mechanism, peer, buffer, cookie)).then_some(first)
    }

    /// A packet about a send of which there is no transfer, or was none when it was
    /// announced.
    pub(super) fn packet_for_exposed(
        &mut self,
        peer: PeerKey,
        slot: u64,
        packet: &Packet,
    ) -> Result<(), ProtocolError> {
        let Some(send) = self.exposed.named_by(peer, slot)? else { return Ok(()) };
        match (send.transfer, packet) {
            (None, Packet::Done(Done { attempt: 0, .. })) => self.end_exposed(slot, Ok(())),
            (None, Packet::CancelReply { cancelled, .. }) if send.cancel_sent => {
                if *cancelled {
                    self.end_exposed(slot, Err(TransferError::Cancelled));
                }
            }
            (None, Packet::Demote(Demote { attempt: 0, .. })) => {
                let transfer = self.adopt(slot);
                self.packet_for_adopted(peer, transfer, packet)?;
            }
            (Some(transfer), _) => self.packet_for_adopted(peer, Some(transfer), packet)?,
            _ => return Err(exposed::out_of_place(slot)),
        }
        Ok(())
    }

    #[cold]
    fn packet_for_adopted(
        &mut self,
        peer: PeerKey,
        transfer: Option<SendId>,
        packet: &Packet,
    ) -> Result<(), ProtocolError> {
        let Some(transfer) = transfer else { return Ok(()) };
        self.machine.packet(peer, &exposed::renamed(*packet, transfer))?;
        self.pump();
        Ok(())
    }

    /// Makes a transfer of a send that its receiver cannot copy as it was announced.
    #[cold]
    fn adopt(&mut self, slot: u64) -> Option<SendId> {
        let send = self.exposed.get_mut(slot)?;
        let Exposed { ref mut buffer, ref candidates, token, peer, cancel_sent, .. } = *send;
        let model = candidates.as_slice().first().map_or(Model::Get, |choice| choice.model);
        let buffer = std::mem::replace(buffer, Buffer::empty(Access::Read));
        let id = self.machine.adopt(peer, buffer.total_bytes(), candidates, cancel_sent);
        send.transfer = Some(id);
        let side = Side { reader: Some(peer), exposed: Some(slot), model, ..Side::new(buffer, token, peer) };
        place(&mut self.sends, index_of(id.0), side);
        Some(id)
    }

    /// Ends a send of which there is no transfer.
    pub(super) fn end_exposed(&mut self, slot: u64, result: Result<(), TransferError>) {
        let Some(send) = self.exposed.get_mut(slot) else { return };
        let Exposed { ref buffer, ref candidates, token, peer, .. } = *send;
        let bytes = buffer.total_bytes();
        let first = candidates.as_slice().first().copied();
        self.exposed.discard(slot);
        self.readers.replace(Some(peer), None);
        self.has_ended(peer);
        if let Some(Choice { mechanism, .. }) = first.filter(|_| result.is_ok()) {
            self.mechanisms.count_exposed(mechanism, peer, bytes);
        }
        self.ended.push_back(Ended::Send { token, result });
    }

    /// A receive was found for an RTS, and its message is short enough to be copied at once:
    /// it is in `buffer`, and its sender is told, if this returns how many bytes it is. If
    /// not, the message is to be given to [`Self::matched`].
    #[inline]
    pub(crate) fn get_at_once(&mut self, peer: PeerKey, rts: &Rts, buffer: &mut Buffer) -> Option<Received> {
        let total_bytes = rts.total_bytes;
        let received_bytes = total_bytes.min(buffer.total_bytes());
        let is_here = rts.model == Model::Get
            && (1..=Self::AT_ONCE_BYTES).contains(&received_bytes)
            && self.mechanisms.get_at_once(rts.mechanism, peer, &rts.cookie, buffer, received_bytes);
        if !is_here {
            return None;
        }
        self.at_once_bytes += received_bytes;
        let done = Done::new(TransferKey::Send(rts.send_id), rts.attempt, is_shared(buffer));
        self.machine.received_at_once(peer, done);
        Some(Received { total_bytes, received_bytes, truncated: received_bytes < total_bytes })
    }

    /// How much [`Self::get_at_once`] has copied so far, in bytes.
    #[inline]
    pub(crate) const fn at_once_bytes(&self) -> u64 {
        self.at_once_bytes
    }

    /// Up to there a receiver that copies alone does so without a transfer.
    pub(crate) const AT_ONCE_BYTES: u64 = 256 << 10;

    /// Asks the peer to forget such a message, if it has none of it yet.
    pub(super) fn cancel_exposed(&mut self, slot: u64) {
        // What has become a transfer was matched.
        if let Some(send) = self.exposed.get_mut(slot).filter(|send| send.transfer.is_none())
            && !std::mem::replace(&mut send.cancel_sent, true)
        {
            self.machine.take_back_exposed(send.peer, exposed::name_of(slot));
        }
    }

    /// Ends all of them to a peer that is dead or gone.
    pub(super) fn end_exposed_to(&mut self, peer: PeerKey) {
        for slot in self.exposed.to(peer) {
            if self.exposed.get(slot).is_some_and(|send| send.transfer.is_none()) {
                self.end_exposed(slot, Err(TransferError::PeerDead));
            }
        }
    }
}

#[cfg(test)]
#[path = "exposing_tests.rs"]
mod tests;
