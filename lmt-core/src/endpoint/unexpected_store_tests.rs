use super::*;

#[test]
fn every_length_has_a_size_that_is_little_more() {
    let (mut last, mut last_bytes) = (0, MIN_BYTES);
    for bytes in 0..=1 << 20 {
        let (number, size_bytes) = size_of(bytes);
        assert!(size_bytes >= bytes && (bytes <= MIN_BYTES || size_bytes * 4 <= bytes * 5 + 4), "{bytes}");
        assert!(number == last && size_bytes == last_bytes || number == last + 1 || bytes <= 65, "{bytes}");
        assert_eq!(size_of(size_bytes), (number, size_bytes), "memory goes back where it came from");
        (last, last_bytes) = (number, size_bytes);
    }
    assert_eq!(last, SIZES - 1);
}

#[test]
fn what_is_given_back_is_taken_again() {
    let mut store = UnexpectedPool::new(1 << 20);
    let mut kept = store.take(5000);
    kept.fill(7);
    assert_eq!(kept.len(), 5000);
    let address = kept.as_ptr();
    store.give_back(kept);
    let again = store.take(4900);
    assert_eq!((again.as_ptr(), again.len()), (address, 4900), "of the same size");
    assert_eq!(store.spare_bytes, 0);
    assert!(store.take(0).is_empty());
}

#[test]
fn what_is_free_is_bounded_and_old_sizes_make_room() {
    let mut store = UnexpectedPool::new(64 << 10);
    for bytes in [100, 4096, 30_000, 65_536] {
        let all: Vec<PooledBytes> = (0..1000).map(|_| store.take(bytes)).collect();
        all.into_iter().for_each(|kept| store.give_back(kept));
        assert!(store.spare_bytes <= 64 << 10, "{}", store.spare_bytes);
        let (number, _) = size_of(bytes);
        assert!(!store.spare[number].is_empty(), "{bytes}");
    }
    let listed: usize = store.spare.iter().flatten().map(|memory| memory.len()).sum();
    assert_eq!(listed as u64, store.spare_bytes);
    store.give_back(store.spare_of_its_own(1 << 20));
    assert!(store.spare_bytes <= 64 << 10);
}

impl UnexpectedPool {
    fn spare_of_its_own(&self, bytes: usize) -> PooledBytes {
        PooledBytes { memory: vec![0; bytes].into_boxed_slice(), bytes }
    }
}
