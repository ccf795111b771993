use proptest::prelude::*;

use super::*;

#[derive(Debug)]
struct Fake(u64);

impl Length for Fake {
    fn length_bytes(&self) -> u64 {
        self.0
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Name {
    peer: u64,
    arena: u32,
}

const fn name(peer: u64, arena: u32) -> Name {
    Name { peer, arena }
}

const fn bound(bytes: u64, number: u64) -> Bound {
    Bound { bytes, number }
}

#[test]
fn the_least_recently_used_goes_first() {
    let mut cache = MappingCache::default();
    let bound = bound(1000, 3);
    for arena in 0..3 {
        cache.insert(name(0, arena), Arc::new(Fake(1)), bound);
    }
    assert!(cache.find(&name(0, 0)).is_some());
    cache.insert(name(0, 3), Arc::new(Fake(1)), bound);
    assert!(cache.find(&name(0, 1)).is_none());
    for arena in [0, 2, 3] {
        assert!(cache.find(&name(0, arena)).is_some(), "{arena}");
    }
}

#[test]
fn what_is_in_use_stays_and_goes_after() {
    let mut cache = MappingCache::default();
    let nothing = bound(0, 0);
    let used = Arc::new(Fake(9));
    cache.insert(name(0, 0), Arc::clone(&used), nothing);
    assert!(cache.find(&name(0, 0)).is_some());
    assert!(cache.is_beyond(nothing));
    drop(used);
    cache.trim(nothing);
    assert!(cache.find(&name(0, 0)).is_none());
    assert!(!cache.is_beyond(nothing));
}

#[test]
fn what_was_asked_for_is_there_once_even_beyond_the_bound() {
    let (mut cache, nothing) = (MappingCache::default(), bound(0, 0));
    cache.insert(name(0, 0), Arc::new(Fake(9)), nothing);
    assert!(cache.find(&name(0, 0)).is_some());
    cache.insert(name(0, 1), Arc::new(Fake(9)), nothing);
    assert!(cache.find(&name(0, 0)).is_none());
    cache.trim(nothing);
    assert!(cache.find(&name(0, 1)).is_none());
}

#[test]
fn a_peer_that_is_forgotten_leaves_the_others() {
    let mut cache = MappingCache::default();
    for peer in 0..4 {
        for arena in 0..4 {
            cache.insert(name(peer, arena), Arc::new(Fake(1)), bound(99, 99));
        }
    }
    cache.remove_all(|name| name.peer == 2);
    cache.remove(&name(1, 1));
    for peer in 0..4 {
        for arena in 0..4 {
            let gone = peer == 2 || (peer, arena) == (1, 1);
            assert_eq!(cache.find(&name(peer, arena)).is_none(), gone);
        }
    }
    assert_eq!(cache.bytes, 11);
}

proptest! {
    #[test]
    fn the_bound_holds_for_what_is_not_in_use(
        steps in prop::collection::vec((0u64..3, 0u32..6, 1u64..50, any::<bool>()), 1..200),
        bytes in 0u64..200, count in 0u64..10,
    ) {
        let (mut cache, bound) = (MappingCache::default(), bound(bytes, count));
        let mut held: Vec<Arc<Fake>> = Vec::new();
        for (peer, arena, length, hold) in steps {
            let mapping = match cache.find(&name(peer, arena)) {
                Some(mapping) => mapping,
                None => {
                    let mapping = Arc::new(Fake(length));
                    cache.insert(name(peer, arena), Arc::clone(&mapping), bound);
                    mapping
                }
            };
            match hold {
                true => held.push(mapping),
                false => held.clear(),
            }
            cache.trim(bound);
            prop_assert_eq!(cache.bytes, cache.kept.iter().map(|(_, m)| m.0).sum::<u64>());
            let idle = cache.kept.iter().any(|(_, m)| Arc::strong_count(m) == 1);
            prop_assert!(!idle || !cache.is_beyond(bound));
        }
    }
}
