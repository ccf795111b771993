//! pidfd_open(2), which neither `std` nor `nix` has.
#![allow(unsafe_code)] // A system call by number.

use std::os::fd::{FromRawFd, OwnedFd, RawFd};

use nix::errno::Errno;

/// A pidfd of the process that has this pid now (pidfd_open(2)).
pub(crate) fn pidfd_open(pid: i32) -> Result<OwnedFd, Errno> {
    // SAFETY: pidfd_open takes two integers and touches no memory of ours.
    let answer = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    let raw = Errno::result(answer)? as RawFd;
    // SAFETY: the kernel has just made this descriptor for us.
    Ok(unsafe { OwnedFd::from_raw_fd(raw) })
}
