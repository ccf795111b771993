//! How far away memory is just now: in a cache of this core, or in memory.
#![allow(unsafe_code)] // Follows addresses that its callers vouch for, and empties lines.

use std::hint::black_box;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

const LINE_BYTES: usize = 64;
const PAGE_BYTES: usize = 4096;
/// Which lines of a page are read, each after the one before, as otherwise a processor
/// fetches them at once; in an order from which no prefetcher tells the next. The first is
/// not timed: it brings in what is needed to find the page.
const LINES: [usize; 4] = [3, 41, 22, 58];
/// So many pages are looked at.
const PAGES: usize = 2;
/// The median of so many looks tells how long memory takes.
const LOOKS: usize = 9;
/// What takes more than this part of memory's time comes from there. On servers whose
/// cores share a mesh the last cache takes about half of it.
const COLD_PART: f32 = 0.65;

/// Whether the lines of `bytes` bytes at `start` are in no cache, by reading a few of them,
/// which takes as long as that says; nothing where they are too few, or the machine cannot
/// be asked (its processor is no x86-64, or its clock takes longer than memory).
///
/// A read that is interrupted takes long wherever its line is: one answer says little.
///
/// # Safety
/// The bytes are mapped for reading for as long as the call.
///
/// # Example
/// ```
/// let memory = vec![1u8; 1 << 20];
/// // SAFETY: all of it is there.
/// let is_cold = unsafe { lmt_copy::is_cold(memory.as_ptr(), memory.len()) };
/// assert!(matches!(is_cold, Some(true | false) | None));
/// ```
pub unsafe fn is_cold(start: *const u8, bytes: usize) -> Option<bool> {
    let (first, last) = (start.addr().next_multiple_of(PAGE_BYTES), start.addr() + bytes);
    let whole_pages = last.checked_sub(first)? / PAGE_BYTES;
    let apart = whole_pages / PAGES * PAGE_BYTES;
    let from_memory = time_from_memory().filter(|_| apart > 0)?;
    // SAFETY: whole pages of the bytes, by the caller's promise.
    let took = unsafe { time_of_reads(start.with_addr(first), apart) };
    Some(took.as_secs_f32() > from_memory.as_secs_f32() * COLD_PART)
}

/// How long as many reads take of lines that are in no cache; found out once.
fn time_from_memory() -> Option<Duration> {
    static FOUND: OnceLock<Option<Duration>> = OnceLock::new();
    *FOUND.get_or_init(|| {
        let memory = vec![1u8; (PAGES + 1) * PAGE_BYTES];
        let first = memory.as_ptr().align_offset(PAGE_BYTES).min(PAGE_BYTES);
        let pages = &memory[first..first + PAGES * PAGE_BYTES];
        let mut times = Vec::with_capacity(LOOKS);
        for _ in 0..LOOKS {
            if !pages.iter().step_by(LINE_BYTES).all(empty) {
                return None;
            }
            // SAFETY: the pages are there.
            times.push(unsafe { time_of_reads(pages.as_ptr(), PAGE_BYTES) });
        }
        times.sort_unstable();
        // SAFETY: the same pages, which are in the caches now.
        let warm = (0..LOOKS).map(|_| unsafe { time_of_reads(pages.as_ptr(), PAGE_BYTES) }).min()?;
        // A clock that takes longer than memory tells nothing.
        Some(times[LOOKS / 2]).filter(|cold| warm * 2 < *cold)
    })
}

/// How long it takes to read a byte of each of the lines, of pages that are so many bytes
/// apart.
///
/// # Safety
/// All of them can be read.
unsafe fn time_of_reads(start: *const u8, apart: usize) -> Duration {
    // Nothing, as the compiler does not know: each address needs the byte before.
    let nothing = black_box(0usize);
    let mut byte = 0;
    let mut took = Duration::ZERO;
    for page in 0..PAGES {
        let mut read = |line: usize| {
            let at = page * apart + line * LINE_BYTES + (usize::from(byte) & nothing);
            // SAFETY: the caller's promise; whatever another writes meanwhile is a byte.
            byte = unsafe { start.wrapping_add(at).read_volatile() };
        };
        let [first, others @ ..] = LINES;
        read(first);
        let begin = Instant::now();
        others.into_iter().for_each(&mut read);
        black_box(byte);
        took += begin.elapsed();
    }
    took
}

/// Sends a byte's line out of all caches; false where that cannot be done.
fn empty(byte: &u8) -> bool {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        // SAFETY: every x86-64 has it (SSE2); it changes no byte, and this one is borrowed.
        unsafe { std::arch::x86_64::_mm_clflush(std::ptr::from_ref(byte)) };
        // A read behind it waits for it.
        std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
    }
    let _ = byte;
    cfg!(all(target_arch = "x86_64", not(miri)))
}

#[cfg(test)]
#[path = "coldness_tests.rs"]
mod tests;
