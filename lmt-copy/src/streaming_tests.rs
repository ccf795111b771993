#![allow(unsafe_code)] // The function is unsafe.

use super::*;

#[test]
fn what_goes_past_the_caches_arrives() {
    let source: Vec<u8> = (0..40_000).map(|at| (at % 251) as u8).collect();
    for (start, bytes) in [(0, 0), (0, 1), (3, 100), (5, 300), (64, 16_384), (17, 39_000)] {
        let mut target = vec![0xee; bytes + 1];
        // SAFETY: both have so many bytes, and are different vectors.
        unsafe { copy_streaming(target.as_mut_ptr(), source[start..].as_ptr(), bytes) };
        assert_eq!(target[..bytes], source[start..start + bytes]);
        assert_eq!(target[bytes], 0xee);
    }
}
