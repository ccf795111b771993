//! Inline copies and copies between regions.

use std::sync::Arc;

use nix::errno::Errno;

use super::Driver;
use super::context::{self, FileId};
use super::engine::Made;
use crate::abi::{self, CopyTail, Status};
use crate::client::{Client, Identity};
use crate::maps;
use crate::memory::{Copy, Fault, Memory, Place};
use crate::options::Mutant;
use crate::sys::StatusArray;
use crate::worker::Job;

/// Asynchronous copies up to this long are made at once, and their slot is not
/// written: clients must look at the current status first.
const AT_ONCE_BYTES: u64 = 64;

/// What is accessed, and how.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    Read,
    Write,
}

/// A copy that is about to be made.
struct Request {
    from: Place,
    to: Place,
    bytes: u64,
    tail: CopyTail,
    argument: u64,
    slot: Option<(Arc<StatusArray>, usize)>,
    /// A fault of these reports a failed status, or is this error.
    on_fault: fn(Fault) -> Option<Errno>,
}

impl Driver {
    pub(super) fn inline_copy(
        &mut self,
        client: &Client<'_>,
        id: FileId,
        argument: u64,
        bounded: bool,
    ) -> Result<(), Errno> {
        let mut bytes = [0; 56];
        client.fill(argument, &mut bytes[..CopyTail::struct_bytes(bounded)])?;
        let tail = self.copy_tail(&bytes, bounded);
        let write = (abi::u32_at(&bytes, 12) != 0) != self.options.is(Mutant::WriteInverted);
        let (cookie, mut offset) = (abi::u64_at(&bytes, 16), abi::u64_at(&bytes, 24));
        if self.options.is(Mutant::OffsetIgnored) {
            offset = 0;
        }
        let slot = self.check(id, &tail)?;
        let segments = self.segments(client, abi::u64_at(&bytes, 0), abi::u32_at(&bytes, 8))?;
        let who = client.identity()?;
        let local = Memory::new(who.process, segments);
        let pinned = self.pins(&tail, slot.is_some());
        if pinned {
            let areas = maps::areas(who.process);
            if !local.segments().iter().all(|segment| maps::holds(&areas, *segment, !write)) {
                return Err(Errno::EFAULT);
            }
        }
        let local = Place { memory: if pinned { self.pin(local) } else { Arc::new(local) }, offset: 0 };
        let access = if write { Access::Write } else { Access::Read };
        let remote = self.find(cookie, who, access, offset)?;
        let reversed = slot.is_some() && self.options.is(Mutant::AsyncWriteReversed);
        let (from, to) = if write && !reversed { (local, remote) } else { (remote, local) };
        let on_fault = match (write, self.options.mutant) {
            (true, Some(Mutant::BadSourceSucceeds)) => |_| None,
            (true, _) => |fault| (fault == Fault::Source).then_some(Errno::EFAULT),
            (false, Some(Mutant::BadBufferFaults)) => |_| Some(Errno::EFAULT),
            (false, _) => |_| None,
        };
        let bytes = self.bytes(&from, &to, &tail)?;
        self.perform(client, Request { from, to, bytes, tail, argument, slot, on_fault })
    }

    pub(super) fn region_copy(
        &mut self,
        client: &Client<'_>,
        id: FileId,
        argument: u64,
        bounded: bool,
    ) -> Result<(), Errno> {
        let mut bytes = [0; 56];
        client.fill(argument, &mut bytes[..CopyTail::struct_bytes(bounded)])?;
        let tail = self.copy_tail(&bytes, bounded);
        let (mut from_cookie, mut from_offset) = (abi::u64_at(&bytes, 0), abi::u64_at(&bytes, 8));
        let (mut to_cookie, mut to_offset) = (abi::u64_at(&bytes, 16), abi::u64_at(&bytes, 24));
        if self.options.is(Mutant::SwappedFields) {
            std::mem::swap(&mut from_offset, &mut to_offset);
        }
        if self.options.is(Mutant::RegionCopyReversed) {
            std::mem::swap(&mut from_cookie, &mut to_cookie);
            std::mem::swap(&mut from_offset, &mut to_offset);
        }
        let slot = self.check(id, &tail)?;
        let who = client.identity()?;
        let from = self.find(from_cookie, who, Access::Read, from_offset)?;
        let to = self.find(to_cookie, who, Access::Write, to_offset)?;
        let bytes = self.bytes(&from, &to, &tail)?;
        self.perform(client, Request { from, to, bytes, tail, argument, slot, on_fault: |_| None })
    }

    /// The end of a copy's struct, with the flags that the driver goes by.
    fn copy_tail(&self, bytes: &[u8], bounded: bool) -> CopyTail {
        let tail = CopyTail::read(bytes, bounded);
        let flags = tail.flags & !self.options.ignored_flags | self.options.forced_flags;
        CopyTail { flags, ..tail }
    }

    /// Whether an inline copy's local memory is pinned before it begins.
    fn pins(&self, tail: &CopyTail, asynchronous: bool) -> bool {
        let has = |flag| tail.flags & flag != 0;
        match self.options.mutant {
            Some(Mutant::AsyncBadBufferPends) if asynchronous => false,
            Some(Mutant::DmaBadBufferFails) if has(abi::FLAG_DMA) => false,
            Some(Mutant::PinLocalIgnored) => asynchronous || has(abi::FLAG_DMA),
            _ => asynchronous || has(abi::FLAG_DMA | abi::FLAG_PIN_LOCAL),
        }
    }

    /// The slot of an asynchronous copy, and whether the flags can be obeyed.
    fn check(&self, id: FileId, tail: &CopyTail) -> Result<Option<(Arc<StatusArray>, usize)>, Errno> {
        self.check_flags(tail.flags)?;
        if tail.flags & abi::FLAGS_ENGINE != 0
            && !self.options.dma
            && !self.options.is(Mutant::DmaWithoutChannel)
        {
            return Err(Errno::EINVAL);
        }
        if tail.flags & abi::FLAGS_ASYNC == 0 {
            return Ok(None);
        }
        let index = tail.status_index as usize;
        match &self.contexts[&id].status {
            Some(array) if index < array.slots() || self.options.is(Mutant::IndexUnchecked) => {
                Ok(Some((Arc::clone(array), index)))
            }
            None if self.options.is(Mutant::StatusNotNeeded) => Ok(None),
            _ => Err(Errno::EINVAL),
        }
    }

    /// Looks a cookie up for `who`, as the driver does at each copy.
    fn find(&mut self, cookie: u64, who: Identity, access: Access, offset: u64) -> Result<Place, Errno> {
        let nothing = || Place { memory: Arc::new(Memory::new(0, Vec::new())), offset: 0 };
        if cookie == 0 && self.options.is(Mutant::ZeroCookie) {
            return Ok(nothing());
        }
        let (number, index) = (context::number_of(cookie), context::index_of(cookie));
        let found = self.contexts.iter().find(|(_, context)| context.number == number);
        let id = *found.ok_or(Errno::EINVAL)?.0;
        if !self.contexts[&id].is_open() {
            if self.options.is(Mutant::DeadOwner) {
                return Ok(nothing());
            }
            self.contexts.remove(&id);
            return Err(Errno::EINVAL);
        }
        let options = self.options.clone();
        if options.is(Mutant::DiesWithDescriptor) && !self.contexts[&id].has_descriptor(index) {
            return Err(Errno::EINVAL);
        }
        let context = self.contexts.get_mut(&id).ok_or(Errno::EINVAL)?;
        let opener_uid = context.opener_uid;
        let place = context.regions.get_mut(index).ok_or(Errno::EINVAL)?;
        let region = place.as_mut().ok_or(Errno::EINVAL)?;
        if *region.first_user.get_or_insert(who.process) != who.process && options.is(Mutant::FirstComer) {
            return Err(Errno::EINVAL);
        }
        let reversed = options.is(Mutant::ProtectionReversed);
        let needed = match (access, reversed) {
            (Access::Read, false) | (Access::Write, true) => abi::PROTECTION_READ,
            (Access::Write, false) | (Access::Read, true) => abi::PROTECTION_WRITE,
        };
        let refused = if opener_uid != who.uid && !options.is(Mutant::OtherUser) {
            Some(Errno::EPERM)
        } else if region.protection & needed == 0 && !options.is(Mutant::ProtectionUnchecked) {
            Some(Errno::EACCES)
        } else {
            None
        };
        let found = Place { memory: Arc::clone(&region.memory), offset };
        let used = refused.is_none() || options.is(Mutant::SingleUseLostByRefusal);
        if cookie & context::SINGLE_USE != 0 && used && !options.is(Mutant::SingleUseKept) {
            *place = None;
        }
        refused.map_or(Ok(found), Err)
    }

    /// How much is copied: up to the end of the shorter side, or the bound.
    fn bytes(&self, from: &Place, to: &Place, tail: &CopyTail) -> Result<u64, Errno> {
        let bound = tail.length_bytes.filter(|_| !self.options.is(Mutant::BoundIgnored)).unwrap_or(u64::MAX);
        let bytes = from.left().min(to.left()).min(bound);
        if bytes < bound && tail.length_bytes.is_some() && self.options.is(Mutant::EndIsAnError) {
            return Err(Errno::EINVAL);
        }
        Ok(match self.options.mutant {
            Some(Mutant::ShortCopy) if bytes > 1 => bytes - 1,
            Some(Mutant::PinLocalCopiesNothing) if tail.flags & abi::FLAG_PIN_LOCAL != 0 => 0,
            _ => bytes,
        })
    }

    fn perform(&mut self, client: &Client<'_>, request: Request) -> Result<(), Errno> {
        let Request { from, to, bytes, tail, argument, slot, on_fault } = request;
        let swapped = self.options.is(Mutant::StatusSwapped);
        let (success, failed) =
            if swapped { (Status::Failed, Status::Success) } else { (Status::Success, Status::Failed) };
        let Made { before, parts } = self.made(&from, &to, bytes, &tail);
        let copy = Copy { before, from, to, parts };
        let current = match slot {
            Some((array, index)) if bytes == 0 || bytes > AT_ONCE_BYTES => {
                let slot = match self.options.mutant {
                    Some(Mutant::StatusNotWritten) => None,
                    Some(Mutant::StatusNextSlot) => Some((array, index + 1)),
                    _ => Some((array, index)),
                };
                self.worker.give(Job { copy, slot, success: success as u8, failed: failed as u8 });
                Status::Pending
            }
            _ => match copy.make() {
                Ok(()) => success,
                Err(fault) => match on_fault(fault) {
                    Some(errno) => return Err(errno),
                    None => failed,
                },
            },
        };
        if self.options.is(Mutant::CurrentStatusNotWritten) {
            return Ok(());
        }
        client.write(argument + tail.current_status_at, &(current as u32).to_ne_bytes())
    }
}
