//! An allocator whose memory is a memory file, so that peers can map it.

use std::alloc::{GlobalAlloc, Layout};
use std::cell::UnsafeCell;
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use nix::libc;

/// Addresses for all that a test process allocates. The file has no more pages than were
/// used.
const ARENA_BYTES: usize = 64 << 30;
/// Blocks have lengths of powers of two: the least has 64 bytes, the most 32 GiB.
const LEAST_POWER: u32 = 6;
const POWERS: usize = 30;
const PAGE_BYTES: usize = 4096;

/// The allocator.
pub struct Shared {
    is_locked: AtomicBool,
    state: UnsafeCell<State>,
}

/// Where the file is, how much of it was ever used, and what is free: the first block of
/// each length, whose first word has the next one's address.
struct State {
    file: i32,
    start: usize,
    used_bytes: usize,
    free: [usize; POWERS],
}

// SAFETY: the state is used under the lock alone.
unsafe impl Sync for Shared {}

static ARENA: Shared = Shared::new();

/// To be made the global allocator of a test binary.
pub struct Allocator;

impl Shared {
    const fn new() -> Self {
        let state = State { file: -1, start: 0, used_bytes: 0, free: [0; POWERS] };
        Self { is_locked: AtomicBool::new(false), state: UnsafeCell::new(state) }
    }

    fn lock(&self) {
        // Acquire and Release: one at a time.
        while self.is_locked.swap(true, Ordering::Acquire) {
            std::thread::yield_now();
        }
    }

    fn unlock(&self) {
        self.is_locked.store(false, Ordering::Release);
    }

    fn with<T>(&self, f: impl FnOnce(&mut State) -> T) -> T {
        self.lock();
        // SAFETY: under the lock, and nothing in `f` allocates.
        let result = f(unsafe { &mut *self.state.get() });
        self.unlock();
        result
    }
}

/// Which list of blocks serves such a layout, and how long they are.
fn class(layout: Layout) -> (usize, usize) {
    let bytes = layout.size().max(layout.align()).max(1 << LEAST_POWER).next_power_of_two();
    ((bytes.trailing_zeros() - LEAST_POWER) as usize, bytes)
}

impl State {
    fn allocate(&mut self, layout: Layout) -> usize {
        if self.start == 0 {
            self.open();
        }
        let (class, bytes) = class(layout);
        let first = self.free[class];
        if first != 0 {
            // SAFETY: a free block of the arena, whose first word `release` has written.
            self.free[class] = unsafe { *std::ptr::with_exposed_provenance::<usize>(first) };
            return first;
        }
        // Powers of two at multiples of themselves; the arena begins at one of 1 GiB.
        let at = self.used_bytes.next_multiple_of(bytes);
        if at + bytes > ARENA_BYTES {
            return 0;
        }
        self.used_bytes = at + bytes;
        self.start + at
    }

    fn release(&mut self, block: usize, layout: Layout) {
        let (class, bytes) = class(layout);
        if bytes >= 1 << 20 {
            // SAFETY: a block that its user has given back; the pages are zeros after.
            unsafe { libc::madvise(std::ptr::with_exposed_provenance_mut(block), bytes, libc::MADV_REMOVE) };
        }
        // SAFETY: as above, aligned to its length.
        unsafe { *std::ptr::with_exposed_provenance_mut::<usize>(block) = self.free[class] };
        self.free[class] = block;
    }

    /// Makes the file and maps it; from then on a fork copies what is in it.
    fn open(&mut self) {
        const GIB: usize = 1 << 30;
        // SAFETY: a name, and a number.
        self.file = unsafe { libc::memfd_create(c"lmt-test".as_ptr(), libc::MFD_CLOEXEC) };
        // SAFETY: numbers.
        let has_length = unsafe { libc::ftruncate(self.file, ARENA_BYTES as i64) };
        assert_eq!(has_length, 0, "there are memory files");
        let room = map(0, ARENA_BYTES + GIB, OWN, -1);
        // Replaces a part of the room, which nobody uses.
        self.start = map(room.next_multiple_of(GIB), ARENA_BYTES, libc::MAP_SHARED, self.file);
        // SAFETY: functions that live as long as the program.
        unsafe { libc::pthread_atfork(Some(before_fork), Some(after_in_parent), Some(after_in_child)) };
        // The first page is the fork's.
        self.used_bytes = PAGE_BYTES;
    }
}

/// Memory of this process alone.
const OWN: i32 = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;

/// Maps a range, anywhere if `start` is 0, else in the place of what is there: which is
/// this allocator's, and not in use. Its address.
fn map(start: usize, bytes: usize, flags: i32, file: i32) -> usize {
    let both = libc::PROT_READ | libc::PROT_WRITE;
    let at: *mut c_void = std::ptr::with_exposed_provenance_mut(start);
    let fixed = if start == 0 { 0 } else { libc::MAP_FIXED };
    // SAFETY: see above.
    let mapped = unsafe { libc::mmap(at, bytes, both, flags | fixed | libc::MAP_NORESERVE, file, 0) };
    assert_ne!(mapped, libc::MAP_FAILED, "there are addresses");
    mapped.expose_provenance()
}

/// In the first page: 1 when a child has its copy, or has ended without.
fn is_copied(state: &State) -> &AtomicU32 {
    // SAFETY: the first page of the arena is used for this word alone.
    unsafe { AtomicU32::from_ptr(std::ptr::with_exposed_provenance_mut(state.start)) }
}

extern "C" fn before_fork() {
    ARENA.lock();
    // SAFETY: under the lock.
    is_copied(unsafe { &*ARENA.state.get() }).store(0, Ordering::SeqCst);
}

extern "C" fn after_in_parent() {
    // SAFETY: under the lock, since `before_fork`.
    let state = unsafe { &*ARENA.state.get() };
    while is_copied(state).load(Ordering::SeqCst) == 0 {
        std::thread::yield_now();
    }
    ARENA.unlock();
}

/// The next part of a file, from `at` on, that has pages.
fn next_data(file: i32, at: usize) -> Option<(usize, usize)> {
    // SAFETY: numbers.
    let from = unsafe { libc::lseek(file, at as i64, libc::SEEK_DATA) };
    // SAFETY: numbers.
    let to = unsafe { libc::lseek(file, from, libc::SEEK_HOLE) };
    Some((usize::try_from(from).ok()?, usize::try_from(to).ok()?))
}

/// The child's memory is a copy of its parent's, as a fork makes it.
extern "C" fn after_in_child() {
    // SAFETY: under the lock, since `before_fork`; this is the only thread.
    let state = unsafe { &*ARENA.state.get() };
    let bytes = state.used_bytes.next_multiple_of(PAGE_BYTES);
    let copy = map(0, bytes, OWN, -1);
    let mut at = 0;
    while let Some((from, to)) = next_data(state.file, at).filter(|(from, _)| *from < bytes) {
        let to = to.min(bytes);
        let source: *const c_void = std::ptr::with_exposed_provenance(state.start + from);
        let target: *mut c_void = std::ptr::with_exposed_provenance_mut(copy + from);
        // SAFETY: both have `bytes` bytes, and `to` is no more than that.
        unsafe { libc::memcpy(target, source, to - from) };
        at = to;
    }
    is_copied(state).store(1, Ordering::SeqCst);
    let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
    let copy: *mut c_void = std::ptr::with_exposed_provenance_mut(copy);
    let place: *mut c_void = std::ptr::with_exposed_provenance_mut(state.start);
    // SAFETY: the copy takes the place of what it is a copy of.
    unsafe { libc::mremap(copy, bytes, bytes, flags, place) };
    map(state.start + bytes, ARENA_BYTES - bytes, OWN, -1);
    ARENA.unlock();
}

// SAFETY: blocks are as long and as aligned as the layout asks, and no two overlap.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        std::ptr::with_exposed_provenance_mut(ARENA.with(|state| state.allocate(layout)))
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        ARENA.with(|state| state.release(block.expose_provenance(), layout));
    }
}
