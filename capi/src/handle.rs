//! Handles: what C holds are numbers that look like pointers. Each names a place
//! in a table and how often that place was used before, so that a handle which
//! was closed, is of another kind, or was made up is found out, not followed.
//!
//! An object stands behind a lock that nobody waits for: who finds it taken is
//! told so. So two threads, or a callback of a call on the same object, do no harm.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, TryLockError};

use lmt_core::fork_guard::Origin;

use crate::code::lmt_code::{
    LMT_ERR_BUSY, LMT_ERR_FORKED, LMT_ERR_HANDLE, LMT_ERR_NO_MEMORY, LMT_ERR_NULL, LMT_ERR_PANIC,
};
use crate::error::Error;
use crate::lock::{ShortLock, lock_or_broken};

/// A handle as a number.
///
/// From the top: one bit that no address of a process has (whoever follows it as
/// a pointer gets a fault at once), 7 bits of the kind, 32 of the generation, 24 of
/// the place.
pub type Number = u64;

const NO_ADDRESS: u64 = 1 << 63;
const KIND_SHIFT: u32 = 56;
const PLACE_BITS: u32 = 24;

/// The number of a handle that C hands over.
#[inline]
pub fn number_of<T>(handle: *const T) -> Number {
    handle.addr() as Number
}

/// The handle for a number, as C holds it; nobody follows it.
#[inline]
pub const fn handle_of<T>(number: Number) -> *mut T {
    std::ptr::without_provenance_mut(number as usize)
}

/// The kinds of objects.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Options = 1,
    Endpoint,
    DeviceLayer,
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
            Self::DeviceLayer => ("device", "lmt_device_create"),
            Self::Message => ("message", "lmt_improbe"),
            Self::Announcement => ("announcement", "lmt_device_on_packet"),
            Self::Withdrawal => ("withdrawal", "lmt_device_on_packet"),
        }
    }

    #[cold]
    fn not_this(self, number: Number) -> Error {
        let (what, from) = self.words();
        if number == 0 {
            return Error::new(LMT_ERR_NULL, format!("`{what}` is NULL; pass what {from} gave"));
        }
        let sentence = format!(
            "this is no {what}, or one that is gone already; pass what {from} gave, until it is given back"
        );
        Error::new(LMT_ERR_HANDLE, sentence)
    }

    #[cold]
    fn busy(self) -> Error {
        let (what, _) = self.words();
        let sentence = format!(
            "another thread is in a call with this {what}, or this is a callback of one; use it in one call at a time"
        );
        Error::new(LMT_ERR_BUSY, sentence)
    }

    #[cold]
    fn broken(self) -> Error {
        let (what, _) = self.words();
        Error::new(LMT_ERR_PANIC, format!("an earlier call with this {what} ended in a fault; close it"))
    }

    #[cold]
    fn forked(self) -> Error {
        let (what, from) = self.words();
        let sentence = format!(
            "this {what} belongs to the process that this one was forked off; use what {from} gave in this one"
        );
        Error::new(LMT_ERR_FORKED, sentence)
    }
}

struct Slot<T> {
    /// The process ([`Origin::number`]) whose object is here, 0 when there is none.
    /// Outside of the lock, as a forked child may find that held by a thread which
    /// it does not have. Written under the lock.
    process: AtomicU64,
    /// How often the place was used before. Written under the lock.
    generation: AtomicU32,
    object: Mutex<Option<T>>,
}

impl<T> Slot<T> {
    const fn empty() -> Self {
        Self { process: AtomicU64::new(0), generation: AtomicU32::new(0), object: Mutex::new(None) }
    }

    #[inline]
    fn generation(&self) -> u32 {
        // Relaxed: who has the lock sees what the one before wrote; without it an
        // old number only has an old handle refused later, under the lock.
        self.generation.load(Ordering::Relaxed)
    }

    #[inline]
    fn process(&self) -> u64 {
        // Relaxed: as above; and in one process it is 0 or that process's, or what
        // an ancestor wrote before the fork.
        self.process.load(Ordering::Relaxed)
    }
}

/// Places of the first chunk; each further one has twice as many.
const FIRST_PLACES: usize = 64;
const CHUNKS: usize = 18;

/// The objects of one kind.
///
/// Nothing here is waited for in vain by a forked child, whose parent's other
/// threads held what they held for ever: an object's lock is asked for only after
/// [`Slot::process`], and a chunk is made only by who holds the list of free places,
/// which is a [`ShortLock`].
pub struct Table<T> {
    kind: Kind,
    chunks: [OnceLock<Box<[Slot<T>]>>; CHUNKS],
    /// Places that were used before.
    free: ShortLock<Vec<u32>>,
    /// The first place that never was.
    next: AtomicU32,
}

/// The chunk in which a place is, and where.
const fn chunk_of(place: u32) -> (usize, usize) {
    let at = place as usize + FIRST_PLACES;
    let chunk = (at.ilog2() - FIRST_PLACES.ilog2()) as usize;
    (chunk, at - (FIRST_PLACES << chunk))
}

/// An object that was taken out of its table.
#[derive(Debug, PartialEq, Eq)]
pub struct Out<T> {
    pub object: T,
    /// Whether a panic has left it in the middle of something.
    pub is_broken: bool,
}

impl<T> Table<T> {
    pub const fn new(kind: Kind) -> Self {
        Self {
            kind,
            chunks: [const { OnceLock::new() }; CHUNKS],
            free: ShortLock::new(Vec::new()),
            next: AtomicU32::new(0),
        }
    }

    const fn number(&self, place: u32, generation: u32) -> Number {
        NO_ADDRESS | (self.kind as u64) << KIND_SHIFT | (generation as u64) << PLACE_BITS | place as u64
    }

    /// Takes the object in that `make` makes, which is told its number.
    ///
    /// # Errors
    /// There are some 16 million of them.
    pub fn insert(&self, make: impl FnOnce(Number) -> T) -> Result<Number, Error> {
        let reserved = self.reserve()?;
        let object = make(reserved.number);
        Ok(reserved.fill(object))
    }

    /// Keeps a place for an object, so that there is one when the object is there.
    ///
    /// # Errors
    /// As [`Table::insert`].
    pub fn reserve(&self) -> Result<Reserved<'_, T>, Error> {
        loop {
            let place = self.place()?;
            // One that a thread of the parent was just looking at is left unused.
            let Some(slot) = self.slot(place).filter(|slot| is_free(&slot.object)) else { continue };
            let number = self.number(place, slot.generation());
            return Ok(Reserved { table: self, slot, number });
        }
    }

    /// A place that nobody has.
    fn place(&self) -> Result<u32, Error> {
        let mut free = self.free.lock();
        if let Some(place) = free.as_mut().and_then(|free| free.pop()) {
            return Ok(place);
        }
        // Relaxed: only that nobody else gets this number matters; the chunk comes
        // by its own OnceLock.
        let place = self.next.fetch_add(1, Ordering::Relaxed);
        let (chunk, _) = chunk_of(place);
        let room = self.chunks.get(chunk).ok_or_else(|| self.full(place));
        room.and_then(|room| match (room.get(), &free) {
            (Some(_), _) => Ok(place),
            (None, Some(_list_held)) => {
                room.get_or_init(|| (0..FIRST_PLACES << chunk).map(|_| Slot::empty()).collect());
                Ok(place)
            }
            (None, None) => Err(self.lost()),
        })
        .inspect_err(|_| {
            // Relaxed: as above; the numbers past the end are nobody's.
            self.next.fetch_sub(1, Ordering::Relaxed);
        })
    }

    #[cold]
    fn full(&self, places: u32) -> Error {
        let (what, _) = self.kind.words();
        let sentence =
            format!("there are {places} objects of the kind {what}, the most there can be; close some");
        Error::new(LMT_ERR_NO_MEMORY, sentence)
    }

    #[cold]
    fn lost(&self) -> Error {
        let (_, from) = self.kind.words();
        let sentence =
            format!("another thread was in {from} when this process was forked; fork where no thread is");
        Error::new(LMT_ERR_FORKED, sentence)
    }

    #[inline]
    fn slot(&self, place: u32) -> Option<&Slot<T>> {
        let (chunk, at) = chunk_of(place);
        self.chunks.get(chunk)?.get()?.get(at)
    }

    /// The slot that a handle names.
    #[inline]
    fn slot_of(&self, number: Number) -> Option<&Slot<T>> {
        if number >> KIND_SHIFT != self.number(0, 0) >> KIND_SHIFT {
            return None;
        }
        let slot = self.slot(place_of(number))?;
        (slot.generation() == generation_of(number) && slot.process() != 0).then_some(slot)
    }

    /// The slot that a handle of this process names.
    #[inline]
    fn find(&self, number: Number) -> Result<&Slot<T>, Error> {
        let slot = self.slot_of(number).ok_or_else(|| self.kind.not_this(number))?;
        if slot.process() == Origin::here().number() { Ok(slot) } else { Err(self.kind.forked()) }
    }

    /// Calls `f` with the object that a handle names.
    ///
    /// # Errors
    /// There is none, it is in use, it was left by a panic, it is the parent's of
    /// this forked child; or what `f` says.
    #[inline]
    pub fn with<R>(&self, number: Number, f: impl FnOnce(&mut T) -> Result<R, Error>) -> Result<R, Error> {
        let entered = self.enter(self.find(number)?)?;
        self.call(entered, number, f)
    }

    /// The same where another thread is waited for, which must be there for
    /// moments only.
    ///
    /// # Errors
    /// As [`Table::with`], but for objects in use.
    pub fn with_waiting<R>(
        &self,
        number: Number,
        f: impl FnOnce(&mut T) -> Result<R, Error>,
    ) -> Result<R, Error> {
        let entered = lock_or_broken(&self.find(number)?.object);
        self.call(entered, number, f)
    }

    #[inline]
    fn call<R>(
        &self,
        (mut object, is_broken): (MutexGuard<'_, Option<T>>, bool),
        number: Number,
        f: impl FnOnce(&mut T) -> Result<R, Error>,
    ) -> Result<R, Error> {
        // Now that it is locked, its handle names it or does not.
        match (self.slot_of(number), &mut *object) {
            (Some(_), Some(_)) if is_broken => Err(self.kind.broken()),
            (Some(_), Some(object)) => f(object),
            _ => Err(self.kind.not_this(number)),
        }
    }

    /// Takes an object out: its handle names nothing any more.
    ///
    /// # Errors
    /// There is none, it is in use, or it is the parent's of this forked child.
    pub fn take(&self, number: Number) -> Result<Out<T>, Error> {
        self.take_if(number, |_| Ok(()))
    }

    /// The same if `check` has nothing against it.
    ///
    /// # Errors
    /// As [`Table::take`], or what `check` says.
    pub fn take_if(
        &self,
        number: Number,
        check: impl FnOnce(&T) -> Result<(), Error>,
    ) -> Result<Out<T>, Error> {
        let slot = self.find(number)?;
        self.take_out(slot, number, check)
    }

    /// Takes what this forked child has inherited of its parent's object, if no
    /// thread was using that at the fork.
    pub fn take_inherited(&self, number: Number) -> Option<T> {
        let slot = self.slot_of(number)?;
        self.take_out(slot, number, |_| Ok(())).ok().map(|out| out.object)
    }

    fn take_out(
        &self,
        slot: &Slot<T>,
        number: Number,
        check: impl FnOnce(&T) -> Result<(), Error>,
    ) -> Result<Out<T>, Error> {
        let (mut entry, is_broken) = self.enter(slot)?;
        // Now that it is locked, as in `call`.
        self.slot_of(number).ok_or_else(|| self.kind.not_this(number))?;
        entry.as_ref().map_or_else(|| Err(self.kind.not_this(number)), check)?;
        let object = entry.take().ok_or_else(|| self.kind.not_this(number))?;
        // Relaxed, both: under the lock. The generation first: a child that is
        // forked between the two finds the handle closed.
        slot.generation.store(generation_of(number).wrapping_add(1), Ordering::Relaxed);
        slot.process.store(0, Ordering::Relaxed);
        slot.object.clear_poison();
        drop(entry);
        self.give_back(place_of(number));
        Ok(Out { object, is_broken })
    }

    fn give_back(&self, place: u32) {
        // Without the list, in a forked child, the place is not used again.
        if let Some(mut free) = self.free.lock() {
            free.push(place);
        }
    }

    /// The lock of a slot, and whether a panic has left what is behind it.
    #[inline]
    fn enter<'a>(&self, slot: &'a Slot<T>) -> Result<(MutexGuard<'a, Option<T>>, bool), Error> {
        match slot.object.try_lock() {
            Ok(entry) => Ok((entry, false)),
            Err(TryLockError::Poisoned(entry)) => Ok((entry.into_inner(), true)),
            Err(TryLockError::WouldBlock) => Err(self.kind.busy()),
        }
    }
}

const fn place_of(number: Number) -> u32 {
    number as u32 & ((1 << PLACE_BITS) - 1)
}

const fn generation_of(number: Number) -> u32 {
    (number >> PLACE_BITS) as u32
}

fn is_free<T>(mutex: &Mutex<Option<T>>) -> bool {
    !matches!(mutex.try_lock(), Err(TryLockError::WouldBlock))
}

/// A place that is kept for an object. Given back when it is dropped.
pub struct Reserved<'a, T> {
    table: &'a Table<T>,
    slot: &'a Slot<T>,
    /// What the object will be called.
    number: Number,
}

impl<T> Reserved<'_, T> {
    /// Takes the object in.
    pub fn fill(self, object: T) -> Number {
        // Whoever holds it has an old handle, and finds that out in a moment.
        let (mut entry, _) = lock_or_broken(&self.slot.object);
        *entry = Some(object);
        // Relaxed: who gets the number of this object gets it after this.
        self.slot.process.store(Origin::here().number(), Ordering::Relaxed);
        drop(entry);
        let number = self.number;
        std::mem::forget(self);
        number
    }
}

impl<T> Drop for Reserved<'_, T> {
    fn drop(&mut self) {
        self.table.give_back(place_of(self.number));
    }
}

#[cfg(test)]
#[path = "handle_tests.rs"]
mod tests;
