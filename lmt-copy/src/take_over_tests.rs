#![allow(unsafe_code)] // The functions are unsafe.

use super::{copy_by_vectors, copy_taking_over};
use crate::{copy_from_peer, empty_cell, fill_cell};

#[test]
fn every_byte_arrives_and_none_beside_them() {
    let source: Vec<u8> = (0..40_000u32).map(|n| ((n * 31) >> 3) as u8).collect();
    for bytes in (0..200).chain([
        255, 256, 257, 1023, 1025, 4095, 4096, 4097, 5000, 8191, 8192, 8193, 9216, 9217, 20_000, 32_771,
    ]) {
        for start in [0, 1, 63] {
            for copy in [copy_taking_over, copy_by_vectors, fill_cell, empty_cell, copy_from_peer] {
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
