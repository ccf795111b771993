//! How long a line takes from the peer's core: it says whether the two share a cache nearer than
//! the last, and so whether a message that is longer than the ring takes few of its cells.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// A line that takes so long comes from another cache than one that both cores share, from which
/// it takes some 20 ns; elsewhere more than 100.
const APART_NS: u32 = 60;
/// A clock that takes longer tells nothing.
const MOST_CLOCK_NS: u32 = 100;
/// Between two looks that are timed.
const UNTIMED: u8 = 32;

/// What is known of one peer.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Hop {
    /// What it takes; 0 before anything is known.
    ns: u32,
    /// So many looks are not timed.
    untimed: u8,
    /// What was found last.
    last: u64,
}

impl Hop {
    /// Whether the other core is known to share no cache with this one.
    #[inline]
    pub(crate) const fn is_apart(&self) -> bool {
        self.ns > APART_NS
    }

    /// Now and then takes a `look` at a word that the other core writes, and times it: to be
    /// called where the word is likely to have been written since the last look. `None` says
    /// that it was not.
    #[inline]
    pub(crate) fn time(&mut self, look: impl FnOnce() -> Option<u64>) {
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
