//! Writing into a peer's inbox.

use super::peer::Link;
use crate::inbox::{Envelope, InboxReceiver, Payload, Piece, SendError, Sent};
use crate::rendezvous::{Packet, PeerKey};

/// When it is looked whether a peer sleeps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Ringing {
    Now,
    /// Behind a copy: the look takes a fence, which waits until the peer's core has
    /// handed over the line that was written.
    Later,
}

impl Link {
    /// Whether one more cell may be written; looks at what the peer has given
    /// back if that is needed.
    #[inline]
    pub(super) fn may_write(&mut self, credits: &InboxReceiver, key: PeerKey) -> bool {
        if self.has_cell() {
            return true;
        }
        self.refresh(credits, key);
        self.has_cell()
    }

    /// Whether the peer has room for so many unexpected bytes; as
    /// [`Self::may_write`].
    #[inline]
    pub(super) fn may_keep(&mut self, charge_bytes: u64, credits: &InboxReceiver, key: PeerKey) -> bool {
        if self.has_bytes(charge_bytes) {
            return true;
        }
        self.refresh(credits, key);
        self.has_bytes(charge_bytes)
    }

    #[cold]
    fn refresh(&mut self, credits: &InboxReceiver, key: PeerKey) {
        self.returned = credits.credit(key as u16).unwrap_or_default();
    }

    /// Writes one cell and wakes the peer if it sleeps.
    #[inline]
    pub(super) fn write(
        &mut self,
        envelope: Envelope,
        payload: Payload<'_>,
        charge_bytes: u64,
    ) -> Result<(), SendError> {
        self.write_piece(envelope, payload, charge_bytes, Piece::Whole)
    }

    /// The same with a whole message that fits a line of the peer's fast box; whether it went.
    #[inline(always)] // The path of a short message.
    pub(super) fn write_in_line(&mut self, envelope: Envelope, data: &[u8], charge_bytes: u64) -> bool {
        let Some(sent) = self.inbox.send_in_line(envelope, data) else { return false };
        if self.first_look.is_far() {
            self.inbox.expect_to_send(data.len());
        }
        self.count_sent(&sent, charge_bytes);
        true
    }

    /// The same with a packet; whether there was a cell for it.
    pub(super) fn write_packet(
        &mut self,
        envelope: Envelope,
        packet: &Packet,
        charge_bytes: u64,
        bell: Ringing,
    ) -> bool {
        let packet = packet.in_words();
        let (words, bytes) = packet.as_words();
        let payload = Payload::Words(words, bytes);
        let sent = match bell {
            Ringing::Now => self.inbox.send(envelope, payload),
            Ringing::Later => self.inbox.send_quietly(envelope, payload),
        };
        self.note_sent(sent, charge_bytes).is_ok()
    }

    /// Wakes the peer.
    pub(super) fn ring(&self) {
        self.waker.wake();
    }

    /// Wakes the peer if it sleeps, where that was left for later.
    pub(super) fn ring_if_asleep(&mut self) {
        if self.inbox.wants_doorbell() {
            self.ring();
        }
    }

    /// The same with a piece; unless it ends the message the peer may sleep on.
    #[inline]
    pub(super) fn write_piece(
        &mut self,
        envelope: Envelope,
        payload: Payload<'_>,
        charge_bytes: u64,
        piece: Piece,
    ) -> Result<(), SendError> {
        let sent = self.inbox.send_piece(envelope, payload, piece);
        self.note_sent(sent, charge_bytes)
    }

    /// Counts what was sent, and rings.
    #[inline]
    fn note_sent(&mut self, sent: Result<Sent, SendError>, charge_bytes: u64) -> Result<(), SendError> {
        let sent = match sent {
            Ok(sent) => sent,
            Err(error) => {
                // A sleeping receiver must be woken to make room.
                if let SendError::Full { wake: true } = error {
                    self.ring();
                }
                return Err(error);
            }
        };
        self.count_sent(&sent, charge_bytes);
        Ok(())
    }

    #[inline]
    fn count_sent(&mut self, sent: &Sent, charge_bytes: u64) {
        self.sent.drained_cells = self.sent.drained_cells.wrapping_add(1);
        self.sent.released_bytes = self.sent.released_bytes.wrapping_add(charge_bytes);
        if sent.wake {
            self.ring();
        }
    }
}
