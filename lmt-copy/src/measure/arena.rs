//! The memory that measurements copy within.
#![allow(unsafe_code)] // Copies between its two halves by each routine.

use std::hint::black_box;

use super::{AWAY_ROTATION, Effort};
use crate::copier::Distance;
use crate::routine::Routine;
use crate::short::SHORT_MAX_BYTES;

const PAGE_BYTES: usize = 4096;

/// Two pieces of memory of the same size, both touched.
pub(super) struct Arena {
    source: Vec<u8>,
    target: Vec<u8>,
    bytes: usize,
}

impl Arena {
    /// For copies of up to `bytes` bytes from any place of a page to any other.
    pub(super) fn new(bytes: usize) -> Self {
        let whole = bytes + 2 * PAGE_BYTES;
        Self { source: vec![1; whole], target: vec![2; whole], bytes }
    }

    /// The times of these routines over the C library's ([`super::paired_ratio`])
    /// for copies of `bytes` bytes from and to these places within a page.
    pub(super) fn ratios(
        &mut self,
        effort: Effort,
        routines: &[Routine],
        bytes: usize,
        (from_at, to_at): (usize, usize),
        distance: Distance,
    ) -> Vec<f64> {
        assert!(
            bytes <= self.bytes && from_at < PAGE_BYTES && to_at < PAGE_BYTES,
            "{bytes} bytes do not fit"
        );
        let source = self.source.as_ptr();
        let target = self.target.as_mut_ptr();
        let from_page = source.align_offset(PAGE_BYTES).min(PAGE_BYTES);
        let to_page = target.align_offset(PAGE_BYTES).min(PAGE_BYTES);
        // One place, or several in turn, so that a target was not just written.
        let places =
            if distance == Distance::Away { (self.bytes / bytes).clamp(1, AWAY_ROTATION) } else { 1 };
        let step = (self.bytes - bytes) / places.max(2).saturating_sub(1) / PAGE_BYTES * PAGE_BYTES;
        assert!(bytes > SHORT_MAX_BYTES && routines.iter().all(|routine| routine.is_available()));
        let (from, to) = (source.wrapping_add(from_page + from_at), target.wrapping_add(to_page + to_at));
        let copies = |routine: Routine| {
            let mut place = 0;
            move || {
                place = if place + 1 < places { place + 1 } else { 0 };
                let (to, from) = (to.wrapping_add(place * step), from.wrapping_add(place * step));
                // SAFETY: each of the two has two pages more than `self.bytes`;
                // the places before the copy take less than two pages, and
                // `place * step` at most `self.bytes - bytes`. They are two
                // vectors, the target's borrowed exclusively by `self`. The
                // routine is available and the length not short: see above.
                unsafe { routine.run_long(to, from, black_box(bytes)) };
            }
        };
        let ratio = |routine: &Routine| {
            super::paired_ratio(effort, copies(black_box(*routine)), copies(black_box(Routine::Libc)))
        };
        routines.iter().map(ratio).collect()
    }
}
