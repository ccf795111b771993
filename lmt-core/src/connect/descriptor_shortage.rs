//! A process that has no descriptors left: callers wait a while, then they are told.

use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use nix::errno::Errno;

/// What there is to know of a lack of descriptors, and the one that is kept for it: who cannot
/// be accepted cannot be told why either.
#[derive(Debug)]
pub(super) struct Shortage {
    reserve: Option<OwnedFd>,
    /// When somebody first and last could not be let in.
    seen: Option<(Instant, Instant)>,
}

/// How long a shortage has gone on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Length {
    /// It begins.
    Begins,
    /// Descriptors may still come free in time.
    Short,
    /// Those who wait are to be told.
    Long,
}

impl Shortage {
    /// None so far. The reserve is a copy of `of`.
    pub(super) fn none(of: &impl AsFd) -> Self {
        Self { reserve: of.as_fd().try_clone_to_owned().ok(), seen: None }
    }

    /// Somebody could not be let in for want of a descriptor. What was last seen longer ago
    /// than `limit` was another shortage; one that goes on for so long is a long one.
    pub(super) fn note(&mut self, now: Instant, limit: Duration) -> Length {
        let first = self.seen.filter(|(_, last)| now.duration_since(*last) <= limit).map(|(first, _)| first);
        self.seen = Some((first.unwrap_or(now), now));
        match first {
            None => Length::Begins,
            Some(first) if now.duration_since(first) < limit => Length::Short,
            Some(_) => Length::Long,
        }
    }

    /// Somebody was let in.
    pub(super) fn ends(&mut self) {
        self.seen = None;
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

#[cfg(test)]
#[path = "descriptor_shortage_tests.rs"]
mod tests;
