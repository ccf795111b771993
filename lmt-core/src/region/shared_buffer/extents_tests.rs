use super::*;
use proptest::prelude::*;

#[test]
fn neighbours_are_joined_whatever_the_order() {
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let mut extents = Extents::new(64, 64 + 300);
        let parts = [(); 3].map(|()| extents.take(100, 1).unwrap());
        assert_eq!(parts, [64, 164, 264]);
        assert_eq!(extents.take(1, 1), None);
        order.iter().for_each(|part| extents.give_back(parts[*part], 100));
        assert_eq!(extents.take(300, 64), Some(64), "{order:?}");
    }
}

#[test]
fn impossible_sizes_have_no_place() {
    let mut extents = Extents::new(0, 4096);
    assert_eq!(extents.take(4097, 1), None);
    assert_eq!(extents.take(usize::MAX, 4096), None);
    assert_eq!(Extents::new(9, 9).take(1, 1), None);
}

proptest! {
    /// Against a model that knows of each byte whose it is.
    #[test]
    fn parts_never_overlap_and_all_comes_back(
        steps in prop::collection::vec((1usize..400, 0u32..8, any::<prop::sample::Index>(), any::<bool>()), 1..200),
    ) {
        const END: usize = 4096;
        let mut extents = Extents::new(0, END);
        let mut owner = [0u32; END];
        let mut taken: Vec<(usize, usize, u32)> = Vec::new();
        for (number, (bytes, shift, which, gives)) in (1..).zip(steps) {
            if gives && !taken.is_empty() {
                let (at, bytes, name) = taken.swap_remove(which.index(taken.len()));
                prop_assert!(owner[at..at + bytes].iter().all(|o| *o == name));
                owner[at..at + bytes].fill(0);
                extents.give_back(at, bytes);
                continue;
            }
            let align = 1 << shift;
            let model = (0..=END - bytes).step_by(align).find(|at| owner[*at..at + bytes].iter().all(|o| *o == 0));
            let found = extents.take(bytes, align);
            prop_assert_eq!(found, model);
            if let Some(at) = found {
                owner[at..at + bytes].fill(number);
                taken.push((at, bytes, number));
            }
        }
        for (at, bytes, _) in taken {
            extents.give_back(at, bytes);
        }
        prop_assert_eq!(extents.take(END, 1), Some(0));
    }
}
