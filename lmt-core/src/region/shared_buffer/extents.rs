//! Which parts of an arena are free: first fit, neighbours joined.

use std::collections::BTreeMap;

/// The free parts of a range of offsets.
#[derive(Debug, Default)]
pub(super) struct Extents {
    /// Length by start; no two touch.
    free: BTreeMap<usize, usize>,
}

impl Extents {
    /// All of `start..end` is free.
    pub fn new(start: usize, end: usize) -> Self {
        let mut extents = Self::default();
        if start < end {
            extents.free.insert(start, end - start);
        }
        extents
    }

    /// Takes `bytes` bytes, more than none, at a multiple of `align`, a power of
    /// two: the first place that has room.
    pub fn take(&mut self, bytes: usize, align: usize) -> Option<usize> {
        let place = |(&start, &length): (&usize, &usize)| {
            let at = start.checked_next_multiple_of(align)?;
            let end = at.checked_add(bytes)?;
            (end <= start + length).then_some((start, length, at, end))
        };
        let (start, length, at, end) = self.free.iter().find_map(place)?;
        self.free.remove(&start);
        if start < at {
            self.free.insert(start, at - start);
        }
        if end < start + length {
            self.free.insert(end, start + length - end);
        }
        Some(at)
    }

    /// Gives back what was taken.
    pub fn give_back(&mut self, mut start: usize, mut bytes: usize) {
        if let Some((&before, &length)) = self.free.range(..start).next_back()
            && before + length == start
        {
            self.free.remove(&before);
            (start, bytes) = (before, length + bytes);
        }
        if let Some(length) = self.free.remove(&(start + bytes)) {
            bytes += length;
        }
        self.free.insert(start, bytes);
    }
}

#[cfg(all(test, not(loom)))]
#[path = "extents_tests.rs"]
mod tests;
