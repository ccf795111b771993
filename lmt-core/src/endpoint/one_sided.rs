//! A get or a put in flight, and its next step.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::cells::kind;
use super::peer::Link;
use super::peer_regions::Mapped;
use crate::mechanism::{Direction, Mechanisms, RegisteredCopy};
use crate::memory::buffer::Buffer;
use crate::memory::shared_memory::SharedMemory;
use crate::queue::{Envelope, InboxReceiver, Payload, Piece};
use crate::region::{Entry, OwnerMemory, Place, RegionAccess, RegionError, RegionKey, RemoteTable};
use crate::requests::ids::RequestId;
use crate::requests::outcome::OperationError;
use crate::vocabulary::error::PeerError;
use crate::vocabulary::identity::{EndpointId, PeerKey};
use crate::vocabulary::transfer::Fault;

/// A get or a put in flight. Its buffer is in the table of requests.
#[derive(Debug)]
pub(crate) struct OneSided {
    pub(super) request: RequestId,
    pub(super) peer: PeerKey,
    pub(super) key: RegionKey,
    pub(super) direction: Direction,
    /// Where in the region it begins.
    pub(super) offset: u64,
    pub(super) done_bytes: u64,
    /// The copy, once the owner's table has allowed it.
    pub(super) access: Option<RegionAccess>,
    /// Since when the kernel says that there is no such process.
    pub(super) vanished: Option<Instant>,
    /// Whether only the connection can bring it forward now.
    pub(super) dormant: bool,
}

/// A process that is being killed has no memory any more a while before its
/// pidfd and its socket tell; for so long they are waited for.
pub(super) const DYING: Duration = Duration::from_millis(500);

/// What one turn did for a get or a put.
pub(super) enum Turn {
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

impl Link {
    /// Asks the owner for the memory of a shared region, one at a time.
    pub(super) fn ask(&mut self, key: &RegionKey, own_inbox: &InboxReceiver, peer: PeerKey) -> Turn {
        if self.regions.asked.is_some() {
            return Turn::Dormant;
        }
        let envelope = Envelope { kind: kind::MAP_REGION, aux: 0, tag: 0 };
        if self.may_write(own_inbox, peer)
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
    pub(super) fn step(
        &mut self,
        table: &RemoteTable,
        buffer: &mut Buffer,
        way: &mut PeerMemory<'_>,
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
pub(super) struct PeerMemory<'a> {
    pub(super) mechanisms: &'a mut Mechanisms,
    pub(super) only: Option<&'a [String]>,
    /// In which order mechanisms are tried.
    pub(super) order: &'a [usize],
    pub(super) mapped: &'a mut Mapped,
    pub(super) peer: PeerKey,
    pub(super) owner: EndpointId,
    /// The errno of a mechanism that was refused, or 0.
    pub(super) refused_by: i32,
}

impl PeerMemory<'_> {
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
            if reasons.is_empty() { "none that works copies registered memory".into() } else { reasons };
        Err(RegionError::Unreachable(reasons).into())
    }
}

impl OwnerMemory for PeerMemory<'_> {
    type Error = OperationError;

    fn copy(&mut self, local: &mut Buffer, copy: &RegisteredCopy<'_>) -> Result<u64, OperationError> {
        match self.mechanisms.copy_registered(self.peer, self.order, local, copy) {
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
