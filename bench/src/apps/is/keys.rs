//! The keys, and how they are shared out among the ranks.

use std::ops::Range;

use lmt_collectives::Block;

use super::class::{ITERATIONS, Sizes};
use crate::apps::random::{MODULUS_LOG2, Randoms};

/// Random numbers that make a key.
const DRAWS: u64 = 4;

/// The keys with these numbers: a quarter of the largest key times the sum of four
/// random numbers between 0 and 1, without its fraction.
pub fn generate(sizes: &Sizes, wanted: Range<u64>) -> impl Iterator<Item = u32> + use<> {
    let mut randoms = Randoms::behind(DRAWS * wanted.start);
    let quarter_log2 = sizes.max_key_log2 - 2;
    wanted.map(move |_| {
        let sum: u64 = (0..DRAWS).map(|_| randoms.draw()).sum();
        // Below the largest key, which has 23 bits at most.
        (sum >> (MODULUS_LOG2 - quarter_log2)) as u32
    })
}

/// The keys that an iteration changes: their numbers, and what they become.
pub fn changed(sizes: &Sizes, iteration: u32) -> [(u64, u32); 2] {
    [(iteration.into(), iteration), ((iteration + ITERATIONS).into(), sizes.max_key() - iteration)]
}

/// The keys that iterations change are before this one.
pub const CHANGED_END: u64 = 2 * ITERATIONS as u64 + 1;

/// A rank's part of so many, all parts as equal as can be.
pub fn part(all: u64, rank: u32, size: u32) -> Range<u64> {
    let before = |rank: u64| all * rank / u64::from(size);
    before(rank.into())..before(u64::from(rank) + 1)
}

/// Which rank gets which buckets: each as many keys as the others, as far as whole
/// buckets allow.
#[derive(Debug, PartialEq, Eq)]
pub struct Shares {
    /// Behind which bucket each rank's end.
    ends: Vec<usize>,
}

impl Shares {
    /// By the number of keys in each bucket.
    pub fn new(totals: &[u32], size: u32) -> Self {
        let all: u64 = totals.iter().map(|&total| u64::from(total)).sum();
        let (mut taken, mut bucket) = (0, 0);
        let mut ends: Vec<usize> = Vec::with_capacity(size as usize);
        for rank in 0..size {
            let wanted = part(all, rank, size).end;
            while bucket < totals.len() && taken < wanted {
                taken += u64::from(totals[bucket]);
                bucket += 1;
            }
            ends.push(bucket);
        }
        if let Some(last) = ends.last_mut() {
            // Empty ones at the end are nobody's else.
            *last = totals.len();
        }
        Self { ends }
    }

    /// The buckets of a rank.
    pub fn of(&self, rank: u32) -> Range<usize> {
        let rank = rank as usize;
        let start = if rank == 0 { 0 } else { self.ends[rank - 1] };
        start..self.ends[rank]
    }

    /// How many keys go to each rank, by how many there are in each bucket.
    pub fn counts(&self, in_buckets: &[u32]) -> Vec<u32> {
        let ranks = 0..self.ends.len() as u32;
        ranks.map(|rank| in_buckets[self.of(rank)].iter().sum()).collect()
    }
}

/// One block after the other, of so many keys each.
pub fn blocks(counts: &[u32]) -> Vec<Block> {
    let mut offset = 0;
    let block = |&count: &u32| {
        let block = Block { offset, bytes: u64::from(count) * 4 };
        offset += block.bytes;
        block
    };
    counts.iter().map(block).collect()
}

#[cfg(test)]
#[path = "keys_tests.rs"]
mod tests;
