//! How something that works in the background wakes a sleeping endpoint.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

/// An endpoint's own doorbell. Whoever sleeps in the endpoint's wait wakes when
/// it is rung, and looks at its transfers.
///
/// A ring is not kept for a transfer: one that comes while the endpoint is awake
/// may be taken for work that is done already, and the next sleep then lasts
/// for at most the half millisecond that an endpoint with transfers under way
/// sleeps anyway.
#[derive(Clone, Debug)]
pub struct Bell(Arc<OwnedFd>);

impl Bell {
    /// A bell that writes to this eventfd, which must not block.
    pub fn new(eventfd: OwnedFd) -> Self {
        Self(Arc::new(eventfd))
    }

    /// Wakes the endpoint; costs a system call and never waits.
    pub fn ring(&self) {
        // It fails only when it was rung 2^64 - 2 times and not heard: then it
        // is readable already.
        let _rung = nix::unistd::write(self.0.as_fd(), &1u64.to_ne_bytes());
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
