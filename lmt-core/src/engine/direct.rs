//! The shortest way of a short message: a blocking send that goes into the
//! peer's inbox at once, and a blocking receive whose message comes from there
//! straight into its buffer. Neither makes a request or enters matching.
//!
//! Both answer `None` when anything is out of the ordinary, having done
//! nothing; then the operation takes the general way, which means the same.

use super::Engine;
use super::peer::{Connection, Link, Peer};
use super::receiving::{Source, TagMatch};
use super::requests::{PeerId, Status};
use super::traffic::{OVERHEAD_BYTES, Traffic, kind};
use crate::inbox::{Delivery, Envelope, InboxReceiver, Payload};
use crate::matching::{Matcher, Pattern};
use crate::rendezvous::PeerKey;

/// The most looks before a receive takes the general way, which yields and
/// sleeps: some microseconds' worth.
const LOOKS: u32 = 1024;
/// The first looks follow each other without a pause, which takes longer than
/// a cache line's way from core to core on some processors: under a
/// microsecond, the time in which an answer to a short message comes.
const HASTY_LOOKS: u32 = 128;

impl Engine {
    /// Sends an eager message at once, if that is possible now.
    #[inline]
    pub fn send_directly(&mut self, to: PeerId, tag: u64, data: &[u8]) -> Option<Status> {
        if !self.origin.is_this_process() {
            return None;
        }
        self.traffic.send_directly(to, tag, data, &self.inbox)
    }

    /// Waits a moment for a message that fits `into`, and receives it, if it is
    /// the first that comes and nothing else is to be done meanwhile.
    #[inline]
    pub fn receive_directly(&mut self, source: Source, tags: TagMatch, into: &mut [u8]) -> Option<Status> {
        if !self.origin.is_this_process() || !self.is_quiet() {
            return None;
        }
        let wanted = self.pattern(source, tags).ok()?;
        if let Some(key) = wanted.source
            && !matches!(self.traffic.peers[key as usize].connection, Connection::Up(_))
        {
            return None;
        }
        for look in 0..self.direct_looks() {
            if !self.may_look() {
                return None;
            }
            if let Some(delivery) = self.inbox.poll() {
                return self.traffic.take_directly(delivery, wanted, into);
            }
            if look >= HASTY_LOOKS {
                std::hint::spin_loop();
            }
        }
        None
    }

    /// Whether a call of progress would do nothing but look at the inbox, and
    /// no other receive is older, no message earlier than what comes next.
    #[inline]
    fn is_quiet(&self) -> bool {
        let traffic = &self.traffic;
        traffic.matcher.posted() == 0
            && traffic.matcher.unexpected() == 0
            && traffic.busy.is_empty()
            && !traffic.transfers.is_active()
            && !traffic.transfers.is_faulting()
            && !traffic.transfers.standings().has_parcels()
            && traffic.one_sided.is_empty()
            && traffic.wanted.is_empty()
    }

    /// How often to look; less where the core is wanted by others.
    #[inline]
    fn direct_looks(&self) -> u32 {
        if self.shared_waits > 0 { 1 } else { self.spins_and_yields().0.min(LOOKS) }
    }

    /// Counts a look as a call of progress, towards the next look at the
    /// sockets; false when that is due.
    #[inline]
    fn may_look(&mut self) -> bool {
        let Some(left) = self.until_sockets.checked_sub(1) else { return false };
        self.until_sockets = left;
        !left.is_multiple_of(Self::CLOCK_EVERY) || self.looked_at_sockets.elapsed() <= Self::SOCKETS_AFTER
    }
}

impl Traffic {
    #[inline]
    fn send_directly(
        &mut self,
        to: PeerId,
        tag: u64,
        data: &[u8],
        credits: &InboxReceiver,
    ) -> Option<Status> {
        let key = self.key_named(to).ok()?;
        let bytes = data.len() as u64;
        let peer = &mut self.peers[key as usize];
        let Connection::Up(link) = &mut peer.connection else { return None };
        let may_go = bytes <= peer.eager_max_bytes
            && peer.group_version == self.selection.group_version()
            && peer.ordered.is_empty();
        let cell_bytes = link.cell_bytes(self.config.cell_bytes);
        let has_room = |link: &mut Link| match bytes <= cell_bytes {
            true => link.may_write(credits, key),
            false => link.inbox.has_room_for(bytes),
        };
        let charge_bytes = Link::charge_of(bytes, cell_bytes);
        if !may_go || !link.may_keep(charge_bytes, credits, key) || !has_room(link) {
            return None;
        }
        if bytes <= cell_bytes {
            let envelope = Envelope { kind: kind::EAGER, aux: 0, tag };
            link.write(envelope, Payload::Bytes(data), charge_bytes).ok()?;
        } else {
            link.write_pieces(tag, data, cell_bytes as usize)?;
        }
        peer.eager.sent.count(bytes);
        self.eager.sent.count(bytes);
        Some(Status { peer: to, tag, bytes })
    }

    /// Receives the message if it is whole, fits, and is the one wanted; leaves
    /// it in the inbox otherwise.
    #[inline]
    fn take_directly(&mut self, delivery: Delivery<'_>, wanted: Pattern, into: &mut [u8]) -> Option<Status> {
        let key = PeerKey::from(delivery.sender());
        let (tag, bytes) = (delivery.tag(), delivery.bytes());
        let is_it = delivery.kind() == kind::EAGER && bytes <= into.len() && wanted.accepts(key, tag);
        let peer = self.peers.get_mut(key as usize).filter(|peer| is_it && peer.bound);
        let Some(Peer { connection: Connection::Up(link), generation, eager, .. }) = peer else {
            // Forgotten, it is delivered by the next poll again.
            std::mem::forget(delivery);
            return None;
        };
        self.events = self.events.wrapping_add(1);
        delivery.copy_to(into);
        drop(delivery);
        eager.received.count(bytes as u64);
        self.eager.received.count(bytes as u64);
        if link.take(bytes as u64 + OVERHEAD_BYTES) {
            self.owing.push(key);
        }
        Some(Status { peer: PeerId { key, generation: *generation }, tag, bytes: bytes as u64 })
    }
}

impl Link {
    /// Writes a message in pieces for which there is room.
    #[inline]
    fn write_pieces(&mut self, tag: u64, data: &[u8], cell_bytes: usize) -> Option<()> {
        let (mut kind, mut left) = (kind::FIRST, data.len());
        for piece in data.chunks(cell_bytes) {
            left -= piece.len();
            let aux = if kind == kind::FIRST { data.len() as u32 } else { 0 };
            let charge_bytes = piece.len() as u64 + OVERHEAD_BYTES;
            self.write_piece(Envelope { kind, aux, tag }, Payload::Bytes(piece), charge_bytes, left == 0)
                .ok()?;
            kind = kind::MORE;
        }
        Some(())
    }

    /// Counts one cell as drained and what it was charged as released; true
    /// when the peer is to be entered into the list of those that are owed.
    #[inline]
    fn take(&mut self, charge_bytes: u64) -> bool {
        self.drained.drained_cells = self.drained.drained_cells.wrapping_add(1);
        self.drained.released_bytes = self.drained.released_bytes.wrapping_add(charge_bytes);
        if self.owes_much() {
            self.pay();
            return false;
        }
        !std::mem::replace(&mut self.in_owing, true)
    }
}
