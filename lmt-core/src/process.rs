//! The process behind a peer, by descriptor and not by number.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

/// A peer's process: the pid by which single-copy system calls name it, and the
/// pidfd that says whether that pid still is this process.
///
/// Pids are reused; a pidfd is not. So the pidfd is looked at before each
/// system call that names the pid, and again after each that has read
/// something ([`PeerProcess::is_alive`]).
#[derive(Debug)]
pub struct PeerProcess {
    pid: Option<i32>,
    pidfd: Option<OwnedFd>,
}

impl PeerProcess {
    /// A process known by what the kernel said of the socket's other end.
    /// `pid` 0 or less means that this pid namespace does not show it.
    pub fn new(pid: i32, pidfd: Option<OwnedFd>) -> Self {
        Self { pid: (pid > 0).then_some(pid), pidfd }
    }

    /// The pid in this pid namespace, if it is visible here.
    pub fn pid(&self) -> Option<i32> {
        self.pid
    }

    /// The pidfd, readable once the process is dead (pidfd_open(2)).
    pub fn pidfd(&self) -> Option<BorrowedFd<'_>> {
        self.pidfd.as_ref().map(AsFd::as_fd)
    }

    /// Whether the process is dead, or so soon: a system call that named its pid
    /// was told that there is none, which the pidfd may say a moment later.
    pub fn has_ended(&self) -> bool {
        const EXITING_MS: u16 = 100;
        self.pidfd.is_some() && !self.lives_for(PollTimeout::from(EXITING_MS))
    }

    /// Whether the process still runs. Without a pidfd it is taken to run:
    /// then the connection's socket tells of its end.
    pub fn is_alive(&self) -> bool {
        self.lives_for(PollTimeout::ZERO)
    }

    fn lives_for(&self, timeout: PollTimeout) -> bool {
        let Some(pidfd) = &self.pidfd else {
            return true;
        };
        let mut fds = [PollFd::new(pidfd.as_fd(), PollFlags::POLLIN)];
        loop {
            match poll(&mut fds, timeout) {
                Ok(ready) => return ready == 0,
                Err(nix::errno::Errno::EINTR) => {}
                // The kernel has no memory for the poll: no proof of death.
                Err(_) => return true,
            }
        }
    }
}
