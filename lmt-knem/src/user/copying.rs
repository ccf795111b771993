//! Copies, by whichever thread: what the driver and its helper share.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use lmt_core::buffer::{Access, Buffer};
use lmt_core::identity::EndpointId;
use lmt_core::region::{
    Direction, Part, Protection, RegionAccess, RegionError, RegionKey, RegionTable, copy_piece,
};

use super::met::{OwnerAccess, RegionOwner, lock, wait_for_death};
use crate::error::KnemError;
use crate::types::{InlineCopy, Length, RegionCookie, RegionCopy, RegionPlace};

/// Bytes that one copy moves at most between two looks at the owner's table.
const PIECE_BYTES: u64 = 1 << 20;
/// Bytes of the way between two regions that are both out of reach; few enough
/// for a core's own cache.
const BOUNCE_BYTES: usize = 256 << 10;

/// This process's regions, and whom it has met.
#[derive(Debug)]
pub(super) struct Regions {
    owner: EndpointId,
    pub table: Mutex<RegionTable>,
    pub met: Mutex<HashMap<EndpointId, Arc<RegionOwner>>>,
    /// Memory for copies between regions, kept for the next.
    bounce: Mutex<Option<Box<[u8]>>>,
}

/// A region of a copy that has begun.
#[derive(Debug)]
enum Side {
    Own(RegionKey),
    RegionOwner(Arc<RegionOwner>, RegionKey, RegionAccess),
}

/// A region that a copy is to be about, looked up.
struct Found {
    met: Option<Arc<RegionOwner>>,
    key: RegionKey,
}

/// A copy between local memory and a region, allowed and begun.
#[derive(Debug)]
pub(super) struct Inline {
    side: Side,
    direction: Direction,
    region_offset: u64,
    local_offset: u64,
    bytes: u64,
}

/// A copy between two regions, allowed and begun.
#[derive(Debug)]
pub(super) struct Between {
    source: Side,
    source_offset: u64,
    target: Side,
    target_offset: u64,
    bytes: u64,
}

/// How many bytes a side of `total_bytes` has from `offset` on, of those that
/// are asked for; or how many are asked for, if it has them not.
fn rest(offset: u64, total_bytes: u64, length: Length) -> Result<u64, u64> {
    let left = total_bytes.checked_sub(offset);
    match (length, left) {
        (Length::Bounded(bytes), Some(left)) if bytes <= left => Ok(bytes),
        (Length::ToTheEnd, Some(left)) => Ok(left),
        (Length::Bounded(bytes), _) => Err(bytes),
        (Length::ToTheEnd, None) => Err(0),
    }
}

fn region_rest(key: &RegionKey, offset: u64, length: Length) -> Result<u64, KnemError> {
    let total_bytes = key.total_bytes();
    rest(offset, total_bytes, length).map_err(|bytes| KnemError::OutOfBounds { offset, bytes, total_bytes })
}

/// A region's handle, as it lies in a cookie.
pub(super) fn to_cookie(key: &RegionKey) -> RegionCookie {
    RegionCookie::new(key.owner(), (key.handle() >> 32) as u32, key.handle() as u32)
}

pub(super) fn handle_of(cookie: &RegionCookie) -> u64 {
    u64::from(cookie.slot()) << 32 | u64::from(cookie.generation())
}

impl Regions {
    pub fn new(owner: EndpointId) -> Result<Self, KnemError> {
        let table = Mutex::new(RegionTable::create(owner)?);
        Ok(Self { owner, table, met: Mutex::default(), bounce: Mutex::default() })
    }

    /// Whose table a cookie is about: none is one's own.
    fn met(&self, cookie: &RegionCookie) -> Result<Option<Arc<RegionOwner>>, KnemError> {
        if cookie.owner() == self.owner {
            return Ok(None);
        }
        lock(&self.met).get(&cookie.owner()).cloned().ok_or(KnemError::UnknownOwner).map(Some)
    }

    /// The key behind a cookie, and what peers may do with the region.
    fn look_up(&self, cookie: &RegionCookie) -> Result<(Found, Protection), KnemError> {
        let met = self.met(cookie)?;
        let handle = handle_of(cookie);
        let (key, protection) = match &met {
            None => {
                let table = lock(&self.table);
                let key = table.key_of(handle)?;
                (key, table.protection_of(&key)?)
            }
            Some(met) => {
                let key = met.table.key_of(handle)?;
                (key, met.table.look_up(&key)?.protection)
            }
        };
        Ok((Found { met, key }, protection))
    }

    /// A region's length.
    pub fn region_bytes(&self, cookie: &RegionCookie) -> Result<u64, KnemError> {
        Ok(self.look_up(cookie)?.0.key.total_bytes())
    }

    fn find(&self, cookie: &RegionCookie, direction: Direction) -> Result<Found, KnemError> {
        let (found, protection) = self.look_up(cookie)?;
        protection.allows(direction)?;
        Ok(found)
    }

    /// Uses a region of single use up, as the last thing before a copy.
    fn begin(&self, found: Found, direction: Direction, offset: u64, bytes: u64) -> Result<Side, KnemError> {
        let Found { met, key } = found;
        match met {
            None => {
                lock(&self.table).begin_own(&key, direction, offset, bytes)?;
                Ok(Side::Own(key))
            }
            Some(met) => {
                let access = met.begin(&key, direction, offset, bytes)?;
                Ok(Side::RegionOwner(met, key, access))
            }
        }
    }

    /// Begins a copy between `local` and a region.
    pub fn begin_inline(&self, local: &Buffer, copy: &InlineCopy) -> Result<Inline, KnemError> {
        let found = self.find(&copy.region, copy.direction)?;
        if copy.direction == Direction::Get && local.access() != Access::Write {
            return Err(KnemError::ReadOnlyMemory);
        }
        let there = region_rest(&found.key, copy.region_offset, copy.length)?;
        let (offset, total_bytes) = (copy.local_offset, local.total_bytes());
        let here = rest(offset, total_bytes, copy.length);
        let here = here.map_err(|bytes| KnemError::LocalTooShort { offset, bytes, total_bytes })?;
        let bytes = there.min(here);
        let side = self.begin(found, copy.direction, copy.region_offset, bytes)?;
        let InlineCopy { direction, region_offset, local_offset, .. } = *copy;
        Ok(Inline { side, direction, region_offset, local_offset, bytes })
    }

    /// Makes a copy that has begun; returns how many bytes. Finds out whether
    /// an owner that is not found has died.
    pub fn run_inline(&self, local: &mut Buffer, mut copy: Inline) -> Result<u64, KnemError> {
        wait_for_death(|| self.try_inline(local, &mut copy))
    }

    /// The same without waiting: [`KnemError::OwnerDying`].
    pub fn try_inline(&self, local: &mut Buffer, copy: &mut Inline) -> Result<u64, KnemError> {
        let mut done = 0;
        while done < copy.bytes {
            let bytes = (copy.bytes - done).min(PIECE_BYTES);
            let (there, here) = (copy.region_offset + done, copy.local_offset + done);
            match &mut copy.side {
                Side::Own(key) => {
                    lock(&self.table).copy_piece(key, copy.direction, there, local, here, bytes)?;
                }
                Side::RegionOwner(met, _, access) => {
                    // Its ways never keep one waiting.
                    if !access.copy(&met.table, &mut OwnerAccess(met), there, local, here, bytes)? {
                        return Err(KnemError::NotRegistered);
                    }
                }
            }
            done += bytes;
        }
        copy.side.end();
        Ok(copy.bytes)
    }

    /// Begins a copy between two regions. Both are looked up and checked before
    /// either is used up; but they are used up one after the other, the source
    /// first, in tables of two owners. So where the target goes, or is used up by
    /// another, in that very moment, a source of single use is used up for
    /// nothing, as by a copy that has failed; and so is one that is its own
    /// target.
    pub fn begin_between(&self, copy: &RegionCopy) -> Result<Between, KnemError> {
        let find = |place: &RegionPlace, direction| {
            let found = self.find(&place.region, direction)?;
            let left = region_rest(&found.key, place.offset, copy.length)?;
            Ok::<_, KnemError>((found, left))
        };
        let (source, out) = find(&copy.source, Direction::Get)?;
        let (target, into) = find(&copy.target, Direction::Put)?;
        let bytes = out.min(into);
        let source = self.begin(source, Direction::Get, copy.source.offset, bytes)?;
        let target = self.begin(target, Direction::Put, copy.target.offset, bytes)?;
        let (source_offset, target_offset) = (copy.source.offset, copy.target.offset);
        Ok(Between { source, source_offset, target, target_offset, bytes })
    }

    /// Makes a copy between two regions that has begun; returns how many bytes.
    pub fn run_between(&self, mut copy: Between) -> Result<u64, KnemError> {
        let kept = lock(&self.bounce).take();
        let mut bounce = kept.unwrap_or_else(|| vec![0; BOUNCE_BYTES].into_boxed_slice());
        let copied = wait_for_death(|| self.copy_between(&mut copy, &mut bounce));
        *lock(&self.bounce) = Some(bounce);
        copied
    }

    fn copy_between(&self, copy: &mut Between, bounce: &mut [u8]) -> Result<u64, KnemError> {
        let mut done = 0;
        while done < copy.bytes {
            let bytes = (copy.bytes - done).min(PIECE_BYTES);
            // Held for a piece only, and only where a region is this process's.
            let own = matches!((&copy.source, &copy.target), (Side::Own(_), _) | (_, Side::Own(_)));
            let table = own.then(|| lock(&self.table));
            let mut from = copy.source.part(table.as_deref())?;
            let mut to = copy.target.part(table.as_deref())?;
            let (at, into) = (copy.source_offset + done, copy.target_offset + done);
            match copy_piece(&mut from, at, &mut to, into, bytes, bounce)? {
                0 => return Err(KnemError::NotRegistered),
                some => done += some,
            }
        }
        copy.source.end();
        copy.target.end();
        Ok(copy.bytes)
    }
}

impl Side {
    fn part<'a>(
        &'a mut self,
        table: Option<&'a RegionTable>,
    ) -> Result<Part<'a, OwnerAccess<'a>>, KnemError> {
        match self {
            Self::Own(key) => {
                let table = table.ok_or(KnemError::NotRegistered)?;
                Ok(Part::Own { table, key })
            }
            Self::RegionOwner(met, _, access) => {
                Ok(Part::Remote { table: &met.table, access, ways: OwnerAccess(met) })
            }
        }
    }

    fn end(&self) {
        if let Self::RegionOwner(met, key, access) = self {
            met.end(key, access);
        }
    }
}

impl From<RegionError> for KnemError {
    fn from(error: RegionError) -> Self {
        match error {
            RegionError::Forbidden(direction) => Self::Forbidden(direction),
            RegionError::OutOfBounds { offset, bytes, total_bytes } => {
                Self::OutOfBounds { offset, bytes, total_bytes }
            }
            RegionError::ReadOnlyMemory => Self::ReadOnlyMemory,
            RegionError::TooMany(most) => Self::TooMany { what: "regions", most },
            RegionError::Memory(short) => Self::Memory(short),
            RegionError::Unreachable(sentence) | RegionError::BadMemory(sentence) => {
                Self::Unavailable { errno: None, sentence }
            }
            _ => Self::NotRegistered,
        }
    }
}
