use lmt_core::buffer::Access;
use proptest::prelude::*;

use super::super::regions::shape_of;
use super::super::test_double::lend_pieces;
use super::*;

/// A side's cuts, each counted from the copy's beginning: what the driver does
/// page by page and segment by segment, byte for byte.
fn cuts(buffer: &Buffer, offset: u64, bytes: u64) -> Vec<u64> {
    let mut cuts = vec![0];
    let mut at = 0;
    for piece in buffer.pieces(offset..offset + bytes) {
        cuts.push(at);
        for byte in 0..piece.bytes as u64 {
            if (piece.address as u64 + byte).is_multiple_of(PAGE_BYTES) {
                cuts.push(at + byte);
            }
        }
        at += piece.bytes as u64;
    }
    cuts
}

/// The bytes of the last piece of a copy of `bytes` bytes.
fn last_piece(bytes: u64, cuts: &[u64]) -> u64 {
    bytes - cuts.iter().filter(|cut| **cut < bytes).max().copied().unwrap_or(0)
}

/// Where pieces of up to the default are small.
fn safe(bytes: u64, sides: [Side<'_>; 2]) -> u64 {
    safe_prefix(bytes, sides, 1024)
}

#[test]
fn a_large_last_piece_is_left_whole_and_a_small_one_is_cut_off() {
    let page = |offset_in_page, total: u64| {
        let shape = Shape { contiguous: true, offset_in_page, last_piece_bytes: 0 };
        Side::Region(shape, total, 0)
    };
    for (first, bytes, prefix) in [
        (0, 4096, 4096),
        (0, 4096 + 1025, 4096 + 1025),
        (0, 4096 + 1024, 4096),
        (0, 1024, 0),
        (0, 1025, 1025),
        (4000, 96 + 4096 + 1, 96 + 4096),
        (4000, 96 + 1000, 0),
        (4000, 96, 0),
        (0, 0, 0),
    ] {
        assert_eq!(safe(bytes, [page(first, bytes), page(0, bytes)]).min(bytes), {
            // The second side is cut at whole pages too.
            let other = safe(bytes, [page(0, bytes), page(first, bytes)]);
            assert!(other <= prefix, "{first} {bytes}");
            other
        });
        assert_eq!(safe(bytes, [page(first, bytes), page(first, bytes)]), prefix, "{first} {bytes}");
    }
    // Of a region in pieces, the last is known.
    let scattered = Shape { contiguous: false, offset_in_page: 0, last_piece_bytes: 100 };
    let side = Side::Region(scattered, 10_000, 0);
    // What comes before that may end in a small one.
    assert_eq!(safe(10_000, [side, side]), 0);
    assert_eq!(safe(9000, [side, side]), 0);
    assert_eq!(safe(9950, [page(0, 10_000), side]), 0);
    let large = Shape { last_piece_bytes: 2000, ..scattered };
    for (bytes, prefix) in [(10_000, 10_000), (9025, 9025), (9024, 0), (8000, 0), (500, 0)] {
        assert_eq!(safe(bytes, [Side::Region(large, 10_000, 0); 2]), prefix, "{bytes}");
    }
    // A copy that begins within the last piece.
    assert_eq!(safe(1500, [Side::Region(large, 10_000, 8500); 2]), 1500);
    assert_eq!(safe(1000, [Side::Region(large, 10_000, 8500); 2]), 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// What the engine gets never ends in a small piece, whatever the segments
    /// here and the offset in the region; and what is cut off is small pieces.
    #[test]
    fn the_engine_never_gets_a_small_last_piece(
        pieces in prop::collection::vec(0..6000_usize, 1..5),
        start in 0..4096_usize,
        there in 0..4096_usize,
        (from, upto) in (0..100_u64, 0..100_u64),
        small_bytes in prop::sample::select(vec![1024_u64, 2000, 4095, 4096, 5000]),
    ) {
        let mut memory = vec![0; 40_000];
        let mut at = start;
        let list: Vec<(usize, usize)> = pieces.iter().map(|bytes| {
            let piece = (at, *bytes);
            at += bytes + 77;
            piece
        }).collect();
        let local = lend_pieces(&mut memory, &list);
        let mut source = vec![0; 40_000];
        let region = lend_pieces(&mut source, &[(there, 30_000)]);
        let total = local.total_bytes();
        let offset = total * from / 200;
        let bytes = (total - offset) * (upto + 1) / 100;
        prop_assert!(region.access() == Access::Write);
        let sides = [Side::Local(&local, offset), Side::Region(shape_of(&region), 30_000, 3)];
        let prefix = safe_prefix(bytes, sides, small_bytes);
        prop_assert!(prefix <= bytes);
        let mut all = cuts(&local, offset, bytes);
        all.extend(cuts(&region, 3, bytes));
        if prefix > 0 {
            prop_assert!(last_piece(prefix, &all) > small_bytes);
        }
        if prefix < bytes {
            prop_assert!(last_piece(bytes, &all) <= small_bytes);
        }
    }
}
