use super::super::class::{Class, TEST_KEYS};
use super::*;

/// In every iteration, by plain counting.
#[test]
fn the_keys_of_class_s_have_the_published_ranks() {
    let sizes = Class::S.sizes();
    let mut keys: Vec<u32> = generate(sizes, 0..sizes.keys()).collect();
    for iteration in 1..=ITERATIONS {
        for (index, key) in changed(sizes, iteration) {
            keys[index as usize] = key;
        }
        for test in sizes.tests {
            let key = keys[test.index as usize];
            let less = keys.iter().filter(|&&other| other < key).count();
            assert_eq!(less as i64, test.rank_in(iteration), "{iteration}: {test:?}");
        }
    }
}

#[test]
fn parts_of_the_keys_join() {
    let sizes = Class::S.sizes();
    let all: Vec<u32> = generate(sizes, 0..sizes.keys()).collect();
    for size in [1, 2, 3, 7, 16] {
        let parts = (0..size).flat_map(|rank| generate(sizes, part(sizes.keys(), rank, size)));
        assert!(parts.eq(all.iter().copied()), "{size}");
    }
}

/// The sum of four uniform numbers: half the largest key in the mean.
#[test]
fn keys_are_below_their_bound_and_half_of_it_in_the_mean() {
    for class in [Class::S, Class::W, Class::A, Class::B, Class::C] {
        let sizes = class.sizes();
        let keys: Vec<u32> = generate(sizes, 0..1 << 16).collect();
        assert!(keys.iter().all(|&key| key < sizes.max_key()));
        let mean = keys.iter().map(|&key| f64::from(key)).sum::<f64>() / keys.len() as f64;
        let relative = mean / f64::from(sizes.max_key());
        assert!((relative - 0.5).abs() < 0.005, "{class:?}: {relative}");
        assert!(sizes.tests.iter().all(|test| test.index < sizes.keys() && test.index >= CHANGED_END));
        assert_eq!(sizes.tests.len(), TEST_KEYS);
    }
}

#[test]
fn shares_are_whole_buckets_that_join() {
    let totals = [5, 0, 9, 1, 1, 1, 7, 0, 0, 8, 0];
    for size in 1..=12 {
        let shares = Shares::new(&totals, size);
        let mut next = 0;
        for rank in 0..size {
            let own = shares.of(rank);
            assert_eq!(own.start, next, "{size}");
            next = own.end;
        }
        assert_eq!(next, totals.len());
        assert_eq!(shares.counts(&totals).iter().sum::<u32>(), 32);
    }
    assert_eq!(Shares::new(&totals, 2).counts(&totals), [16, 16]);
    assert_eq!(Shares::new(&[10, 0, 0], 3).counts(&[10, 0, 0]), [10, 0, 0]);
}

#[test]
fn blocks_follow_one_another() {
    let found = blocks(&[2, 0, 3]);
    let wanted = [(0, 8), (8, 0), (8, 12)].map(|(offset, bytes)| Block { offset, bytes });
    assert_eq!(found, wanted);
}
