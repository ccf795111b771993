//! Copying, by the copier that the process has chosen.
#![allow(unsafe_code)] // Follows the addresses that its callers vouch for.

use std::ffi::c_void;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use crate::copier::{Alignment, Copier, Distance, LEAST_TABLE_BYTES, Row, class_of};
use crate::routine::Routine;
use crate::short::{self, SHORT_MOST_BYTES};

/// The process's choice; empty: the C library's for all.
static CHOSEN: OnceLock<Copier> = OnceLock::new();

/// What copies, as the C library's `memcpy` is called.
type Long = unsafe extern "C" fn(*mut c_void, *const c_void, usize) -> *mut c_void;

#[cfg(not(miri))]
unsafe extern "C" {
    fn memcpy(target: *mut c_void, source: *const c_void, bytes: usize) -> *mut c_void;
}

/// # Safety
/// As for `memcpy`.
#[cfg(miri)]
unsafe extern "C" fn memcpy(target: *mut c_void, source: *const c_void, bytes: usize) -> *mut c_void {
    // SAFETY: the caller's promise.
    unsafe { std::ptr::copy_nonoverlapping(source.cast::<u8>(), target.cast::<u8>(), bytes) };
    target
}

/// What [`CHOSEN`] says for one distance, in one cache line. A copy that fills
/// the cache has no line to spare: so a process that has chosen nothing reads
/// this one, where a call of the C library's would read its address, and one that
/// has chosen reads no other either.
#[repr(C, align(64))]
struct Line {
    /// A [`Long`] for every copy above [`LEAST_TABLE_BYTES`]: the C library's
    /// until something else is chosen, then the distance's own, which looks into
    /// `rows`. Stored by [`install`] alone.
    enter: AtomicPtr<()>,
    /// The C library's.
    libc: Long,
    /// For each alignment a [`Row`] of routines that are available. Stored by
    /// [`install`] alone.
    rows: [AtomicU64; Alignment::ALL.len()],
}

const _: () = assert!(size_of::<Line>() == 64);

static LINES: [Line; Distance::ALL.len()] = [const {
    let rows = [const { AtomicU64::new(Row::LIBC.0) }; Alignment::ALL.len()];
    Line { enter: AtomicPtr::new(memcpy as *mut ()), libc: memcpy, rows }
}; Distance::ALL.len()];

/// The distances' own: by [`Distance`].
const BY_TABLE: [Long; Distance::ALL.len()] = [
    by_table::<{ Distance::Near as usize }>,
    by_table::<{ Distance::Peer as usize }>,
    by_table::<{ Distance::Away as usize }>,
];

/// The process has chosen before, and otherwise.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AlreadyInstalled;

impl std::fmt::Display for AlreadyInstalled {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("this process copies by another table already, and has one for all of its endpoints")
    }
}

impl std::error::Error for AlreadyInstalled {}

/// Chooses what this process copies by, once.
///
/// # Errors
/// [`AlreadyInstalled`] if it has chosen otherwise before; that stays.
pub fn install(copier: Copier) -> Result<(), AlreadyInstalled> {
    let chosen = CHOSEN.get_or_init(|| copier.clone());
    for ((distance, line), by_table) in Distance::ALL.into_iter().zip(&LINES).zip(BY_TABLE) {
        let is_plain =
            Alignment::ALL.into_iter().all(|alignment| chosen.row(distance, alignment) == Row::LIBC);
        for alignment in Alignment::ALL {
            // Relaxed, like the next: whatever a copy sees of the rows, each of
            // its routines is available and copies the same bytes; and all that
            // install here store the same.
            line.rows[alignment as usize].store(chosen.row(distance, alignment).0, Ordering::Relaxed);
        }
        if !is_plain {
            line.enter.store(by_table as *mut (), Ordering::Relaxed);
        }
    }
    if *chosen == copier { Ok(()) } else { Err(AlreadyInstalled) }
}

/// What this process has chosen, if it has.
pub fn installed() -> Option<&'static Copier> {
    CHOSEN.get()
}

/// Copies `bytes` bytes that this core reads next, or of which nothing is known:
/// [`copy_toward`] with [`Distance::Near`].
///
/// # Safety
/// As for [`copy_toward`].
#[inline]
pub unsafe fn copy_nonoverlapping(target: *mut u8, source: *const u8, bytes: usize) {
    // SAFETY: the caller's promise is the same.
    unsafe { copy_toward(target, source, bytes, Distance::Near) }
}

/// Copies `bytes` bytes. When it returns, they are where they were to go for
/// this thread and for whoever sees a later Release of it, whatever the routine.
///
/// # Safety
/// `source` must be valid for reads and `target` for writes of `bytes` bytes,
/// and the two must not overlap. Where other processes may write either of them
/// meanwhile, any values of the bytes must do.
#[inline]
pub unsafe fn copy_toward(target: *mut u8, source: *const u8, bytes: usize, distance: Distance) {
    const FIRST: usize = SHORT_MOST_BYTES + 1;
    // One comparison, for what has the least time for more.
    if bytes.wrapping_sub(FIRST) <= LEAST_TABLE_BYTES - FIRST {
        // SAFETY: the caller's promise. Becomes a call of `memcpy`.
        unsafe { std::ptr::copy_nonoverlapping(source, target, bytes) };
    } else if bytes <= SHORT_MOST_BYTES {
        out_of_line();
        // SAFETY: the caller's promise, and short.
        unsafe { short::copy(target, source, bytes) };
    } else {
        // Relaxed: see `install`.
        let enter = LINES[distance as usize].enter.load(Ordering::Relaxed);
        // SAFETY: only functions of this type are ever stored there.
        let enter = unsafe { std::mem::transmute::<*mut (), Long>(enter) };
        // SAFETY: the caller's promise.
        unsafe { enter(target.cast(), source.cast(), bytes) };
    }
}

/// Has the compiler lay out the branch that calls it behind the others: a short
/// copy gains more than a jump from what it leaves out, and what calls the C
/// library's has no time to lose.
#[cold]
#[inline(always)]
const fn out_of_line() {}

/// Copies more than [`LEAST_TABLE_BYTES`] by the rows of one distance.
///
/// # Safety
/// As for [`copy_toward`].
unsafe extern "C" fn by_table<const DISTANCE: usize>(
    target: *mut c_void,
    source: *const c_void,
    bytes: usize,
) -> *mut c_void {
    let line = &LINES[DISTANCE];
    let alignment = Alignment::of(target.addr(), source.addr());
    // Relaxed: see `install`.
    let row = Row(line.rows[alignment as usize].load(Ordering::Relaxed));
    match row.routine(class_of(bytes)) {
        // SAFETY: the caller's promise.
        Routine::Libc => unsafe { (line.libc)(target, source, bytes) },
        // SAFETY: the caller's promise; rows have only routines that are
        // available.
        routine => unsafe { by_routine(target, source, bytes, routine) },
    }
}

/// On its own, so that the way to the C library's needs no stack.
///
/// # Safety
/// As for [`copy_toward`]; `bytes` is above [`LEAST_TABLE_BYTES`], and the routine
/// available.
#[inline(never)]
unsafe fn by_routine(
    target: *mut c_void,
    source: *const c_void,
    bytes: usize,
    routine: Routine,
) -> *mut c_void {
    // SAFETY: the caller's promise; so many bytes are long enough for each.
    unsafe { routine.run_long(target.cast(), source.cast(), bytes) };
    target
}

/// Copies `bytes` bytes between places that may overlap: as
/// [`copy_toward`] where they do not, else by the C library's `memmove`.
///
/// # Safety
/// As for [`copy_toward`], except that the two may overlap.
#[inline]
pub unsafe fn copy_overlapping(target: *mut u8, source: *const u8, bytes: usize, distance: Distance) {
    if target.addr().abs_diff(source.addr()) >= bytes {
        // SAFETY: the caller's promise, and they are apart by `bytes` at least.
        unsafe { copy_toward(target, source, bytes, distance) };
    } else {
        // SAFETY: the caller's promise.
        unsafe { std::ptr::copy(source, target, bytes) };
    }
}

/// Copies as many bytes as both have; returns how many.
#[inline]
pub fn copy_slice(target: &mut [u8], source: &[u8]) -> usize {
    let bytes = target.len().min(source.len());
    // SAFETY: both have `bytes` bytes; a slice that is borrowed exclusively
    // overlaps no other.
    unsafe { copy_nonoverlapping(target.as_mut_ptr(), source.as_ptr(), bytes) };
    bytes
}

#[cfg(test)]
#[path = "copy_tests.rs"]
mod tests;
