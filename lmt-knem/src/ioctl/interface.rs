//! [`IoctlDriver`] as a [`Driver`].

use std::path::Path;
use std::sync::Arc;

use lmt_core::buffer::Buffer;
use lmt_core::diagnostic::{Finding, Host};
use lmt_core::identity::EndpointId;
use lmt_core::mechanism::{Hello, Needs, Unavailable};
use lmt_core::process::PeerProcess;
use lmt_core::region::Protection;

use super::driver::{DEVICE_PATH, IoctlDriver};
use super::met::{PeerTable, introduction};
use super::{abi, errors};
use crate::driver::Driver;
use crate::error::KnemError;
use crate::types::{Binding, Copied, CopyFlags, CopyId, Info, InlineCopy, RegionCookie, RegionCopy, Uses};

impl Driver for IoctlDriver {
    fn open() -> Result<Self, KnemError> {
        Self::open_at(Path::new(DEVICE_PATH))
    }

    fn name(&self) -> &'static str {
        "ioctl"
    }

    fn mechanism_name() -> &'static str {
        "knem-ioctl"
    }

    fn needs() -> Needs {
        Needs::Module
    }

    fn diagnostics(host: &Host) -> Vec<Finding> {
        super::diagnostics::diagnostics(host)
    }

    fn copies_by_both_ends() -> bool {
        true
    }

    fn owner(&self) -> EndpointId {
        self.owner
    }

    fn info(&self) -> Info {
        self.info
    }

    fn engine(&self) -> Result<(), Unavailable> {
        self.info.engine()?;
        self.dma_min.check()
    }

    fn introduce(&mut self) -> Result<Hello, KnemError> {
        self.check_process()?;
        let descriptor = self.regions.descriptor().try_clone();
        let descriptor = descriptor.map_err(|error| {
            let errno = nix::errno::Errno::from_raw(error.raw_os_error().unwrap_or(0));
            errors::of_any("duplicating a descriptor", errno)
        })?;
        Ok(Hello { bytes: introduction(self.owner), descriptors: vec![descriptor] })
    }

    fn meet(&mut self, process: Arc<PeerProcess>, introduction: Hello) -> Result<EndpointId, KnemError> {
        self.check_process()?;
        let met = PeerTable::new(process, introduction)?;
        let owner = met.owner;
        if owner == self.owner {
            return Err(KnemError::Introduction("it is one's own".to_owned()));
        }
        // Owners' ids are known to all their peers: one of these must not take
        // the place of a living one by greeting with its id.
        let known = self.met.iter().find(|known| known.owner == owner);
        if known.is_some_and(|known| !known.is_process(&met.process) && known.process.is_alive()) {
            let why = "it names another process, which lives".to_owned();
            return Err(KnemError::Introduction(why));
        }
        self.part(owner);
        self.met.push(met);
        Ok(owner)
    }

    fn part(&mut self, owner: EndpointId) {
        self.met.retain(|met| met.owner != owner);
    }

    fn create_region(
        &mut self,
        memory: Buffer,
        protection: Protection,
        uses: Uses,
    ) -> Result<RegionCookie, KnemError> {
        self.check_process()?;
        let (slot, generation) = self.regions.create(&self.device, memory, protection, uses)?;
        Ok(RegionCookie::new(self.owner, slot, generation))
    }

    fn destroy_region(&mut self, cookie: &RegionCookie) -> Result<Buffer, KnemError> {
        self.check_process()?;
        if cookie.owner() != self.owner {
            return Err(KnemError::NotRegistered);
        }
        // The driver has the pages pinned for a copy that goes on: it would
        // write to them, or read them, when they are something else again.
        for index in self.copies.wait_for_region(cookie)? {
            // Who polls it later is to be told that it has ended well.
            let used = self.copies.used(index);
            if used.iter().flatten().all(|used| self.confirm(used).is_ok()) {
                self.copies.set_ended(index);
            }
        }
        self.regions.destroy(&self.device, cookie.slot(), cookie.generation())
    }

    fn region_bytes(&mut self, cookie: &RegionCookie) -> Result<u64, KnemError> {
        self.check_process()?;
        Ok(self.look_up(cookie)?.0.total_bytes)
    }

    fn inline_copy(
        &mut self,
        local: &mut Buffer,
        copy: &InlineCopy,
        flags: CopyFlags,
    ) -> Result<u64, KnemError> {
        let made = self.inline(local, copy)?;
        self.finish(made, flags)
    }

    fn region_copy(&mut self, copy: &RegionCopy, flags: CopyFlags) -> Result<u64, KnemError> {
        let made = self.between(copy)?;
        self.finish(made, flags)
    }

    fn start_inline_copy(
        &mut self,
        local: Buffer,
        copy: &InlineCopy,
        flags: CopyFlags,
    ) -> Result<CopyId, KnemError> {
        let made = self.inline(&local, copy)?;
        let id = self.start(made, flags)?;
        self.copies.lend(id, local);
        Ok(id)
    }

    fn start_region_copy(&mut self, copy: &RegionCopy, flags: CopyFlags) -> Result<CopyId, KnemError> {
        let made = self.between(copy)?;
        self.start(made, flags)
    }

    fn poll(&mut self, copy: CopyId) -> Result<Option<Copied>, KnemError> {
        self.check_process()?;
        let Some(ended) = self.copies.poll(copy)? else { return Ok(None) };
        ended.used.iter().flatten().try_for_each(|used| self.confirm(used))?;
        Ok(Some(Copied { bytes: ended.bytes, local: ended.local }))
    }

    fn bind_offload(&mut self, binding: &Binding) -> Result<(), KnemError> {
        self.check_process()?;
        let (flags, mut mask) = match binding {
            Binding::Custom(mask) => (abi::BIND_CUSTOM, mask.clone()),
            Binding::Current => (abi::BIND_CURRENT, Vec::new()),
            Binding::CurrentReversed => (abi::BIND_CURRENT_REVERSED, Vec::new()),
        };
        self.device.bind(flags, &mut mask).map_err(errors::of_bind)
    }

    fn forget_range(&mut self, address: usize, bytes: usize) {
        if self.regions.is_usable_here() {
            self.regions.forget_range(&self.device, address, bytes);
        }
    }
}

#[cfg(test)]
#[path = "interface_tests.rs"]
mod tests;
