//! Where this thread has looked last for shared memory: messages mostly come from and go to the
//! same few buffers, and the registry is behind a lock.
#![forbid(unsafe_code)]

use std::cell::Cell;

/// A buffer, and where it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Recent {
    /// Of which registry, by its address, after how many of its buffers were dropped.
    pub registry: usize,
    pub drops: u64,
    /// Its memory.
    pub start: usize,
    pub end: usize,
}

impl Recent {
    const NONE: Self = Self { registry: 0, drops: 0, start: 0, end: 0 };

    /// Whether this memory is in it, and it has not been dropped.
    const fn has(&self, registry: usize, drops: u64, address: usize, bytes: usize) -> bool {
        let Some(end) = address.checked_add(bytes) else { return false };
        self.registry == registry && self.drops == drops && self.start <= address && end <= self.end
    }
}

thread_local! {
    /// One that is sent and one that is received into, the last one first.
    static RECENT: Cell<[Recent; 2]> = const { Cell::new([Recent::NONE; 2]) };
}

/// The buffer in which this memory is, if it is one of the last.
#[inline]
pub(super) fn find(registry: usize, drops: u64, address: usize, bytes: usize) -> Option<Recent> {
    // A thread that ends has none.
    let recent = RECENT.try_with(Cell::get).ok()?;
    recent.into_iter().find(|recent| recent.has(registry, drops, address, bytes))
}

/// Keeps one that was looked up.
pub(super) fn keep(found: Recent) {
    let _kept = RECENT.try_with(|recent| {
        let [last, _] = recent.get();
        recent.set([found, last]);
    });
}
