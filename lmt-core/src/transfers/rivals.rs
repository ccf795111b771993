//! Which of two orders of ways windows of messages take: all of them streams first, or
//! streams last, for those that find some under way.
//!
//! Where a line crosses from core to core quickly a stream carries windows both ways in
//! three quarters of the time of single copies, where it does not it takes half as long
//! again; and a machine may change between the two within seconds. So windows are timed,
//! and from time to time a few of them take the other order.
#![forbid(unsafe_code)]

use std::time::{Duration, Instant};

use crate::selection::STREAMS_AT_ONCE;

/// A window that does not end is cut here, in messages.
const MOST_MESSAGES: u32 = 64;
/// So many windows take the other order, and the fastest of them counts: the first brings
/// back to the caches what the others need.
const TRIAL: u8 = 3;
/// So many windows lie between two trials, twice as many after each that changes nothing.
const FIRST_PAUSE: u16 = 16;
const SECOND_PAUSE: u16 = 32;
const MOST_PAUSE: u16 = 1024;
/// The fastest of so many windows is what the usual order takes.
const RECENT: usize = 4;
/// The other order must take less than this part of it.
const FASTER: f32 = 0.95;
/// From 64 KiB on each power of two; the last is of all that are longer.
const FIRST_CLASS: u32 = 16;
const CLASSES: usize = 8;

/// What is known of windows to one peer.
#[derive(Debug, Default)]
pub(super) struct Rivals {
    classes: [Rival; CLASSES],
    /// The window that is timed: since when, the messages that have arrived in it, and their
    /// bytes.
    timed: Option<(Instant, u32, u64)>,
}

/// Windows of messages of about one length.
#[derive(Debug)]
struct Rival {
    /// Whether streams go first.
    streams_first: bool,
    /// Windows of the trial that are still to come.
    trial: u8,
    pause: u16,
    /// Windows until the next trial.
    left: u16,
    /// What a byte took in the last windows, in nanoseconds.
    recent: [f32; RECENT],
    /// The same of the trial's fastest.
    tried: f32,
}

impl Default for Rival {
    fn default() -> Self {
        let (pause, left) = (FIRST_PAUSE, FIRST_PAUSE);
        // Two processes mostly run where they share a cache.
        let streams_first = true;
        Self { streams_first, trial: 0, pause, left, recent: [f32::MAX; RECENT], tried: f32::MAX }
    }
}

fn class_of(bytes: u64) -> usize {
    let class = bytes.max(1).ilog2().saturating_sub(FIRST_CLASS);
    (class as usize).min(CLASSES - 1)
}

impl Rivals {
    /// Whether the next message of a window goes as a stream, if one can be.
    pub fn are_streams_first(&self, bytes: u64) -> bool {
        let rival = &self.classes[class_of(bytes)];
        rival.streams_first != (rival.trial > 0)
    }

    /// A message is sent, with which so many are under way. A window goes on while some are.
    #[inline]
    pub fn begin(&mut self, messages: u32) {
        if messages == STREAMS_AT_ONCE && self.timed.is_none() {
            self.timed = Some((Instant::now(), 0, 0));
        }
    }

    /// A message has arrived, and so many are still under way.
    #[inline]
    pub fn end(&mut self, messages: u32, bytes: u64) {
        let Some((begun, arrived, all_bytes)) = &mut self.timed else { return };
        *arrived += 1;
        *all_bytes = all_bytes.saturating_add(bytes);
        if messages > 0 && *arrived < MOST_MESSAGES {
            return;
        }
        let (took, all_bytes) = (begun.elapsed(), *all_bytes);
        self.timed = (messages >= STREAMS_AT_ONCE).then(|| (Instant::now(), 0, 0));
        self.classes[class_of(bytes)].note(took, all_bytes);
    }
}

impl Rival {
    /// A window of so many bytes took so long.
    fn note(&mut self, took: Duration, bytes: u64) {
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
        let usual = self.recent.iter().copied().fold(f32::MAX, f32::min);
        if self.tried < usual * FASTER {
            self.streams_first = !self.streams_first;
            self.recent = [self.tried; RECENT];
            self.pause = SECOND_PAUSE;
        } else {
            self.pause = (self.pause * 2).clamp(SECOND_PAUSE, MOST_PAUSE);
        }
        self.left = self.pause;
    }
}

#[cfg(test)]
#[path = "rivals_tests.rs"]
mod tests;
