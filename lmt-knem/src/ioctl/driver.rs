//! The driver behind /dev/knem, with every rule kept that it needs.

use std::path::Path;

use lmt_core::buffer::{Access, Buffer};
use lmt_core::identity::EndpointId;
use lmt_core::mechanism::Direction;

use super::copies::{Copies, Ended, Used};
use super::dma_min::{self, DmaMin};
use super::kept::{PinCache, PinCacheConfig};
use super::met::PeerTable;
use super::regions::Regions;
use super::request::{Outcome, Request};
use super::slot::{Entry, Slot};
use super::sys::Device;
use super::{abi, errors};
use crate::error::KnemError;
use crate::types::{CopyFlags, CopyId, Info, InlineCopy, Length, RegionCookie, RegionCopy, RegionPlace};

/// Where the driver's device is.
pub const DEVICE_PATH: &str = "/dev/knem";

/// KNEM's kernel module.
#[derive(Debug)]
pub struct IoctlDriver {
    // In this order they are dropped: the status array before the descriptor.
    pub(super) copies: Copies,
    pub(super) regions: Regions,
    pub(super) met: Vec<PeerTable>,
    pub(super) device: Device,
    pub(super) info: Info,
    pub(super) dma_min: DmaMin,
    pub(super) owner: EndpointId,
}

/// Both sides of a copy, or one of them, found and allowed.
pub(super) struct Found {
    pub entry: Entry,
    pub used: Used,
}

impl IoctlDriver {
    /// Opens the driver's device at another place than [`DEVICE_PATH`].
    ///
    /// # Errors
    /// As [`Driver::open`].
    pub fn open_at(path: &Path) -> Result<Self, KnemError> {
        let device = Device::open(path).map_err(|errno| errors::of_open(path, errno))?;
        Self::with_device(device, path)
    }

    /// Uses a device that was opened elsewhere, as `path`. It must not have been
    /// read from, nor its status array mapped.
    ///
    /// # Errors
    /// As [`Driver::open`].
    pub fn with_device(device: Device, path: &Path) -> Result<Self, KnemError> {
        let info = device.info().map_err(|errno| errors::of_info(path, errno))?;
        if info.abi != abi::ABI_VERSION {
            return Err(errors::wrong_abi(path, info.abi));
        }
        let owner = lmt_core::random::bytes().map_err(|errno| errors::of_any("getrandom", errno))?;
        Ok(Self {
            copies: Copies::default(),
            regions: Regions::new()?,
            met: Vec::new(),
            device,
            info: Info {
                abi: info.abi,
                features: info.features,
                ignored: CopyFlags::from_bits(info.ignored_flags),
                forced: CopyFlags::from_bits(info.forced_flags),
            },
            dma_min: DmaMin::open(Path::new(dma_min::PATH)),
            owner: EndpointId::from_bytes(owner),
        })
    }

    /// Lets destroyed regions stay pinned for memory that is declared again and
    /// again. Off at first.
    ///
    /// The driver copies from and into the pages that were there when they were
    /// pinned. So whoever turns this on must call [`crate::Driver::forget_range`]
    /// before memory that was ever declared here is unmapped, given back
    /// (MADV_DONTNEED), remapped or replaced; where that is not told, later
    /// messages from there carry old bytes, and those to there are lost. Forks
    /// by the C library are noticed.
    pub fn enable_pin_cache(&mut self, keeping: PinCacheConfig) {
        if self.regions.is_usable_here() {
            self.regions.keep(&self.device, keeping);
        }
    }

    /// As [`IoctlDriver::enable_pin_cache`]; of memory that changes it is told by
    /// `teller`, for where the driver cannot be reached.
    pub fn enable_pin_cache_invalidated_by(&mut self, keeping: PinCacheConfig, teller: PinCache) {
        if self.regions.is_usable_here() {
            self.regions.listen(teller);
            self.regions.keep(&self.device, keeping);
        }
    }

    pub(super) fn check_process(&self) -> Result<(), KnemError> {
        if self.regions.is_usable_here() { Ok(()) } else { Err(KnemError::Forked) }
    }

    /// The line that a cookie names, the process that made it (none for one's
    /// own), and for one's own what stands in the line.
    fn line(&self, cookie: &RegionCookie) -> Result<(&Slot, Option<&PeerTable>, Option<&Entry>), KnemError> {
        if cookie.owner() == self.owner {
            let own = self.regions.look_up(cookie.slot(), cookie.generation());
            let (entry, line) = own.ok_or(KnemError::NotRegistered)?;
            return Ok((line, None, Some(entry)));
        }
        let met = self.met.iter().find(|met| met.owner == cookie.owner()).ok_or(KnemError::UnknownOwner)?;
        Ok((met.line(cookie.slot()).ok_or(KnemError::NotRegistered)?, Some(met), None))
    }

    /// What a cookie names now.
    pub(super) fn look_up(&self, cookie: &RegionCookie) -> Result<(Entry, super::slot::Seen), KnemError> {
        let (line, _, own) = self.line(cookie)?;
        let seen = line.look_up(cookie.generation()).ok_or(KnemError::NotRegistered)?;
        // Of one's own regions, peers may have written nonsense.
        Ok((own.copied().unwrap_or(seen.entry), seen))
    }

    /// Finds a region for a copy, if its protection allows that.
    pub(super) fn find(&self, cookie: &RegionCookie, direction: Direction) -> Result<Found, KnemError> {
        let (entry, seen) = self.look_up(cookie)?;
        let allowed = match direction {
            Direction::Get => entry.read,
            Direction::Put => entry.write,
        };
        if !allowed {
            return Err(KnemError::Forbidden(direction));
        }
        Ok(Found { entry, used: Used { cookie: *cookie, seen, direction } })
    }

    /// The last look before the driver is asked: takes the one use of a region
    /// for one, and sees to it that nobody else is written to by the number of
    /// a region whose owner has died.
    pub(super) fn begin(&self, found: &mut Found) -> Result<(), KnemError> {
        let (line, met, _) = self.line(&found.used.cookie)?;
        if found.entry.single && !line.use_up(&mut found.used.seen) {
            return Err(KnemError::NotRegistered);
        }
        match met {
            Some(met) if found.used.direction == Direction::Put && !met.process.is_alive() => {
                Err(KnemError::OwnerDead)
            }
            _ => Ok(()),
        }
    }

    /// Looks again when the driver has copied: only if the region is still the
    /// same, and its owner lives, were these its bytes.
    pub(super) fn confirm(&self, used: &Used) -> Result<(), KnemError> {
        let (line, met, _) = self.line(&used.cookie)?;
        if met.is_some_and(|met| used.direction == Direction::Get && !met.process.is_alive()) {
            return Err(KnemError::OwnerDead);
        }
        if line.revalidate(&used.seen) { Ok(()) } else { Err(KnemError::NotRegistered) }
    }

    /// Whether one of the owners has died.
    pub(super) fn is_owner_dead(&self, used: &Used) -> bool {
        let met = self.met.iter().find(|met| met.owner == used.cookie.owner());
        met.is_some_and(|met| !met.process.is_alive())
    }

    /// Makes ready, and checks, a copy between `local` and a region.
    pub(super) fn inline<'a>(
        &self,
        local: &'a Buffer,
        copy: &InlineCopy,
    ) -> Result<(Request<'a>, [Option<Found>; 2]), KnemError> {
        self.check_process()?;
        let found = self.find(&copy.region, copy.direction)?;
        if copy.direction == Direction::Get && local.access() != Access::Write {
            return Err(KnemError::ReadOnlyMemory);
        }
        let there = rest(copy.region_offset, found.entry.total_bytes, copy.length);
        let here = rest(copy.local_offset, local.total_bytes(), copy.length);
        let there = there.map_err(|bytes| KnemError::OutOfBounds {
            offset: copy.region_offset,
            bytes,
            total_bytes: found.entry.total_bytes,
        })?;
        let here = here.map_err(|bytes| KnemError::LocalTooShort {
            offset: copy.local_offset,
            bytes,
            total_bytes: local.total_bytes(),
        })?;
        let request = Request::Inline {
            local,
            local_offset: copy.local_offset,
            direction: copy.direction,
            region: found.entry,
            region_offset: copy.region_offset,
            bytes: there.min(here),
        };
        Ok((request, [Some(found), None]))
    }

    /// Makes ready, and checks, a copy between two regions.
    pub(super) fn between(
        &self,
        copy: &RegionCopy,
    ) -> Result<(Request<'static>, [Option<Found>; 2]), KnemError> {
        self.check_process()?;
        let find = |place: &RegionPlace, direction| {
            let found = self.find(&place.region, direction)?;
            let total_bytes = found.entry.total_bytes;
            let left = rest(place.offset, total_bytes, copy.length);
            let left =
                left.map_err(|bytes| KnemError::OutOfBounds { offset: place.offset, bytes, total_bytes })?;
            Ok::<_, KnemError>((found, left))
        };
        let (source, out) = find(&copy.source, Direction::Get)?;
        let (target, into) = find(&copy.target, Direction::Put)?;
        let request = Request::Between {
            source: source.entry,
            source_offset: copy.source.offset,
            target: target.entry,
            target_offset: copy.target.offset,
            bytes: out.min(into),
        };
        Ok((request, [Some(source), Some(target)]))
    }

    /// Begins a request and remembers it.
    pub(super) fn start(
        &mut self,
        made: (Request<'_>, [Option<Found>; 2]),
        flags: CopyFlags,
    ) -> Result<CopyId, KnemError> {
        self.copies.check_room()?;
        let (request, mut found) = made;
        let bytes = request.bytes();
        let outcome = self.run(&request, &mut found, flags)?;
        let (index, used) = match outcome {
            Outcome::Ended => {
                let used = found.iter().flatten().try_for_each(|found| self.confirm(&found.used));
                used?;
                (self.copies.take(&self.device, false)?, [None, None])
            }
            Outcome::Pending(index) => (index, found.map(|found| found.map(|found| found.used))),
        };
        let goes_on = matches!(outcome, Outcome::Pending(_));
        Ok(self.copies.enter(index, Ended { bytes, local: None, used }, goes_on))
    }

    /// Makes a request and waits for its end.
    pub(super) fn finish(
        &mut self,
        made: (Request<'_>, [Option<Found>; 2]),
        flags: CopyFlags,
    ) -> Result<u64, KnemError> {
        let (request, mut found) = made;
        if let Outcome::Pending(index) = self.run(&request, &mut found, flags)? {
            let status = self.wait_for(index, &found, request.bytes())?;
            if status != abi::STATUS_SUCCESS {
                return Err(KnemError::CopyFailed);
            }
        }
        found.iter().flatten().try_for_each(|found| self.confirm(&found.used))?;
        Ok(request.bytes())
    }
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

impl Drop for IoctlDriver {
    fn drop(&mut self) {
        // A child shares the descriptor: what it destroyed would be its
        // parent's.
        if self.regions.is_usable_here() {
            let have_ended = self.copies.wait_for_all();
            self.regions.destroy_all(&self.device);
            if !have_ended {
                // The driver may yet write to a slot, and to the memory that was
                // lent: the array stays mapped (which also keeps the opening and
                // what it has pinned), and the memory stays lent, until the
                // process ends. To wait for ever would be no better.
                std::mem::forget(std::mem::take(&mut self.copies));
            }
        }
    }
}
