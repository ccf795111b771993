use super::*;

#[test]
fn every_length_is_copied() {
    for bytes in [1, 200, LEAST_BYTES - 1, LEAST_BYTES, 3 * LEAST_BYTES + 7, (1 << 20) + 1] {
        let source: Vec<u8> = (0..bytes).map(|at| (at * 7 % 251) as u8).collect();
        // As often as both ways are tried.
        for _ in 0..3 {
            let mut target = vec![0; bytes];
            // SAFETY: two vectors of so many bytes.
            unsafe { copy_from_peer(target.as_mut_ptr(), source.as_ptr(), bytes) };
            assert!(target == source, "{bytes}");
        }
    }
}
