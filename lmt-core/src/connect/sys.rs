//! The system calls of the connection layer that have no safe wrapper.
#![allow(unsafe_code)]

use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use nix::errno::Errno;
use nix::sys::socket::SockFlag;

/// The most descriptors that the kernel passes with one message (SCM_MAX_FD in
/// unix(7)).
const KERNEL_MAX_DESCRIPTORS: usize = 253;

/// Room for all of them behind one control header, in words.
const CONTROL_WORDS: usize = 8 + KERNEL_MAX_DESCRIPTORS / 2;

/// Bytes of the kernel's `struct cmsghdr`: its length as a word, level and type.
const CONTROL_HEADER_BYTES: usize = size_of::<usize>() + 8;

/// `SO_PEERPIDFD` of Linux 6.5 (asm-generic/socket.h).
const SO_PEERPIDFD: libc::c_int = 77;

/// A datagram and what came with it.
pub(super) struct Datagram {
    /// How many bytes of the buffer it fills.
    pub bytes: usize,
    /// The descriptors passed with it.
    pub descriptors: Vec<OwnedFd>,
    /// Whether the datagram was longer than the buffer.
    pub cut: bool,
    /// Whether descriptors were lost, for example because this process may
    /// not open more.
    pub descriptors_lost: bool,
}

/// Receives one datagram without waiting; descriptors close on exec.
pub(super) fn receive(socket: BorrowedFd<'_>, buffer: &mut [u8]) -> Result<Datagram, Errno> {
    let mut control = [0u64; CONTROL_WORDS];
    let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    // SAFETY: msghdr is a C struct of integers and pointers, for all of which
    // zero is a valid value.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = size_of_val(&control) as _;
    let flags = libc::MSG_DONTWAIT | libc::MSG_CMSG_CLOEXEC;
    // SAFETY: `message` points at one iovec over `buffer` and at `control`,
    // with their true lengths; all three outlive the call and are borrowed by
    // nothing else. The descriptor is open, being borrowed.
    let answer = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, flags) };
    let bytes = Errno::result(answer)? as usize;
    let used = (message.msg_controllen as usize).min(size_of_val(&control));
    let mut descriptors = Vec::new();
    for raw in passed_descriptors(&control, used) {
        // SAFETY: the kernel has just installed `raw` in this process for this
        // very message (SCM_RIGHTS); nobody else knows of it, so it is ours
        // to close.
        descriptors.push(unsafe { OwnedFd::from_raw_fd(raw) });
    }
    Ok(Datagram {
        bytes,
        descriptors,
        cut: message.msg_flags & libc::MSG_TRUNC != 0,
        descriptors_lost: message.msg_flags & libc::MSG_CTRUNC != 0,
    })
}

/// The numbers in the SCM_RIGHTS messages of a control buffer that the kernel
/// has filled up to `used` bytes (cmsg(3)).
fn passed_descriptors(control: &[u64], used: usize) -> Vec<RawFd> {
    let bytes: Vec<u8> = control.iter().flat_map(|word| word.to_ne_bytes()).take(used).collect();
    let int = |at: usize| bytes.get(at..at + 4).map(|b| i32::from_ne_bytes([b[0], b[1], b[2], b[3]]));
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(length) = bytes.get(at..at + size_of::<usize>()) {
        let mut word = [0; size_of::<usize>()];
        word.copy_from_slice(length);
        let end = at.saturating_add(usize::from_ne_bytes(word)).min(bytes.len());
        let level_at = at + size_of::<usize>();
        if end < at + CONTROL_HEADER_BYTES {
            break;
        }
        if (int(level_at), int(level_at + 4)) == (Some(libc::SOL_SOCKET), Some(libc::SCM_RIGHTS)) {
            let numbers = (at + CONTROL_HEADER_BYTES..end).step_by(4).filter(|at| at + 4 <= end);
            found.extend(numbers.filter_map(int));
        }
        at = end.next_multiple_of(size_of::<usize>());
    }
    found
}

/// Takes one connection off a listening socket's backlog.
pub(super) fn accept(listener: BorrowedFd<'_>) -> Result<OwnedFd, Errno> {
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    let raw = nix::sys::socket::accept4(listener.as_raw_fd(), flags)?;
    // SAFETY: accept4 has just made this descriptor and nobody else knows of it.
    Ok(unsafe { OwnedFd::from_raw_fd(raw) })
}

/// A pidfd of the process at the other end (`SO_PEERPIDFD`, Linux 6.5).
pub(super) fn peer_pidfd(socket: BorrowedFd<'_>) -> Result<OwnedFd, Errno> {
    let mut raw: libc::c_int = -1;
    let mut length = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: `raw` is a writable int and `length` says so; the kernel writes
    // no more than `length` bytes to it. The descriptor is open.
    let answer = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            SO_PEERPIDFD,
            (&raw mut raw).cast(),
            &raw mut length,
        )
    };
    Errno::result(answer)?;
    if raw < 0 {
        return Err(Errno::ENOPROTOOPT);
    }
    // SAFETY: the kernel has just made this descriptor for us.
    Ok(unsafe { OwnedFd::from_raw_fd(raw) })
}

/// Lets process `pid` and its descendants read and write this one where Yama
/// would forbid it (PR_SET_PTRACER in prctl(2)).
pub(super) fn set_ptracer(pid: u32) -> Result<(), Errno> {
    let pid = libc::c_ulong::from(pid);
    // SAFETY: this option takes integers only and touches no memory of ours.
    let answer = unsafe { libc::prctl(libc::PR_SET_PTRACER, pid, 0, 0, 0) };
    Errno::result(answer).map(drop)
}

/// Forks, lets the child run `work`, and returns its exit status.
#[cfg(test)]
pub(super) fn in_forked_child(work: impl FnOnce() -> i32) -> i32 {
    // SAFETY: the child runs `work` and _exit only. It may allocate: glibc's
    // and musl's allocators are usable in the child of a threaded process.
    match unsafe { nix::unistd::fork() }.unwrap() {
        nix::unistd::ForkResult::Child => {
            let status = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).unwrap_or(99);
            // SAFETY: _exit ends the process without running anything of the
            // parent's (atexit handlers, buffers).
            unsafe { libc::_exit(status) }
        }
        nix::unistd::ForkResult::Parent { child } => match nix::sys::wait::waitpid(child, None).unwrap() {
            nix::sys::wait::WaitStatus::Exited(_, status) => status,
            other => panic!("{other:?}"),
        },
    }
}
