//! Tells a process from its forked children by one load of memory.
//!
//! A page that the kernel wipes on fork (madvise(2), MADV_WIPEONFORK) holds a
//! generation number. A child finds zero there, and takes the next number when
//! it makes something of its own; so what it makes works, and what it inherited
//! is known as its parent's.
#![allow(unsafe_code)] // Maps the page and reads it.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use nix::sys::mman::{MapFlags, MmapAdvise, ProtFlags, madvise, mmap_anonymous, munmap};

/// The wiped page's first word; null before the first use. A pointer and no
/// `OnceLock`: a fork in the middle of another thread's initialization must
/// leave nothing locked in the child.
static PAGE: AtomicPtr<AtomicU64> = AtomicPtr::new(std::ptr::null_mut());

/// The generation given last. Ordinary memory: a child goes on counting where
/// its parent was, so no two processes of one line of descent share a number.
static LAST_GENERATION: AtomicU64 = AtomicU64::new(0);

const PAGE_BYTES: std::num::NonZeroUsize = std::num::NonZeroUsize::new(4096).unwrap();

/// The process in which something was made.
#[derive(Clone, Copy, Debug)]
pub struct Origin {
    /// The wiped word; none where the kernel has no MADV_WIPEONFORK (before
    /// Linux 4.14): then the pid is compared, at the price of a system call.
    word: Option<&'static AtomicU64>,
    /// The generation, or the pid.
    value: u64,
}

impl Origin {
    /// The process that calls.
    pub fn here() -> Self {
        match wiped_word() {
            Some(word) => Self { word: Some(word), value: generation(word) },
            None => Self { word: None, value: u64::from(std::process::id()) },
        }
    }

    /// A number of this process that none of its ancestors and descendants has,
    /// for those who keep it where others write at the same time. Never 0.
    pub const fn number(&self) -> u64 {
        self.value
    }

    /// Whether that is known without a system call, and [`Origin::is_this_process`] true.
    #[inline(always)] // Empty polls are most of a wait.
    pub fn is_known_to_be_this_process(&self) -> bool {
        // Relaxed: within one process the word never changes once it is
        // not zero, and fork orders the child after the parent.
        self.word.is_some_and(|word| word.load(Ordering::Relaxed) == self.value)
    }

    /// Whether the caller is the process that [`Origin::here`] was called in,
    /// and not a forked child of it.
    #[inline]
    pub fn is_this_process(&self) -> bool {
        self.is_known_to_be_this_process()
            || self.word.is_none() && u64::from(std::process::id()) == self.value
    }
}

/// This process's generation, taken now if it has none yet.
fn generation(word: &AtomicU64) -> u64 {
    // Relaxed throughout: only the numbers count, and the exchange lets one win.
    let seen = word.load(Ordering::Relaxed);
    if seen != 0 {
        return seen;
    }
    let next = LAST_GENERATION.fetch_add(1, Ordering::Relaxed) + 1;
    match word.compare_exchange(0, next, Ordering::Relaxed, Ordering::Relaxed) {
        Ok(_) => next,
        Err(won) => won,
    }
}

fn wiped_word() -> Option<&'static AtomicU64> {
    // Acquire pairs with the Release below: the page is then mapped and marked.
    let present = PAGE.load(Ordering::Acquire);
    let word = if present.is_null() { publish_page(map_page()?) } else { present };
    // SAFETY: `word` came from `map_page` (here or in an ancestor, whose
    // mapping fork copies, wiped): 4096 bytes, page-aligned, readable and
    // writable, zeroed, never unmapped once published; all access is atomic.
    Some(unsafe { AtomicU64::from_ptr(word.cast()) })
}

/// Makes `page` the page of this process, unless another thread was first.
fn publish_page(page: NonNull<AtomicU64>) -> *mut AtomicU64 {
    match PAGE.compare_exchange(std::ptr::null_mut(), page.as_ptr(), Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => page.as_ptr(),
        Err(winner) => {
            unmap(page);
            winner
        }
    }
}

fn map_page() -> Option<NonNull<AtomicU64>> {
    let protection = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
    // SAFETY: a new private mapping at an address of the kernel's choice
    // touches no existing memory.
    let page = unsafe { mmap_anonymous(None, PAGE_BYTES, protection, MapFlags::MAP_PRIVATE) }.ok()?;
    // SAFETY: just this page, which nobody else knows yet; MADV_WIPEONFORK
    // changes only what a child finds in it.
    let marked = unsafe { madvise(page, PAGE_BYTES.get(), MmapAdvise::MADV_WIPEONFORK) };
    if marked.is_err() {
        unmap(page.cast());
        return None;
    }
    Some(page.cast())
}

fn unmap(page: NonNull<AtomicU64>) {
    // SAFETY: the page comes from `map_page` and was not published, so no
    // reference into it exists.
    // The result only says that the page was no page, which it was.
    let _ = unsafe { munmap(page.cast(), PAGE_BYTES.get()) };
}

#[cfg(test)]
#[path = "fork_guard_tests.rs"]
mod tests;
