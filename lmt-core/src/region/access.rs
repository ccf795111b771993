//! Copies out of a peer's region, into one, and between two.

use std::sync::Arc;

use super::entry::{Entry, Place};
use super::memory::{copy_apart, copy_shared, fetch_list, view_shared, with_bounce};
use super::{RegionError, RegionKey, RegionTable, RemoteTable};
use crate::mechanism::{Direction, RegisteredCopy};
use crate::memory::buffer::{Access, Buffer, Segment};
use crate::memory::shared_memory::SharedMemory;

/// How bytes of an owner's memory get here or there.
pub trait OwnerMemory {
    /// What goes wrong on them.
    type Error: From<RegionError>;

    /// Copies between the owner's private memory and `local`, at once; returns
    /// how many bytes, fewer than `max_bytes` only where either side ends.
    ///
    /// # Errors
    /// The memory is out of reach, or its owner is dead.
    fn copy(&mut self, local: &mut Buffer, copy: &RegisteredCopy<'_>) -> Result<u64, Self::Error>;

    /// The mapping of an allocated region; none if it is not there yet, and
    /// the caller is to come again. See [`super::attach_shared`].
    ///
    /// # Errors
    /// It cannot be mapped, or its owner is dead.
    fn mapping(&mut self, key: &RegionKey, entry: &Entry) -> Result<Option<Arc<SharedMemory>>, Self::Error>;
}

/// A copy that has begun: the right to copy one way between a peer's region
/// and memory here, in as many pieces as one likes.
///
/// To begin is what uses a region of single use up, so one is begun for each
/// copy.
#[derive(Debug)]
pub struct RegionAccess {
    key: RegionKey,
    direction: Direction,
    entry: Entry,
    /// Where in the owner the region is, if it is in several pieces, once known.
    list: Option<Arc<[Segment]>>,
}

impl RegionAccess {
    /// Looks the region up, checks its protection and that it holds the
    /// `bytes` bytes from `offset` on that the copy is about, and uses it up if
    /// it is for one use.
    ///
    /// # Errors
    /// [`RegionError::NotRegistered`], [`RegionError::UsedUp`],
    /// [`RegionError::Forbidden`] or [`RegionError::OutOfBounds`]; then the
    /// region is as it was.
    pub fn begin(
        table: &RemoteTable,
        key: &RegionKey,
        direction: Direction,
        offset: u64,
        bytes: u64,
    ) -> Result<Self, RegionError> {
        Ok(Self { key: *key, direction, entry: table.begin(key, direction, offset, bytes)?, list: None })
    }

    /// The list of the region's pieces, once a copy has fetched it from the
    /// owner: good for as long as the region is, for
    /// [`RegionAccess::set_list`].
    pub fn list(&self) -> Option<&Arc<[Segment]>> {
        self.list.as_ref()
    }

    /// Takes the list that an earlier copy of the same region has fetched.
    pub fn set_list(&mut self, list: Arc<[Segment]>) {
        self.list = Some(list);
    }

    /// The region's length.
    pub const fn total_bytes(&self) -> u64 {
        self.entry.total_bytes
    }

    /// Copies `bytes` bytes between the region, from `offset` on, and `local`,
    /// from `local_offset` on. The owner's table is looked at before, and
    /// again after bytes were read, lest they be another region's. Returns
    /// false, with nothing copied, where the mapping is awaited.
    ///
    /// A region's end is not a fence: a copy that has begun when its owner
    /// destroys it goes on to its end. So a long one is made in several calls.
    ///
    /// # Errors
    /// [`RegionError::NotRegistered`]: it was destroyed, before or meanwhile, or
    /// is not as long as its owner says; [`RegionError::OutOfBounds`]; or what
    /// the ways say. How much was copied is not known then.
    pub fn copy<W: OwnerMemory>(
        &mut self,
        table: &RemoteTable,
        ways: &mut W,
        offset: u64,
        local: &mut Buffer,
        local_offset: u64,
        bytes: u64,
    ) -> Result<bool, W::Error> {
        table.revalidate(&self.key, &self.entry)?;
        self.entry.holds(offset, bytes)?;
        if bytes == 0 {
            return Ok(true);
        }
        let copied = if let Place::Shared { .. } = self.entry.place {
            let Some(memory) = ways.mapping(&self.key, &self.entry)? else { return Ok(false) };
            copy_shared(&memory, self.direction, offset, local, local_offset, bytes)
        } else {
            let (direction, one) = (self.direction, self.entry.place.one());
            let remote = match &one {
                Some(segment) => std::slice::from_ref(segment),
                None => self.fetched_list(ways)?,
            };
            let (remote_offset, max_bytes) = (offset, bytes);
            ways.copy(local, &RegisteredCopy { direction, remote, remote_offset, local_offset, max_bytes })?
        };
        if self.direction == Direction::Get {
            table.revalidate(&self.key, &self.entry)?;
        }
        // Fewer: the owner's list or mapping is shorter than its entry says.
        if copied == bytes { Ok(true) } else { Err(RegionError::NotRegistered.into()) }
    }

    fn fetched_list<W: OwnerMemory>(&mut self, ways: &mut W) -> Result<&[Segment], W::Error> {
        if self.list.is_none() {
            let whole = |list: Segment, into: &mut Buffer| {
                let max_bytes = list.bytes as u64;
                let copy = RegisteredCopy {
                    direction: Direction::Get,
                    remote: &[list],
                    remote_offset: 0,
                    local_offset: 0,
                    max_bytes,
                };
                match ways.copy(into, &copy)? {
                    bytes if bytes == max_bytes => Ok(()),
                    _ => Err(W::Error::from(RegionError::NotRegistered)),
                }
            };
            self.list = Some(fetch_list(&self.entry, whole)?.into());
        }
        Ok(self.list.as_deref().unwrap_or_default())
    }
}

impl Place {
    fn one(self) -> Option<Segment> {
        if let Self::One(segment) = self { Some(segment) } else { None }
    }
}

/// One of the two regions of a copy between regions.
#[derive(Debug)]
pub enum Part<'a, W> {
    /// A region of this process.
    Own {
        /// Its table.
        table: &'a RegionTable,
        /// Its key, for which [`RegionTable::begin_own`] was called.
        key: &'a RegionKey,
    },
    /// A region of another process.
    Remote {
        /// Its table.
        table: &'a RemoteTable,
        /// The copy, begun in the direction that this part needs.
        access: &'a mut RegionAccess,
        /// How its memory is reached.
        ways: W,
    },
}

/// Memory that is reachable here, and what keeps it so.
struct View {
    buffer: Buffer,
    _mapping: Option<Arc<SharedMemory>>,
}

impl<W: OwnerMemory> Part<'_, W> {
    /// The bytes of this part, if they are reachable from here at all times.
    fn view(&mut self, offset: u64, bytes: u64, wanted: Access) -> Result<Option<View>, W::Error> {
        match self {
            Self::Own { table, key } => {
                let buffer = table.view(key, offset, bytes, wanted)?;
                Ok(Some(View { buffer, _mapping: None }))
            }
            Self::Remote { table, access, ways } => {
                let Place::Shared { .. } = access.entry.place else { return Ok(None) };
                table.revalidate(&access.key, &access.entry)?;
                access.entry.holds(offset, bytes)?;
                let mapping = ways.mapping(&access.key, &access.entry)?;
                let view = mapping.and_then(|memory| {
                    let buffer = view_shared(&memory, offset, bytes)?;
                    Some(View { buffer, _mapping: Some(memory) })
                });
                Ok(view.filter(|view| view.buffer.total_bytes() == bytes))
            }
        }
    }

    /// Whether it is another's memory, to be mapped here.
    fn is_shared(&self) -> bool {
        matches!(self, Self::Remote { access, .. } if matches!(access.entry.place, Place::Shared { .. }))
    }

    fn copy(
        &mut self,
        direction: Direction,
        offset: u64,
        local: &mut Buffer,
        bytes: u64,
    ) -> Result<bool, W::Error> {
        match self {
            Self::Own { table, key } => {
                table.copy_piece(key, direction, offset, local, 0, bytes)?;
                Ok(true)
            }
            Self::Remote { table, access, ways } => access.copy(table, ways, offset, local, 0, bytes),
        }
    }

    /// What was read out of this part was the region's.
    fn revalidate(&self) -> Result<(), RegionError> {
        match self {
            Self::Own { .. } => Ok(()),
            Self::Remote { table, access, .. } => table.revalidate(&access.key, &access.entry),
        }
    }
}

/// Copies up to `bytes` bytes from one region to another, neither of which need
/// be the caller's, from the two offsets on. Where one of them is reachable
/// here (one's own, or mapped) they go at once; else, and between parts of the
/// same memory, by way of `bounce`, and never more than fit in there. Returns how many bytes, none only where a
/// mapping is awaited or none were asked for.
///
/// # Errors
/// As [`RegionAccess::copy`].
pub fn copy_piece<W: OwnerMemory>(
    from: &mut Part<'_, W>,
    from_offset: u64,
    to: &mut Part<'_, W>,
    to_offset: u64,
    bytes: u64,
    bounce: &mut [u8],
) -> Result<u64, W::Error> {
    // Two of one's own, or two that are mapped, may be the same memory, which
    // must not be copied to itself at once; the way by `bounce` does not mind.
    let both_own = matches!((&*from, &*to), (Part::Own { .. }, Part::Own { .. }));
    if from.is_shared() && to.is_shared() {
        let source = from.view(from_offset, bytes, Access::Read)?;
        let target = to.view(to_offset, bytes, Access::Write)?;
        if let (Some(source), Some(mut target)) = (source, target)
            && let Some(copied) = copy_apart(&source.buffer, &mut target.buffer)
        {
            from.revalidate()?;
            return Ok(copied);
        }
    } else if !both_own {
        if let Some(mut view) = from.view(from_offset, bytes, Access::Read)? {
            let moved = to.copy(Direction::Put, to_offset, &mut view.buffer, bytes)?;
            from.revalidate()?;
            return Ok(if moved { bytes } else { 0 });
        }
        if let Some(mut view) = to.view(to_offset, bytes, Access::Write)? {
            let moved = from.copy(Direction::Get, from_offset, &mut view.buffer, bytes)?;
            return Ok(if moved { bytes } else { 0 });
        }
    }
    let bytes = bytes.min(bounce.len() as u64);
    let copied = with_bounce(&mut bounce[..bytes as usize], |buffer| {
        let moved = from.copy(Direction::Get, from_offset, buffer, bytes)?
            && to.copy(Direction::Put, to_offset, buffer, bytes)?;
        Ok(if moved { bytes } else { 0 })
    });
    copied.unwrap_or(Ok(0))
}

#[cfg(test)]
#[path = "access_tests.rs"]
mod tests;
