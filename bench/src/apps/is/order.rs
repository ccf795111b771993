//! Whether keys are sorted, and are the same as before.

use crate::apps::words::Word;

/// The keys in the order of their ranks. `counts[i]` says how many are at most
/// `least + i`.
pub fn by_ranks(keys: &[Word], counts: &[u32], least: u32) -> Vec<u32> {
    let mut ends = counts.to_vec();
    // No key has this value.
    let mut sorted = vec![u32::MAX; keys.len()];
    for key in keys {
        let key = u32::from_ne_bytes(*key);
        // A key that was not counted takes nobody's place.
        let Some(end) = key.checked_sub(least).and_then(|value| ends.get_mut(value as usize)) else {
            continue;
        };
        let place = end.checked_sub(1).and_then(|place| sorted.get_mut(place as usize));
        if let Some(place) = place {
            *place = key;
            *end -= 1;
        }
    }
    sorted
}

/// The first key that is less than the one before it, or is none, in a sentence.
pub fn fault_of(sorted: &[u32]) -> Option<String> {
    if let Some(at) = sorted.iter().position(|&key| key == u32::MAX) {
        return Some(format!("place {at} of {} sorted keys is empty", sorted.len()));
    }
    let at = sorted.windows(2).position(|pair| pair[0] > pair[1])?;
    Some(format!("key {} of {} is {}, behind {}", at + 1, sorted.len(), sorted[at + 1], sorted[at]))
}

/// What every order of the same keys has in common, with high probability: the sum of
/// their hashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digest(pub u64);

impl Digest {
    /// Of these keys.
    pub fn of(keys: impl Iterator<Item = u32>) -> Self {
        Self(keys.fold(0, |sum, key| sum.wrapping_add(hash(key))))
    }
}

/// A number whose bits all depend on all of the key's.
fn hash(key: u32) -> u64 {
    let mut mixed = (u64::from(key) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ mixed >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
    mixed ^ mixed >> 32
}

/// What is wrong with all ranks' keys together, if each has them sorted. Of each:
/// digests before and after, the first and the last key (the largest number if there
/// is none), how many there are, and how many lower ranks have.
pub fn fault_between(ranks: &[[u64; 6]], keys: u64) -> Option<String> {
    let sum = |at: usize| ranks.iter().fold(0u64, |sum, rank| sum.wrapping_add(rank[at]));
    if sum(4) != keys {
        return Some(format!("{} keys have become {}", keys, sum(4)));
    }
    if sum(0) != sum(1) {
        return Some("the sorted keys are not those that there were".to_owned());
    }
    let mut before = 0;
    let mut last = None;
    for (rank, &[_, _, first, end, count, less]) in ranks.iter().enumerate() {
        if less != before {
            return Some(format!("rank {rank} takes {less} keys to be on lower ranks, where {before} are"));
        }
        before += count;
        if count == 0 {
            continue;
        }
        if last.is_some_and(|last| last > first) {
            return Some(format!("the first key of rank {rank} is less than one of a lower rank"));
        }
        last = Some(end);
    }
    None
}

/// Makes a mistake, for tests of the verification: one key becomes another.
pub fn spoil(keys: &mut [Word]) {
    if let [first, .., last] = keys
        && let Some(other) = if first == last { None } else { Some(*last) }
    {
        *first = other;
    }
}

#[cfg(test)]
#[path = "order_tests.rs"]
mod tests;
