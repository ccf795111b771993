//! The process behind a peer, by descriptor and not by number.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::time::{ClockId, clock_gettime};

/// A peer's process: the pid by which single-copy system calls name it, and the
/// pidfd that says whether that pid still is this process.
///
/// Pids are reused; a pidfd is not. So the pidfd is looked at before each
/// system call that names the pid to write, and after each that has read
/// something, unless that has just been done ([`PeerProcess::holds_pid`]).
#[derive(Debug)]
pub struct PeerProcess {
    pid: Option<i32>,
    pidfd: Option<OwnedFd>,
    /// When it was alive, in nanoseconds of the monotonic clock; 0 never.
    alive_ns: AtomicU64,
}

impl PeerProcess {
    /// A process known by what the kernel said of the socket's other end.
    /// `pid` 0 or less means that this pid namespace does not show it.
    pub fn new(pid: i32, pidfd: Option<OwnedFd>) -> Self {
        Self { pid: (pid > 0).then_some(pid), pidfd, alive_ns: AtomicU64::new(0) }
    }

    /// This process, as a peer of itself; without a pidfd where the kernel gives none.
    ///
    /// ```
    /// assert!(lmt_core::process::PeerProcess::this().is_alive());
    /// ```
    #[cfg(not(loom))]
    pub fn this() -> Self {
        let pid = std::process::id() as i32;
        Self::new(pid, super::pidfd::pidfd_open(pid).ok())
    }

    /// The pid in this pid namespace, if it is visible here.
    pub fn pid(&self) -> Option<i32> {
        self.pid
    }

    /// The pidfd, readable once the process is dead (pidfd_open(2)).
    pub fn pidfd(&self) -> Option<BorrowedFd<'_>> {
        self.pidfd.as_ref().map(AsFd::as_fd)
    }

    /// Whether its pid still names it, which is all that a copy needs to know:
    /// a system call that names a dead process's pid is refused.
    ///
    /// A pid is given out again when all others have been (the kernel takes them
    /// in a cycle, and there are 301 at least, see proc_sys_kernel(5), pid_max):
    /// many milliseconds after its process lived, so who was alive 100
    /// microseconds ago still has it. That saves the system call, a third of a
    /// microsecond, of all but the first copies of a burst.
    #[inline]
    pub fn holds_pid(&self) -> bool {
        const KEPT_NS: u64 = 100_000;
        let now = monotonic_ns();
        // Relaxed, here and below: a time by itself, from this process's own
        // earlier looks.
        let alive = self.alive_ns.load(Ordering::Relaxed);
        if now.wrapping_sub(alive) < KEPT_NS && now != 0 {
            return true;
        }
        let alive = self.is_alive();
        if alive && self.pidfd.is_some() {
            // Taken before the look, at which it was still alive.
            self.alive_ns.store(now, Ordering::Relaxed);
        }
        alive
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

/// 0 where there is no clock, which does not happen.
fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC);
    now.map_or(0, |now| now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64)
}

#[cfg(all(test, not(loom)))]
#[path = "process_tests.rs"]
mod tests;
