use super::*;

#[test]
fn each_copies_what_any_copy_does() {
    let source: Vec<u8> = (0..40_000).map(|at| (at % 251) as u8).collect();
    for copy in [copy_string, copy_streaming] {
        for (start, bytes) in [(0, 0), (0, 1), (3, 100), (5, 300), (64, 16_384), (17, 39_000)] {
            let mut target = vec![0xee; bytes + 1];
            // SAFETY: both have so many bytes, and are different vectors.
            unsafe { copy(target.as_mut_ptr(), source[start..].as_ptr(), bytes) };
            assert_eq!(target[..bytes], source[start..start + bytes]);
            assert_eq!(target[bytes], 0xee);
        }
    }
}

#[test]
fn only_places_that_stand_alike_are_fast() {
    let place = std::ptr::without_provenance::<u8>;
    for (target, source) in [(0x1001, 0x1000), (0x1000, 0x5010), (0x1010, 0x5000)] {
        assert!(!is_string_fast(place(target), place(source)));
    }
    assert_eq!(is_string_fast(place(0x1050), place(0x5010)), has_fast_strings());
}
