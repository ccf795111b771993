//! A request made of the driver, and what its answer means.

use lmt_core::mechanism::Direction;
use nix::errno::Errno;

use super::copies::Ended;
use super::driver::{Found, IoctlDriver};
use super::request::{Outcome, Part, Request};
use super::{abi, errors};
use crate::error::KnemError;
use crate::types::CopyFlags;

impl IoctlDriver {
    /// Has the driver make a copy: the part that the DMA engine must not make
    /// first, so that when the rest goes on nothing else can fail.
    pub(super) fn run(
        &mut self,
        request: &Request<'_>,
        found: &mut [Option<Found>; 2],
        flags: CopyFlags,
    ) -> Result<Outcome, KnemError> {
        let is_single = found.iter().flatten().any(|found| found.entry.single);
        let small_bytes = self.may_use_dma(request, flags).then(|| self.dma_min.small_bytes());
        let parts = self.parts(request, flags, is_single, small_bytes)?;
        found.iter_mut().flatten().try_for_each(|found| self.begin(found))?;
        let mut outcome = Outcome::Ended;
        for part in parts.into_iter().flatten() {
            outcome = self.part(request, found, part)?;
            if part.start > 0
                && let Outcome::Pending(index) = outcome
            {
                // A tail is waited for, were it forced to be asynchronous.
                let status = self.wait_for(index, found, part.bytes)?;
                self.check_status(request, status.into())?;
            }
        }
        let by_dma = parts.iter().flatten().any(|part| (part.flags | self.info.forced).uses_dma());
        if by_dma
            && let Some(Ok(before)) = small_bytes
            && self.dma_min.small_bytes() != Ok(before)
        {
            if let Outcome::Pending(index) = outcome {
                self.wait_for(index, found, request.bytes())?;
            }
            return Err(KnemError::DmaMinChanged);
        }
        Ok(outcome)
    }

    /// Waits for a request that goes on; returns its status.
    pub(super) fn wait_for(
        &mut self,
        index: u32,
        found: &[Option<Found>; 2],
        bytes: u64,
    ) -> Result<u8, KnemError> {
        let used = [&found[0], &found[1]].map(|found| found.as_ref().map(|found| found.used));
        self.copies.wait_and_give_back(index, Ended { bytes, local: None, used })
    }

    /// Whether an engine could copy a part of the request.
    fn may_use_dma(&self, request: &Request<'_>, flags: CopyFlags) -> bool {
        request.bytes() > 0 && (flags | self.info.forced).uses_dma() && self.info.has_dma()
    }

    /// What the driver is asked for, in order. `small_bytes` is there where an engine could
    /// copy a part of it.
    fn parts(
        &self,
        request: &Request<'_>,
        flags: CopyFlags,
        is_single: bool,
        small_bytes: Option<Result<u64, Errno>>,
    ) -> Result<[Option<Part>; 2], KnemError> {
        let (bytes, forced) = (request.bytes(), self.info.forced);
        let whole = |flags| [None, Some(Part { start: 0, bytes, flags })];
        if bytes == 0 {
            // An asynchronous copy of nothing says that it goes on. It is asked
            // for all the same: it uses up a region for one use.
            return Ok(whole(flags.without(OFFLOAD)));
        }
        let Some(small_bytes) = small_bytes else {
            let asks_for_dma = (flags.without(self.info.ignored) | forced).uses_dma();
            return match asks_for_dma && !self.info.has_dma() {
                true => Err(KnemError::NoDma(Errno::EINVAL)),
                false => Ok(whole(flags)),
            };
        };
        let by_dma = match small_bytes {
            Ok(small_bytes) => request.dma_bytes(small_bytes),
            Err(errno) if forced.uses_dma() => return Err(KnemError::UnknownDmaMin(errno)),
            // What the engine may be left is not known.
            Err(_) => 0,
        };
        if by_dma < bytes && forced.uses_dma() {
            return Err(KnemError::ForcedDma { bytes: bytes - by_dma });
        }
        Ok(match by_dma {
            all if all == bytes => whole(flags),
            // A region for one use takes one request.
            some if some == 0 || is_single => whole(flags.without(DMA)),
            some => {
                let tail = Part { start: some, bytes: bytes - some, flags: flags.without(OFFLOAD) };
                [Some(tail), Some(Part { start: 0, bytes: some, flags })]
            }
        })
    }

    fn part(
        &mut self,
        request: &Request<'_>,
        found: &[Option<Found>; 2],
        part: Part,
    ) -> Result<Outcome, KnemError> {
        // A flag that is ignored makes no request asynchronous; but to have a
        // slot for nothing does no harm, and to have none would.
        let may_go_on = (part.flags | self.info.forced).is_asynchronous();
        let index = if may_go_on { Some(self.copies.take(&self.device, true)?) } else { None };
        let asked = request.ask(&self.device, part, index.unwrap_or(0));
        // The request may have been done at once, and then the slot may never
        // be written; so this is what counts first.
        let at_once = asked.map_err(|errno| self.explain(request, found, part, errno));
        if let (Ok(status), Some(index)) = (&at_once, index)
            && *status == u32::from(abi::STATUS_PENDING)
            && part.bytes > 0
        {
            return Ok(Outcome::Pending(index));
        }
        if let Some(index) = index {
            self.copies.give_back(index);
        }
        let status = at_once?;
        if part.bytes > 0 || status != u32::from(abi::STATUS_PENDING) {
            self.check_status(request, status)?;
        }
        Ok(Outcome::Ended)
    }

    /// What a status means that says the request has ended.
    fn check_status(&self, request: &Request<'_>, status: u32) -> Result<(), KnemError> {
        match u8::try_from(status) {
            Ok(abi::STATUS_SUCCESS) => Ok(()),
            // Asked for synchronously, the driver says so of local memory that
            // it cannot write, and of nothing else.
            Ok(abi::STATUS_FAILED)
                if matches!(request, Request::Inline { direction: Direction::Get, .. }) =>
            {
                Err(KnemError::BadMemory(request.pageable()))
            }
            Ok(abi::STATUS_FAILED) => Err(KnemError::CopyFailed),
            _ => Err(KnemError::Status { status }),
        }
    }

    /// What an errno means that the driver has answered to a copy.
    fn explain(
        &self,
        request: &Request<'_>,
        found: &[Option<Found>; 2],
        part: Part,
        errno: Errno,
    ) -> KnemError {
        let mut used = found.iter().flatten().map(|found| &found.used);
        let direction = match request {
            Request::Inline { direction, .. } => *direction,
            // The source was found readable in its table; so was the target
            // found writable, but that table may be older.
            Request::Between { .. } => Direction::Put,
        };
        match errno {
            Errno::EINVAL if used.any(|used| self.is_owner_dead(used)) => KnemError::OwnerDead,
            Errno::EINVAL if part.flags.uses_dma() && self.names_something(request, found) => {
                KnemError::NoDma(errno)
            }
            Errno::EINVAL if part.flags.is_asynchronous() && self.names_something(request, found) => {
                errors::of_background(errno)
            }
            Errno::EINVAL => KnemError::NotRegistered,
            Errno::EACCES => KnemError::Forbidden(direction),
            Errno::EPERM => KnemError::OtherUser(errno),
            Errno::EFAULT => KnemError::BadMemory(request.pageable()),
            _ => errors::of_any("copying", errno),
        }
    }

    /// Whether the driver knows the cookies of a request that it has refused,
    /// so that the reason must be another. It cannot be asked of regions for
    /// one use.
    fn names_something(&self, request: &Request<'_>, found: &[Option<Found>; 2]) -> bool {
        let nothing = Part { start: 0, bytes: 0, flags: CopyFlags::NONE };
        // A request made asynchronous would write to a slot that is not its own.
        !self.info.forced.is_asynchronous()
            && !found.iter().flatten().any(|found| found.entry.single)
            && request.ask(&self.device, nothing, 0).is_ok()
    }
}

pub(super) const DMA: CopyFlags =
    CopyFlags::from_bits(abi::FLAG_DMA | abi::FLAG_ASYNCDMACOMPLETE | abi::FLAG_DMATHREAD);

pub(super) const OFFLOAD: CopyFlags = CopyFlags::from_bits(DMA.bits() | abi::FLAG_MEMCPYTHREAD);

#[cfg(test)]
#[path = "asking_tests.rs"]
mod tests;
