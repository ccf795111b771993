#![allow(unsafe_code)] // The functions are unsafe.

use super::{copy_by_vectors, copy_taking_over, take_over};
use crate::{InCell, copy_from_peer, empty_cell, fill_cell};

/// # Safety
/// As for [`fill_cell`] and [`empty_cell`].
unsafe fn in_cell<const FILLS: bool, const ALONE: bool>(target: *mut u8, source: *const u8, bytes: usize) {
    let piece = if ALONE { InCell::Alone } else { InCell::Among };
    let copy: unsafe fn(_, _, _, _) = if FILLS { fill_cell } else { empty_cell };
    // SAFETY: the caller's promise.
    unsafe { copy(target, source, bytes, piece) };
}

#[test]
fn every_byte_arrives_and_none_beside_them() {
    let source: Vec<u8> = (0..40_000u32).map(|n| ((n * 31) >> 3) as u8).collect();
    for bytes in (0..200).chain([
        255, 256, 257, 1023, 1025, 4095, 4096, 4097, 5000, 8191, 8192, 8193, 9216, 9217, 20_000, 32_771,
    ]) {
        // Behind the target's first byte: both at the same place of a line, or not.
        for start in [0, 1, 63] {
            let in_cells = [
                in_cell::<true, true>,
                in_cell::<true, false>,
                in_cell::<false, true>,
                in_cell::<false, false>,
            ];
            for copy in [copy_taking_over, copy_by_vectors, copy_from_peer].into_iter().chain(in_cells) {
                let mut target = vec![0xAA; bytes + 2];
                // SAFETY: `start + bytes` are in the source and `bytes + 1` in the
                // target; they are two allocations.
                unsafe { copy(target.as_mut_ptr().wrapping_add(1), source[start..].as_ptr(), bytes) };
                assert_eq!(target[1..=bytes], source[start..start + bytes]);
                assert_eq!((target[0], target[bytes + 1]), (0xAA, 0xAA), "{bytes}");
            }
        }
    }
}

#[test]
fn taking_lines_over_changes_nothing() {
    let bytes: Vec<u8> = (0..=255).collect();
    take_over(bytes.as_ptr(), bytes.len());
    assert!(bytes.iter().enumerate().all(|(i, &byte)| i == usize::from(byte)));
}
