//! One word by which the two ends of a transfer agree who may still touch a
//! buffer: it stands in the buffer's arena, so whoever can copy can reach it.
//!
//! The end whose memory it is opens the lease before it tells the other of it.
//! The other takes it before its first copy and says when it is done. Closed
//! before it was taken, it never can be: so memory is given to somebody else
//! only when nobody copies, or the one who does is dead. Nothing waits.
//!
//! A peer that writes something else here keeps memory from being reused until
//! it dies, or spoils its own messages; it could write the buffer anyway.

use crate::base::sync::{AtomicU64, Ordering};

const OPEN: u64 = 0;

const TAKEN: u64 = 1;

const DONE: u64 = 2;

const CLOSED: u64 = 3;

/// The word: the lease's generation times four, and its state. Opened and closed
/// by the memory's owner, taken and done by its peer.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct LeaseWord(AtomicU64);

/// Whether anybody copies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum LeaseUse {
    /// Nobody does, and nobody will.
    Yes,
    /// The peer has begun and not said that it is done.
    No,
}

/// So many bits a generation has. It returns after
/// 2^26 leases of its arena, and does no harm then: a line is not given out again while it is
/// open or taken, and whoever still names the lease of before would have to find just this
/// generation open in just this line.
const GENERATION_BITS: u32 = 26;

/// The generation behind this one.
pub(super) const fn next(generation: u32) -> u32 {
    generation.wrapping_add(1) & ((1 << GENERATION_BITS) - 1)
}

const fn word(generation: u32, state: u64) -> u64 {
    (generation as u64) << 2 | state
}

impl LeaseWord {
    #[cfg(test)]
    pub(super) fn new() -> Self {
        Self(AtomicU64::new(CLOSED))
    }

    /// The owner begins a lease.
    pub(super) fn open(&self, generation: u32) {
        // Release: what the owner did with the memory before is done for a peer
        // whose `take` reads this.
        self.0.store(word(generation, OPEN), Ordering::Release);
    }

    /// The peer takes a lease; false when it is over, or never was.
    pub fn take(&self, generation: u32) -> bool {
        let (open, taken) = (word(generation, OPEN), word(generation, TAKEN));
        // Acquire pairs with `open`. Relaxed on failure: nothing is touched then.
        self.0.compare_exchange(open, taken, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// The peer has copied all that it will.
    pub fn done(&self, generation: u32) {
        // Release: the copies are over for the owner whose `close` or `is_done`
        // reads this. From `take` on nobody else writes the word.
        self.0.store(word(generation, DONE), Ordering::Release);
    }

    /// The owner ends a lease.
    pub(super) fn close(&self, generation: u32) -> LeaseUse {
        let (open, closed) = (word(generation, OPEN), word(generation, CLOSED));
        // Acquire on failure pairs with `done`: the memory may be written anew.
        // Relaxed on success: the peer has touched nothing.
        match self.0.compare_exchange(open, closed, Ordering::Relaxed, Ordering::Acquire) {
            Ok(_) => LeaseUse::Yes,
            Err(found) if found == word(generation, DONE) => LeaseUse::Yes,
            Err(_) => LeaseUse::No,
        }
    }

    /// Whether the peer that had taken the lease is done.
    #[cfg_attr(loom, allow(dead_code))]
    pub(super) fn is_done(&self, generation: u32) -> bool {
        // Acquire pairs with `done`.
        self.0.load(Ordering::Acquire) == word(generation, DONE)
    }
}

const _: () = assert!(cfg!(loom) || size_of::<LeaseWord>() == 64);

#[cfg(all(test, loom))]
#[path = "lease_loom_tests.rs"]
mod loom_tests;

#[cfg(all(test, not(loom)))]
#[path = "lease_tests.rs"]
mod tests;
