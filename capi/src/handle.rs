//! Handles: what C holds are numbers that look like pointers. Each names a place
//! in a table and how often that place was used before, so that a handle which
//! was closed, is of another kind, or was made up is found out, not followed.
//!
//! An object stands behind a lock that nobody waits for: who finds it taken is
//! told so. So two threads, or a callback of a call on the same object, do no harm.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, TryLockError};

use crate::code::lmt_code::{LMT_ERR_BUSY, LMT_ERR_HANDLE, LMT_ERR_NO_MEMORY, LMT_ERR_PANIC};
use crate::error::Error;
use crate::lock::patiently;

/// A handle as a number.
///
/// From the top: one bit that no address of a process has (whoever follows it as
/// a pointer gets a fault at once), 7 bits of the kind, 32 of the generation, 24 of
/// the place.
pub type Number = u64;

const NO_ADDRESS: u64 = 1 << 63;
const KIND_SHIFT: u32 = 56;
const PLACE_BITS: u32 = 24;

/// The kinds of objects.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Options = 1,
    Endpoint,
    Door,
    Message,
    Announcement,
    Withdrawal,
}

impl Kind {
    /// What it is, and where a handle of it comes from.
    const fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Options => ("options", "lmt_options_create"),
            Self::Endpoint => ("endpoint", "lmt_endpoint_create"),
            Self::Door => ("door", "lmt_door_create"),
            Self::Message => ("message", "lmt_improbe"),
            Self::Announcement => ("announcement", "lmt_door_on_packet"),
            Self::Withdrawal => ("withdrawal", "lmt_door_on_packet"),
        }
    }

    fn not_this(self, number: Number) -> Error {
        let (what, from) = self.words();
        if number == 0 {
            return Error::null(what);
        }
        let sentence = format!(
            "this is no {what}, or one that is gone already; pass what {from} gave, until it is given back"
        );
        Error::new(LMT_ERR_HANDLE, sentence)
    }

    fn busy(self) -> Error {
        let (what, _) = self.words();
        let sentence = format!(
            "another thread is in a call with this {what}, or this is a callback of one; use it in one call at a time"
        );
        Error::new(LMT_ERR_BUSY, sentence)
    }

    fn broken(self) -> Error {
        let (what, _) = self.words();
        Error::new(LMT_ERR_PANIC, format!("an earlier call with this {what} ended in a fault; close it"))
    }
}

struct Entry<T> {
    /// How often the place was used before.
    generation: u32,
    object: Option<T>,
}

type Slot<T> = Mutex<Entry<T>>;

/// Places of the first chunk; each further one has twice as many.
const FIRST_PLACES: usize = 64;
const CHUNKS: usize = 18;

/// The objects of one kind.
///
/// Nothing here is waited for without end: who holds a lock may be a thread that
/// this process, a forked child, does not have.
pub struct Table<T> {
    kind: Kind,
    chunks: [OnceLock<Box<[Slot<T>]>>; CHUNKS],
    /// Places that were used before.
    free: Mutex<Vec<u32>>,
    /// The first place that never was.
    next: AtomicU32,
}

/// The chunk in which a place is, and where.
const fn chunk_of(place: u32) -> (usize, usize) {
    let at = place as usize + FIRST_PLACES;
    let chunk = (at.ilog2() - FIRST_PLACES.ilog2()) as usize;
    (chunk, at - (FIRST_PLACES << chunk))
}

impl<T> Table<T> {
    pub const fn new(kind: Kind) -> Self {
        Self {
            kind,
            chunks: [const { OnceLock::new() }; CHUNKS],
            free: Mutex::new(Vec::new()),
            next: AtomicU32::new(0),
        }
    }

    const fn number(&self, place: u32, generation: u32) -> Number {
        NO_ADDRESS | (self.kind as u64) << KIND_SHIFT | (generation as u64) << PLACE_BITS | place as u64
    }

    /// Takes an object in.
    ///
    /// # Errors
    /// There are some 16 million of them.
    pub fn insert(&self, object: T) -> Result<Number, Error> {
        loop {
            let place = self.place()?;
            // Who tries an old handle just now may hold it for a moment.
            let Some(mut entry) = self.slot(place).and_then(patiently) else { continue };
            entry.object = Some(object);
            return Ok(self.number(place, entry.generation));
        }
    }

    /// A place that nobody has.
    fn place(&self) -> Result<u32, Error> {
        if let Some(place) = patiently(&self.free).and_then(|mut free| free.pop()) {
            return Ok(place);
        }
        // Relaxed: only that nobody else gets this number matters; the chunk comes
        // by its own OnceLock.
        let place = self.next.fetch_add(1, Ordering::Relaxed);
        let (chunk, _) = chunk_of(place);
        let Some(chunk_place) = self.chunks.get(chunk) else {
            // Relaxed: as above; the numbers past the end are nobody's.
            self.next.fetch_sub(1, Ordering::Relaxed);
            let (what, _) = self.kind.words();
            let sentence =
                format!("there are {place} objects of the kind {what}, the most there can be; close some");
            return Err(Error::new(LMT_ERR_NO_MEMORY, sentence));
        };
        chunk_place.get_or_init(|| {
            let slot = || Mutex::new(Entry { generation: 0, object: None });
            (0..FIRST_PLACES << chunk).map(|_| slot()).collect()
        });
        Ok(place)
    }

    #[inline]
    fn slot(&self, place: u32) -> Option<&Slot<T>> {
        let (chunk, at) = chunk_of(place);
        self.chunks.get(chunk)?.get()?.get(at)
    }

    /// The slot that a handle names, if it is of this kind, and the generation.
    #[inline]
    fn find(&self, number: Number) -> Option<(&Slot<T>, u32, u32)> {
        if number >> KIND_SHIFT != self.number(0, 0) >> KIND_SHIFT {
            return None;
        }
        let place = number as u32 & ((1 << PLACE_BITS) - 1);
        Some((self.slot(place)?, place, (number >> PLACE_BITS) as u32))
    }

    /// Calls `f` with the object that a handle names.
    ///
    /// # Errors
    /// There is none, it is in use, it was left by a panic; or what `f` says.
    #[inline]
    pub fn with<R>(&self, number: Number, f: impl FnOnce(&mut T) -> Result<R, Error>) -> Result<R, Error> {
        let Some((slot, _, generation)) = self.find(number) else { return Err(self.kind.not_this(number)) };
        let (mut entry, is_broken) = self.enter(slot)?;
        match &mut *entry {
            Entry { generation: now, object: Some(object) } if *now == generation => {
                if is_broken {
                    Err(self.kind.broken())
                } else {
                    f(object)
                }
            }
            _ => Err(self.kind.not_this(number)),
        }
    }

    /// Takes an object out: its handle names nothing any more.
    ///
    /// # Errors
    /// There is none, or it is in use.
    pub fn take(&self, number: Number) -> Result<T, Error> {
        let Some((slot, place, generation)) = self.find(number) else {
            return Err(self.kind.not_this(number));
        };
        let (mut entry, _) = self.enter(slot)?;
        if entry.generation != generation {
            return Err(self.kind.not_this(number));
        }
        let object = entry.object.take().ok_or_else(|| self.kind.not_this(number))?;
        entry.generation = entry.generation.wrapping_add(1);
        slot.clear_poison();
        drop(entry);
        // Without the list, in a forked child, the place is not used again.
        if let Some(mut free) = patiently(&self.free) {
            free.push(place);
        }
        Ok(object)
    }

    /// The entry of a slot, and whether a panic has left it.
    #[inline]
    fn enter<'a>(&self, slot: &'a Slot<T>) -> Result<(MutexGuard<'a, Entry<T>>, bool), Error> {
        match slot.try_lock() {
            Ok(entry) => Ok((entry, false)),
            Err(TryLockError::Poisoned(entry)) => Ok((entry.into_inner(), true)),
            Err(TryLockError::WouldBlock) => Err(self.kind.busy()),
        }
    }
}

#[cfg(test)]
#[path = "handle_tests.rs"]
mod tests;
