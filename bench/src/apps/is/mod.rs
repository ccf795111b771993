//! The integer sort of the NAS Parallel Benchmarks (Bailey and others, NAS technical
//! report RNR-94-007, section 2.3.5; parallel form: NAS-95-020): keys that are spread
//! over the ranks are ranked, ten times, and at last sorted. In each iteration the
//! ranks agree on which of them gets which keys, and each sends every other its.

pub mod class;
pub mod keys;
mod order;

use std::ops::Range;
use std::time::Instant;

use lmt_collectives::{Algorithm, Block, GroupError, Operation};

pub use class::{Class, ITERATIONS};

use super::application::{AppError, Application, Finding, Round, Watch};
use super::comm::Comm;
use super::words::{Word, from_words, to_words, words, words_mut};
use crate::error::BenchError;
use crate::memory::{Held, Memory};
use class::{Sizes, TEST_KEYS};
use keys::{CHANGED_END, Shares, blocks, changed, generate, part};
use order::Digest;

/// One rank's keys and the memory that it works in.
pub struct Sort {
    sizes: &'static Sizes,
    memory: Memory,
    /// Which of all keys it has.
    own: Range<u64>,
    keys: Vec<u32>,
    /// The keys by buckets, as they are sent.
    bucketed: Held,
    /// The keys of this rank's buckets; longer than they are.
    received: Held,
    /// How many keys there are of each value, from the first of its buckets on.
    counts: Vec<u32>,
    /// Spoils a key before it is verified.
    fault: bool,
}

/// What an iteration leaves for the verification.
struct Ranked {
    /// Published ranks that were right.
    right: u32,
    /// Keys on lower ranks.
    less: u64,
    /// Keys on this one.
    received: usize,
    /// The values that they may have.
    values: Range<u32>,
}

impl Sort {
    /// Makes a rank's keys; `fault` has them verified with a mistake.
    ///
    /// # Errors
    /// There is no memory for them.
    pub fn new(class: Class, rank: u32, ranks: u32, memory: Memory, fault: bool) -> Result<Self, BenchError> {
        let sizes = class.sizes();
        let own = part(sizes.keys(), rank, ranks);
        let keys: Vec<u32> = generate(sizes, own.clone()).collect();
        let bucketed = memory.filled(keys.len() * size_of::<Word>(), 0)?;
        let received = memory.filled(0, 0)?;
        Ok(Self { sizes, memory, own, keys, bucketed, received, counts: Vec::new(), fault })
    }

    /// Bytes that all ranks need together, about.
    pub const fn bytes(class: Class) -> u64 {
        let sizes = class.sizes();
        // The keys, the same by buckets, those received and those sorted; how many there
        // are of each value.
        4 * (4 * sizes.keys() + sizes.max_key() as u64)
    }

    /// Makes the changed keys what they were.
    fn restore(&mut self) {
        let changed = self.own.start..self.own.end.min(CHANGED_END);
        for (place, key) in generate(self.sizes, changed).enumerate() {
            self.keys[place] = key;
        }
    }

    /// Where a key of all is on this rank, if it is.
    fn place(&self, index: u64) -> Option<usize> {
        self.own.contains(&index).then(|| (index - self.own.start) as usize)
    }

    /// One iteration: who has how many keys less than each.
    fn rank(&mut self, iteration: u32, comm: &Comm<'_>) -> Result<Ranked, AppError> {
        for (index, key) in changed(self.sizes, iteration) {
            if let Some(place) = self.place(index) {
                self.keys[place] = key;
            }
        }
        let local = self.count_buckets();
        self.fill_buckets(&local);
        let (totals, tests) = self.agree(&local, comm)?;
        let shares = Shares::new(&totals, comm.size());
        let received = self.exchange(&local, &totals, &shares, comm)?;
        let own = shares.of(comm.rank());
        let less = totals[..own.start].iter().map(|&total| u64::from(total)).sum();
        let shift = self.sizes.bucket_shift();
        // Buckets times their length are the keys' bound.
        let values = (own.start as u32) << shift..(own.end as u32) << shift;
        self.count_keys(received, &values);
        let right = self.right_tests(iteration, &tests, less, &values);
        Ok(Ranked { right, less, received, values })
    }

    fn count_buckets(&self) -> Vec<u32> {
        let shift = self.sizes.bucket_shift();
        let mut counts = vec![0; self.sizes.buckets()];
        for key in &self.keys {
            counts[(key >> shift) as usize] += 1;
        }
        counts
    }

    /// Puts the keys into the buffer that is sent, bucket by bucket.
    fn fill_buckets(&mut self, counts: &[u32]) {
        let shift = self.sizes.bucket_shift();
        let mut places: Vec<u32> = Vec::with_capacity(counts.len());
        let mut next = 0;
        for count in counts {
            places.push(next);
            next += count;
        }
        let bucketed = words_mut(&mut self.bucketed);
        for key in &self.keys {
            let place = &mut places[(key >> shift) as usize];
            bucketed[*place as usize] = key.to_ne_bytes();
            *place += 1;
        }
    }

    /// The keys of all ranks in each bucket, and the test keys, which one rank has
    /// and the others add nothing to.
    fn agree(&self, local: &[u32], comm: &Comm<'_>) -> Result<(Vec<u32>, Vec<u32>), GroupError> {
        let mut numbers = to_words(local);
        let tests = self.sizes.tests.iter();
        numbers.extend(
            tests.map(|test| self.place(test.index).map_or(0, |place| self.keys[place]).to_ne_bytes()),
        );
        comm.add_up(&mut numbers)?;
        let mut totals = from_words(&numbers);
        let tests = totals.split_off(local.len());
        Ok((totals, tests))
    }

    /// Sends each rank the keys of its buckets; how many came.
    fn exchange(
        &mut self,
        local: &[u32],
        totals: &[u32],
        shares: &Shares,
        comm: &Comm<'_>,
    ) -> Result<usize, AppError> {
        let leaving = shares.counts(local);
        let mut arriving = to_words(&leaving);
        comm.swap(&mut arriving)?;
        let (from, into) = (blocks(&leaving), blocks(&from_words(&arriving)));
        let bytes = into.last().map_or(0, |last| last.offset + last.bytes);
        self.make_room(bytes as usize, totals)?;
        comm.run(Operation::alltoallv(&self.bucketed[..], &from, &mut self.received[..], &into))?;
        Ok(bytes as usize / size_of::<Word>())
    }

    /// Room for what comes now, and for a bucket more: in another iteration it may be
    /// this rank's. So it is made before the time that counts.
    fn make_room(&mut self, bytes: usize, totals: &[u32]) -> Result<(), BenchError> {
        if self.received.len() < bytes {
            let bucket = totals.iter().max().map_or(0, |&most| most as usize);
            self.received = self.memory.filled(0, 0)?;
            self.received =
                self.memory.filled(bytes + (bucket + CHANGED_END as usize) * size_of::<Word>(), 0)?;
        }
        Ok(())
    }

    /// How many keys there are up to each value.
    fn count_keys(&mut self, received: usize, values: &Range<u32>) {
        self.counts.clear();
        self.counts.resize(values.len(), 0);
        for key in &words(&self.received)[..received] {
            self.counts[(u32::from_ne_bytes(*key) - values.start) as usize] += 1;
        }
        let mut sum = 0;
        for count in &mut self.counts {
            sum += *count;
            *count = sum;
        }
    }

    /// How many of the test keys that are on this rank have the published rank.
    fn right_tests(&self, iteration: u32, tests: &[u32], less: u64, values: &Range<u32>) -> u32 {
        let is_right = |(key, test): &(&u32, &class::TestKey)| {
            let found = less + self.up_to_below(**key, values);
            i64::try_from(found) == Ok(test.rank_in(iteration))
        };
        let here = tests.iter().zip(&self.sizes.tests).filter(|(key, _)| values.contains(*key));
        here.filter(is_right).count() as u32
    }

    /// Keys on this rank that are less than one of its values.
    fn up_to_below(&self, key: u32, values: &Range<u32>) -> u64 {
        (key - values.start).checked_sub(1).map_or(0, |below| self.counts[below as usize].into())
    }

    /// Puts the keys in the order of their ranks, and looks whether that is theirs:
    /// none is less than one before it, on this rank or another, and they are the keys
    /// that there were.
    fn verify(&mut self, ranked: &Ranked, comm: &Comm<'_>) -> Result<Option<String>, AppError> {
        if self.fault && comm.rank() + 1 == comm.size() {
            order::spoil(&mut words_mut(&mut self.received)[..ranked.received]);
        }
        let keys = &words(&self.received)[..ranked.received];
        let sorted = order::by_ranks(keys, &self.counts, ranked.values.start);
        let before = Digest::of(self.keys.iter().copied());
        let after = Digest::of(sorted.iter().copied());
        let (first, last) = (sorted.first().copied(), sorted.last().copied());
        let ends = [first, last].map(|key| key.map_or(u64::MAX, u64::from));
        let all =
            comm.all_have([before.0, after.0, ends[0], ends[1], ranked.received as u64, ranked.less])?;
        Ok(order::fault_of(&sorted)
            .or_else(|| (comm.rank() == 0).then(|| order::fault_between(&all, self.sizes.keys())).flatten()))
    }
}

impl Application for Sort {
    fn run(&mut self, comm: &Comm<'_>, watch: Watch<'_>) -> Result<Round, AppError> {
        self.restore();
        // Untimed, as in the original: all has been used once.
        self.rank(1, comm)?;
        comm.barrier()?;
        comm.take_seconds();
        let start = Instant::now();
        let mut ranked = self.rank(1, comm)?;
        let mut right = ranked.right;
        for iteration in 2..=ITERATIONS {
            ranked = self.rank(iteration, comm)?;
            right += ranked.right;
            watch(iteration, ITERATIONS)?;
        }
        let seconds = start.elapsed().as_secs_f64();
        let communication_seconds = comm.take_seconds();
        let fault = self.verify(&ranked, comm)?;
        let finding = Finding { checks: right.into(), fault };
        Ok(Round { seconds, communication_seconds, finding })
    }

    fn checks(&self) -> Option<u64> {
        Some(u64::from(ITERATIONS) * TEST_KEYS as u64)
    }

    fn algorithm(&mut self, comm: &Comm<'_>) -> Result<Algorithm, GroupError> {
        let list = vec![Block::default(); comm.size() as usize];
        let mut nothing = [];
        comm.algorithm_of(&Operation::alltoallv(&[][..], &list, &mut nothing[..], &list))
    }
}
