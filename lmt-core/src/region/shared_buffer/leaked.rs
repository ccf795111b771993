//! A static that refers to a value which is never freed, and may come to refer to
//! another one.
#![allow(unsafe_code)] // From the pointer back to the reference that it was.

use std::marker::PhantomData;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

/// `None`, or a reference that is valid for ever; it is loaded and replaced as a
/// whole.
pub(super) struct Leaked<T: Sync + 'static> {
    /// Null, or from a `&'static T`. Whoever stores it releases what it refers to.
    pointer: AtomicPtr<T>,
    refers: PhantomData<&'static T>,
}

impl<T: Sync + 'static> Leaked<T> {
    /// `None`.
    pub const fn new() -> Self {
        Self { pointer: AtomicPtr::new(ptr::null_mut()), refers: PhantomData }
    }

    /// What it refers to now.
    #[inline]
    pub fn get(&self) -> Option<&'static T> {
        // Acquire pairs with the Release of `replace`: what it refers to is whole.
        let pointer = self.pointer.load(Ordering::Acquire);
        // SAFETY: `pointer` is private, and `new` and `replace` store null or a
        // `&'static T` in it, which is valid for ever and, T being Sync, in every
        // thread; nobody writes through it. fork copies it with what it refers to.
        unsafe { pointer.as_ref() }
    }

    /// Lets it refer to `new` if it still refers to what was seen; else what it refers
    /// to now.
    pub fn replace(&self, seen: Option<&'static T>, new: &'static T) -> Result<(), Option<&'static T>> {
        let seen = seen.map_or(ptr::null_mut(), |seen| ptr::from_ref(seen).cast_mut());
        let new = ptr::from_ref(new).cast_mut();
        // Release: see `get`. Relaxed on failure: `get` looks again.
        let replaced = self.pointer.compare_exchange(seen, new, Ordering::Release, Ordering::Relaxed);
        replaced.map(|_| ()).map_err(|_| self.get())
    }
}
