use super::*;
use crate::apps::words::to_words;

/// How many keys are at most each value from `least` to before `end`.
fn counted(keys: &[u32], least: u32, end: u32) -> Vec<u32> {
    (least..end).map(|value| keys.iter().filter(|&&key| key <= value).count() as u32).collect()
}

#[test]
fn keys_come_into_order() {
    let keys = [7, 5, 9, 5, 6, 9, 8];
    let sorted = by_ranks(&to_words(&keys), &counted(&keys, 5, 10), 5);
    assert_eq!(sorted, [5, 5, 6, 7, 8, 9, 9]);
    assert_eq!(fault_of(&sorted), None);
    assert_eq!(Digest::of(keys.into_iter()), Digest::of(sorted.into_iter()));
    assert!(by_ranks(&[], &[0; 5], 5).is_empty());
}

#[test]
fn a_key_that_changed_is_found() {
    let keys = [7, 5, 9, 5, 6, 9, 8];
    let counts = counted(&keys, 5, 10);
    for at in 0..keys.len() {
        for other in (4..12).filter(|&other| other != keys[at]) {
            let mut spoilt = keys;
            spoilt[at] = other;
            let sorted = by_ranks(&to_words(&spoilt), &counts, 5);
            let is_digest_wrong = Digest::of(sorted.iter().copied()) != Digest::of(keys.into_iter());
            assert!(fault_of(&sorted).is_some() || is_digest_wrong, "{at} {other}");
        }
    }
}

#[test]
fn wrong_orders_are_named() {
    assert!(fault_of(&[1, 2, 2, 1]).unwrap().contains("key 3 of 4 is 1, behind 2"));
    assert!(fault_of(&[1, u32::MAX]).unwrap().contains("place 1 of 2"));
    assert_eq!(fault_of(&[]), None);
}

#[test]
fn wrongs_between_ranks_are_named() {
    const NONE: u64 = u64::MAX;
    // Digest before, digest after, first, last, count, less.
    let right = [[3, 5, 1, 4, 10, 0], [1, 0, NONE, NONE, 0, 10], [4, 3, 4, 9, 6, 10]];
    assert_eq!(fault_between(&right, 16), None);
    let wrong = |rank: usize, at: usize, value: u64| {
        let mut ranks = right;
        ranks[rank][at] = value;
        fault_between(&ranks, 16).unwrap()
    };
    assert!(wrong(0, 4, 9).contains("16 keys have become 15"));
    assert!(wrong(2, 1, 4).contains("not those that there were"));
    assert!(wrong(2, 5, 9).contains("rank 2 takes 9 keys"));
    assert!(wrong(2, 2, 3).contains("first key of rank 2"));
}

#[test]
fn spoiling_changes_a_key() {
    let mut keys = to_words(&[1, 2, 3]);
    spoil(&mut keys);
    assert_eq!(keys, to_words(&[3, 2, 3]));
}
