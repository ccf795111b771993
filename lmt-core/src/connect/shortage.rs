//! A process that has no descriptors left: callers wait a while, then they are told.

use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use nix::errno::Errno;

/// What there is to know of a lack of descriptors, and the one that is kept for it: who cannot
/// be accepted cannot be told why either.
#[derive(Debug)]
pub(super) struct Shortage {
    reserve: Option<OwnedFd>,
    since: Option<Instant>,
}

impl Shortage {
    /// None so far. The reserve is a copy of `of`.
    pub(super) fn none(of: &impl AsFd) -> Self {
        Self { reserve: of.as_fd().try_clone_to_owned().ok(), since: None }
    }

    /// Whether somebody could not be let in lately.
    pub(super) const fn is_known(&self) -> bool {
        self.since.is_some()
    }

    /// Somebody could not be let in for want of a descriptor; whether that has gone on for
    /// `limit`.
    pub(super) fn goes_on(&mut self, now: Instant, limit: Duration) -> bool {
        now.duration_since(*self.since.get_or_insert(now)) >= limit
    }

    /// Somebody was let in.
    pub(super) fn ends(&mut self) {
        self.since = None;
    }

    /// Calls `f` while there is one descriptor more.
    pub(super) fn with_reserve(&mut self, of: &impl AsFd, f: impl FnOnce()) {
        drop(self.reserve.take());
        f();
        self.reserve = of.as_fd().try_clone_to_owned().ok();
    }
}

/// Whether the process, or the machine, has no descriptors left (accept(2)).
pub(super) const fn is_short(errno: Errno) -> bool {
    matches!(errno, Errno::EMFILE | Errno::ENFILE)
}
