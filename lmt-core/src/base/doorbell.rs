//! The doorbell by which a process wakes an endpoint of its own that sleeps: an
//! eventfd (eventfd(2)). A peer sends a datagram instead.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use nix::errno::Errno;
use nix::sys::eventfd::{EfdFlags, EventFd};

/// An endpoint's own doorbell. Whoever sleeps in the endpoint's wait wakes when
/// it is rung, and looks at its transfers.
///
/// A ring is not kept for a transfer: one that comes while the endpoint is awake
/// may be taken for work that is done already, and the next sleep then lasts
/// for at most the half millisecond that an endpoint with transfers in flight
/// sleeps anyway.
#[derive(Clone, Debug)]
pub struct Doorbell(Arc<OwnedFd>);

#[cfg_attr(loom, allow(dead_code))] // Endpoints create it.
impl Doorbell {
    /// A new doorbell, not rung.
    pub(crate) fn create() -> Result<Self, Errno> {
        let eventfd = EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)?;
        Ok(Self::new(eventfd.into()))
    }

    /// A doorbell that writes to this eventfd, which must not block.
    pub fn new(eventfd: OwnedFd) -> Self {
        Self(Arc::new(eventfd))
    }

    /// Wakes the endpoint; costs a system call and never waits.
    pub fn ring(&self) {
        // It fails only when it was rung 2^64 - 2 times and not heard: then it
        // is readable already.
        let _rung = nix::unistd::write(self.0.as_fd(), &1u64.to_ne_bytes());
    }

    /// Makes it silent again.
    pub(crate) fn clear(&self) {
        let mut count = [0; 8];
        let _was_rung = nix::unistd::read(self.0.as_fd(), &mut count);
    }
}

impl AsFd for Doorbell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
