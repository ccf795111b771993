//! Another process and its descriptors, by number.
#![allow(unsafe_code)] // Two system calls that have no safe wrapper.

use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use nix::errno::Errno;

/// A pidfd of the process that has this pid now (pidfd_open(2)).
pub(super) fn pidfd_open(pid: i32) -> Result<OwnedFd, Errno> {
    // SAFETY: pidfd_open takes two integers and touches no memory of ours.
    let answer = unsafe { nix::libc::syscall(nix::libc::SYS_pidfd_open, pid, 0) };
    let raw = Errno::result(answer)? as RawFd;
    // SAFETY: the kernel has just made this descriptor for us.
    Ok(unsafe { OwnedFd::from_raw_fd(raw) })
}

/// A duplicate of another process's descriptor (pidfd_getfd(2)); it closes on
/// exec.
pub(super) fn pidfd_getfd(process: BorrowedFd<'_>, descriptor: i32) -> Result<OwnedFd, Errno> {
    // SAFETY: pidfd_getfd takes three integers and touches no memory of ours.
    let answer =
        unsafe { nix::libc::syscall(nix::libc::SYS_pidfd_getfd, process.as_raw_fd(), descriptor, 0) };
    let raw = Errno::result(answer)? as RawFd;
    // SAFETY: the kernel has just made this descriptor for us.
    Ok(unsafe { OwnedFd::from_raw_fd(raw) })
}
