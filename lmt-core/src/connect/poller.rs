//! The one epoll of an endpoint, and its timers.

use std::collections::BTreeSet;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, ppoll};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::time::TimeSpec;

use crate::vocabulary::identity::EndpointId;

/// Tokens with this bit are the connection layer's, the others the embedder's.
const OURS: u64 = 1 << 63;

/// What became ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ready {
    /// A descriptor of this layer, by its serial number.
    Ours(u64),
    /// A descriptor of the embedder, by its token.
    Embedder(u64),
}

/// What a timer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum TimerKey {
    /// Accepting goes on.
    Listener,
    /// An incoming connection has been silent too long.
    HalfOpen(u64),
    /// A peer has something due.
    Peer(EndpointId),
}

#[derive(Debug)]
pub(super) struct Poller {
    epoll: Epoll,
    timers: BTreeSet<(Instant, TimerKey)>,
}

impl Poller {
    pub fn new() -> Result<Self, Errno> {
        Ok(Self { epoll: Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?, timers: BTreeSet::new() })
    }

    pub fn epoll_fd(&self) -> BorrowedFd<'_> {
        self.epoll.0.as_fd()
    }

    /// Watches a descriptor of this layer for input.
    pub fn watch(&self, fd: BorrowedFd<'_>, serial: u64) -> Result<(), Errno> {
        self.epoll.add(fd, EpollEvent::new(EpollFlags::EPOLLIN, OURS | serial))
    }

    /// Says for what a watched descriptor is watched now.
    pub fn rewatch(&self, fd: BorrowedFd<'_>, serial: u64, flags: EpollFlags) {
        // The only failure is a descriptor that is not watched.
        let _ = self.epoll.modify(fd, &mut EpollEvent::new(flags, OURS | serial));
    }

    /// Watches a descriptor of the embedder for input.
    pub fn watch_embedder(&self, fd: BorrowedFd<'_>, token: u64) -> Result<(), Errno> {
        if token & OURS != 0 {
            return Err(Errno::EINVAL);
        }
        self.epoll.add(fd, EpollEvent::new(EpollFlags::EPOLLIN, token))
    }

    /// Forgets a descriptor. Needed before it is closed: where a forked child
    /// holds it too, closing does not take it out of the epoll.
    pub fn forget(&self, fd: BorrowedFd<'_>) -> Result<(), Errno> {
        self.epoll.delete(fd)
    }

    /// What is ready now, at most 64 at once.
    pub fn ready(&self) -> impl Iterator<Item = Ready> + use<> {
        let mut events = [EpollEvent::empty(); 64];
        let count = self.epoll.wait(&mut events, EpollTimeout::ZERO).unwrap_or(0);
        let ready = |event: EpollEvent| match event.data() {
            data if data & OURS != 0 => Ready::Ours(data & !OURS),
            data => Ready::Embedder(data),
        };
        events.into_iter().take(count).map(ready)
    }

    /// Sleeps until something is ready or the time is over.
    pub fn wait(&self, timeout: Option<Duration>) {
        let mut fds = [PollFd::new(self.epoll_fd(), PollFlags::POLLIN)];
        // An interruption is a wakeup like others.
        let _ = match timeout {
            Some(timeout) => ppoll(&mut fds, Some(TimeSpec::from_duration(timeout)), None),
            None => nix::poll::poll(&mut fds, PollTimeout::NONE),
        };
    }

    /// Moves a timer from where it was (`slot`) to `due`.
    pub fn set_timer(&mut self, key: TimerKey, slot: &mut Option<Instant>, due: Option<Instant>) {
        if *slot == due {
            return;
        }
        if let Some(old) = slot.take() {
            self.timers.remove(&(old, key));
        }
        if let Some(new) = due {
            self.timers.insert((new, key));
        }
        *slot = due;
    }

    /// When the next timer is due.
    pub fn next_due(&self) -> Option<Instant> {
        self.timers.first().map(|(due, _)| *due)
    }

    /// The timers that are due.
    pub fn due(&self, now: Instant) -> Vec<TimerKey> {
        self.timers.iter().take_while(|(due, _)| *due <= now).map(|(_, key)| *key).collect()
    }
}
