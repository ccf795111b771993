use super::*;
use proptest::prelude::*;

#[test]
fn chunks_double_from_one_page_to_1024() {
    let sizes: Vec<u64> = Chunks::of(20 << 20).map(|chunk| chunk.bytes() / PAGE_BYTES).collect();
    assert_eq!(sizes, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 1024, 1024, 1024, 1]);
    assert_eq!(Chunks::of(0).next(), None);
}

proptest! {
    #[test]
    fn chunks_cover_the_copy_without_gap_or_overlap(total_bytes in 0u64..(1 << 34)) {
        let mut at = 0;
        for chunk in Chunks::of(total_bytes) {
            prop_assert_eq!(chunk.start, at);
            prop_assert!(chunk.bytes() > 0 && chunk.bytes() <= 1024 * PAGE_BYTES);
            at = chunk.end;
        }
        prop_assert_eq!(at, total_bytes);
    }

    #[test]
    fn chunks_do_not_overflow(total_bytes in (u64::MAX - 9000)..=u64::MAX) {
        let mut chunks = Chunks { at: total_bytes - 5000, ..Chunks::of(total_bytes) };
        prop_assert_eq!(chunks.next().map(Interval::bytes), Some(4096));
        prop_assert_eq!(chunks.next().map(Interval::bytes), Some(904));
        prop_assert_eq!(chunks.next(), None);
    }
}
