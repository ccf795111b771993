//! How far away memory is just now: in a cache of this core, or in memory.
#![allow(unsafe_code)] // Follows addresses that its callers vouch for, and empties lines.

use std::hint::black_box;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// So many lines are looked at, one after the other: each waits for the one before, as
/// otherwise a processor fetches them at once.
const LINES: usize = 4;
const LINE_BYTES: usize = 64;
/// A page, and a line more: neither a page's neighbour nor what has been read before tells
/// a prefetcher of the next one.
const APART_BYTES: usize = 4096 + LINE_BYTES;
/// Further apart they tell no more, and their pages' tables are as far away as they are.
const MOST_APART_BYTES: usize = 16 * 4096 + LINE_BYTES;
/// The median of so many looks tells how long memory takes.
const LOOKS: usize = 9;
/// What takes more than this part of memory's time comes from there. On servers whose
/// cores share a mesh the last cache takes about half of it.
const COLD_PART: f32 = 0.65;

/// Whether the lines of `bytes` bytes at `start` are in no cache, by reading a few of them,
/// which takes as long as that says; nothing where they are too few, or the machine cannot
/// be asked.
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
    let apart = (bytes / LINES).checked_sub(LINE_BYTES).filter(|apart| *apart >= APART_BYTES)?;
    let apart = apart.min(MOST_APART_BYTES);
    let from_memory = time_from_memory()?;
    // SAFETY: the last line begins at three quarters of the bytes at most.
    let took = unsafe { time_of_reads(start, apart) };
    Some(took.as_secs_f32() > from_memory.as_secs_f32() * COLD_PART)
}

/// How long as many reads take of lines that are in no cache; found out once.
fn time_from_memory() -> Option<Duration> {
    static FOUND: OnceLock<Option<Duration>> = OnceLock::new();
    *FOUND.get_or_init(|| {
        let memory = vec![1u8; LINES * APART_BYTES];
        let mut times = Vec::with_capacity(LOOKS);
        for _ in 0..LOOKS {
            if !(0..LINES).all(|line| empty(&memory[line * APART_BYTES])) {
                return None;
            }
            // SAFETY: the lines are those just emptied, all within `memory`.
            times.push(unsafe { time_of_reads(memory.as_ptr(), APART_BYTES) });
        }
        times.sort_unstable();
        Some(times[LOOKS / 2])
    })
}

/// How long it takes to read a byte of each of the lines, which are so many bytes apart.
///
/// # Safety
/// All of them can be read.
unsafe fn time_of_reads(start: *const u8, apart: usize) -> Duration {
    // Nothing, as the compiler does not know: each address needs the byte before.
    let nothing = black_box(0usize);
    let begin = Instant::now();
    let mut at = 0;
    for _ in 0..LINES {
        // SAFETY: the caller's promise; whatever another writes meanwhile is a byte.
        let byte = unsafe { start.wrapping_add(at).read_volatile() };
        at += apart + (usize::from(byte) & nothing);
    }
    black_box(at);
    begin.elapsed()
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
