//! Which of two ways is the faster one, where that depends on the machine and on what the
//! application does: one is usual, and from time to time a few turns go the other way.
#![forbid(unsafe_code)]

use std::time::Duration;

/// So many turns go the other way, and the fastest of them counts: the first brings
/// back to the caches what the others need.
const TRIAL: u8 = 3;
/// So many turns lie between two trials, twice as many after each that changes nothing.
pub(crate) const FIRST_PAUSE: u16 = 16;
const SECOND_PAUSE: u16 = 32;
/// Before the first trial of what is to be tried soon.
const SOON: u16 = 4;
const MOST_PAUSE: u16 = 1024;
/// The fastest of so many turns is what the usual way takes.
const RECENT: usize = 4;
/// The other way must take less than this part of it.
const FASTER: f32 = 0.95;
/// From 64 KiB on each power of two; the last is of all that are longer.
const FIRST_CLASS: u32 = 16;
const CLASSES: usize = 10;

/// Two ways, for messages of about one length. The first is usual until the second has shown
/// to be faster.
///
/// ```
/// use lmt_core::rival::Rival;
/// use std::time::Duration;
/// let mut rival = Rival::default();
/// for _ in 0..100 {
///     let nanoseconds = if rival.takes_second() { 70 } else { 100 };
///     rival.note(Duration::from_nanos(nanoseconds), 64);
/// }
/// assert!(rival.takes_second());
/// ```
#[derive(Debug)]
pub struct Rival {
    /// Whether the second is the usual one.
    prefers_second: bool,
    /// Turns of the trial that are still to come.
    trial: u8,
    pause: u16,
    /// Turns until the next trial.
    pub(crate) left: u16,
    /// What a byte took in the last turns, in nanoseconds.
    recent: [f32; RECENT],
    /// The same of the trial's fastest.
    tried: f32,
    /// Whether there was a trial.
    is_judged: bool,
}

impl Default for Rival {
    fn default() -> Self {
        let (pause, left) = (FIRST_PAUSE, FIRST_PAUSE);
        let (recent, tried) = ([f32::MAX; RECENT], f32::MAX);
        Self { prefers_second: false, trial: 0, pause, left, recent, tried, is_judged: false }
    }
}

impl Rival {
    /// Whether the next turn takes the second way.
    #[inline]
    pub const fn takes_second(&self) -> bool {
        self.prefers_second != (self.trial > 0)
    }

    /// A turn of so many bytes took so long, by the way that [`Self::takes_second`] told.
    pub fn note(&mut self, took: Duration, bytes: u64) {
        let each = took.as_nanos() as f32 / bytes.max(1) as f32;
        if self.trial > 0 {
            self.tried = self.tried.min(each);
            self.trial -= 1;
            if self.trial == 0 {
                self.judge();
            }
            return;
        }
        self.recent.rotate_left(1);
        self.recent[RECENT - 1] = each;
        self.left -= 1;
        if self.left == 0 {
            (self.trial, self.tried) = (TRIAL, f32::MAX);
        }
    }

    /// A trial is over.
    fn judge(&mut self) {
        self.is_judged = true;
        let usual = self.recent.iter().copied().fold(f32::MAX, f32::min);
        if self.tried < usual * FASTER {
            self.prefers_second = !self.prefers_second;
            self.recent = [self.tried; RECENT];
            self.pause = SECOND_PAUSE;
        } else {
            self.pause = (self.pause * 2).clamp(SECOND_PAUSE, MOST_PAUSE);
        }
        self.left = self.pause;
    }
}

/// One for each length.
#[derive(Debug, Default)]
pub struct ByLength {
    rivals: [Rival; CLASSES],
    /// Lengths that have begun.
    begun: u16,
}

impl ByLength {
    /// Messages shorter than so many bytes are tried soon: for turns of which a program may not
    /// have many.
    pub fn soon_below(bytes: u64) -> Self {
        let mut rivals = Self::default();
        rivals.rivals[..class_of(bytes)].iter_mut().for_each(|rival| rival.left = SOON);
        rivals
    }

    /// Messages of about so many bytes are there. If they are the first of their length, what is
    /// usual for them is what a trial has found for the nearest shorter ones: for where what is
    /// right for a length is right for longer ones, too, of which a program may not have many.
    pub fn begin_as_shorter(&mut self, bytes: u64) {
        let class = class_of(bytes);
        if self.begun & (1 << class) != 0 {
            return;
        }
        self.begun |= 1 << class;
        let judged = self.rivals[..class].iter().rev().find(|shorter| shorter.is_judged);
        if judged.is_some_and(|shorter| shorter.prefers_second) {
            self.rivals[class].prefers_second = true;
            self.rivals[class].left = SECOND_PAUSE;
        }
    }

    /// That of messages of about so many bytes.
    #[inline]
    pub fn of(&self, bytes: u64) -> &Rival {
        &self.rivals[class_of(bytes)]
    }

    /// The same, to note something.
    #[inline]
    pub fn of_mut(&mut self, bytes: u64) -> &mut Rival {
        &mut self.rivals[class_of(bytes)]
    }
}

fn class_of(bytes: u64) -> usize {
    let class = bytes.max(1).ilog2().saturating_sub(FIRST_CLASS);
    (class as usize).min(CLASSES - 1)
}

#[cfg(test)]
#[path = "rival_tests.rs"]
mod tests;
