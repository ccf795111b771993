use std::collections::BTreeSet;

use super::*;

const LARGEST: Layout = Layout { cells: MAX_CELLS as u32, rings: MAX_RINGS as u32 };
const SMALLEST: Layout = Layout { cells: MIN_CELLS as u32, rings: 1 };

#[test]
fn only_what_can_be_laid_out_is_accepted() {
    for (layout, is_right) in [
        (SMALLEST, true),
        (Layout { cells: 7, ..SMALLEST }, false),
        (LARGEST, true),
        (Layout { cells: 256, ..SMALLEST }, false),
        (Layout { rings: 0, ..SMALLEST }, false),
        (Layout { rings: 4097, ..SMALLEST }, false),
        (Layout { cells: u32::MAX, rings: u32::MAX }, false),
    ] {
        assert_eq!(layout.checked().is_some(), is_right, "{layout:?}");
    }
}

#[test]
fn nothing_in_a_pool_overlaps() {
    for layout in [Layout { rings: 3, ..SMALLEST }, LARGEST] {
        let mut end = 0;
        for ring in BTreeSet::from([0, 1 % layout.rings, layout.rings - 1]) {
            let (slots, slots_bytes) = layout.slots(ring);
            assert!(slots >= end && slots % 4096 == 0);
            end = slots;
            for (way, slot) in
                [Way::FromOwner, Way::ToOwner].into_iter().flat_map(|w| (0..SLOTS).map(move |s| (w, s)))
            {
                let at = layout.slot_offset(ring, way, slot);
                assert!(at >= end && at % align_of::<Slot>() as u64 == 0, "slot {slot} {way:?}");
                end = at + SLOT_BYTES;
            }
            assert!(end <= slots + slots_bytes);
            for cell in 0..layout.cells {
                let at = layout.cell_offset(ring, cell as u8);
                assert!(at >= end && at >= slots + slots_bytes && at % LINE_BYTES == 0, "cell {cell}");
                end = at + CELL_BYTES + LINE_BYTES - 1;
            }
        }
        assert!(end <= layout.pool_bytes() && layout.pool_bytes() - end < 4096);
    }
}
