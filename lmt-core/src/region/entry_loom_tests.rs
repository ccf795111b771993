//! Models of a region's entry, run by loom:
//! `RUSTFLAGS="--cfg loom" cargo test -p lmt-core --release --lib loom`.

use super::*;
use loom::sync::Arc;
use loom::thread;

/// An entry, and the memory that its region is about.
struct Region {
    words: Words,
    memory: AtomicU64,
}

impl Region {
    fn new() -> Arc<Self> {
        Arc::new(Self { words: Words::new(), memory: AtomicU64::new(0) })
    }
}

/// A description that no two generations share a word of.
fn description(generation: u64, single_use: bool) -> Description {
    let place = Place::List { address: generation as usize * 100, count: generation * 1000 };
    let protection = Protection { read: true, write: false };
    Description { total_bytes: generation * 10, protection, single_use, place }
}

fn is_of(entry: &Entry, generation: u64) -> bool {
    let expected = description(generation, false);
    entry.total_bytes == expected.total_bytes
        && entry.place == expected.place
        && entry.protection == expected.protection
}

fn model(run: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(4);
    builder.max_branches = 20_000;
    builder.check(run);
}

/// Each generation is read as it was written or not at all, while its owner
/// replaces it by the next in the same entry.
#[test]
fn loom_an_entry_is_read_as_one() {
    model(|| {
        let region = Region::new();
        let owner = {
            let region = region.clone();
            thread::spawn(move || {
                region.words.describe(1, &description(1, false));
                region.words.clear();
                region.words.describe(2, &description(2, false));
            })
        };
        for generation in [1, 2] {
            match region.words.read(generation) {
                Ok(entry) => assert!(is_of(&entry, generation), "torn: {entry:?}"),
                Err(error) => assert_eq!(error, RegionError::NotRegistered),
            }
        }
        owner.join().unwrap();
        assert!(is_of(&region.words.read(2).unwrap(), 2));
        assert_eq!(region.words.read(1), Err(RegionError::NotRegistered));
    });
}

/// Who read the region's memory and finds the region still there has not read
/// what its owner put there after its end.
#[test]
fn loom_what_was_read_of_a_region_still_there_is_the_regions() {
    model(|| {
        let region = Region::new();
        region.words.describe(1, &description(1, false));
        let owner = {
            let region = region.clone();
            thread::spawn(move || {
                region.words.clear();
                // Relaxed: the memory of a region is copied without any order.
                region.memory.store(7, Ordering::Relaxed);
                region.words.describe(2, &description(2, false));
            })
        };
        if let Ok(entry) = region.words.read(1) {
            let seen = region.memory.load(Ordering::Relaxed);
            assert!(!region.words.is_still(&entry) || seen == 0, "the owner's later bytes");
        }
        owner.join().unwrap();
    });
}

/// Of two peers one uses the region up, and the other is told so.
#[test]
fn loom_single_use_is_for_one_peer() {
    model(|| {
        let region = Region::new();
        region.words.describe(1, &description(1, true));
        let attempt = |region: &Region| {
            let mut entry = region.words.read(1)?;
            region.words.begin_use(&mut entry)?;
            assert!(is_of(&entry, 1) && region.words.is_still(&entry), "the winner's right stands");
            Ok(())
        };
        let other = {
            let region = region.clone();
            thread::spawn(move || attempt(&region))
        };
        let mine = attempt(&region);
        let theirs: Result<(), RegionError> = other.join().unwrap();
        match (&mine, &theirs) {
            (Ok(()), Err(RegionError::UsedUp)) | (Err(RegionError::UsedUp), Ok(())) => {}
            both => panic!("{both:?}"),
        }
        assert_eq!(region.words.read(1), Err(RegionError::UsedUp));
    });
}

/// A peer that uses a region up just when its owner replaces it takes the old
/// one or nothing; the next one in its place is unused.
#[test]
fn loom_single_use_takes_nothing_of_the_next_region() {
    model(|| {
        let region = Region::new();
        region.words.describe(1, &description(1, true));
        let owner = {
            let region = region.clone();
            thread::spawn(move || {
                region.words.clear();
                region.words.describe(2, &description(2, true));
            })
        };
        let used = region.words.read(1).and_then(|mut entry| {
            region.words.begin_use(&mut entry)?;
            Ok(entry)
        });
        match &used {
            Ok(entry) => assert!(is_of(entry, 1)),
            Err(error) => assert_eq!(*error, RegionError::NotRegistered),
        }
        owner.join().unwrap();
        assert!(!used.is_ok_and(|entry| region.words.is_still(&entry)), "its right ended with the region");
        assert!(is_of(&region.words.read(2).expect("the next one is unused"), 2));
    });
}
