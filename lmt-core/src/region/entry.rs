//! One entry of a table of regions: the words that its owner writes and that
//! peers read as one, or use up.
//!
//! The first word says what the entry is, and carries its generation; the
//! others are the description, written and read as under a seqlock. The owner
//! alone describes and clears. A peer changes only the first word of a region of
//! single use, once, to take it for itself. It knows no memory but the words, so that loom runs it.

use super::{Protection, RegionError};
use crate::base::sync::{AtomicU64, Ordering, fence};
use crate::memory::buffer::Segment;

const VALID: u64 = 1;

const READ: u64 = 2;

const WRITE: u64 = 4;

const SHARED: u64 = 8;

const LIST: u64 = 16;

const SINGLE_USE: u64 = 32;

/// A copy has taken the region for itself; there will be no other.
const USED: u64 = 64;

/// Flags below, generation above.
const GENERATION_SHIFT: u32 = 16;

/// The largest generation: as many regions one after the other, at ten million
/// a second, take 326 days.
#[cfg_attr(loom, allow(dead_code))] // Its user needs real shared memory.
pub(super) const GENERATION_MASK: u64 = u64::MAX >> GENERATION_SHIFT;

/// One entry, four words of a cache line: what it is, its length, where, and
/// how many pieces.
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct Words([AtomicU64; 8]);

#[cfg(not(loom))]
const _: () = assert!(size_of::<Words>() == super::ENTRY_BYTES && align_of::<Words>() == 64);

/// Where a region's bytes are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// One piece of the owner's private memory.
    One(Segment),
    /// A list of pieces: the address of the array in the owner, and how many.
    List {
        /// The address of the array of [`Segment`]s, in the owner.
        address: usize,
        /// How many there are.
        count: u64,
    },
    /// Memory that peers map.
    Shared {
        /// The number of its descriptor in the owner.
        descriptor: u64,
    },
}

/// What an owner writes into an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Description {
    pub total_bytes: u64,
    pub protection: Protection,
    pub single_use: bool,
    pub place: Place,
}

/// An entry as it was copied out of a table, all of one time: what the owner
/// says, not checked further. It is also the right to copy, as long as
/// [`super::RemoteTable::revalidate`] says so.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry {
    /// The region's length.
    pub total_bytes: u64,
    /// What its peers may do with it.
    pub protection: Protection,
    /// Where its bytes are.
    pub place: Place,
    /// The first word that this copy goes by.
    word: u64,
}

#[cfg(not(loom))]
impl Entry {
    /// Whether the table says that it is for one use.
    pub(super) const fn is_single_use(&self) -> bool {
        self.word & SINGLE_USE != 0
    }
}

impl Words {
    #[cfg(any(loom, test))]
    pub(super) fn new() -> Self {
        Self(std::array::from_fn(|_| AtomicU64::new(0)))
    }

    /// Describes a region in a free entry. Only the owner does.
    pub(super) fn describe(&self, generation: u64, what: &Description) {
        let (flags, address, count) = match what.place {
            Place::One(segment) => (0, segment.address as u64, 0),
            Place::List { address, count } => (LIST, address as u64, count),
            Place::Shared { descriptor } => (SHARED, descriptor, 0),
        };
        let [first, rest @ ..] = &self.0;
        // Relaxed: nobody reads them before the first word says valid, and who
        // still reads the entry before finds the first word changed: `clear`
        // has set it to 0, with the fence there.
        [what.total_bytes, address, count].iter().zip(rest).for_each(|(v, w)| w.store(*v, Ordering::Relaxed));
        let rights = [(READ, what.protection.read), (WRITE, what.protection.write)];
        let rights = rights.iter().filter(|(_, given)| *given).fold(0, |all, (bit, _)| all | bit);
        let once = if what.single_use { SINGLE_USE } else { 0 };
        // Release pairs with the Acquire in `read`.
        first.store(generation << GENERATION_SHIFT | VALID | flags | rights | once, Ordering::Release);
    }

    /// Takes the description back. Only the owner does.
    pub(super) fn clear(&self) {
        // Relaxed: the fence orders it. An exchange, though what was there does
        // not matter: so it comes before or after a peer's exchange, in loom's
        // eyes too, which lets a store and an exchange pass each other.
        self.0[0].swap(0, Ordering::Relaxed);
        // Pairs with the Acquire fence in `is_still` (a seqlock's begin): a
        // reader that sees a later write to the other words, or to the region's
        // memory, sees this 0 or the next generation when it looks again.
        fence(Ordering::Release);
    }

    /// Reads an entry as one, if it is of this generation and not used up.
    pub(super) fn read(&self, generation: u64) -> Result<Entry, RegionError> {
        // Acquire pairs with the owner's Release in `describe`, so that the
        // others are seen as they were written for it. A peer's exchange of
        // this word goes on with the owner's release sequence.
        let word = self.0[0].load(Ordering::Acquire);
        standing(word, generation)?;
        // Relaxed: between the two reads of the first word, which order them.
        let [total_bytes, address, count] = [1, 2, 3].map(|i: usize| self.0[i].load(Ordering::Relaxed));
        let place = match (word & SHARED != 0, word & LIST != 0) {
            (true, _) => Place::Shared { descriptor: address },
            (false, true) => Place::List { address: address as usize, count },
            (false, false) => Place::One(Segment { address: address as usize, bytes: total_bytes as usize }),
        };
        let protection = Protection { read: word & READ != 0, write: word & WRITE != 0 };
        let entry = Entry { total_bytes, protection, place, word };
        if self.is_still(&entry) {
            return Ok(entry);
        }
        // Relaxed: only to tell who was faster, the owner or another peer.
        standing(self.0[0].load(Ordering::Relaxed), generation)?;
        Err(RegionError::NotRegistered)
    }

    /// Whether the region that was read is still declared, and nobody else has
    /// used it up: then all that was read of its memory before was its own.
    pub(super) fn is_still(&self, entry: &Entry) -> bool {
        // Keeps the reads before, of the entry's words and of the region's
        // memory, before the one below (a seqlock's end); pairs with the fence
        // in `clear`.
        fence(Ordering::Acquire);
        // Relaxed: ordered by the fence.
        self.0[0].load(Ordering::Relaxed) == entry.word
    }

    /// Uses the region up if it is for one use: of all that try, one is told
    /// yes. The entry's right is the only one from then on.
    pub(super) fn begin_use(&self, entry: &mut Entry) -> Result<(), RegionError> {
        if entry.word & SINGLE_USE == 0 {
            return Ok(());
        }
        let taken = entry.word | USED;
        // Relaxed: it only says who is first, which one exchange of one word
        // does; the description was acquired with `entry.word`, and this
        // exchange leaves the owner's release sequence whole.
        match self.0[0].compare_exchange(entry.word, taken, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => {
                entry.word = taken;
                Ok(())
            }
            Err(now) => {
                standing(now, entry.word >> GENERATION_SHIFT)?;
                Err(RegionError::NotRegistered)
            }
        }
    }
}

/// What a first word says of the region with this generation.
fn standing(word: u64, generation: u64) -> Result<(), RegionError> {
    if word >> GENERATION_SHIFT != generation || word & VALID == 0 {
        return Err(RegionError::NotRegistered);
    }
    if word & USED != 0 { Err(RegionError::UsedUp) } else { Ok(()) }
}

#[cfg(all(test, loom))]
#[path = "entry_loom_tests.rs"]
mod loom_tests;
