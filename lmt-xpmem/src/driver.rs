//! What XPMEM does, whoever does it: its kernel module, or a stand-in of tests.
#![allow(unsafe_code)] // Detaches memory whose users are gone.

use std::ops::Range;
use std::sync::Arc;

use lmt_core::fork_guard::Origin;
use lmt_core::mapping_cache::Length;
use nix::errno::Errno;

/// Segments, permits and attachments, as of XPMEM's module.
///
/// # Safety
/// What [`Driver::attach`] gives is mapped here, readable and writable, until it is
/// detached; nothing else of this process is. Where the peer has no memory, accesses to it
/// are SIGBUS or SIGSEGV, and nothing worse.
pub unsafe trait Driver: Clone + Send + Sync + 'static {
    /// The mechanism's name.
    const NAME: &'static str;

    /// The segment that is the whole address space of this process.
    ///
    /// # Errors
    /// There is no driver, or it is refused to this process.
    fn segment(&self) -> Result<i64, Errno>;

    /// The right to attach a peer's segment: a permit.
    ///
    /// # Errors
    /// There is no such segment, or it is refused to this process.
    fn get(&self, segment: i64) -> Result<i64, Errno>;

    /// Gives a permit back, by which nothing is attached.
    fn release(&self, permit: i64);

    /// Attaches `bytes` bytes of the peer's, whole pages, from `address` there on, and says
    /// where. There may be holes.
    ///
    /// # Errors
    /// The permit is nobody's any more, or there is no room.
    fn attach(&self, permit: i64, address: u64, bytes: u64) -> Result<usize, Errno>;

    /// Ends that.
    ///
    /// # Safety
    /// It was attached there, with this length, and nobody uses it any more.
    unsafe fn detach(&self, address: usize, bytes: u64);
}

/// The right to attach a peer's memory, given back with the last attachment.
#[derive(Debug)]
pub(crate) struct Permit<D: Driver> {
    driver: D,
    number: i64,
    origin: Origin,
}

impl<D: Driver> Permit<D> {
    pub fn get(driver: D, segment: i64) -> Result<Arc<Self>, Errno> {
        let number = driver.get(segment)?;
        Ok(Arc::new(Self { driver, number, origin: Origin::here() }))
    }

    /// Attaches a part of the peer's address space.
    pub fn attach(self: &Arc<Self>, address: u64, bytes: u64) -> Result<Attachment<D>, Errno> {
        // A child has neither its parent's permits nor what is attached by them.
        if !self.origin.is_this_process() {
            return Err(Errno::EACCES);
        }
        let here = self.driver.attach(self.number, address, bytes)?;
        Ok(Attachment { permit: Arc::clone(self), address: here, bytes })
    }
}

impl<D: Driver> Drop for Permit<D> {
    fn drop(&mut self) {
        if self.origin.is_this_process() {
            self.driver.release(self.number);
        }
    }
}

/// A part of a peer's address space, attached here.
#[derive(Debug)]
pub(crate) struct Attachment<D: Driver> {
    permit: Arc<Permit<D>>,
    address: usize,
    bytes: u64,
}

impl<D: Driver> Attachment<D> {
    /// Where it is.
    pub const fn range(&self) -> Range<usize> {
        self.address..self.address + self.bytes as usize
    }

    /// Where its byte of this offset is, and how many there are from there on.
    pub fn from(&self, offset: u64) -> Option<(usize, u64)> {
        let left_bytes = self.bytes.checked_sub(offset)?;
        Some((self.address + offset as usize, left_bytes))
    }
}

impl<D: Driver> Length for Attachment<D> {
    fn length_bytes(&self) -> u64 {
        self.bytes
    }
}

impl<D: Driver> Drop for Attachment<D> {
    fn drop(&mut self) {
        if self.permit.origin.is_this_process() {
            // SAFETY: `attach` gave it with this length, in this process; it is used
            // through this value alone, which ends here.
            unsafe { self.permit.driver.detach(self.address, self.bytes) };
        }
    }
}
