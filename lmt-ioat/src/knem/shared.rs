//! One driver that the mechanism, its engine and their jobs share.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lmt_core::buffer::Buffer;
use lmt_core::diagnostic::{Finding, Host};
use lmt_core::fork_guard::Origin;
use lmt_core::identity::EndpointId;
use lmt_core::mechanism::{Hello, Needs, Unavailable};
use lmt_core::process::PeerProcess;
use lmt_core::region::Protection;
use lmt_knem::{
    Binding, Copied, CopyFlags, CopyId, Driver, Info, InlineCopy, KnemError, RegionCookie, RegionCopy, Uses,
};

/// A driver that is used from several places, one at a time.
#[derive(Debug)]
pub struct Shared<D> {
    driver: Arc<Mutex<D>>,
    owner: EndpointId,
    info: Info,
    name: &'static str,
    origin: Origin,
}

impl<D> Clone for Shared<D> {
    fn clone(&self) -> Self {
        Self { driver: Arc::clone(&self.driver), ..*self }
    }
}

impl<D: Driver> Shared<D> {
    /// Shares an opened driver.
    pub fn new(driver: D) -> Self {
        let (owner, info, name) = (driver.owner(), driver.info(), driver.name());
        Self { driver: Arc::new(Mutex::new(driver)), owner, info, name, origin: Origin::here() }
    }

    /// The driver; refused in a forked child, where the mutex may be locked for
    /// ever.
    fn lock(&self) -> Result<MutexGuard<'_, D>, KnemError> {
        if !self.origin.is_this_process() {
            return Err(KnemError::Forked);
        }
        // A driver is in order between two calls, whatever panicked.
        Ok(self.driver.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl<D: Driver> Driver for Shared<D> {
    fn open() -> Result<Self, KnemError> {
        D::open().map(Self::new)
    }

    fn name(&self) -> &'static str {
        self.name
    }

    fn mechanism_name() -> &'static str {
        "ioat-knem"
    }

    fn needs() -> Needs {
        D::needs()
    }

    fn diagnostics(host: &Host) -> Vec<Finding> {
        D::diagnostics(host)
    }

    fn owner(&self) -> EndpointId {
        self.owner
    }

    fn info(&self) -> Info {
        self.info
    }

    fn engine(&self) -> Result<(), Unavailable> {
        match self.lock() {
            Ok(driver) => driver.engine(),
            Err(error) => Err(Unavailable { errno: error.errno(), sentence: error.to_string() }),
        }
    }

    fn introduce(&mut self) -> Result<Hello, KnemError> {
        self.lock()?.introduce()
    }

    fn meet(&mut self, process: Arc<PeerProcess>, introduction: Hello) -> Result<EndpointId, KnemError> {
        self.lock()?.meet(process, introduction)
    }

    fn part(&mut self, owner: EndpointId) {
        if let Ok(mut driver) = self.lock() {
            driver.part(owner);
        }
    }

    fn create_region(
        &mut self,
        memory: Buffer,
        protection: Protection,
        uses: Uses,
    ) -> Result<RegionCookie, KnemError> {
        self.lock()?.create_region(memory, protection, uses)
    }

    fn destroy_region(&mut self, cookie: &RegionCookie) -> Result<Buffer, KnemError> {
        self.lock()?.destroy_region(cookie)
    }

    fn region_bytes(&mut self, cookie: &RegionCookie) -> Result<u64, KnemError> {
        self.lock()?.region_bytes(cookie)
    }

    fn inline_copy(
        &mut self,
        local: &mut Buffer,
        copy: &InlineCopy,
        flags: CopyFlags,
    ) -> Result<u64, KnemError> {
        self.lock()?.inline_copy(local, copy, flags)
    }

    fn region_copy(&mut self, copy: &RegionCopy, flags: CopyFlags) -> Result<u64, KnemError> {
        self.lock()?.region_copy(copy, flags)
    }

    fn start_inline_copy(
        &mut self,
        local: Buffer,
        copy: &InlineCopy,
        flags: CopyFlags,
    ) -> Result<CopyId, KnemError> {
        self.lock()?.start_inline_copy(local, copy, flags)
    }

    fn start_region_copy(&mut self, copy: &RegionCopy, flags: CopyFlags) -> Result<CopyId, KnemError> {
        self.lock()?.start_region_copy(copy, flags)
    }

    fn poll(&mut self, copy: CopyId) -> Result<Option<Copied>, KnemError> {
        self.lock()?.poll(copy)
    }

    fn bind_offload(&mut self, binding: &Binding) -> Result<(), KnemError> {
        self.lock()?.bind_offload(binding)
    }

    fn forget_range(&mut self, address: usize, bytes: usize) {
        if let Ok(mut driver) = self.lock() {
            driver.forget_range(address, bytes);
        }
    }
}
