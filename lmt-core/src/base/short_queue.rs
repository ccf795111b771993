//! A queue that is mostly short.

use std::collections::VecDeque;
use std::ops::{Deref, DerefMut};

/// A [`VecDeque`] that begins anew at the front of its memory when it has been emptied:
/// one or two entries at a time stay in the same cache lines, which the copies between two
/// messages would otherwise push out.
#[derive(Debug)]
pub(crate) struct Queue<T>(VecDeque<T>);

impl<T> Queue<T> {
    pub(crate) const fn new() -> Self {
        Self(VecDeque::new())
    }

    /// The first entry.
    #[inline]
    pub(crate) fn pop_front(&mut self) -> Option<T> {
        if self.0.is_empty() {
            return None; // Before anything is made room for.
        }
        let first = self.0.pop_front();
        if self.0.is_empty() {
            self.0.clear();
        }
        first
    }

    /// Drops the first entry where it lies.
    #[inline]
    pub(crate) fn drop_front(&mut self) {
        if self.0.len() == 1 {
            self.0.clear();
        } else {
            drop(self.0.pop_front());
        }
    }
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Deref for Queue<T> {
    type Target = VecDeque<T>;

    fn deref(&self) -> &VecDeque<T> {
        &self.0
    }
}

impl<T> DerefMut for Queue<T> {
    fn deref_mut(&mut self) -> &mut VecDeque<T> {
        &mut self.0
    }
}

#[cfg(test)]
#[path = "short_queue_tests.rs"]
mod tests;
