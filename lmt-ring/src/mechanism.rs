//! The mechanism as the rendezvous protocol sees it.

use std::sync::Arc;

use lmt_core::buffer::Buffer;
use lmt_core::in_flight::InFlight;
use lmt_core::keys::{Key, Value};
use lmt_core::mechanism::{
    Abilities, Cookie, Fault, Hello, Interval, Lmt, Model, PeerFacts, Plan, Role, Step, Unavailable,
};
use lmt_core::shared_memory::AttachError;
use lmt_core::targets::Targets;
use lmt_core::ways_out::{Rule, WaysOut};
use nix::errno::Errno;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::config::{Config, KEYS};
use crate::cookie::Where;
use crate::faults::{garbage, no_duplicate, no_memory, no_ring, no_slot, short_of_memory, unavailable};
use crate::layout::{CELL_BYTES, Layout};
use crate::pace::Watch;
use crate::pool::Pool;
use crate::receiver::Receiving;
use crate::ring::{Cells, PairRing};
use crate::sender::Sending;
use crate::sys::{Emptying, Mapping};

/// Version of the pool's layout; both sides must have the same.
const LAYOUT_VERSION: u32 = 6;

/// Of messages shorter than this part of [`Config::streaming_bytes`] none is copied out
/// past the caches: several of these stay in the last one.
const LONG_PART: u64 = 16;

/// Where a window had [`Config::streaming_bytes`] on their way, a message of the next is one of
/// several that are so long together from where the others have this part of it: a core's own cache
/// holds no more.
const OTHERS_PART: u64 = 4;

/// From here on also what is read at once goes past the caches where its target is in
/// none: most of it would be out of them by then.
const PAST_BYTES: u64 = 2 << 20;

/// Whether a message may go past the caches, if its target is in none.
const fn may_go_past(bytes: u64) -> bool {
    bytes >= PAST_BYTES
}

/// What an endpoint says of its pool.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct WireHello {
    version: u32,
    layout: Layout,
    zero: u32,
    /// Of two rings of one pair, that of the endpoint with the smaller number
    /// is used.
    number: u64,
}

/// The mechanism, with this endpoint's pool.
#[derive(Debug, Default)]
pub struct Ring {
    config: Config,
    /// Made at the first hello.
    pool: Option<Pool>,
    number: u64,
}

impl Ring {
    /// A new instance; it takes no memory before it is used.
    pub fn new(config: Config) -> Self {
        Self { config, ..Self::default() }
    }

    fn pool(&mut self) -> Result<&mut Pool, Unavailable> {
        let pool = match self.pool.take() {
            Some(pool) => pool,
            None => {
                let cells = u32::try_from(self.config.ring_bytes / CELL_BYTES).unwrap_or(u32::MAX);
                let layout = Layout { cells, rings: self.config.max_rings }.checked().ok_or_else(|| {
                    unavailable(Errno::EINVAL as i32, "ring_bytes or max_rings is out of bounds".into())
                })?;
                let mut number = [0; 8];
                lmt_core::random::fill(&mut number)
                    .map_err(|errno| unavailable(errno as i32, format!("getrandom failed: {errno}")))?;
                self.number = u64::from_le_bytes(number);
                Pool::new(layout).map_err(no_memory)?
            }
        };
        Ok(self.pool.insert(pool))
    }

    /// Whether a message is to be copied out past the caches: where it `goes_past` them for
    /// the sake of its target, is longer than they are, or is one of several long ones that
    /// are so together, as its sender says.
    fn is_past(&self, interval: Interval, goes_past: bool, is_among_many: bool) -> bool {
        let most = self.config.streaming_bytes;
        let least = if is_among_many { most / LONG_PART } else { most };
        goes_past || interval.bytes() >= least
    }

    /// Whether a message of so many bytes is one of several that are long together, as its
    /// receiver is told. It is under way from now on.
    fn is_among_many(&self, outgoing: &mut InFlight, bytes: u64) -> bool {
        let (others_bytes, many) = (outgoing.bytes(), self.config.streaming_bytes);
        outgoing.begin(bytes);
        // The first message of a window may have taken another way: it counts as one more.
        let last_bytes = outgoing.last_most_bytes().saturating_add(bytes);
        let is_likely = last_bytes >= many && others_bytes >= many / OTHERS_PART;
        is_likely || outgoing.bytes() >= many
    }

    /// Begins to receive the message `tag` in `slot` of the ring that `transfer` has.
    fn receive(
        &self,
        peer: &mut RingPeer,
        transfer: &mut RingTransfer,
        (slot, tag): (u8, u64),
        is_among_many: bool,
    ) -> Result<(), Fault> {
        let interval = transfer.interval;
        let is_past = self.is_past(interval, transfer.goes_past, is_among_many);
        let rule = if is_past { Rule::Past } else { Rule::Always { past: false } };
        let is_past = peer.ways_out.begin(interval.bytes(), rule);
        let way = if is_past { Emptying::Streamed } else { Emptying::Cached };
        let ring = peer.ring(transfer.is_mine).ok_or_else(garbage);
        let receiving = ring.and_then(|ring| Receiving::start(ring, slot, tag, interval, way));
        if receiving.is_err() {
            peer.ways_out.end(interval.bytes(), false);
        }
        transfer.side = Side::Receiver(receiving?);
        Ok(())
    }
}

/// A peer, with its pool mapped.
#[derive(Debug)]
pub struct RingPeer {
    theirs: Arc<Mapping>,
    layout: Layout,
    /// Whether a ring of this endpoint's pool goes before one of the peer's.
    is_mine_first: bool,
    mine: Option<PairRing>,
    other: Option<PairRing>,
    /// This side's messages that are on their way.
    outgoing: InFlight,
    /// Which of the messages that come may go past the caches.
    targets: Targets,
    /// Whether that is faster.
    ways_out: WaysOut,
}

impl RingPeer {
    fn ring(&mut self, is_mine: bool) -> Option<&mut PairRing> {
        if is_mine { self.mine.as_mut() } else { self.other.as_mut() }
    }

    /// The ring that a sender's cookie names, if it is that of this pair.
    fn named(&mut self, place: Where) -> Option<&mut PairRing> {
        if !place.is_senders {
            return self.mine.as_mut().filter(|ring| ring.ring == place.ring);
        }
        if place.ring >= self.layout.rings {
            return None;
        }
        let ring = self
            .other
            .get_or_insert_with(|| PairRing::theirs(Arc::clone(&self.theirs), self.layout, place.ring));
        Some(ring).filter(|ring| ring.ring == place.ring)
    }
}

/// A transfer under way.
#[derive(Debug)]
pub struct RingTransfer {
    interval: Interval,
    /// Whether its ring is of this endpoint's pool.
    is_mine: bool,
    /// What it counts among the peer's `outgoing`.
    outgoing_bytes: u64,
    /// Whether what comes goes past the caches.
    goes_past: bool,
    side: Side,
}

#[derive(Debug)]
// One for each transfer, kept where it is; boxing it would allocate.
#[allow(clippy::large_enum_variant)]
enum Side {
    Sender(Sending),
    /// Before the sender's cookie is there.
    Announced,
    /// The sender has no slot yet, or had none when it announced the message.
    Looking {
        tag: u64,
        is_among_many: bool,
    },
    Receiver(Receiving),
}

impl Lmt for Ring {
    type Peer = RingPeer;
    type Transfer = RingTransfer;

    fn name(&self) -> &'static str {
        "ring"
    }

    fn models(&self) -> &'static [Model] {
        &[Model::Stream, Model::Cooperative]
    }

    fn keys(&self) -> &'static [Key] {
        KEYS
    }

    fn get(&self, key: &str) -> Option<Value> {
        self.config.get(key)
    }

    fn set(&mut self, key: &str, value: Value) -> Result<(), String> {
        if self.pool.is_some() {
            return Err(format!("{key} cannot change once the pool is in use; set it before"));
        }
        self.config.set(key, &value)
    }

    fn hello(&mut self) -> Result<Hello, Unavailable> {
        let pool = self.pool()?;
        let descriptor = pool.descriptor().map_err(|error| no_duplicate(&error))?;
        let layout = pool.layout;
        let hello = WireHello { version: LAYOUT_VERSION, layout, zero: 0, number: self.number };
        Ok(Hello { bytes: hello.as_bytes().to_vec(), descriptors: vec![descriptor] })
    }

    fn probe(&mut self, _facts: &PeerFacts, hello: Hello) -> Result<(RingPeer, Abilities), Unavailable> {
        self.pool()?;
        let (theirs, wire) = attach(hello)?;
        let peer = RingPeer {
            theirs: Arc::new(theirs),
            layout: wire.layout,
            is_mine_first: self.number < wire.number,
            mine: None,
            other: None,
            outgoing: InFlight::default(),
            targets: Targets::default(),
            ways_out: WaysOut::new(self.config.streaming_bytes),
        };
        Ok((peer, Abilities { read: false, write: false, cooperate: true }))
    }

    fn prepare(
        &mut self,
        peer: &mut RingPeer,
        plan: &Plan,
        data: &Buffer,
    ) -> Result<(RingTransfer, Cookie), Fault> {
        let interval = plan.interval;
        if plan.role == Role::Receiver {
            let look = || data.is_cold(interval.start..interval.end);
            let may = may_go_past(interval.bytes());
            let goes_past = peer.targets.go_past(interval.bytes(), may, look);
            let (is_mine, outgoing_bytes, side) = (false, 0, Side::Announced);
            let transfer = RingTransfer { interval, is_mine, outgoing_bytes, goes_past, side };
            return Ok((transfer, Cookie::empty()));
        }
        let is_mine = match (&peer.mine, &peer.other) {
            (Some(_), Some(_)) => peer.is_mine_first,
            (_, other) => other.is_none(),
        };
        if is_mine && peer.mine.is_none() {
            let Some(pool) = &self.pool else { return Err(no_ring()) };
            let lease = pool.lease().map_err(short_of_memory)?.ok_or_else(no_ring)?;
            peer.mine = Some(PairRing::mine(Arc::clone(&pool.mapping), pool.layout, lease));
        }
        let ring = peer.ring(is_mine).ok_or_else(no_ring)?;
        let cells = if plan.may_give_up { ring.cells_for(interval.bytes()) } else { Cells::All };
        let sending = match plan.model {
            Model::Stream => Sending::at_once(ring, data, interval.start, cells).ok_or_else(no_slot)?,
            _ => Sending::asked(ring, data, interval.start, cells),
        };
        let sending = if plan.may_give_up { sending.let_hand_over(Watch::default()) } else { sending };
        let (slot, tag) = (sending.slot(), sending.tag);
        let ring = ring.ring;
        let outgoing_bytes = interval.bytes();
        let is_among_many = self.is_among_many(&mut peer.outgoing, outgoing_bytes);
        let place = Where { is_senders: is_mine, ring, slot, tag, is_among_many };
        let (goes_past, side) = (false, Side::Sender(sending));
        let transfer = RingTransfer { interval, is_mine, outgoing_bytes, goes_past, side };
        Ok((transfer, place.cookie()))
    }

    fn start(
        &mut self,
        peer: &mut RingPeer,
        transfer: &mut RingTransfer,
        remote: &Cookie,
        interval: Interval,
    ) -> Result<(), Fault> {
        transfer.interval = interval;
        if let Side::Announced = transfer.side {
            let place = Where::read(remote).ok_or_else(garbage)?;
            peer.named(place).ok_or_else(garbage)?;
            transfer.is_mine = !place.is_senders;
            let Where { slot, tag, is_among_many, .. } = place;
            match slot {
                Some(slot) => self.receive(peer, transfer, (slot, tag), is_among_many)?,
                None => transfer.side = Side::Looking { tag, is_among_many },
            }
        } else if let Side::Sender(sending) = &mut transfer.side {
            sending.start(interval);
        }
        Ok(())
    }

    fn step(
        &mut self,
        peer: &mut RingPeer,
        transfer: &mut RingTransfer,
        data: &mut Buffer,
        max_bytes: u64,
    ) -> Result<Step, Fault> {
        let ring = peer.ring(transfer.is_mine).ok_or_else(garbage)?;
        match &mut transfer.side {
            Side::Sender(sending) => sending.step(ring, data, max_bytes),
            Side::Receiver(receiving) => receiving.step(ring, data, max_bytes),
            &mut Side::Looking { tag, is_among_many } => {
                if let Some(slot) = Receiving::find(ring, tag) {
                    self.receive(peer, transfer, (slot, tag), is_among_many)?;
                }
                Ok(Step { bytes: 0, done: false })
            }
            Side::Announced => Ok(Step { bytes: 0, done: false }),
        }
    }

    fn leave(&mut self, peer: &mut RingPeer, transfer: &mut RingTransfer) -> bool {
        let Some(ring) = peer.ring(transfer.is_mine) else { return false };
        match &mut transfer.side {
            Side::Sender(sending) => sending.leave(ring),
            Side::Receiver(receiving) => receiving.close(ring),
            Side::Announced | Side::Looking { .. } => false,
        }
    }

    fn finish(&mut self, peer: &mut RingPeer, transfer: RingTransfer) {
        if matches!(transfer.side, Side::Sender(_)) {
            peer.outgoing.end(transfer.outgoing_bytes);
        }
        let Some(ring) = peer.ring(transfer.is_mine) else { return };
        match transfer.side {
            Side::Sender(sending) => sending.finish(ring),
            Side::Receiver(mut receiving) => {
                receiving.close(ring);
                peer.ways_out.end(transfer.interval.bytes(), receiving.is_whole());
            }
            Side::Announced | Side::Looking { .. } => {}
        }
    }
}

/// Maps the peer's pool after checking that nothing can go wrong with it.
fn attach(hello: Hello) -> Result<(Mapping, WireHello), Unavailable> {
    let wire = WireHello::read_from_bytes(&hello.bytes)
        .ok()
        .filter(|wire| wire.version == LAYOUT_VERSION)
        .ok_or_else(|| {
            unavailable(0, "the peer's rings have another layout; use one version of lmt".into())
        })?;
    let layout = wire
        .layout
        .checked()
        .ok_or_else(|| unavailable(0, "the peer's rings cannot be so many or so long".into()))?;
    Mapping::spare(layout.pool_bytes()).map_err(no_memory)?;
    let fd = hello.descriptors.into_iter().next();
    let fd = fd.ok_or_else(|| unavailable(0, "the peer passed no pool of rings".into()))?;
    let mapping = Mapping::attach(fd, layout.pool_bytes()).map_err(|error| {
        let errno = if let AttachError::System { errno, .. } = &error { *errno as i32 } else { 0 };
        unavailable(errno, format!("the peer's pool of rings cannot be mapped: {error}"))
    })?;
    Ok((mapping, wire))
}

#[cfg(all(test, not(loom)))]
#[path = "mechanism_tests.rs"]
mod tests;
