//! Which of two ways to copy is the faster one at the moment: told by the copies themselves,
//! of which now and then one is timed.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Longer ones are not taken to be in a cache, where these ways differ.
const MOST_BYTES: usize = 1 << 20;

/// What is known of copies of one kind, by their length: for each power of two from the
/// least length up to [`MOST_BYTES`].
#[derive(Debug)]
pub(crate) struct TwoWays<const CLASSES: usize> {
    least_bytes: usize,
    bounds: Bounds,
    classes: [Class; CLASSES],
}

/// When the other way is the better one, in percent of the time by vectors.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// It is taken once it takes at most so much.
    pub(crate) taken_at_percent: u32,
    /// It is given up again once it takes more than so much.
    pub(crate) kept_to_percent: u32,
}

/// How many classes there are from a length on; each is twice as long as the one before.
pub(crate) const fn classes_from(least_bytes: usize) -> usize {
    (MOST_BYTES / least_bytes).ilog2() as usize + 1
}

impl<const CLASSES: usize> TwoWays<CLASSES> {
    /// Nothing is known yet; `CLASSES` are [`classes_from`] that length.
    pub(crate) const fn new(least_bytes: usize, bounds: Bounds) -> Self {
        assert!(CLASSES == classes_from(least_bytes) && bounds.taken_at_percent <= bounds.kept_to_percent);
        Self { least_bytes, bounds, classes: [const { Class::new() }; CLASSES] }
    }

    /// Has so many bytes copied, by vectors or the other way, as `copy` is told. What is
    /// shorter goes by vectors, what is longer the other way.
    #[inline]
    pub(crate) fn copy(&self, bytes: usize, copy: impl FnOnce(bool)) {
        match self.class_of(bytes) {
            Some(class) => class.copy(bytes, self.bounds, copy),
            None => copy(bytes < self.least_bytes),
        }
    }

    /// Whether what is as long as the shortest is copied the other way at present. Nothing is
    /// timed.
    #[inline]
    pub(crate) fn takes_other(&self) -> bool {
        // Relaxed: as in `Class::next`.
        self.classes.first().is_some_and(|class| class.is_other.load(Ordering::Relaxed))
    }

    fn class_of(&self, bytes: usize) -> Option<&Class> {
        let is_known = (self.least_bytes..=MOST_BYTES).contains(&bytes);
        is_known.then(|| &self.classes[(bytes / self.least_bytes).ilog2() as usize])
    }
}

/// Each of the first copies of a class is timed, then one of so many: no power of two,
/// so that it is not always the same piece of a message.
const TIMED_EVERY: u32 = 31;
const FIRST: u32 = 8;

/// What is known of copies of about one length. Threads that copy at once may each lose
/// what another has noted, which matters little.
#[derive(Debug)]
struct Class {
    /// How many copies there were.
    turn: AtomicU32,
    /// How many nanoseconds 1 MiB took, otherwise and by vectors; 0 before any did.
    mib_ns: [AtomicU32; 2],
    /// Whether the other way is taken. It is so at first, to be judged by the bound to which
    /// it is kept.
    is_other: AtomicBool,
}

impl Class {
    const fn new() -> Self {
        Self {
            turn: AtomicU32::new(0),
            mib_ns: [AtomicU32::new(0), AtomicU32::new(0)],
            is_other: AtomicBool::new(true),
        }
    }

    /// Has one copied, which is told whether to do so by vectors.
    fn copy(&self, bytes: usize, bounds: Bounds, copy: impl FnOnce(bool)) {
        let (by_vectors, is_timed) = self.next();
        if !is_timed {
            return copy(by_vectors);
        }
        let begin = Instant::now();
        copy(by_vectors);
        self.took(by_vectors, bytes, begin.elapsed());
        self.judge(bounds);
    }

    /// Whether the next copy goes by vectors, and whether it is timed.
    fn next(&self) -> (bool, bool) {
        // Relaxed, here and below: figures that stand for themselves.
        let turn = self.turn.load(Ordering::Relaxed);
        self.turn.store(turn.wrapping_add(1), Ordering::Relaxed);
        match timed(turn) {
            Some(by_vectors) => (by_vectors, true),
            None => (!self.is_other.load(Ordering::Relaxed), false),
        }
    }

    /// Takes the way that is the better one by what is known: the first copies are timed, so
    /// that is something of both before a way is chosen.
    fn judge(&self, bounds: Bounds) {
        let [other, vectors] = self.mib_ns.each_ref().map(|time| u64::from(time.load(Ordering::Relaxed)));
        let is_other = self.is_other.load(Ordering::Relaxed);
        let most_percent = if is_other { bounds.kept_to_percent } else { bounds.taken_at_percent };
        let is_fast = other * 100 <= vectors * u64::from(most_percent);
        self.is_other.store(is_fast, Ordering::Relaxed);
    }

    /// Notes a time. Slow ones may have been interrupted, or have met new pages: they count
    /// for little. One that is much faster is believed at once: the one before was such.
    fn took(&self, by_vectors: bool, bytes: usize, time: Duration) {
        let nanoseconds = time.as_nanos().saturating_mul(1 << 20) / bytes as u128;
        let kept = &self.mib_ns[usize::from(by_vectors)];
        let before = kept.load(Ordering::Relaxed);
        // No copy takes no time, whatever a clock says.
        let seen = u32::try_from(nanoseconds).unwrap_or(u32::MAX).max(LEAST_MIB_NS);
        let now = match before {
            0 => seen,
            _ if seen < before / 2 => seen,
            _ if seen < before => before - (before - seen).div_ceil(2),
            _ => before.saturating_add(seen.min(before.saturating_mul(2)).abs_diff(before).div_ceil(8)),
        };
        kept.store(now, Ordering::Relaxed);
    }
}

/// Nothing copies faster than a TiB in a second.
const LEAST_MIB_NS: u32 = 1000;

/// Whether the copy of this turn is timed, and then whether it goes by vectors. Which way
/// follows the turns in no period, so that both ways meet the same pieces of messages,
/// however many those have.
const fn timed(turn: u32) -> Option<bool> {
    match turn {
        0..FIRST => Some(turn.count_ones().is_multiple_of(2)),
        _ if turn.is_multiple_of(TIMED_EVERY) => Some(is_in_upper_half(turn / TIMED_EVERY)),
        _ => None,
    }
}

/// Whether the fraction of n² times the golden ratio is 1/2 or more: of the n in steps of
/// any length about every other one (Weyl).
const fn is_in_upper_half(n: u32) -> bool {
    n.wrapping_mul(n).wrapping_mul(0x9E37_79B9) >> 31 == 1
}

#[cfg(test)]
#[path = "two_ways_tests.rs"]
mod tests;
