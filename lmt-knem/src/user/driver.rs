//! The driver that needs no kernel module.

use std::os::fd::AsRawFd;
use std::sync::Arc;

use lmt_core::buffer::Buffer;
use lmt_core::diagnostic::{Finding, Host};
use lmt_core::fork_guard::Origin;
use lmt_core::identity::EndpointId;
use lmt_core::mechanism::Hello;
use lmt_core::process::PeerProcess;
use lmt_core::region::{Protection, RegionKey, RegionOptions};
use nix::errno::Errno;

use super::copying::{Regions, handle_of, to_cookie};
use super::met::{RegionOwner, lock, of_system};
use super::name::Name;
use super::offload::{Offload, Work};
use crate::driver::Driver;
use crate::error::KnemError;
use crate::types::{Binding, Copied, CopyFlags, CopyId, Info, InlineCopy, RegionCookie, RegionCopy, Uses};

/// KNEM's regions without the module. It can all of [`Driver`], and allocates
/// regions besides.
///
/// ```
/// use lmt_knem::user::UserDriver;
/// use lmt_knem::{CopyFlags, Driver, InlineCopy, Length, Uses};
/// use lmt_core::buffer::{Access, Buffer, Segment};
/// use lmt_core::mechanism::Direction;
/// use lmt_core::region::Protection;
///
/// // The owner tells others of its table, and of a region in it.
/// let mut owner = UserDriver::open()?;
/// let name = owner.introduce()?.bytes;
/// let region = owner.allocate_region(1 << 16, Protection::READ, Uses::Many)?;
///
/// // Somebody else, usually another process, has got the two as bytes.
/// let mut peer = UserDriver::open()?;
/// peer.add_process_by_name(&name)?;
/// let mut bytes = [1; 8];
/// // SAFETY: used by nobody else until the copy is made.
/// let mut local = unsafe { Buffer::new(&[Segment::of_mut(&mut bytes)], Access::Write) }?;
/// let copy = InlineCopy {
///     direction: Direction::Get,
///     region,
///     region_offset: 4096,
///     local_offset: 0,
///     length: Length::ToTheEnd,
/// };
/// assert_eq!(peer.inline_copy(&mut local, &copy, CopyFlags::NONE)?, 8);
/// assert_eq!(bytes, [0; 8]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct UserDriver {
    origin: Origin,
    owner: EndpointId,
    /// Left alone in a forked child: what the helper thread was about at the
    /// fork stays as it was, and so do its locks.
    parts: Option<Box<Parts>>,
}

#[derive(Debug)]
struct Parts {
    // In this order they are dropped: the copies end before the regions.
    offload: Offload,
    regions: Arc<Regions>,
}

impl UserDriver {
    /// Takes the introduction of a process by its bytes alone
    /// ([`Driver::introduce`]): fetches the table from the process that they
    /// name. That takes the right that a copy takes too (ptrace(2)); the other
    /// may be any process of the same pid namespace, started by whomever.
    ///
    /// # Errors
    /// [`KnemError::Introduction`] when the bytes are none or out of date,
    /// [`KnemError::OwnerDead`], or [`KnemError::Unavailable`] with a sentence
    /// on what the kernel refused.
    pub fn add_process_by_name(&mut self, name: &[u8]) -> Result<EndpointId, KnemError> {
        let introduction = Hello { bytes: name.to_vec(), descriptors: Vec::new() };
        self.meet(Arc::new(PeerProcess::new(0, None)), introduction)
    }

    /// Allocates zeroed memory that others map, and declares it. Reached
    /// without a system call for each copy; only where the kernel lets the
    /// other process take the descriptor. One copies into it and out of it by
    /// its cookie, as others do.
    ///
    /// # Errors
    /// [`KnemError::TooMany`], [`KnemError::Memory`].
    pub fn allocate_region(
        &mut self,
        bytes: usize,
        protection: Protection,
        uses: Uses,
    ) -> Result<RegionCookie, KnemError> {
        let key = lock(&self.here()?.regions.table).allocate(bytes, options(protection, uses))?;
        Ok(to_cookie(&key))
    }

    /// Takes an allocated region back; others keep what they have mapped, which
    /// nobody else reads or writes any more.
    ///
    /// # Errors
    /// [`KnemError::NotRegistered`].
    pub fn free_region(&mut self, cookie: &RegionCookie) -> Result<(), KnemError> {
        self.destroy(cookie).map(drop)
    }

    fn destroy(&mut self, cookie: &RegionCookie) -> Result<Option<Buffer>, KnemError> {
        let (owner, parts) = (self.owner, self.here()?);
        let mut table = lock(&parts.regions.table);
        let key: RegionKey = table.key_of(handle_of(cookie))?;
        if cookie.owner() != owner {
            return Err(KnemError::NotRegistered);
        }
        Ok(table.destroy(&key)?)
    }

    /// All of it, unless this is a forked child.
    fn here(&mut self) -> Result<&mut Parts, KnemError> {
        self.parts.as_deref_mut().filter(|_| self.origin.is_this_process()).ok_or(KnemError::Forked)
    }

    fn start(
        &mut self,
        flags: CopyFlags,
        begin: impl FnOnce(&Regions) -> Result<Work, KnemError>,
    ) -> Result<CopyId, KnemError> {
        let Parts { offload, regions } = self.here()?;
        check_flags(flags)?;
        offload.check_room()?;
        if !flags.is_asynchronous() {
            let work = begin(regions)?;
            return offload.run(work);
        }
        // What can fail of the thread fails before the copy has begun.
        offload.wake()?;
        let work = begin(regions)?;
        Ok(offload.hand_over(work))
    }
}

fn options(protection: Protection, uses: Uses) -> RegionOptions {
    RegionOptions { protection, single_use: uses == Uses::Single }
}

/// There is no DMA engine behind this driver, and KNEM refuses as well where
/// it has none.
fn check_flags(flags: CopyFlags) -> Result<(), KnemError> {
    if flags.uses_dma() { Err(KnemError::NoDma(Errno::EINVAL)) } else { Ok(()) }
}

impl Driver for UserDriver {
    /// Its copies are the kernel's between two processes.
    fn reaches_all_memory() -> bool {
        true
    }

    fn copies_by_both_ends() -> bool {
        true
    }

    fn reports_dying_owners() -> bool {
        true
    }

    fn diagnostics(host: &Host) -> Vec<Finding> {
        lmt_cma::diagnostics(host)
    }

    fn open() -> Result<Self, KnemError> {
        // Where Yama rules, who was started by one launcher may reach this.
        lmt_core::connect::yama::admit_launcher();
        let random = lmt_core::random::bytes().map_err(|errno| of_system("getrandom", errno))?;
        let owner = EndpointId::from_bytes(random);
        let regions = Arc::new(Regions::new(owner)?);
        let offload = Offload::new(Arc::clone(&regions));
        let parts = Some(Box::new(Parts { offload, regions }));
        Ok(Self { origin: Origin::here(), owner, parts })
    }

    fn name(&self) -> &'static str {
        "user"
    }

    fn mechanism_name() -> &'static str {
        "knem-user"
    }

    fn owner(&self) -> EndpointId {
        self.owner
    }

    fn info(&self) -> Info {
        // No binary interface, so no version of one. Whether pages are pinned
        // first is the kernel's affair in process_vm_readv.
        Info { abi: 0, features: 0, ignored: CopyFlags::PIN_LOCAL, forced: CopyFlags::NONE }
    }

    fn introduce(&mut self) -> Result<Hello, KnemError> {
        let owner = self.owner;
        let table = lock(&self.here()?.regions.table);
        let descriptor = table.descriptor();
        let name = Name::new(owner, std::process::id(), descriptor.as_raw_fd(), table.address());
        let no_duplicate = |error: std::io::Error| {
            of_system("fcntl(F_DUPFD_CLOEXEC)", Errno::from_raw(error.raw_os_error().unwrap_or(0)))
        };
        let duplicate = descriptor.try_clone().map_err(no_duplicate)?;
        Ok(Hello { bytes: zerocopy::IntoBytes::as_bytes(&name).to_vec(), descriptors: vec![duplicate] })
    }

    fn meet(&mut self, process: Arc<PeerProcess>, introduction: Hello) -> Result<EndpointId, KnemError> {
        let own = self.owner;
        let parts = self.here()?;
        let met = RegionOwner::new(process, introduction)?;
        let owner = met.table.owner();
        if owner == own {
            return Err(KnemError::Introduction("it is one's own".to_owned()));
        }
        let mut known = lock(&parts.regions.met);
        if known.get(&owner).is_some_and(|before| !before.may_be_replaced_by(&met)) {
            let why = "another process that still runs was introduced by this id".to_owned();
            return Err(KnemError::Introduction(why));
        }
        known.insert(owner, Arc::new(met));
        Ok(owner)
    }

    fn part(&mut self, owner: EndpointId) {
        if let Ok(parts) = self.here() {
            lock(&parts.regions.met).remove(&owner);
        }
    }

    fn create_region(
        &mut self,
        memory: Buffer,
        protection: Protection,
        uses: Uses,
    ) -> Result<RegionCookie, KnemError> {
        let key = lock(&self.here()?.regions.table).declare(memory, options(protection, uses))?;
        Ok(to_cookie(&key))
    }

    /// Of an allocated region (see [`UserDriver::free_region`]) the memory
    /// given is empty.
    fn destroy_region(&mut self, cookie: &RegionCookie) -> Result<Buffer, KnemError> {
        let lent = self.destroy(cookie)?;
        Ok(lent.unwrap_or(Buffer::empty(lmt_core::buffer::Access::Write)))
    }

    fn region_bytes(&mut self, cookie: &RegionCookie) -> Result<u64, KnemError> {
        self.here()?.regions.region_bytes(cookie)
    }

    fn inline_copy(
        &mut self,
        local: &mut Buffer,
        copy: &InlineCopy,
        flags: CopyFlags,
    ) -> Result<u64, KnemError> {
        let regions = &self.here()?.regions;
        check_flags(flags)?;
        let begun = regions.begin_inline(local, copy)?;
        regions.run_inline(local, begun)
    }

    fn try_inline_copy(&mut self, local: &mut Buffer, copy: &InlineCopy) -> Result<u64, KnemError> {
        let regions = &self.here()?.regions;
        let mut begun = regions.begin_inline(local, copy)?;
        regions.try_inline(local, &mut begun)
    }

    fn region_copy(&mut self, copy: &RegionCopy, flags: CopyFlags) -> Result<u64, KnemError> {
        let regions = &self.here()?.regions;
        check_flags(flags)?;
        regions.run_between(regions.begin_between(copy)?)
    }

    fn start_inline_copy(
        &mut self,
        local: Buffer,
        copy: &InlineCopy,
        flags: CopyFlags,
    ) -> Result<CopyId, KnemError> {
        self.start(flags, |regions| Ok(Work::Inline(regions.begin_inline(&local, copy)?, local)))
    }

    fn start_region_copy(&mut self, copy: &RegionCopy, flags: CopyFlags) -> Result<CopyId, KnemError> {
        self.start(flags, |regions| Ok(Work::Between(regions.begin_between(copy)?)))
    }

    fn poll(&mut self, copy: CopyId) -> Result<Option<Copied>, KnemError> {
        self.here()?.offload.poll(copy)
    }

    fn bind_offload(&mut self, binding: &Binding) -> Result<(), KnemError> {
        self.here()?.offload.bind(binding)
    }
}

impl Drop for UserDriver {
    fn drop(&mut self) {
        if !self.origin.is_this_process() {
            std::mem::forget(self.parts.take());
        }
    }
}

#[cfg(test)]
#[path = "driver_tests.rs"]
mod tests;
