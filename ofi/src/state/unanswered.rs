//! To which peers callers who inject are asked to try again, and since when.

use std::time::{Duration, Instant};

use lmt::PeerId;

/// So long a caller is asked to try again; after that messages are kept.
pub(super) const TRY_AGAIN_LIMIT: Duration = Duration::from_secs(5);

/// Since when callers have been asked to try again, for each peer.
#[derive(Debug, Default)]
pub struct Unanswered(Vec<(PeerId, Instant)>);

impl Unanswered {
    /// Whether to ask once more.
    pub(super) fn goes_on(&mut self, peer: PeerId, now: Instant) -> bool {
        match self.0.iter().find(|(known, _)| *known == peer) {
            Some((_, since)) => now.saturating_duration_since(*since) < TRY_AGAIN_LIMIT,
            None => {
                self.0.push((peer, now));
                true
            }
        }
    }

    /// Keeps those of whom `is_open` says that they have not answered yet; whether `peer` was
    /// among those that go.
    pub(super) fn retain(&mut self, peer: PeerId, is_open: impl Fn(PeerId) -> bool) -> bool {
        let was_there = self.0.iter().any(|(known, _)| *known == peer);
        self.0.retain(|(known, _)| is_open(*known));
        was_there && !is_open(peer)
    }

    /// The endpoint has this peer no more.
    pub fn forget(&mut self, peer: PeerId) {
        self.0.retain(|(known, _)| *known != peer);
    }
}

#[cfg(test)]
#[path = "unanswered_tests.rs"]
mod tests;
