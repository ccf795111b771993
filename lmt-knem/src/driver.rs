//! What a driver does: figure 4 of knem-jpdc2013.

use std::sync::Arc;
use std::time::Duration;

use lmt_core::buffer::Buffer;
use lmt_core::diagnostic::{Finding, Host};
use lmt_core::identity::EndpointId;
use lmt_core::mechanism::{Hello, Needs, Unavailable};
use lmt_core::process::PeerProcess;
use lmt_core::region::Protection;

use crate::error::KnemError;
use crate::types::{Binding, Copied, CopyFlags, CopyId, Info, InlineCopy, RegionCookie, RegionCopy, Uses};

/// A process that is being killed has neither memory nor regions any more a while
/// before its pidfd tells; for so long nothing is said of why they are not found.
pub(crate) const DYING: Duration = Duration::from_millis(500);

/// KNEM's operations, of one opened driver.
///
/// Regions of others are reached once their owner's introduction has been taken
/// ([`Driver::introduce`], [`Driver::meet`]): a cookie is checked against what
/// the owner publishes before the driver is asked, so one that is stale is
/// refused however the driver reuses its numbers.
///
/// In a forked child every operation is refused with [`KnemError::Forked`], and
/// dropping the driver there changes nothing for the parent.
pub trait Driver: std::fmt::Debug + Send + 'static {
    /// Opens it.
    ///
    /// # Errors
    /// [`KnemError`] with a sentence on why there is none.
    fn open() -> Result<Self, KnemError>
    where
        Self: Sized;

    /// What it is called: lower case.
    fn name(&self) -> &'static str;

    /// The name of the mechanism that moves messages by it.
    fn mechanism_name() -> &'static str
    where
        Self: Sized;

    /// What it needs of the machine; by default what every kernel has.
    fn needs() -> Needs
    where
        Self: Sized,
    {
        Needs::Kernel
    }

    /// What there is to look at when it cannot be opened, or does not reach a
    /// peer: nothing by default.
    fn diagnostics(_host: &Host) -> Vec<Finding>
    where
        Self: Sized,
    {
        Vec::new()
    }

    /// Whether what lets it copy lets this process reach a peer's memory that
    /// was declared elsewhere too, as an endpoint's regions are.
    fn reaches_all_memory() -> bool
    where
        Self: Sized,
    {
        false
    }

    /// Whether its copies are made in the call, by the core that calls, and any
    /// part of a region may be copied: then both ends of a message can copy it.
    fn copies_by_both_ends() -> bool
    where
        Self: Sized,
    {
        false
    }

    /// Whether it tells an owner that is being killed ([`KnemError::OwnerDying`])
    /// from memory that cannot be copied.
    fn reports_dying_owners() -> bool
    where
        Self: Sized,
    {
        false
    }

    /// Who this is in the cookies of its regions.
    fn owner(&self) -> EndpointId;

    /// What the driver is and can do.
    fn info(&self) -> Info;

    /// Whether copies that ask for a DMA engine are left to one.
    ///
    /// # Errors
    /// Why none is used, and what would help.
    fn engine(&self) -> Result<(), Unavailable> {
        self.info().engine()
    }

    /// What another must be handed to reach regions of this one: bytes and
    /// descriptors.
    ///
    /// # Errors
    /// [`KnemError::System`] when no descriptor can be made.
    fn introduce(&mut self) -> Result<Hello, KnemError>;

    /// Takes another's introduction, which is untrusted; `process` is where it
    /// came from. Returns whose it is. Who is introduced again replaces itself.
    ///
    /// # Errors
    /// [`KnemError::Introduction`] when it is none, or names somebody who was
    /// introduced by another process that still runs.
    fn meet(&mut self, process: Arc<PeerProcess>, introduction: Hello) -> Result<EndpointId, KnemError>;

    /// Forgets whom [`Driver::meet`] took; its regions are unknown from now on.
    fn part(&mut self, owner: EndpointId);

    /// Declares memory. It is lent until [`Driver::destroy_region`] gives it
    /// back, or the driver is dropped.
    ///
    /// # Errors
    /// [`KnemError::ReadOnlyMemory`], [`KnemError::TooMany`],
    /// [`KnemError::BadMemory`] or [`KnemError::System`].
    fn create_region(
        &mut self,
        memory: Buffer,
        protection: Protection,
        uses: Uses,
    ) -> Result<RegionCookie, KnemError>;

    /// Takes a region of one's own back, and its memory. No copy begins any
    /// more; one that a peer has just begun may still be at work. Copies that
    /// this driver has started are waited for.
    ///
    /// # Errors
    /// [`KnemError::NotRegistered`], also for regions of others.
    /// [`KnemError::CopyInFlight`] where a copy does not end; the region stays.
    fn destroy_region(&mut self, cookie: &RegionCookie) -> Result<Buffer, KnemError>;

    /// How long a region is, in bytes.
    ///
    /// # Errors
    /// [`KnemError::NotRegistered`] or [`KnemError::UnknownOwner`].
    fn region_bytes(&mut self, cookie: &RegionCookie) -> Result<u64, KnemError>;

    /// Copies between `local` and a region; returns how many bytes. With an
    /// asynchronous flag it waits for the end all the same.
    ///
    /// # Errors
    /// [`KnemError`]; how much was copied before is not known then. After
    /// [`KnemError::CopyLost`] the driver may still be at work in the memory.
    fn inline_copy(
        &mut self,
        local: &mut Buffer,
        copy: &InlineCopy,
        flags: CopyFlags,
    ) -> Result<u64, KnemError>;

    /// Copies between two regions; returns how many bytes.
    ///
    /// # Errors
    /// As [`Driver::inline_copy`].
    fn region_copy(&mut self, copy: &RegionCopy, flags: CopyFlags) -> Result<u64, KnemError>;

    /// Begins a copy between `local` and a region. Without an asynchronous flag
    /// (or where the driver ignores it) the copy is made in the call, and
    /// [`Driver::poll`] says so at once.
    ///
    /// # Errors
    /// [`KnemError`]; nothing goes on then. [`KnemError::TooMany`] when too many
    /// have not been asked for.
    fn start_inline_copy(
        &mut self,
        local: Buffer,
        copy: &InlineCopy,
        flags: CopyFlags,
    ) -> Result<CopyId, KnemError>;

    /// Begins a copy between two regions.
    ///
    /// # Errors
    /// As [`Driver::start_inline_copy`].
    fn start_region_copy(&mut self, copy: &RegionCopy, flags: CopyFlags) -> Result<CopyId, KnemError>;

    /// Looks at the status of a copy that was started; `None` while it goes on.
    /// An ended copy is told of once, and its number is void then. Dropping the
    /// driver waits for the copies that go on.
    ///
    /// # Errors
    /// [`KnemError::NoSuchCopy`], or why the copy has failed.
    fn poll(&mut self, copy: CopyId) -> Result<Option<Copied>, KnemError>;

    /// Says where the thread runs that makes asynchronous copies.
    ///
    /// # Errors
    /// [`KnemError::System`] when there are no such CPUs.
    fn bind_offload(&mut self, binding: &Binding) -> Result<(), KnemError>;

    /// Says that memory is about to be unmapped, or that other pages are about
    /// to be put in its place. What the driver keeps of it for later use is
    /// given up; needed only where such keeping was asked for.
    fn forget_range(&mut self, _address: usize, _bytes: usize) {}

    /// As [`Driver::inline_copy`] without flags, for who has others to serve:
    /// where it would be waited to learn whether the region's owner has died,
    /// the answer is [`KnemError::OwnerDying`] at once, and the caller comes
    /// again.
    ///
    /// # Errors
    /// As [`Driver::inline_copy`].
    fn try_inline_copy(&mut self, local: &mut Buffer, copy: &InlineCopy) -> Result<u64, KnemError> {
        self.inline_copy(local, copy, CopyFlags::NONE)
    }
}
