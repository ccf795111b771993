//! Units in which a message is divided among its two ends, and how much each
//! takes at once.

use super::line::{MAX_UNITS, View};
use crate::vocabulary::transfer::Interval;

/// A page: less is not worth a claim.
const MIN_UNIT_BYTES: u64 = 4096;

/// So much more than its share the receiver copies: its sender begins later, when it
/// has heard of the receive. With 4 KiB messages of 64 and 128 KiB by `cma` took 0.95 of
/// the time without, 256 KiB as long; with 8 KiB 0.95, 0.98 and 1.04.
const HEAD_START_BYTES: u64 = 4096;

/// A part of a message in units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Grain {
    interval: Interval,
    unit_bytes: u64,
    units: u32,
    /// Where the two ends meet if each does its share.
    middle: u32,
    /// At least so many units are taken of what was to be the other's.
    min_stolen: u32,
}

/// What an end expects of the other, and has to spare.
#[derive(Clone, Copy, Debug)]
pub(super) struct Expectation {
    pub(super) max_bytes: u64,
    /// Nobody is expected on the other side.
    pub(super) alone: bool,
}

impl Grain {
    /// Units for `interval`, of which the receiver's share is so many percent.
    pub(super) fn new(interval: Interval, share_percent: u8, steal_bytes: u64) -> Self {
        let bytes = interval.bytes();
        let mut unit_bytes = MIN_UNIT_BYTES;
        while bytes.div_ceil(unit_bytes) > u64::from(MAX_UNITS) {
            unit_bytes *= 2;
        }
        // At most MAX_UNITS, by the loop.
        let units = bytes.div_ceil(unit_bytes) as u32;
        let share = (u64::from(units) * u64::from(share_percent.min(100))).div_ceil(100) as u32;
        // Who is to copy nothing, or all, has nobody to begin before.
        let is_shared = share > 0 && share < units;
        let head_start = if is_shared { (HEAD_START_BYTES / unit_bytes) as u32 } else { 0 };
        let middle = (share + head_start).min(units);
        let min_stolen = u32::try_from(steal_bytes / unit_bytes).unwrap_or(u32::MAX).max(1);
        Self { interval, unit_bytes, units, middle, min_stolen }
    }

    pub(super) const fn units(&self) -> u32 {
        self.units
    }

    /// The bytes of the units from `first` on, up to `behind`.
    pub(super) fn bytes(&self, first: u32, behind: u32) -> Interval {
        let Interval { start, end } = self.interval;
        let at = |unit: u32| start.saturating_add(u64::from(unit).saturating_mul(self.unit_bytes)).min(end);
        Interval { start: at(first), end: at(behind) }
    }

    fn most(&self, appetite: Expectation) -> u32 {
        u32::try_from(appetite.max_bytes / self.unit_bytes).unwrap_or(u32::MAX).max(1)
    }

    /// Half of what is left, if that is worth a system call.
    fn stolen(&self, left: u32) -> u32 {
        if left <= self.min_stolen + self.min_stolen / 2 { left } else { (left / 2).max(self.min_stolen) }
    }

    /// How many units the receiver takes.
    pub(super) fn for_receiver(&self, view: View, appetite: Expectation) -> u32 {
        let wanted = match view {
            // Nobody has come, and either nobody is expected or it is late.
            View { joined: false, front, .. } if appetite.alone || front >= self.middle => view.left(),
            View { front, .. } if front < self.middle => self.middle - front,
            _ => self.stolen(view.left()),
        };
        wanted.min(self.most(appetite))
    }

    /// How many units the sender takes.
    pub(super) fn for_sender(&self, view: View, appetite: Expectation) -> u32 {
        if appetite.max_bytes == 0 {
            return 0;
        }
        let wanted = if view.back > self.middle { view.back - self.middle } else { self.stolen(view.left()) };
        wanted.min(self.most(appetite))
    }
}

#[cfg(test)]
#[path = "units_tests.rs"]
mod tests;
