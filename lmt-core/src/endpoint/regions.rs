//! Declared memory: gets and puts, and the mapping of regions that were
//! allocated to be shared.

use std::os::fd::OwnedFd;
use std::ptr::NonNull;
use std::time::Instant;

use super::Engine;
use super::one_sided::{DYING, OneSided, PeerMemory, Turn};
use super::peer::{Connection, gone};
use super::peer_regions::PeerRegions;
use super::state::Traffic;
use crate::connect::SendError;
use crate::mechanism::Direction;
use crate::mechanism::oob_message::for_regions;
use crate::memory::buffer::{Access, Buffer};
use crate::memory::shared_memory::SharedMemory;
use crate::queue::{Delivery, InboxReceiver};
use crate::region::{RegionKey, RegionOptions};
use crate::requests::ids::RequestId;
use crate::requests::label::Label;
use crate::requests::outcome::{OperationError, Status};
use crate::requests::table::Waiting;
use crate::vocabulary::identity::PeerKey;

impl Traffic {
    /// Whether a get or a put could move again without any event.
    pub fn regions_need_polling(&self) -> bool {
        !self.wanted.is_empty() || self.one_sided.iter().any(|op| !op.dormant)
    }

    /// A peer's connection has ended, and its requests with it.
    pub fn forget_regions(&mut self, key: PeerKey) {
        self.wanted.remove(&key);
        self.one_sided.retain(|op| op.peer != key);
    }

    /// A peer wants to map a region. An honest one asks for one at a time.
    pub fn asked_to_share(&mut self, key: PeerKey, delivery: &Delivery<'_>) {
        let mut bytes = [0; RegionKey::BYTES];
        if delivery.bytes() == bytes.len() && delivery.copy_to(&mut bytes) == bytes.len() {
            self.wanted.insert(key, RegionKey::from_bytes(bytes));
        } else {
            tracing::warn!("a peer asked for a region by what is no key; it is ignored");
        }
    }

    /// Brings forward the gets and puts, in turn, until one has moved a quota.
    fn advance_one_sided(&mut self, own_inbox: &InboxReceiver) -> bool {
        for _ in 0..self.one_sided.len() {
            let Some(mut op) = self.one_sided.pop_front() else { break };
            match self.turn(&mut op, own_inbox) {
                None => {}
                Some(Ok(Turn::Whole)) => {
                    let status = Status {
                        peer: self.name(op.peer),
                        tag: 0,
                        bytes: self.requests.get(op.request).map_or(0, |r| r.bytes),
                        immediate: None,
                    };
                    self.requests.complete(op.request, Ok(status));
                    return true;
                }
                Some(Err(error)) => {
                    self.requests.complete(op.request, Err(error));
                    return true;
                }
                Some(Ok(turn)) => {
                    op.dormant = matches!(turn, Turn::Dormant);
                    self.one_sided.push_back(op);
                    if matches!(turn, Turn::Moved) {
                        return true;
                    }
                }
            }
        }
        false
    }

    /// One operation's turn; `None` when its request has ended already.
    fn turn(&mut self, op: &mut OneSided, own_inbox: &InboxReceiver) -> Option<Result<Turn, OperationError>> {
        let buffer = self.requests.get_mut(op.request)?.buffer.as_mut()?;
        let peer = self.peers.get_mut(op.peer as usize)?;
        let link = match &mut peer.connection {
            Connection::Up(link) => link,
            Connection::Gone(_) => return Some(Err(gone(peer))),
            Connection::None | Connection::Pending | Connection::AwaitingReport(_) => {
                return Some(Ok(Turn::Dormant));
            }
        };
        let PeerRegions { table, mapped, .. } = &mut link.regions;
        let kind = (buffer.total_bytes(), buffer.segments().len() <= 1);
        let known = self.transfers.mechanism_status();
        let order = self.selection.one_sided(op.peer, op.direction, known, &self.config, kind);
        let mut way = PeerMemory {
            mechanisms: self.transfers.mechanisms(),
            only: self.config.mechanisms.as_deref(),
            order,
            mapped,
            peer: op.peer,
            owner: op.key.owner(),
            refused_by: 0,
        };
        let stepped = op.step(table, buffer, &mut way, self.config.quota_bytes);
        Some(match stepped {
            Ok(Some(turn)) => Ok(turn),
            Ok(None) => Ok(link.ask(&op.key, own_inbox, op.peer)),
            Err(_)
                if way.refused_by == nix::libc::ESRCH
                    && op.vanished.get_or_insert_with(Instant::now).elapsed() < DYING =>
            {
                Ok(Turn::Blocked)
            }
            Err(error) => Err(error),
        })
    }
}

impl Engine {
    /// Declares memory of this process: peers that are given the key may get
    /// from it and put into it, as `options` say (a [`crate::region::Protection`] will
    /// do), without this process's
    /// help. It is lent until [`Engine::destroy_region`] or the engine's end.
    ///
    /// A peer that has begun a copy when the region is destroyed may still
    /// touch the memory for the moment that one system call lasts; who reuses
    /// the memory first makes sure by messages that the peers are done with it.
    ///
    /// # Errors
    /// [`crate::region::RegionError::TooMany`], [`crate::region::RegionError::ReadOnlyMemory`], or this is a
    /// forked child.
    pub fn register_region(
        &mut self,
        memory: Buffer,
        options: impl Into<RegionOptions>,
    ) -> Result<RegionKey, OperationError> {
        self.check_fork()?;
        Ok(self.traffic.regions.declare(memory, options)?)
    }

    /// Allocates zeroed memory that peers map, and declares it: reachable also
    /// where no mechanism reaches this process's own memory. The first access
    /// by each peer needs this process to make progress once.
    ///
    /// # Errors
    /// [`crate::region::RegionError::TooMany`], [`crate::region::RegionError::Memory`], or this is a forked
    /// child.
    pub fn allocate_region(
        &mut self,
        bytes: usize,
        options: impl Into<RegionOptions>,
    ) -> Result<RegionKey, OperationError> {
        self.check_fork()?;
        Ok(self.traffic.regions.allocate(bytes, options)?)
    }

    /// Takes a region of this endpoint back: no copy begins any more. A peer
    /// that has an allocated region mapped writes what it is just putting into
    /// memory that nobody reads.
    ///
    /// # Errors
    /// [`crate::region::RegionError::NotRegistered`], or this is a forked child.
    pub fn destroy_region(&mut self, key: &RegionKey) -> Result<(), OperationError> {
        self.check_fork()?;
        self.traffic.regions.destroy(key)?;
        Ok(())
    }

    /// Where an allocated region of this endpoint is mapped, for
    /// [`RegionKey::total_bytes`]; `None` for any other. Valid until the region
    /// is destroyed. Peers may change the bytes at any time.
    pub fn region_pointer(&self, key: &RegionKey) -> Option<NonNull<u8>> {
        self.check_fork().ok()?;
        self.traffic.regions.shared_memory(key).map(SharedMemory::base)
    }

    /// Copies out of a region of this endpoint, whatever its protection.
    ///
    /// # Errors
    /// [`crate::region::RegionError::NotRegistered`], [`crate::region::RegionError::OutOfBounds`], or this is a
    /// forked child.
    pub fn read_region(&self, key: &RegionKey, offset: u64, mut into: Buffer) -> Result<(), OperationError> {
        self.check_fork()?;
        if into.access() != Access::Write {
            return Err(OperationError::ReadOnlyBuffer);
        }
        Ok(self.traffic.regions.copy_as_owner(key, Direction::Get, offset, &mut into)?)
    }

    /// Copies into a region of this endpoint, whatever its protection.
    ///
    /// # Errors
    /// As [`Engine::read_region`], and [`crate::region::RegionError::ReadOnlyMemory`].
    pub fn write_region(&self, key: &RegionKey, offset: u64, mut from: Buffer) -> Result<(), OperationError> {
        self.check_fork()?;
        Ok(self.traffic.regions.copy_as_owner(key, Direction::Put, offset, &mut from)?)
    }

    /// Begins to fill `into` from a region, from `offset` on. Connects to the
    /// owner, whose address must have been inserted, if need be.
    ///
    /// The request ends with [`OperationError::Region`] when the region is not
    /// registered (any more), forbids it, is too short, or is out of reach;
    /// then, and when it is cancelled, `into` may hold part of it.
    ///
    /// # Errors
    /// The owner is unknown or dead, too many operations with it are in flight,
    /// the buffer is not lent for writing, or this is a forked child.
    pub fn get(&mut self, key: &RegionKey, offset: u64, into: Buffer) -> Result<RequestId, OperationError> {
        if into.access() != Access::Write {
            return Err(OperationError::ReadOnlyBuffer);
        }
        self.begin_one_sided(key, Direction::Get, offset, into)
    }

    /// Begins to copy `from` into a region, from `offset` on; else as
    /// [`Engine::get`]. When the request is finished the bytes are there: a
    /// message sent after it finds them.
    ///
    /// # Errors
    /// The owner is unknown or dead, too many operations with it are in flight,
    /// or this is a forked child.
    pub fn put(&mut self, key: &RegionKey, offset: u64, from: Buffer) -> Result<RequestId, OperationError> {
        self.begin_one_sided(key, Direction::Put, offset, from)
    }

    fn begin_one_sided(
        &mut self,
        key: &RegionKey,
        direction: Direction,
        offset: u64,
        mut buffer: Buffer,
    ) -> Result<RequestId, OperationError> {
        self.check_fork()?;
        let traffic = &mut self.traffic;
        let own = key.owner() == traffic.id;
        let peer = match (traffic.by_id.get(&key.owner()), own) {
            (Some(&peer), _) => peer,
            (None, true) => {
                let max_peers = traffic.config.max_peers;
                let own = traffic.key_of(key.owner(), &mut self.inbox);
                own.ok_or(OperationError::TooManyPeers { max_peers })?
            }
            (None, false) => return Err(OperationError::UnknownPeer),
        };
        let bytes = buffer.total_bytes();
        if own {
            let regions = &mut traffic.regions;
            let key = if key.is_handle() { regions.key_of(key.handle()) } else { Ok(*key) };
            let done = key.and_then(|key| regions.copy_own(&key, direction, offset, &mut buffer));
            let name = traffic.name(peer);
            let result =
                done.map(|()| Status { peer: name, tag: 0, bytes, immediate: None }).map_err(Into::into);
            return Ok(traffic.requests.done(result));
        }
        let pending = traffic.one_sided.iter().filter(|op| op.peer == peer).count() as u32;
        if pending >= traffic.config.pending_max_messages {
            return Err(OperationError::WouldBlock { id: key.owner(), pending });
        }
        // Who has connected by itself is known well enough.
        if traffic.peers[peer as usize].link().is_none() {
            self.reach(peer)?;
        }
        let traffic = &mut self.traffic;
        let id = traffic.requests.begin(buffer, Some(peer), Label::default(), Waiting::OneSided);
        traffic.one_sided.push_back(OneSided {
            request: id,
            peer,
            key: *key,
            direction,
            offset,
            done_bytes: 0,
            access: None,
            vanished: None,
            dormant: false,
        });
        self.calls_until_sockets = self.calls_until_sockets.min(Self::SOCKET_EVERY_CONNECTING);
        Ok(id)
    }

    /// Answers peers that want to map regions, and moves gets and puts.
    #[cold]
    pub(super) fn advance_regions(&mut self) -> bool {
        let traffic = &mut self.traffic;
        if !traffic.wanted.is_empty() {
            self.calls_until_sockets = 0;
        }
        let (connector, peers, regions) = (&mut self.connector, &traffic.peers, &traffic.regions);
        traffic.wanted.retain(|peer, key| {
            let Some(peer) = peers.get(*peer as usize) else { return false };
            // An answer without a descriptor tells the peer that there is none.
            let descriptor = regions.shared_descriptor(key).map(OwnedFd::try_clone);
            let descriptors = descriptor.and_then(Result::ok).into_iter().collect();
            let sent = connector.send_descriptors(peer.id, &for_regions(&key.to_bytes()), descriptors);
            matches!(sent, Err(SendError::Full { .. }))
        });
        traffic.advance_one_sided(&self.inbox)
    }
}
