//! The operations of a scope whose results nobody has taken.

use std::sync::{Mutex, TryLockError};

use lmt_core::endpoint::{RequestId, Started, Status};

/// Where an operation stands in [`Open`], until it is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place(u32);

#[derive(Clone, Copy, Debug)]
enum Slot {
    Open(RequestId),
    /// It was done when it was begun.
    Done(Status),
    /// The next free slot, if there is one.
    Free(Option<u32>),
}

/// The operations of one scope: entered and taken out in the same time however
/// many there are.
#[derive(Debug, Default)]
pub(crate) struct Open {
    slots: Vec<Slot>,
    free: Option<u32>,
}

impl Open {
    /// Enters an operation.
    ///
    /// # Panics
    /// Past 2^32 operations of one scope.
    #[inline]
    pub fn enter(&mut self, started: Started) -> Place {
        let place = self.free_place();
        self.slots[place.0 as usize] = match started {
            Started::Done(status) => Slot::Done(status),
            Started::Pending(id) => Slot::Open(id),
        };
        place
    }

    #[inline]
    fn free_place(&mut self) -> Place {
        if let Some(at) = self.free
            && let Some(Slot::Free(next)) = self.slots.get(at as usize)
        {
            self.free = *next;
            return Place(at);
        }
        self.slots.push(Slot::Free(None));
        Place(u32::try_from(self.slots.len() - 1).expect("fewer than 2^32 operations"))
    }

    /// Its request, of an operation that was not done when it was begun.
    #[inline]
    pub fn request(&self, place: Place) -> Option<RequestId> {
        match self.slots.get(place.0 as usize)? {
            Slot::Open(id) => Some(*id),
            Slot::Done(_) | Slot::Free(_) => None,
        }
    }

    /// Takes out an operation that has ended since.
    #[inline]
    pub fn close(&mut self, place: Place) {
        if let Some(slot @ Slot::Open(_)) = self.slots.get_mut(place.0 as usize) {
            *slot = Slot::Free(self.free.replace(place.0));
        }
    }

    /// Takes out an operation that was done when it was begun; the request of another, which
    /// stays.
    #[inline]
    pub fn take_done(&mut self, place: Place) -> Result<Status, Option<RequestId>> {
        let Some(slot) = self.slots.get_mut(place.0 as usize) else { return Err(None) };
        match *slot {
            Slot::Open(id) => Err(Some(id)),
            Slot::Free(_) => Err(None),
            Slot::Done(status) => {
                *slot = Slot::Free(self.free.replace(place.0));
                Ok(status)
            }
        }
    }

    /// Takes out an operation whose result nobody wants, if it is done.
    #[inline]
    pub fn let_go(&mut self, place: Place) {
        let _unwanted = self.take_done(place);
    }

    /// All that are open.
    pub fn ids(&self) -> impl Iterator<Item = RequestId> + Clone {
        self.slots.iter().filter_map(|slot| match slot {
            Slot::Open(id) => Some(*id),
            Slot::Done(_) | Slot::Free(_) => None,
        })
    }

    fn clear(&mut self) {
        self.slots.clear();
        self.free = None;
    }
}

/// Lists of scopes that have ended, for those that begin: a scope allocates
/// nothing once one like it was there. As many are kept as scopes were open at
/// once, each as long as its longest use.
#[derive(Debug, Default)]
pub struct OperationLists(Mutex<Vec<Open>>);

impl OperationLists {
    /// An empty list.
    pub(crate) fn take(&self) -> Open {
        self.with(Vec::pop).flatten().unwrap_or_default()
    }

    /// Takes back the list of a scope that has ended.
    pub(crate) fn give_back(&self, mut open: Open) {
        open.clear();
        self.with(|spares| spares.push(open));
    }

    /// Never waits: who holds the lock may be a thread that this process, a
    /// forked child, does not have.
    fn with<R>(&self, f: impl FnOnce(&mut Vec<Open>) -> R) -> Option<R> {
        match self.0.try_lock() {
            Ok(mut spares) => Some(f(&mut spares)),
            Err(TryLockError::Poisoned(spares)) => Some(f(&mut spares.into_inner())),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

#[cfg(test)]
#[path = "open_tests.rs"]
mod tests;
