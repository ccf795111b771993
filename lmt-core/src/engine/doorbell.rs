//! The eventfd by which a process wakes an endpoint of its own that sleeps
//! (eventfd(2)); a peer sends a datagram ([`crate::connect::Waker`]).

use std::os::fd::{AsFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::eventfd::{EfdFlags, EventFd};

/// A new doorbell, not rung.
pub(crate) fn create() -> Result<OwnedFd, Errno> {
    EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK).map(OwnedFd::from)
}

/// Makes the doorbell readable. It fails only when it is rung 2^64 - 1 times
/// already, and then it is readable.
pub(crate) fn ring(doorbell: &impl AsFd) {
    let _rung = nix::unistd::write(doorbell.as_fd(), &1u64.to_ne_bytes());
}

/// Makes the doorbell silent again.
pub(crate) fn silence(doorbell: &impl AsFd) {
    let mut count = [0; 8];
    let _was_rung = nix::unistd::read(doorbell.as_fd(), &mut count);
}
