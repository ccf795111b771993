//! The shortest way of a short message: a blocking send that goes into the
//! peer's inbox at once, and a blocking receive whose message comes from there
//! straight into its buffer, or, where it is announced, from its sender's. Neither makes a
//! request or enters matching.
//!
//! Both answer `None` when anything is out of the ordinary, having sent or received
//! nothing; then the operation takes the general way, which means the same.

use super::Engine;
use super::cells::lacks;
use super::label::Label;
use super::outgoing::envelope_of;
use super::peer::{Assembly, Connection, Link, Peer, Target};
use super::polling::Others;
use super::receiving::{Source, TagMatch};
use super::requests::{OperationError, PeerId, Request, RequestId, Status, Waiting};
use super::traffic::{OVERHEAD_BYTES, Traffic, kind};
use crate::buffer::Buffer;
use crate::inbox::{Cut, Delivery, Header, InboxReceiver, Payload, Polled};
use crate::matching::Pattern;
use crate::rendezvous::{Packet, PacketWords, PeerKey, Rts};
use crate::selection::adaptive::Way;

/// The most looks before a receive takes the general way, which yields and
/// sleeps: some microseconds' worth.
const LOOKS: u32 = 1024;
/// The first looks follow each other without a pause, which takes longer than
/// a cache line's way from core to core on some processors: under a
/// microsecond, the time in which an answer to a short message comes.
const HASTY_LOOKS: u32 = 128;

/// The most looks for the further pieces of a message whose first has come.
const PIECE_LOOKS: u32 = 4096;

/// What a direct receive has come to.
#[derive(Debug)]
#[must_use = "a message that has begun must be resumed"]
pub enum Direct {
    /// The message is received.
    Done(Status),
    /// The first bytes are in the buffer: give it to [`Engine::resume`].
    Begun(Begun),
    /// The message is announced, its bytes are still its sender's: give the buffer to
    /// [`Engine::fetch`].
    Announced(Announced),
}

/// A message in pieces of which the first have been received directly.
#[derive(Clone, Copy, Debug)]
pub struct Begun {
    key: PeerKey,
    tag: u64,
    total_bytes: usize,
    arrived_bytes: usize,
}

/// A message of which a direct receive has taken the announcement.
#[derive(Clone, Copy, Debug)]
pub struct Announced {
    key: PeerKey,
    tag: u64,
    rts: Rts,
}

/// What [`Engine::fetch`] has come to.
#[derive(Debug)]
#[must_use = "a receive that has begun lasts on"]
pub enum Fetched {
    /// The message is received; or is longer than the buffer.
    Done(Result<Status, OperationError>),
    /// It is on its way, in this receive.
    Begun(RequestId),
}

impl Engine {
    /// Sends an eager message at once, if that is possible now.
    #[inline]
    pub fn send_directly(&mut self, to: PeerId, label: impl Into<Label>, data: &[u8]) -> Option<Status> {
        if !self.origin.is_this_process() {
            return None;
        }
        let label = label.into();
        if let Some(status) = self.traffic.send_in_line(to, &label, data) {
            return Some(status);
        }
        self.make_room(to, data.len() as u64);
        self.traffic.send_directly(to, &label, data, &self.inbox)
    }

    /// Waits a moment for a message that fits `into`, and receives it, if it is
    /// the first that comes and nothing else is to be done meanwhile.
    #[inline]
    pub fn receive_directly(&mut self, source: Source, tags: TagMatch, into: &mut [u8]) -> Option<Direct> {
        if !self.origin.is_this_process() || !self.is_quiet() {
            return None;
        }
        let wanted = self.pattern(source, tags).ok()?;
        if let Some(key) = wanted.source
            && !matches!(self.traffic.peers[key as usize].connection, Connection::Up(_))
        {
            return None;
        }
        if !self.may_call() {
            return None;
        }
        let looks = self.direct_looks();
        if looks == LOOKS
            && let Some(key) = wanted.source
            && let Connection::Up(link) = &mut self.traffic.peers[key as usize].connection
        {
            link.first_look.wait();
        }
        for look in 0..looks {
            if look % Self::CLOCK_EVERY == Self::CLOCK_EVERY - 1 && self.are_sockets_due() {
                return None;
            }
            let takes = |header: &Header| self.traffic.takes_in_line(header, wanted);
            let direct = match self.inbox.poll_in_line(takes, into) {
                Some(Polled::Taken(header)) => {
                    return Some(Direct::Done(self.traffic.took_in_line(&header, look == 0)));
                }
                Some(Polled::There(delivery)) => {
                    self.traffic.looked_in_vain |= look > 0;
                    Some(self.traffic.take_directly(delivery, wanted, into, look == 0)?)
                }
                None => None,
            };
            match direct {
                Some(Direct::Begun(mut begun)) => {
                    let done = self.take_pieces(&mut begun, into);
                    return Some(done.map_or(Direct::Begun(begun), Direct::Done));
                }
                Some(done) => return Some(done),
                None => {}
            }
            if look >= HASTY_LOOKS {
                std::hint::spin_loop();
            }
        }
        if let Some(key) = wanted.source {
            self.traffic.note_first_look(key, false);
        }
        None
    }

    /// Takes the rest of a message while its sender writes it, as far as that comes.
    #[inline]
    fn take_pieces(&mut self, begun: &mut Begun, into: &mut [u8]) -> Option<Status> {
        let mut in_vain = 0;
        // Its sender may have lost the core in mid-message, which the general way gives back.
        let looks = self.direct_looks();
        let most_in_vain = if looks == LOOKS { PIECE_LOOKS } else { looks };
        // Bounded however many pieces come: nothing else is looked at meanwhile.
        for _ in 0..PIECE_LOOKS {
            let left = &mut into[begun.arrived_bytes..begun.total_bytes];
            let Some(delivery) = self.inbox.poll() else {
                in_vain += 1;
                if in_vain > most_in_vain {
                    break;
                }
                if in_vain > HASTY_LOOKS {
                    std::hint::spin_loop();
                }
                continue;
            };
            let is_next = delivery.kind() == kind::MORE
                && PeerKey::from(delivery.sender()) == begun.key
                && delivery.bytes() <= left.len();
            if !is_next {
                std::mem::forget(delivery);
                break;
            }
            begun.arrived_bytes += self.traffic.copy_directly(delivery, left);
            if begun.arrived_bytes == begun.total_bytes {
                return Some(self.traffic.received_directly(*begun));
            }
            in_vain = 0;
        }
        None
    }

    /// Goes on with a message that a direct receive has begun, at once after it,
    /// by the general way; `buffer` is lent for the same bytes.
    pub fn resume(&mut self, begun: Begun, buffer: Buffer) -> RequestId {
        let Begun { key, tag, total_bytes, arrived_bytes } = begun;
        let label = Label::from(tag);
        let request = Request::new(buffer, Some(key), label, Waiting::Matched);
        let id = self.traffic.requests.insert(request);
        self.traffic.peers[key as usize].assembly = Some(Assembly {
            label,
            total_bytes: total_bytes as u64,
            arrived_bytes: arrived_bytes as u64,
            charge_bytes: 0,
            target: Target::Request(id),
        });
        id
    }

    /// Brings in a message of which a direct receive has taken the announcement, at once
    /// after it; `buffer` is lent for the same bytes.
    #[inline]
    pub fn fetch(&mut self, announced: Announced, mut buffer: Buffer) -> Fetched {
        let Announced { key, tag, rts } = announced;
        let label = Label::from(tag);
        match self.traffic.get_at_once(key, &label, &rts, &mut buffer) {
            Some(result) => {
                self.answer_if_owed();
                Fetched::Done(result)
            }
            None => Fetched::Begun(self.traffic.begin_fetch(key, label, &rts, buffer)),
        }
    }

    /// Whether a call of progress would do nothing but look at the inbox, and
    /// no other receive is older, no message earlier than what comes next.
    #[inline]
    fn is_quiet(&self) -> bool {
        let traffic = &self.traffic;
        traffic.matchers.are_empty()
            && traffic.busy.is_empty()
            && !traffic.transfers.is_active()
            && !traffic.transfers.is_faulting()
            && !traffic.transfers.standings().has_parcels()
            && traffic.one_sided.is_empty()
            && traffic.wanted.is_empty()
    }

    /// How often to look; less where the core is wanted by others.
    #[inline]
    pub(super) fn direct_looks(&self) -> u32 {
        if self.sharing.others() == Others::Wait { 1 } else { self.spins_and_yields().0.min(LOOKS) }
    }

    /// Counts a call, as one of progress, towards the next look at the sockets;
    /// false when that is due. Not each look: one takes a few nanoseconds, a look
    /// at the sockets half a microsecond.
    #[inline]
    fn may_call(&mut self) -> bool {
        let Some(left) = self.until_sockets.checked_sub(1) else { return false };
        self.until_sockets = left;
        !left.is_multiple_of(Self::CLOCK_EVERY) || !self.are_sockets_due()
    }

    fn are_sockets_due(&self) -> bool {
        self.looked_at_sockets.elapsed() > Self::SOCKETS_AFTER
    }
}

impl Traffic {
    #[inline]
    fn send_directly(
        &mut self,
        to: PeerId,
        label: &Label,
        data: &[u8],
        credits: &InboxReceiver,
    ) -> Option<Status> {
        let key = self.key_named(to).ok()?;
        let bytes = data.len() as u64;
        let boxless_bytes = self.config.boxless_eager_max_bytes;
        let own_cell_bytes = self.config.cell_bytes;
        let lacks_cells = |link: &mut Link| lacks(link, bytes, own_cell_bytes, credits, key);
        let peer = &mut self.peers[key as usize];
        let is_short = peer.takes_cells(bytes, boxless_bytes, lacks_cells);
        let mut is_chosen = || self.may_choose(key, bytes) && self.chooses_cells(key, data, credits);
        if !is_short && !is_chosen() {
            return None;
        }
        let peer = &mut self.peers[key as usize];
        let Connection::Up(link) = &mut peer.connection else { return None };
        let may_go = peer.group_version == self.selection.group_version() && peer.ordered.is_empty();
        let cell_bytes = link.cell_bytes(self.config.cell_bytes);
        let has_room = |link: &mut Link| match bytes <= cell_bytes {
            true => link.may_write(credits, key),
            false => link.inbox.has_room_for(bytes),
        };
        let charge_bytes = link.charge_of(bytes, cell_bytes);
        if !may_go || !link.may_keep(charge_bytes, credits, key) || !has_room(link) {
            return None;
        }
        if bytes <= cell_bytes {
            let (envelope, _) = envelope_of(label, 0, bytes, bytes);
            link.write(envelope, Payload::Bytes(data), charge_bytes).ok()?;
        } else {
            let cut = peer.reading.cut();
            link.write_pieces(label, data, cell_bytes, cut)?;
        }
        peer.eager.sent.count(bytes);
        self.eager.sent.count(bytes);
        if !is_short {
            self.decided = None;
        }
        Some(Status { peer: to, tag: label.tag, bytes, immediate: label.immediate })
    }

    /// Whether it is worth asking for a way before the general way of a send does.
    fn may_choose(&self, key: PeerKey, bytes: u64) -> bool {
        let peer = &self.peers[key as usize];
        let has_room = matches!(&peer.connection, Connection::Up(link) if bytes <= link.max_bytes);
        let is_new = peer.group_version != self.selection.group_version();
        let is_open = self.adaptive.is_on() || bytes <= peer.beyond_max_bytes;
        is_open && has_room && !is_new && peer.ordered.is_empty()
    }

    /// Receives the message, or its first piece, if it fits and is the one
    /// wanted; leaves it in the inbox otherwise.
    ///
    /// Always inlined, so that neither the delivery nor the status goes through
    /// memory, where fields are written and wider words read.
    #[inline(always)]
    fn take_directly(
        &mut self,
        delivery: Delivery<'_>,
        wanted: Pattern,
        into: &mut [u8],
        at_first: bool,
    ) -> Option<Direct> {
        let key = PeerKey::from(delivery.sender());
        let (tag, bytes) = (delivery.tag(), delivery.bytes());
        let total_bytes = match delivery.kind() {
            kind::EAGER => bytes,
            kind::FIRST => delivery.aux() as usize,
            kind::RTS => return self.take_announced(delivery, wanted, at_first).map(Direct::Announced),
            _ => usize::MAX,
        };
        let is_it = bytes <= total_bytes && total_bytes <= into.len() && wanted.accepts(key, tag);
        let peer = self.peers.get(key as usize).filter(|peer| is_it && peer.bound);
        let Some(Peer { connection: Connection::Up(link), .. }) = peer else {
            // Forgotten, it is delivered by the next poll again.
            std::mem::forget(delivery);
            return None;
        };
        link.inbox.expect_to_send(total_bytes);
        delivery.copy_to(&mut into[..bytes]);
        drop(delivery);
        let peer = self.count_taken(key, bytes as u64, total_bytes as u64, at_first);
        if bytes < total_bytes {
            return Some(Direct::Begun(Begun { key, tag, total_bytes, arrived_bytes: bytes }));
        }
        Some(Direct::Done(Status { peer, tag, bytes: bytes as u64, immediate: None }))
    }

    /// Counts the first bytes of a message of `total_bytes`, which are copied and ended; `at_first`
    /// says that the first look found them. The peer's name.
    #[inline(always)] // The path of a short message.
    pub(super) fn count_taken(
        &mut self,
        key: PeerKey,
        bytes: u64,
        total_bytes: u64,
        at_first: bool,
    ) -> PeerId {
        self.events = self.events.wrapping_add(1);
        let is_whole = bytes == total_bytes;
        if let Some(Peer { connection: Connection::Up(link), eager, .. }) = self.peers.get_mut(key as usize) {
            if link.take(bytes + OVERHEAD_BYTES) {
                self.owing.push(key);
            }
            link.first_look.came(at_first);
            if is_whole {
                eager.received.count(bytes);
            }
        }
        if is_whole {
            self.eager.received.count(bytes);
        }
        // One piece may be longer than what is short: `cell_bytes` and
        // `eager_max_bytes` are set apart.
        self.heard(key, total_bytes, Way::Cells);
        self.looked_in_vain = false;
        self.name(key)
    }

    /// Notes whether the first look found a message of a peer.
    #[inline]
    fn note_first_look(&mut self, key: PeerKey, at_first: bool) {
        if let Some(Peer { connection: Connection::Up(link), .. }) = self.peers.get_mut(key as usize) {
            link.first_look.came(at_first);
        }
    }

    /// Takes an announcement, if it is of the message wanted; leaves it in the inbox
    /// otherwise.
    #[inline]
    fn take_announced(
        &mut self,
        delivery: Delivery<'_>,
        wanted: Pattern,
        at_first: bool,
    ) -> Option<Announced> {
        let (key, tag) = (PeerKey::from(delivery.sender()), delivery.tag());
        let mut words = PacketWords::empty();
        words.fill(|words| delivery.copy_to_words(words));
        let peer = self.peers.get(key as usize).filter(|peer| peer.bound && wanted.accepts(key, tag));
        let is_it = peer.is_some_and(|peer| matches!(peer.connection, Connection::Up(_)));
        let Some(Packet::Rts(rts)) = words.decode().ok().filter(|_| is_it) else {
            std::mem::forget(delivery);
            return None;
        };
        drop(delivery);
        self.looked_in_vain = false;
        self.note_taken(key, 0);
        self.note_first_look(key, at_first);
        self.heard_announced(key, &rts);
        Some(Announced { key, tag, rts })
    }

    /// Takes a further piece, which `into` has room for; returns its bytes.
    #[inline]
    fn copy_directly(&mut self, delivery: Delivery<'_>, into: &mut [u8]) -> usize {
        let key = PeerKey::from(delivery.sender());
        let bytes = delivery.copy_to(into);
        drop(delivery);
        self.note_taken(key, bytes as u64);
        bytes
    }

    /// Counts a cell with so many bytes of a message as drained and released.
    #[inline]
    fn note_taken(&mut self, key: PeerKey, bytes: u64) {
        self.events = self.events.wrapping_add(1);
        if let Some(Peer { connection: Connection::Up(link), .. }) = self.peers.get_mut(key as usize)
            && link.take(bytes + OVERHEAD_BYTES)
        {
            self.owing.push(key);
        }
    }

    /// Counts a message that is complete.
    #[inline]
    fn received_directly(&mut self, begun: Begun) -> Status {
        let bytes = begun.total_bytes as u64;
        self.count_eager_arrival(begun.key, bytes);
        Status { peer: self.name(begun.key), tag: begun.tag, bytes, immediate: None }
    }
}

impl Link {
    /// Writes a message in pieces for which there is room.
    #[inline]
    fn write_pieces(&mut self, label: &Label, data: &[u8], cell_bytes: u64, cut: Cut) -> Option<()> {
        let (mut sent_bytes, total_bytes) = (0, data.len() as u64);
        while sent_bytes < total_bytes {
            let address = data.as_ptr().addr() + sent_bytes as usize;
            let bytes = self.inbox.piece_bytes(sent_bytes, total_bytes, cell_bytes, address, cut);
            let (envelope, piece) = envelope_of(label, sent_bytes, bytes, total_bytes);
            let end_bytes = sent_bytes + bytes;
            let part = data.get(sent_bytes as usize..end_bytes as usize)?;
            self.write_piece(envelope, Payload::Bytes(part), bytes + OVERHEAD_BYTES, piece).ok()?;
            sent_bytes = end_bytes;
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
