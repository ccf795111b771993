//! How long a line takes from the other core's cache: it says whether longer messages are worth
//! to be kept.
//!
//! Two copies of a message beside two of what is kept are more than a core's own cache holds,
//! from some length on. Where both cores share the next cache, to compare them takes longer then
//! than to have the lines cross; where they do not, half as long.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Up to so many bytes a message is kept wherever the other core is.
const NEAR_MOST_BYTES: u64 = 160 << 10;

/// A line that takes so long comes from another cache than one that both cores share, from which
/// it takes some 20 ns; elsewhere more than 100.
const APART_NS: u32 = 60;
/// A clock that takes longer tells nothing.
const MOST_CLOCK_NS: u32 = 100;
/// Between two looks that are timed.
const UNTIMED: u8 = 32;
/// So many longer messages go as others do before one is kept for a trial, while lines are near.
const UNTRIED: u8 = 64;

/// What is known of one peer.
///
/// ```
/// use lmt_core::again::Hop;
/// let mut hop = Hop::default();
/// assert!(hop.lets(64 << 10), "wherever the other core is");
/// let mut written = 0;
/// // What the other core writes, here without it.
/// hop.time(|| { written += 1; Some(written) });
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Hop {
    /// What it takes; 0 before anything is known.
    ns: u32,
    /// So many looks are not timed.
    untimed: u8,
    /// So many messages are not tried.
    untried: u8,
    /// What was found last.
    last: u64,
}

impl Hop {
    /// Whether a message of so many bytes is to be kept.
    #[inline]
    pub fn lets(&mut self, bytes: u64) -> bool {
        if bytes <= NEAR_MOST_BYTES || self.is_apart() || self.ns == 0 {
            return true;
        }
        if self.untried > 0 {
            self.untried -= 1;
            return false;
        }
        (self.untried, self.untimed) = (UNTRIED, 0);
        true
    }

    /// Whether the other core is known to share no cache with this one.
    #[inline]
    pub const fn is_apart(&self) -> bool {
        self.ns > APART_NS
    }

    /// Now and then takes a `look` at a word that the other core writes, and times it: to be
    /// called where the word is likely to have been written since the last look. `None` says
    /// that it was not.
    #[inline]
    pub fn time(&mut self, look: impl FnOnce() -> Option<u64>) {
        if self.untimed > 0 {
            self.untimed -= 1;
            return;
        }
        let begun = Instant::now();
        let word = look();
        let took = begun.elapsed();
        if let Some(word) = word {
            self.note(word, took.saturating_sub(clock()));
        }
    }

    /// A look has taken so long, without the clock. If the word was the same as before, its line
    /// was here.
    fn note(&mut self, word: u64, took: Duration) {
        if std::mem::replace(&mut self.last, word) == word {
            return;
        }
        self.untimed = UNTIMED;
        let took = u32::try_from(took.as_nanos()).unwrap_or(u32::MAX).clamp(1, APART_NS * 3);
        // What is short is sure; what is long may have been interrupted.
        self.ns = match self.ns {
            0 => took,
            ns if took < ns => ns.midpoint(took),
            ns => ns + (took - ns).div_ceil(4),
        };
    }
}

/// What it takes to look at the clock and again; where that is too long no look seems to take
/// any time.
fn clock() -> Duration {
    static TAKES: OnceLock<Duration> = OnceLock::new();
    const PAIRS: u32 = 16;
    *TAKES.get_or_init(|| {
        let takes = (0..PAIRS).map(|_| Instant::now().elapsed()).min().unwrap_or_default();
        if takes > Duration::from_nanos(MOST_CLOCK_NS.into()) { Duration::MAX } else { takes }
    })
}

#[cfg(test)]
#[path = "hop_tests.rs"]
mod tests;
