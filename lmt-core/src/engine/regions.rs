//! Declared memory: gets and puts, and the mapping of regions that were
//! allocated to be shared.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Engine;
use super::label::Label;
use super::outgoing::gone;
use super::peer::{Connection, Link};
use super::requests::{OperationError, RequestId, Status, Waiting};
use super::traffic::{Traffic, kind};
use crate::buffer::{Access, Buffer};
use crate::connect::SendError;
use crate::error::PeerError;
use crate::identity::EndpointId;
use crate::inbox::{Delivery, Envelope, InboxReceiver, Payload, Piece};
use crate::mechanism::{DeclaredCopy, Fault};
use crate::mechanisms::Mechanisms;
use crate::parcel::for_regions;
use crate::region::{
    Direction, Entry, Place, RegionAccess, RegionError, RegionKey, RegionOptions, RemoteTable, Ways,
    attach_shared,
};
use crate::rendezvous::PeerKey;
use crate::shared_memory::SharedMemory;

/// A get or a put under way. Its buffer is in the table of requests.
#[derive(Debug)]
pub(crate) struct OneSided {
    request: RequestId,
    peer: PeerKey,
    key: RegionKey,
    direction: Direction,
    /// Where in the region it begins.
    offset: u64,
    done_bytes: u64,
    /// The copy, once the owner's table has allowed it.
    access: Option<RegionAccess>,
    /// Since when the kernel says that there is no such process.
    vanished: Option<Instant>,
    /// Whether only the connection can bring it forward now.
    dormant: bool,
}

/// A process that is being killed has no memory any more a while before its
/// pidfd and its socket tell; for so long they are waited for.
const DYING: Duration = Duration::from_millis(500);

/// What one turn did for a get or a put.
enum Turn {
    /// Some bytes, and there are more.
    Moved,
    /// Nothing: the connection or the region's mapping is awaited.
    Dormant,
    /// Nothing now, without an event to wait for: there is no room in the
    /// peer's inbox to ask for the mapping, or the owner seems to be dying.
    Blocked,
    /// All of it.
    Whole,
}

/// What is known here of one peer's declared memory.
#[derive(Debug)]
pub(crate) struct PeerRegions {
    table: RemoteTable,
    mapped: Mapped,
    /// The region whose memory was asked for.
    asked: Option<RegionKey>,
}

/// Shared regions that are mapped, or why one is not; the one used last is at
/// the back.
#[derive(Debug, Default)]
struct Mapped(VecDeque<(RegionKey, Result<Arc<SharedMemory>, String>)>);

impl PeerRegions {
    /// Mappings kept for each peer.
    const MOST_MAPPED: usize = 32;

    pub fn new(table: RemoteTable) -> Self {
        Self { table, mapped: Mapped::default(), asked: None }
    }

    /// The owner's answer: the key that was asked for, with the descriptor if
    /// there is such a region. Returns whether it was expected.
    pub fn take_answer(&mut self, bytes: &[u8], descriptors: Vec<OwnedFd>) -> bool {
        let Ok(bytes) = bytes.try_into() else { return false };
        let key = RegionKey::from_bytes(bytes);
        if self.asked != Some(key) {
            return false;
        }
        self.asked = None;
        let memory = match descriptors.into_iter().next() {
            Some(fd) => attach_shared(fd, &key).map(Arc::new).map_err(|e| e.to_string()),
            None => Err("no descriptor of it came: its owner has not allocated it, or this process may have no more open files (RLIMIT_NOFILE, ulimit -n)".into()),
        };
        let (table, Mapped(mapped)) = (&self.table, &mut self.mapped);
        // One that is used up may still be in use here.
        mapped.retain(|(old, _)| !matches!(table.look_up(old), Err(RegionError::NotDeclared)));
        if mapped.len() >= Self::MOST_MAPPED {
            mapped.pop_front();
        }
        mapped.push_back((key, memory));
        true
    }

    /// A shared region that is mapped here.
    pub fn mapped(&mut self, key: &RegionKey) -> Option<Arc<SharedMemory>> {
        self.mapped.find(key)?.ok()
    }
}

impl Mapped {
    /// The mapping of a region, if it is there.
    fn find(&mut self, key: &RegionKey) -> Option<Result<Arc<SharedMemory>, RegionError>> {
        let at = self.0.iter().position(|(mapped, _)| mapped == key)?;
        match self.0.remove(at)? {
            // To be asked for again by the next operation.
            (_, Err(reason)) => Some(Err(RegionError::Unreachable(reason))),
            (key, Ok(memory)) => {
                self.0.push_back((key, Ok(Arc::clone(&memory))));
                Some(Ok(memory))
            }
        }
    }
}

impl Link {
    /// Asks the owner for the memory of a shared region, one at a time.
    fn ask(&mut self, key: &RegionKey, credits: &InboxReceiver, peer: PeerKey) -> Turn {
        if self.regions.asked.is_some() {
            return Turn::Dormant;
        }
        let envelope = Envelope { kind: kind::MAP_REGION, aux: 0, tag: 0 };
        if self.may_write(credits, peer)
            && self.write_piece(envelope, Payload::Bytes(&key.to_bytes()), 0, Piece::Whole).is_ok()
        {
            self.regions.asked = Some(*key);
            return Turn::Dormant;
        }
        Turn::Blocked
    }
}

impl OneSided {
    /// Moves at most `quota_bytes`; see [`RegionAccess::copy`]. `None` where
    /// the region's mapping is awaited.
    fn step(
        &mut self,
        table: &RemoteTable,
        buffer: &mut Buffer,
        way: &mut Way<'_>,
        quota_bytes: u64,
    ) -> Result<Option<Turn>, OperationError> {
        let total = buffer.total_bytes();
        let access = match &mut self.access {
            Some(access) => access,
            none => {
                if self.key.is_handle() {
                    self.key = table.key_of(self.key.handle())?;
                }
                way.check_reach(table, &self.key, self.direction)?;
                none.insert(RegionAccess::begin(table, &self.key, self.direction, self.offset, total)?)
            }
        };
        let want = (total - self.done_bytes).min(quota_bytes);
        let at = self.offset + self.done_bytes;
        if !access.copy(table, way, at, buffer, self.done_bytes, want)? {
            return Ok(None);
        }
        self.done_bytes += want;
        Ok(Some(if self.done_bytes == total { Turn::Whole } else { Turn::Moved }))
    }
}

/// How bytes of a peer's memory get here or there.
struct Way<'a> {
    mechanisms: &'a mut Mechanisms,
    only: Option<&'a [String]>,
    /// In which order mechanisms are tried.
    order: &'a [usize],
    mapped: &'a mut Mapped,
    peer: PeerKey,
    owner: EndpointId,
    /// The errno of a mechanism that was refused, or 0.
    refused_by: i32,
}

impl Way<'_> {
    /// Refuses what no mechanism reaches before anything is begun: a region of
    /// single use is not used up by who cannot copy.
    fn check_reach(
        &self,
        table: &RemoteTable,
        key: &RegionKey,
        direction: Direction,
    ) -> Result<(), OperationError> {
        if self.mechanisms.reaches(self.peer, self.only, direction) {
            return Ok(());
        }
        if matches!(table.look_up(key)?.place, Place::Shared { .. }) {
            return Ok(());
        }
        let reasons = self.mechanisms.reasons(self.peer);
        let reasons =
            if reasons.is_empty() { "none that works copies declared memory".into() } else { reasons };
        Err(RegionError::Unreachable(reasons).into())
    }
}

impl Ways for Way<'_> {
    type Error = OperationError;

    fn copy(&mut self, local: &mut Buffer, copy: &DeclaredCopy<'_>) -> Result<u64, OperationError> {
        match self.mechanisms.copy_declared(self.peer, self.order, local, copy) {
            Ok(bytes) => Ok(bytes),
            Err(Fault::PeerDead) => Err(PeerError::Dead { id: self.owner }.into()),
            Err(fault) => {
                if let Fault::Demote { errno, .. } = fault {
                    self.refused_by = errno;
                }
                // Any other access may be as good as before.
                let is_here = self.refused_by == nix::libc::EFAULT;
                let error = if is_here { RegionError::BadMemory } else { RegionError::Unreachable };
                Err(error(fault.to_string()).into())
            }
        }
    }

    fn mapping(&mut self, key: &RegionKey, _: &Entry) -> Result<Option<Arc<SharedMemory>>, OperationError> {
        Ok(self.mapped.find(key).transpose()?)
    }
}

impl Traffic {
    /// Whether a get or a put could move again without any event.
    pub fn regions_restless(&self) -> bool {
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
    fn advance_one_sided(&mut self, credits: &InboxReceiver) -> bool {
        for _ in 0..self.one_sided.len() {
            let Some(mut op) = self.one_sided.pop_front() else { break };
            match self.turn(&mut op, credits) {
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
    fn turn(&mut self, op: &mut OneSided, credits: &InboxReceiver) -> Option<Result<Turn, OperationError>> {
        let buffer = self.requests.get_mut(op.request)?.buffer.as_mut()?;
        let peer = self.peers.get_mut(op.peer as usize)?;
        let link = match &mut peer.connection {
            Connection::Up(link) => link,
            Connection::Gone(_) => return Some(Err(gone(peer))),
            Connection::None | Connection::Pending | Connection::Met(_) => return Some(Ok(Turn::Dormant)),
        };
        let PeerRegions { table, mapped, .. } = &mut link.regions;
        let kind = (buffer.total_bytes(), buffer.segments().len() <= 1);
        let known = self.transfers.standings();
        let order = self.selection.one_sided(op.peer, op.direction, known, &self.config, kind);
        let mut way = Way {
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
            Ok(None) => Ok(link.ask(&op.key, credits, op.peer)),
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
    /// [`RegionError::TooMany`], [`RegionError::ReadOnlyMemory`], or this is a
    /// forked child.
    pub fn declare_region(
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
    /// [`RegionError::TooMany`], [`RegionError::Memory`], or this is a forked
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
    /// [`RegionError::NotDeclared`], or this is a forked child.
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
    /// [`RegionError::NotDeclared`], [`RegionError::OutOfBounds`], or this is a
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
    /// As [`Engine::read_region`], and [`RegionError::ReadOnlyMemory`].
    pub fn write_region(&self, key: &RegionKey, offset: u64, mut from: Buffer) -> Result<(), OperationError> {
        self.check_fork()?;
        Ok(self.traffic.regions.copy_as_owner(key, Direction::Put, offset, &mut from)?)
    }

    /// Begins to fill `into` from a region, from `offset` on. Connects to the
    /// owner, whose address must have been inserted, if need be.
    ///
    /// The request ends with [`OperationError::Region`] when the region is not
    /// declared (any more), forbids it, is too short, or is out of reach;
    /// then, and when it is cancelled, `into` may hold part of it.
    ///
    /// # Errors
    /// The owner is unknown or dead, too many operations with it are under way,
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
    /// The owner is unknown or dead, too many operations with it are under way,
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
        self.until_sockets = self.until_sockets.min(Self::SOCKET_EVERY_CONNECTING);
        Ok(id)
    }

    /// Answers peers that want to map regions, and moves gets and puts.
    #[cold]
    pub(super) fn advance_regions(&mut self) -> bool {
        let traffic = &mut self.traffic;
        if !traffic.wanted.is_empty() {
            self.until_sockets = 0;
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
