//! The mechanism as the rendezvous protocol sees it.

use std::sync::Arc;

use lmt_core::buffer::Buffer;
use lmt_core::config_key::{Key, Value};
use lmt_core::mechanism::{
    Abilities, Cookie, Description, Fault, Hello, Interval, Left, Lmt, Model, PeerFacts, Plan, Probed, Role,
    Settings, SharedCompletion, Step, Unavailable,
};
use lmt_core::shared_memory::AttachError;
use nix::errno::Errno;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::config::{Config, KEYS};
use crate::cookie::Where;
use crate::faults::{garbage, no_duplicate, no_memory, no_ring, no_slot, short_of_memory, unavailable};
use crate::layout::{CELL_BYTES, Layout};
use crate::pool::Pool;
use crate::receiver::Receiving;
use crate::ring::PairRing;
use crate::sender::Sending;
use crate::sys::{CopyOut, Mapping};

/// Version of the pool's layout; both sides must have the same.
const LAYOUT_VERSION: u32 = 8;

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

    /// Counts a message among those in flight to a peer. Returns whether it is copied out past
    /// the receiver's caches: where so much is in flight with it that they would not hold it
    /// until it is read.
    fn count_outgoing(&self, outgoing_bytes: &mut u64, bytes: u64) -> bool {
        *outgoing_bytes = outgoing_bytes.saturating_add(bytes);
        *outgoing_bytes >= self.config.streaming_bytes
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
    /// Of this side's messages in flight.
    outgoing_bytes: u64,
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

/// A transfer in flight.
#[derive(Debug)]
pub struct RingTransfer {
    interval: Interval,
    /// Whether its ring is of this endpoint's pool.
    is_mine: bool,
    /// What it counts among the peer's `outgoing_bytes`.
    outgoing_bytes: u64,
    side: Side,
}

impl RingTransfer {
    /// Begins to receive the message in `slot`.
    fn receive(&mut self, peer: &mut RingPeer, slot: u8, tag: u64, way: CopyOut) -> Result<(), Fault> {
        let ring = peer.ring(self.is_mine).ok_or_else(garbage)?;
        self.side = Side::Receiver(Receiving::start(ring, slot, tag, self.interval, way)?);
        Ok(())
    }
}

#[derive(Debug)]
// One for each transfer, kept where it is; boxing it would allocate.
#[allow(clippy::large_enum_variant)]
enum Side {
    Sender(Sending),
    /// Before the sender's cookie is there.
    Announced,
    /// The sender has no slot yet, or had none when it announced the message.
    AwaitingSlot {
        tag: u64,
        way: CopyOut,
    },
    Receiver(Receiving),
}

impl Lmt for Ring {
    type Peer = RingPeer;
    type Transfer = RingTransfer;

    fn description(&self) -> Description {
        Description::new("ring", &[Model::Stream, Model::Cooperative])
    }

    fn hello(&mut self) -> Result<Hello, Unavailable> {
        let pool = self.pool()?;
        let descriptor = pool.descriptor().map_err(|error| no_duplicate(&error))?;
        let layout = pool.layout;
        let hello = WireHello { version: LAYOUT_VERSION, layout, zero: 0, number: self.number };
        Ok(Hello { bytes: hello.as_bytes().to_vec(), descriptors: vec![descriptor] })
    }

    fn probe(&mut self, _facts: &PeerFacts, hello: Hello) -> Result<Probed<RingPeer>, Unavailable> {
        self.pool()?;
        let (theirs, wire) = attach(hello)?;
        let peer = RingPeer {
            theirs: Arc::new(theirs),
            layout: wire.layout,
            is_mine_first: self.number < wire.number,
            mine: None,
            other: None,
            outgoing_bytes: 0,
        };
        Ok(Probed::new(peer, Abilities { read: false, write: false, cooperate: true }))
    }

    fn prepare(
        &mut self,
        peer: &mut RingPeer,
        plan: &Plan,
        data: &Buffer,
    ) -> Result<(RingTransfer, Cookie), Fault> {
        let interval = plan.interval;
        if plan.role == Role::Receiver {
            let side = Side::Announced;
            return Ok((RingTransfer { interval, is_mine: false, outgoing_bytes: 0, side }, Cookie::empty()));
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
        let sending = match plan.model {
            Model::Stream => Sending::at_once(ring, data, interval.start).ok_or_else(no_slot)?,
            _ => Sending::asked(ring, data, interval.start),
        };
        let (slot, tag) = (sending.slot(), sending.tag);
        let ring = ring.ring;
        let outgoing_bytes = interval.bytes();
        let past_caches = self.count_outgoing(&mut peer.outgoing_bytes, outgoing_bytes);
        let place = Where { is_senders: is_mine, ring, slot, tag, past_caches };
        let side = Side::Sender(sending);
        Ok((RingTransfer { interval, is_mine, outgoing_bytes, side }, place.cookie()))
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
            let way = if place.past_caches { CopyOut::Streamed } else { CopyOut::Cached };
            match place.slot {
                Some(slot) => transfer.receive(peer, slot, place.tag, way)?,
                None => transfer.side = Side::AwaitingSlot { tag: place.tag, way },
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
            &mut Side::AwaitingSlot { tag, way } => {
                if let Some(slot) = Receiving::find(ring, tag) {
                    transfer.receive(peer, slot, tag, way)?;
                }
                Ok(Step { bytes: 0, done: false })
            }
            Side::Announced => Ok(Step { bytes: 0, done: false }),
        }
    }

    fn finish(&mut self, peer: &mut RingPeer, transfer: RingTransfer) {
        peer.outgoing_bytes = peer.outgoing_bytes.saturating_sub(transfer.outgoing_bytes);
        let Some(ring) = peer.ring(transfer.is_mine) else { return };
        match transfer.side {
            Side::Sender(sending) => sending.finish(ring),
            Side::Receiver(mut receiving) => {
                receiving.close(ring);
            }
            Side::Announced | Side::AwaitingSlot { .. } => {}
        }
    }

    fn shared_completion(&mut self) -> Option<&mut dyn SharedCompletion<RingPeer, RingTransfer>> {
        Some(self)
    }

    fn settings(&mut self) -> Option<&mut dyn Settings> {
        Some(self)
    }
}

impl SharedCompletion<RingPeer, RingTransfer> for Ring {
    fn leave(&mut self, peer: &mut RingPeer, transfer: &mut RingTransfer) -> Left {
        let Some(ring) = peer.ring(transfer.is_mine) else { return Left::default() };
        let both_know = match &mut transfer.side {
            Side::Sender(sending) => sending.leave(ring),
            Side::Receiver(receiving) => receiving.close(ring),
            Side::Announced | Side::AwaitingSlot { .. } => false,
        };
        Left { both_know, copied_by_peer: 0 }
    }
}

impl Settings for Ring {
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
