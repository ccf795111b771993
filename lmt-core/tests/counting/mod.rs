//! An allocator that counts: the system's, with a count for each thread and one
//! for the process.
#![allow(unsafe_code)] // An allocator is an unsafe trait.
#![allow(dead_code)] // Each test uses a part.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

struct Counting;

thread_local! {
    static OF_THREAD: Cell<u64> = const { Cell::new(0) };
}

static OF_PROCESS: AtomicU64 = AtomicU64::new(0);

/// Allocations of this thread so far.
pub fn of_thread() -> u64 {
    OF_THREAD.with(Cell::get)
}

/// Allocations of this process so far.
pub fn of_process() -> u64 {
    // Relaxed: a count; who compares two of them has done all between himself.
    OF_PROCESS.load(Ordering::Relaxed)
}

fn count() {
    // Relaxed: as above.
    OF_PROCESS.fetch_add(1, Ordering::Relaxed);
    // A thread that ends has no counter any more, and is not asked for one.
    let _ended = OF_THREAD.try_with(|count| count.set(count.get() + 1));
}

// SAFETY: all is left to the system's allocator; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's promise is handed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's promise is handed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, address: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise is handed on.
        unsafe { System.dealloc(address, layout) }
    }

    unsafe fn realloc(&self, address: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        count();
        // SAFETY: the caller's promise is handed on.
        unsafe { System.realloc(address, layout, bytes) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;
