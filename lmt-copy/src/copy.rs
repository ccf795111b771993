//! Copying, by the copier that the process has chosen.
#![allow(unsafe_code)] // Follows the addresses that its callers vouch for.

use std::ffi::c_void;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::copier::{Alignment, Copier, Distance, Row, class_of};
use crate::short::{self, SHORT_MAX_BYTES};

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
/// the cache has no line to spare: so the C library's address, which a call of it
/// would read elsewhere, is here as well.
#[repr(C, align(64))]
struct Line {
    /// The C library's.
    libc: Long,
    /// The lengths that `rows` has something for: so many bytes, from `above`
    /// on. None until something is chosen. Stored by [`install`] alone, like
    /// the other two.
    span: AtomicUsize,
    /// The first of these lengths.
    from: AtomicUsize,
    /// For each alignment a [`Row`] of routines that are available.
    rows: [AtomicU64; Alignment::ALL.len()],
}

const _: () = assert!(size_of::<Line>() == 64);

static LINES: [Line; Distance::ALL.len()] = [const {
    let rows = [const { AtomicU64::new(Row::LIBC.0) }; Alignment::ALL.len()];
    Line { libc: memcpy, span: AtomicUsize::new(0), from: AtomicUsize::new(0), rows }
}; Distance::ALL.len()];

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
    for (distance, line) in Distance::ALL.into_iter().zip(&LINES) {
        // Relaxed, like the others: whatever a copy sees of a line, each routine
        // of its rows is available and copies the same bytes, and the lengths are
        // above the least; and all that install here store the same.
        for alignment in Alignment::ALL {
            line.rows[alignment as usize].store(chosen.row(distance, alignment).0, Ordering::Relaxed);
        }
        if let Some((above, up_to)) = chosen.hull(distance) {
            line.from.store(above + 1, Ordering::Relaxed);
            line.span.store(up_to - above, Ordering::Relaxed);
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
    if bytes <= SHORT_MAX_BYTES {
        // SAFETY: the caller's promise, and short.
        unsafe { short::copy(target, source, bytes) };
        return;
    }
    let line = &LINES[distance as usize];
    // Relaxed: see `install`.
    let (from, span) = (line.from.load(Ordering::Relaxed), line.span.load(Ordering::Relaxed));
    if bytes.wrapping_sub(from) < span {
        let alignment = Alignment::of(target.addr(), source.addr());
        // Relaxed: see `install`.
        let row = Row(line.rows[alignment as usize].load(Ordering::Relaxed));
        if row != Row::LIBC {
            // SAFETY: the caller's promise; the row is a line's, and `bytes` more
            // than short.
            unsafe { by_row(target, source, bytes, row) };
            return;
        }
    }
    // SAFETY: the caller's promise.
    unsafe { (line.libc)(target.cast(), source.cast(), bytes) };
}

/// Copies by one of [`LINES`]' rows.
///
/// # Safety
/// As for [`copy_toward`]; the row's routines are available, and `bytes` is above
/// [`SHORT_MAX_BYTES`].
#[inline(never)]
unsafe fn by_row(target: *mut u8, source: *const u8, bytes: usize, row: Row) {
    let routine = row.routine(class_of(bytes));
    // SAFETY: the caller's promise.
    unsafe { routine.run_long(target, source, bytes) };
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
