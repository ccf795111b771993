//! One line of the table in which an owner publishes its regions.
//!
//! The owner writes it, in the manner of a seqlock: `stamp` is 0 while the other
//! words change. Peers read it before and after each copy. The one thing that
//! peers write is the mark that a region for one use has been used: by a
//! compare-and-swap of the stamp, which one of them wins.

use crate::sync::{AtomicU64, Ordering, fence};

/// The region is there.
const VALID: u64 = 1;
/// Peers may get.
const READ: u64 = 2;
/// Peers may put.
const WRITE: u64 = 4;
/// It is for one use.
const SINGLE: u64 = 8;
/// That use has begun.
const USED: u64 = 16;
/// Its memory is one piece.
const CONTIGUOUS: u64 = 32;

/// The words of a line: the stamp (generation in the upper half, flags in the
/// lower), the driver's cookie, the bytes, and [`Shape`]'s numbers.
#[repr(C, align(32))]
#[derive(Debug)]
pub(super) struct Slot {
    stamp: AtomicU64,
    cookie: AtomicU64,
    total_bytes: AtomicU64,
    shape: AtomicU64,
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<Slot>() == 32);

/// Where the driver's pieces begin, as far as that can be told in a word.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Shape {
    /// Whether the memory is one piece.
    pub contiguous: bool,
    /// Where in its page the first byte is.
    pub offset_in_page: u32,
    /// Bytes of the last piece, which ends with the region and begins with a
    /// page or a segment.
    pub last_piece_bytes: u32,
}

/// What stands in a line; of another process it is not to be believed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Entry {
    pub cookie: u64,
    pub total_bytes: u64,
    pub read: bool,
    pub write: bool,
    pub single: bool,
    pub shape: Shape,
}

/// An entry as it was seen at one moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Seen {
    pub entry: Entry,
    stamp: u64,
}

const fn flag(set: bool, bit: u64) -> u64 {
    if set { bit } else { 0 }
}

impl Slot {
    /// By the owner: makes the line name a region. It must be withdrawn.
    pub fn publish(&self, generation: u32, entry: &Entry) {
        let Entry { cookie, total_bytes, read, write, single, shape } = *entry;
        // Relaxed: nobody takes them for valid before the stamp is written; and
        // who still reads what was there before finds the stamp changed, by the
        // fence in `withdraw`.
        self.cookie.store(cookie, Ordering::Relaxed);
        self.total_bytes.store(total_bytes, Ordering::Relaxed); // As above.
        let numbers = u64::from(shape.offset_in_page) << 32 | u64::from(shape.last_piece_bytes);
        self.shape.store(numbers, Ordering::Relaxed); // As above.
        let rights = flag(read, READ) | flag(write, WRITE) | flag(single, SINGLE);
        let flags = VALID | rights | flag(shape.contiguous, CONTIGUOUS);
        // Release pairs with the Acquire in `look_up`.
        self.stamp.store(u64::from(generation) << 32 | flags, Ordering::Release);
    }

    /// By the owner: the line names nothing any more.
    pub fn withdraw(&self) {
        // An exchange, so that it has one place among the marks that peers make
        // at this moment; Acquire pairs with the Release in `use_up`, so that
        // what is published next comes behind them in everybody's view. The
        // fence does the rest.
        self.stamp.swap(0, Ordering::AcqRel);
        // Pairs with the Acquire fences of readers: who sees a later write to
        // the other words, or to the region's memory, sees the 0 (or what came
        // after it) when it looks again.
        fence(Ordering::Release);
    }

    /// What the line says, if it is of this generation and not used up.
    pub fn look_up(&self, generation: u32) -> Option<Seen> {
        // Acquire pairs with the Release in `publish`.
        let stamp = self.stamp.load(Ordering::Acquire);
        if stamp >> 32 != u64::from(generation) || stamp & (VALID | USED) != VALID {
            return None;
        }
        // Relaxed: between the two reads of the stamp, which order them.
        let cookie = self.cookie.load(Ordering::Relaxed);
        let total_bytes = self.total_bytes.load(Ordering::Relaxed); // As above.
        let numbers = self.shape.load(Ordering::Relaxed); // As above.
        let shape = Shape {
            contiguous: stamp & CONTIGUOUS != 0,
            offset_in_page: (numbers >> 32) as u32,
            last_piece_bytes: numbers as u32,
        };
        let has = |bit| stamp & bit != 0;
        let entry =
            Entry { cookie, total_bytes, read: has(READ), write: has(WRITE), single: has(SINGLE), shape };
        let seen = Seen { entry, stamp };
        self.revalidate(&seen).then_some(seen)
    }

    /// Takes the one use of a region for one; whether nobody had.
    pub fn use_up(&self, seen: &mut Seen) -> bool {
        let used = seen.stamp | USED;
        // That only one can win is the exchange's own doing. Acquire keeps the
        // copy behind the claim; Release pairs with the Acquire in `withdraw`.
        // Relaxed where it fails: nothing is done then.
        let won = self.stamp.compare_exchange(seen.stamp, used, Ordering::AcqRel, Ordering::Relaxed);
        seen.stamp = used;
        won.is_ok()
    }

    /// Whether the line is as it was seen: what was read of the region or the
    /// line since then is of that region.
    pub fn revalidate(&self, seen: &Seen) -> bool {
        // Keeps the reads before it before the one below; pairs with the fence
        // in `withdraw`.
        fence(Ordering::Acquire);
        // Relaxed: ordered by the fence.
        self.stamp.load(Ordering::Relaxed) == seen.stamp
    }
}

#[cfg(test)]
impl Slot {
    /// A line that names nothing.
    pub fn empty() -> Self {
        let zero = || AtomicU64::new(0);
        Self { stamp: zero(), cookie: zero(), total_bytes: zero(), shape: zero() }
    }
}

#[cfg(all(test, loom))]
#[path = "slot_loom_models.rs"]
mod loom_models;

#[cfg(all(test, not(loom)))]
#[path = "slot_tests.rs"]
mod tests;
