//! Writing into a peer's inbox.

use super::label::Label;
use super::outgoing::envelope_of;
use super::peer::{Connection, Link, Peer};
use super::traffic::OVERHEAD_BYTES;
use crate::buffer::Buffer;
use crate::inbox::{Envelope, InboxReceiver, Payload, Piece, SendError, Sent};
use crate::rendezvous::{Packet, PeerKey};

/// What became of an attempt to write a message into a peer's inbox.
pub(super) enum Written {
    Whole,
    /// So many bytes of it; there is no more room now.
    Part(u64),
}

/// When it is looked whether a peer sleeps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Ringing {
    Now,
    /// Behind a copy: the look takes a fence, which waits until the peer's core has
    /// handed over the line that was written.
    Later,
}

impl Peer {
    /// Writes a message in cells, from `sent_bytes` on: the one function that does.
    #[inline(always)] // The path of a short message.
    pub(super) fn write(
        &mut self,
        own_cell_bytes: u32,
        label: &Label,
        buffer: &Buffer,
        sent_bytes: u64,
        credits: &InboxReceiver,
        key: PeerKey,
    ) -> Written {
        let Connection::Up(link) = &mut self.connection else { return Written::Part(sent_bytes) };
        let cell_bytes = link.cell_bytes(own_cell_bytes);
        if buffer.total_bytes() <= cell_bytes {
            return link.write_whole(label, buffer, credits, key);
        }
        link.write_pieces(cell_bytes, label, buffer, sent_bytes, credits, key)
    }
}

impl Link {
    /// The same with a message that takes several cells.
    fn write_pieces(
        &mut self,
        cell_bytes: u64,
        label: &Label,
        buffer: &Buffer,
        mut sent_bytes: u64,
        credits: &InboxReceiver,
        key: PeerKey,
    ) -> Written {
        let total_bytes = buffer.total_bytes();
        // Once begun, a message goes on: the room for all of it was there.
        if sent_bytes == 0 && !self.may_keep(self.charge_of(total_bytes, cell_bytes), credits, key) {
            return Written::Part(0);
        }
        loop {
            if !self.may_write(credits, key) {
                return Written::Part(sent_bytes);
            }
            let bytes = self.inbox.piece_bytes(sent_bytes, total_bytes, cell_bytes);
            let (envelope, piece) = envelope_of(label, sent_bytes, bytes, total_bytes);
            let payload = Payload::Part(buffer, sent_bytes..sent_bytes + bytes);
            if self.write_piece(envelope, payload, bytes + OVERHEAD_BYTES, piece).is_err() {
                return Written::Part(sent_bytes);
            }
            sent_bytes += bytes;
            if sent_bytes == total_bytes {
                return Written::Whole;
            }
        }
    }

    /// The same with a message that fits a cell.
    #[inline(always)] // The path of a short message.
    fn write_whole(
        &mut self,
        label: &Label,
        buffer: &Buffer,
        credits: &InboxReceiver,
        key: PeerKey,
    ) -> Written {
        let bytes = buffer.total_bytes();
        let charge_bytes = bytes + OVERHEAD_BYTES;
        if !((self.has_cell() && self.has_bytes(charge_bytes)) || self.may_take(charge_bytes, credits, key)) {
            return Written::Part(0);
        }
        let (envelope, piece) = envelope_of(label, 0, bytes, bytes);
        let payload = match buffer.one_slice(0..bytes) {
            Some(data) => Payload::Bytes(data),
            None => Payload::Part(buffer, 0..bytes),
        };
        match self.write_piece(envelope, payload, charge_bytes, piece) {
            Ok(()) => Written::Whole,
            Err(_) => Written::Part(0),
        }
    }

    /// Whether there is a cell and room for so many bytes, after a look at what the peer has
    /// given back.
    #[cold]
    fn may_take(&mut self, charge_bytes: u64, credits: &InboxReceiver, key: PeerKey) -> bool {
        self.may_write(credits, key) && self.may_keep(charge_bytes, credits, key)
    }

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

    /// Writes a packet; whether there was a cell for it.
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

    /// Writes a piece of a message, and wakes the peer if it sleeps; unless it ends the message
    /// the peer may sleep on.
    #[inline(always)] // The path of a short message.
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
    #[inline(always)] // The path of a short message.
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
