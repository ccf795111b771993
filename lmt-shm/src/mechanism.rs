//! The mechanism as the rendezvous protocol sees it.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;

use lmt_core::buffer::Buffer;
use lmt_core::config_key::{Key, Value};
use lmt_core::cursor::Cursor;
use lmt_core::diagnostic::{Finding, Host};
use lmt_core::error::MemoryError;
use lmt_core::mechanism::{
    Abilities, Cookie, Description, Diagnosis, Fault, Hello, Interval, Lmt, Model, PeerFacts, Plan, Probed,
    Role, Settings, Step, Unavailable,
};
use lmt_core::shared_memory::AttachError;
use nix::errno::Errno;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::copier::{Copied, Copier, Cpu};
use crate::faults::{garbage, no_duplicate, no_memory, short_buffer, short_of_memory, unavailable};
use crate::geometry::{Chunks, Config, ConfigError, Geometry, MAILBOXES, SLOTS};
use crate::lane::{Consumer, Tag, look};
use crate::pool::{Mailbox, Pool, TakenLane, words};
use crate::sys::Mapping;

/// Version of the pool's layout; both sides must have the same.
const LAYOUT_VERSION: u32 = 1;

/// What an endpoint says of its pool.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct WireHello {
    version: u32,
    geometry: Geometry,
}

/// The sender's cookie: the transfer's tag, and the mailbox in the sender's
/// pool where its lane will stand.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct WireCookie {
    tag: u64,
    mailbox: u32,
    zero: u32,
}

/// The mechanism, with this endpoint's pool.
#[derive(Debug)]
pub struct Shm<C: Copier = Cpu> {
    /// Before the pool: when it is dropped, nothing copies any more, and only
    /// then may the pool be unmapped.
    copier: C,
    config: Config,
    geometry: Geometry,
    /// Made at the first hello.
    pool: Option<Pool>,
}

impl Shm {
    /// A new instance in which the CPU copies; it takes no memory before it is
    /// used.
    ///
    /// # Errors
    /// [`ConfigError`] when a number of the configuration cannot work.
    pub fn new(config: Config) -> Result<Self, ConfigError> {
        Self::with_copier(config, Cpu)
    }
}

impl<C: Copier> Shm<C> {
    /// A new instance in which `copier` copies, under the copier's name; it
    /// takes no memory before it is used.
    ///
    /// # Errors
    /// [`ConfigError`] when a number of the configuration cannot work.
    pub fn with_copier(config: Config, copier: C) -> Result<Self, ConfigError> {
        let geometry = config.geometry()?;
        Ok(Self { copier, config, geometry, pool: None })
    }

    fn pool(&mut self) -> Result<&mut Pool, MemoryError> {
        let pool = match self.pool.take() {
            Some(pool) => pool,
            None => Pool::new(&self.config, self.geometry)?,
        };
        Ok(self.pool.insert(pool))
    }
}

/// A peer, with its pool mapped.
#[derive(Debug)]
pub struct ShmPeer {
    /// The peer's pool, through which it sends.
    theirs: Arc<Mapping>,
    geometry: Geometry,
    /// Ours in our own pool, where the peer finds our lanes.
    mailbox: Mailbox,
    slots_used: [bool; SLOTS as usize],
}

/// A transfer in flight.
#[derive(Debug)]
pub struct ShmTransfer<T = Infallible> {
    /// Copies between the message and the lane's next buffers, in order: what a
    /// copier does in the background. `None`: copied already, but behind others.
    in_flight: VecDeque<Option<T>>,
    /// The receiver's hold on what those read, beyond the peer's end; behind
    /// them, so that it goes after them.
    _theirs: Option<Arc<Mapping>>,
    interval: Interval,
    chunks: Chunks,
    at: Cursor,
    side: Side,
}

#[derive(Debug)]
enum Side {
    /// With its lane, from when one is free until the end.
    Sender { tag: Tag, taken: Option<TakenLane> },
    /// Before the sender's cookie is there.
    Announced,
    /// The sender's lane is not known yet.
    AwaitingLane { tag: Tag, mailbox: u32 },
    /// Copying out of a lane.
    Receiver { lane: u32, consumer: Consumer },
    /// The sender has ended the transfer before it was whole.
    Closed,
}

impl<C: Copier> Lmt for Shm<C> {
    type Peer = ShmPeer;
    type Transfer = ShmTransfer<C::Ticket>;

    fn description(&self) -> Description {
        let needs = self.copier.needs();
        Description { needs, ..Description::new(self.copier.name(), &[Model::Cooperative]) }
    }

    fn hello(&mut self) -> Result<Hello, Unavailable> {
        // Only now: one key may be out of proportion until the next is set.
        let geometry =
            self.config.geometry().map_err(|wrong| unavailable(Errno::EINVAL, &wrong.to_string()))?;
        self.copier.available()?;
        self.geometry = geometry;
        let pool = self.pool().map_err(no_memory)?;
        let descriptor = pool.descriptor().map_err(|error| no_duplicate(&error))?;
        let hello = WireHello { version: LAYOUT_VERSION, geometry };
        Ok(Hello { bytes: hello.as_bytes().to_vec(), descriptors: vec![descriptor] })
    }

    fn probe(&mut self, _facts: &PeerFacts, hello: Hello) -> Result<Probed<ShmPeer>, Unavailable> {
        let (theirs, geometry) = attach(hello)?;
        let pool = self.pool().map_err(no_memory)?;
        let mailbox = pool.lease_mailbox().ok_or_else(|| {
            unavailable(Errno::UnknownErrno, "all 16384 mailboxes of the pool are taken by other peers")
        })?;
        let peer =
            ShmPeer { theirs: Arc::new(theirs), geometry, mailbox, slots_used: [false; SLOTS as usize] };
        Ok(Probed::new(peer, Abilities { read: false, write: false, cooperate: true }))
    }

    fn prepare(
        &mut self,
        peer: &mut ShmPeer,
        plan: &Plan,
        _data: &Buffer,
    ) -> Result<(Self::Transfer, Cookie), Fault> {
        let theirs = (plan.role == Role::Receiver).then(|| Arc::clone(&peer.theirs));
        let (side, cookie, chunk_bytes) = match plan.role {
            Role::Receiver => (Side::Announced, Cookie::empty(), peer.geometry.buffer_bytes),
            Role::Sender => {
                let pool = self.pool().map_err(short_of_memory)?;
                pool.commit_mailbox(&peer.mailbox).map_err(short_of_memory)?;
                let tag = pool.next_tag();
                let wire = WireCookie { tag: tag.number(), mailbox: peer.mailbox.index, zero: 0 };
                let cookie = Cookie::new(wire.as_bytes()).unwrap_or(Cookie::empty());
                (Side::Sender { tag, taken: None }, cookie, pool.geometry.buffer_bytes)
            }
        };
        let chunks = Chunks { total_bytes: 0, chunk_bytes };
        let (in_flight, at) = (VecDeque::new(), Cursor::default());
        let interval = plan.interval;
        Ok((ShmTransfer { in_flight, _theirs: theirs, interval, chunks, at, side }, cookie))
    }

    fn start(
        &mut self,
        peer: &mut ShmPeer,
        transfer: &mut ShmTransfer<C::Ticket>,
        remote: &Cookie,
        interval: Interval,
    ) -> Result<(), Fault> {
        transfer.interval = interval;
        transfer.chunks.total_bytes = interval.bytes();
        match transfer.side {
            Side::Sender { .. } => self.ensure_lane(peer, transfer),
            _ => {
                transfer.side = read_cookie(remote).ok_or_else(garbage)?;
                Ok(())
            }
        }
    }

    /// The sender's front is what the receiver has taken out, the receiver's
    /// what it has copied; where the two differ at an early end, the receiver
    /// is right.
    fn step(
        &mut self,
        peer: &mut ShmPeer,
        transfer: &mut ShmTransfer<C::Ticket>,
        data: &mut Buffer,
        max_bytes: u64,
    ) -> Result<Step, Fault> {
        if transfer.chunks.total_bytes == 0 {
            return Ok(Step { bytes: 0, done: true });
        }
        match transfer.side {
            Side::Sender { .. } => self.send(peer, transfer, data, max_bytes),
            _ => receive(&mut self.copier, peer, transfer, data, max_bytes),
        }
    }

    fn finish(&mut self, peer: &mut ShmPeer, mut transfer: Self::Transfer) {
        // The message's memory and the lane are given back now, so whoever
        // copies must be quiet about both: dropping the tickets sees to it.
        transfer.in_flight.clear();
        if let (Side::Sender { taken: Some(taken), .. }, Some(pool)) = (transfer.side, &mut self.pool) {
            if let Some(used) = peer.slots_used.get_mut(taken.slot as usize) {
                *used = false;
            }
            pool.put_back(&peer.mailbox, taken);
        }
    }

    fn settings(&mut self) -> Option<&mut dyn Settings> {
        Some(self)
    }

    fn diagnosis(&self) -> Option<&dyn Diagnosis> {
        Some(self)
    }
}

impl<C: Copier> Settings for Shm<C> {
    fn keys(&self) -> &'static [Key] {
        self.copier.keys()
    }

    fn get(&self, key: &str) -> Option<Value> {
        self.config.get(key).or_else(|| self.copier.get(key))
    }

    fn set(&mut self, key: &str, value: Value) -> Result<(), String> {
        if self.config.get(key).is_none() {
            return self.copier.set(key, value);
        }
        if self.pool.is_some() {
            return Err(format!("{key} cannot change once the pool is in use; set it before"));
        }
        let number = match value {
            Value::Number(number) => u32::try_from(number).ok(),
            _ => None,
        };
        let number = number.ok_or_else(|| format!("{key} must be a whole number below 2^32"))?;
        self.config.set(key, number);
        Ok(())
    }
}

impl<C: Copier> Diagnosis for Shm<C> {
    fn diagnostics(&self, host: &Host) -> Vec<Finding> {
        let mut found = crate::diagnostics::diagnostics(host, &self.config, self.geometry);
        found.extend(self.copier.diagnostics(host));
        found
    }
}

impl<C: Copier> Shm<C> {
    /// Takes a lane for a sender that has none, if one is free and the peer
    /// does not hold its share already: a peer that stands still must not keep
    /// all lanes from the others.
    fn ensure_lane(
        &mut self,
        peer: &mut ShmPeer,
        transfer: &mut ShmTransfer<C::Ticket>,
    ) -> Result<(), Fault> {
        let Side::Sender { tag, taken: taken @ None } = &mut transfer.side else {
            return Ok(());
        };
        let pool = self.pool().map_err(short_of_memory)?;
        let free = peer.slots_used.iter().position(|used| !used);
        let (Some(slot), true) = (free, transfer.chunks.total_bytes > 0) else {
            return Ok(());
        };
        *taken = pool.take(&peer.mailbox, slot as u32, *tag).map_err(short_of_memory)?;
        peer.slots_used[slot] = taken.is_some();
        Ok(())
    }

    fn send(
        &mut self,
        peer: &mut ShmPeer,
        transfer: &mut ShmTransfer<C::Ticket>,
        data: &Buffer,
        max_bytes: u64,
    ) -> Result<Step, Fault> {
        self.ensure_lane(peer, transfer)?;
        let ShmTransfer { in_flight, interval, chunks, at, side, .. } = transfer;
        let (Some(pool), Side::Sender { taken: Some(taken), .. }) = (&self.pool, side) else {
            return Ok(Step { bytes: 0, done: false });
        };
        let words = words(&pool.mapping, taken.lane).ok_or_else(garbage)?;
        let producer = &mut taken.producer;
        let before = producer.consumed();
        producer.refresh(words).map_err(|_| garbage())?;
        if producer.produced() == 0 && in_flight.is_empty() {
            *at = Cursor::at(data.segments(), interval.start);
        }
        let mut begun = 0;
        loop {
            while first_is_copied(&mut self.copier, in_flight)? {
                producer.publish(words);
                producer.refresh(words).map_err(|_| garbage())?;
            }
            let filling = in_flight.len() as u64;
            let chunk = producer.produced() + filling;
            if begun >= max_bytes.max(1) || chunk >= chunks.count() {
                break;
            }
            let Some(buffer) = producer.free_buffer(filling) else { break };
            let bytes = chunks.bytes_at(chunk);
            let offset = pool.geometry.buffer_offset(taken.lane, buffer);
            let copy = pool.mapping.copy_in(&mut self.copier, offset, data, at, bytes)?;
            in_flight.push_back(copy.ticket);
            if copy.bytes < bytes {
                return Err(short_buffer());
            }
            begun += bytes;
        }
        let consumed = producer.consumed();
        Ok(Step {
            bytes: chunks.bytes_of(consumed) - chunks.bytes_of(before),
            done: consumed == chunks.count(),
        })
    }
}

/// Whether the first of the copies in flight has arrived; it is taken out then.
#[inline]
fn first_is_copied<C: Copier>(
    copier: &mut C,
    in_flight: &mut VecDeque<Option<C::Ticket>>,
) -> Result<bool, Fault> {
    let copied = match in_flight.front_mut() {
        None => return Ok(false),
        Some(None) => Copied::Yes,
        Some(Some(ticket)) => copier.poll(ticket),
    };
    match copied {
        Copied::No => return Ok(false),
        Copied::Yes => in_flight.pop_front(),
        Copied::Failed(fault) => return Err(fault),
    };
    Ok(true)
}

/// The receiver's step; it needs only the peer's pool.
fn receive<C: Copier>(
    copier: &mut C,
    peer: &ShmPeer,
    transfer: &mut ShmTransfer<C::Ticket>,
    data: &mut Buffer,
    max_bytes: u64,
) -> Result<Step, Fault> {
    if let Side::AwaitingLane { tag, mailbox } = transfer.side {
        let Some(lane) = find_lane(peer, tag, mailbox) else {
            return Ok(Step { bytes: 0, done: false });
        };
        if lane >= peer.geometry.lanes {
            return Err(garbage());
        }
        transfer.at = Cursor::at(data.segments(), transfer.interval.start);
        transfer.side = Side::Receiver { lane, consumer: Consumer::new(tag, peer.geometry.buffers) };
    }
    let ShmTransfer { in_flight, chunks, at, side, .. } = transfer;
    let Side::Receiver { lane, consumer } = side else {
        return Ok(Step { bytes: 0, done: false });
    };
    let words = words(&peer.theirs, *lane).ok_or_else(garbage)?;
    let (mut begun, mut moved) = (0, 0);
    loop {
        while first_is_copied(copier, in_flight)? {
            let bytes = chunks.bytes_at(consumer.taken());
            if !consumer.release(words) {
                transfer.side = Side::Closed;
                return Ok(Step { bytes: moved, done: false });
            }
            moved += bytes;
        }
        let emptying = in_flight.len() as u64;
        let chunk = consumer.taken() + emptying;
        if begun >= max_bytes.max(1) || chunk >= chunks.count() {
            break;
        }
        consumer.refresh(words).map_err(|_| garbage())?;
        let Some(buffer) = consumer.full_buffer(emptying) else { break };
        let bytes = chunks.bytes_at(chunk);
        let offset = peer.geometry.buffer_offset(*lane, buffer);
        let copy = peer.theirs.copy_out(copier, offset, data, at, bytes)?;
        in_flight.push_back(copy.ticket);
        if copy.bytes < bytes {
            return Err(short_buffer());
        }
        begun += bytes;
    }
    Ok(Step { bytes: moved, done: consumer.taken() == chunks.count() })
}

/// Looks into the mailbox for the lane of transfer `tag`; the lane is unchecked.
fn find_lane(peer: &ShmPeer, tag: Tag, mailbox: u32) -> Option<u32> {
    (0..SLOTS).find_map(|slot| look(peer.theirs.word(Geometry::slot_offset(mailbox, slot))?, tag))
}

/// Reads the sender's cookie, which is untrusted.
fn read_cookie(cookie: &Cookie) -> Option<Side> {
    let wire = WireCookie::read_from_bytes(cookie.as_bytes()).ok()?;
    let tag = Tag::new(wire.tag)?;
    (wire.mailbox < MAILBOXES).then_some(Side::AwaitingLane { tag, mailbox: wire.mailbox })
}

/// Maps the peer's pool after checking that nothing can go wrong with it.
fn attach(hello: Hello) -> Result<(Mapping, Geometry), Unavailable> {
    let none = Errno::UnknownErrno;
    let wire = WireHello::read_from_bytes(&hello.bytes)
        .ok()
        .filter(|wire| wire.version == LAYOUT_VERSION)
        .ok_or_else(|| unavailable(none, "the peer's pool has another layout; use one version of lmt"))?;
    let geometry = wire
        .geometry
        .checked()
        .map_err(|error| unavailable(none, &format!("the peer's pool cannot be: its {error}")))?;
    Mapping::spare(geometry.pool_bytes()).map_err(no_memory)?;
    let fd =
        hello.descriptors.into_iter().next().ok_or_else(|| unavailable(none, "the peer passed no pool"))?;
    let mapping = Mapping::attach(fd, geometry.pool_bytes()).map_err(|error| {
        let errno = if let AttachError::System { errno, .. } = &error { *errno } else { none };
        unavailable(errno, &format!("the peer's pool cannot be mapped: {error}"))
    })?;
    Ok((mapping, geometry))
}

#[cfg(test)]
#[path = "mechanism_tests.rs"]
mod tests;
