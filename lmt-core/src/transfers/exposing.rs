//! What is sent and received without a transfer: see [`super::exposed`] for its sends, and
//! [`crate::mechanism::Lmt::get_at_once`] for what receivers do.

use super::at_hand::AtHand;
use super::exposed::{self, Exposed};
use super::{Ended, Side, Transfers, index_of, place};
use crate::buffer::{Access, Buffer};
use crate::mechanism::{Cookie, Gathered, Lines, Model};
use crate::rendezvous::{
    Candidates, Choice, Demote, Done, MechanismTag, Packet, PeerKey, ProtocolError, Received, Rts, SendId,
    TransferError, TransferKey,
};
use crate::shared_buffer::is_shared;

/// Why a receiver copies a message at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Receipt {
    /// A receive waited for it when its announcement came.
    Awaited,
    /// A receive has come for it later.
    Late,
    /// None has: it is kept.
    Kept,
}

/// How a short message is announced: by which choice, with which cookie, and the choices to
/// take if that fails.
pub(crate) struct Ways {
    choice: Choice,
    cookie: Cookie,
    candidates: Candidates,
}

impl Transfers {
    /// Announces it, and counts it as read.
    pub(super) fn announce_exposed(&mut self, send: Exposed, choice: Choice, cookie: &Cookie) -> SendId {
        let (peer, total_bytes, short) = (send.peer, send.buffer.total_bytes(), send.short);
        let Choice { mechanism, model } = choice;
        let send_id = self.exposed.insert(send);
        self.readers.replace(None, Some(peer));
        let rts = Rts { send_id, total_bytes, attempt: 0, mechanism, model, short, cookie: *cookie };
        self.machine.announce_exposed(peer, rts);
        send_id
    }

    /// Whether a short message to this peer is likely to be copied in less time by its
    /// receiver alone than through cells.
    pub(crate) fn is_at_hand(&mut self, peer: PeerKey, bytes: u64) -> bool {
        // Who has several under way had better not wait for the first.
        let is_alone = self.sends_to(peer) == 0 && self.readers.peers == 0;
        is_alone && !self.crowded && bytes <= Self::AT_ONCE_BYTES && self.at_hand(peer).is_likely(bytes)
    }

    /// A short message to this peer has gone in cells.
    pub(crate) fn went_in_cells(&mut self, peer: PeerKey, bytes: u64) {
        self.at_hand(peer).pass(bytes);
    }

    /// What [`Self::is_at_hand`] says, to be told to people.
    pub(crate) fn is_taken_to_be_at_hand(&self, peer: PeerKey, bytes: u64) -> bool {
        !self.crowded && self.at_hand.get(peer as usize).is_none_or(|known| known.is_so(bytes))
    }

    fn at_hand(&mut self, peer: PeerKey) -> &mut AtHand {
        let index = peer as usize;
        if self.at_hand.len() <= index {
            self.at_hand.resize_with(index + 1, AtHand::default);
        }
        &mut self.at_hand[index]
    }

    /// The ways by which a short message can be announced for its receiver to copy it
    /// alone, without a transfer here; for [`Self::send_short`].
    pub(crate) fn ways_of_short(
        &mut self,
        peer: PeerKey,
        buffer: &Buffer,
        candidates: &Candidates,
    ) -> Option<Ways> {
        let mut alone = candidates.as_slice().iter().filter(|choice| choice.model == Model::Get);
        let mut cookie = Cookie::empty();
        let choice =
            *alone.find(|choice| self.mechanisms.expose(choice.mechanism, peer, buffer, &mut cookie))?;
        Some(Ways { choice, cookie, candidates: candidates.with_first(choice) })
    }

    /// Announces a short message for its receiver to copy it alone, as soon as it can.
    pub(crate) fn send_short(&mut self, peer: PeerKey, buffer: Buffer, ways: &Ways, token: u64) -> SendId {
        self.window(peer).begin(buffer.total_bytes());
        let send = Exposed { short: true, ..Exposed::new(buffer, ways.candidates, token, peer, None) };
        self.announce_exposed(send, ways.choice, &ways.cookie)
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
            (None, &Packet::Done(Done { attempt: 0, at_hand, kept, .. })) => {
                let (short, bytes) = (send.short, send.buffer.total_bytes());
                if short {
                    self.at_hand(peer).learn(bytes, at_hand);
                }
                self.end_exposed(slot, Ok(()), if kept && short { bytes } else { 0 });
            }
            (None, Packet::CancelReply { cancelled, .. }) if send.cancel_sent => {
                if *cancelled {
                    self.end_exposed(slot, Err(TransferError::Cancelled), 0);
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
        let Exposed { ref mut buffer, ref candidates, token, peer, among, cancel_sent, short, .. } = *send;
        let model = candidates.as_slice().first().map_or(Model::Get, |choice| choice.model);
        let buffer = std::mem::replace(buffer, Buffer::empty(Access::Read));
        let id = self.machine.adopt(peer, buffer.total_bytes(), candidates, cancel_sent);
        send.transfer = Some(id);
        let side =
            Side { among, reader: Some(peer), exposed: Some(slot), model, ..Side::new(buffer, token, peer) };
        if short {
            self.at_hand(peer).learn(side.buffer.total_bytes(), false);
        }
        place(&mut self.sends, index_of(id.0), side);
        Some(id)
    }

    /// Ends a send of which there is no transfer.
    pub(super) fn end_exposed(&mut self, slot: u64, result: Result<(), TransferError>, kept_bytes: u64) {
        let Some(send) = self.exposed.get_mut(slot) else { return };
        let Exposed { ref buffer, ref candidates, token, peer, among, .. } = *send;
        let bytes = buffer.total_bytes();
        let first = candidates.as_slice().first().copied();
        self.exposed.discard(slot);
        self.readers.replace(Some(peer), None);
        let window = self.window(peer);
        window.end(bytes);
        if let Some(Choice { mechanism, model }) = first.filter(|_| result.is_ok()) {
            if let Some(among) = among {
                window.learn(among, bytes, model, 0);
            }
            self.mechanisms.count_exposed(mechanism, peer, bytes);
        }
        self.pauses.end(bytes);
        self.ended.push_back(Ended::Send { token, result, kept_bytes });
    }

    /// A receive was found for an RTS, and its message is short enough to be copied at once:
    /// it is in `buffer`, and its sender is told, if this returns how many bytes it is. If
    /// not, the message is to be given to [`Self::matched`]. The sender is told besides whether
    /// it was at hand.
    #[inline]
    pub(crate) fn get_at_once(
        &mut self,
        peer: PeerKey,
        rts: &Rts,
        buffer: &mut Buffer,
        receipt: Receipt,
    ) -> Option<Received> {
        let total_bytes = rts.total_bytes;
        let received_bytes = total_bytes.min(buffer.total_bytes());
        let lines = self.get_by_itself(peer, rts, buffer, received_bytes)?;
        let received = self.count_at_once(peer, rts, received_bytes);
        let at_hand = receipt == Receipt::Awaited && lines == Lines::AtHand;
        let kept = receipt == Receipt::Kept;
        self.machine.received_at_once(peer, Done { at_hand, kept, ..done(rts, buffer) });
        Some(received)
    }

    fn count_at_once(&mut self, peer: PeerKey, rts: &Rts, received_bytes: u64) -> Received {
        self.at_once_bytes += received_bytes;
        self.pauses.end(received_bytes);
        let window = self.window(peer);
        window.received_bytes = window.received_bytes.wrapping_add(received_bytes);
        let total_bytes = rts.total_bytes;
        Received { total_bytes, received_bytes, truncated: received_bytes < total_bytes }
    }

    /// Whether a message for which a receive waits can be [copied](Self::get_several) with the
    /// next ones.
    pub(crate) fn may_gather(&mut self, peer: PeerKey, rts: &Rts, buffer: &Buffer) -> bool {
        // Whose sender asks whether it was at hand are timed each by itself.
        let may_be = !rts.short && self.mechanisms.gets_several(rts.mechanism, &rts.cookie, buffer);
        may_be && self.comes_by_itself(peer, rts, rts.total_bytes.min(buffer.total_bytes()))
    }

    /// Copies several messages by one mechanism, each as [`Self::get_at_once`] does. Returns how
    /// many of them are here, of which each is to be [told](Self::got_at_once); the others are
    /// to be copied as if nothing had been.
    pub(crate) fn get_several(
        &mut self,
        peer: PeerKey,
        mechanism: MechanismTag,
        messages: &mut [Gathered],
    ) -> usize {
        self.mechanisms.get_several(mechanism, peer, messages)
    }

    /// One of them is here: its sender is told.
    pub(crate) fn got_at_once(
        &mut self,
        peer: PeerKey,
        rts: &Rts,
        buffer: &Buffer,
        received_bytes: u64,
    ) -> Received {
        let received = self.count_at_once(peer, rts, received_bytes);
        self.machine.received_at_once(peer, done(rts, buffer));
        received
    }

    /// Copies a message without its sender, if it is one that its receiver copies alone, or
    /// this end expects no help.
    #[inline]
    fn get_by_itself(
        &mut self,
        peer: PeerKey,
        rts: &Rts,
        buffer: &mut Buffer,
        received_bytes: u64,
    ) -> Option<Lines> {
        if !self.comes_by_itself(peer, rts, received_bytes) {
            return None;
        }
        self.mechanisms.get_at_once(rts.mechanism, peer, &rts.cookie, buffer, received_bytes)
    }

    /// Whether its receiver copies a message alone and at once.
    #[inline]
    fn comes_by_itself(&mut self, peer: PeerKey, rts: &Rts, received_bytes: u64) -> bool {
        match rts.model {
            _ if !(1..=Self::AT_ONCE_BYTES).contains(&received_bytes) => false,
            Model::Get => true,
            Model::Both => self.mechanisms.expects_nobody(rts.mechanism, peer, received_bytes),
            _ => false,
        }
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
                self.end_exposed(slot, Err(TransferError::PeerDead), 0);
            }
        }
        if let Some(known) = self.at_hand.get_mut(peer as usize) {
            *known = AtHand::default();
        }
    }
}

/// What the sender of a message hears that has come into this buffer.
fn done(rts: &Rts, buffer: &Buffer) -> Done {
    Done::new(TransferKey::Send(rts.send_id), rts.attempt, is_shared(buffer))
}

#[cfg(test)]
#[path = "exposing_tests.rs"]
mod tests;
