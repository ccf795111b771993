//! The sizes of the problem, and what is published of each: the ranks that five of
//! the keys must have (NAS Parallel Benchmarks, kernel IS).

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// A size of the problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[value(rename_all = "UPPER")]
pub enum Class {
    /// 2^16 keys below 2^11.
    S,
    /// 2^20 keys below 2^16.
    W,
    /// 2^23 keys below 2^19.
    A,
    /// 2^25 keys below 2^21.
    B,
    /// 2^27 keys below 2^23.
    C,
}

/// Iterations that are timed.
pub const ITERATIONS: u32 = 10;
/// Keys whose ranks are checked in each iteration.
pub const TEST_KEYS: usize = 5;

/// What makes a class.
#[derive(Debug)]
pub struct Sizes {
    /// The keys of all ranks together: two to this power.
    pub keys_log2: u32,
    /// What keys are less than: two to this power.
    pub max_key_log2: u32,
    /// Stretches of keys that go to the same rank: two to this power.
    pub buckets_log2: u32,
    /// The keys whose ranks are published.
    pub tests: [TestKey; TEST_KEYS],
}

/// A key whose rank is published. Two keys change in each iteration, one of the least
/// and one of the largest, so the ranks of the others move.
#[derive(Clone, Copy, Debug)]
pub struct TestKey {
    /// Which key, counted over all ranks.
    pub index: u64,
    /// The published rank.
    rank: i64,
    /// Places per iteration: 1 up, -1 down.
    step: i64,
    /// The iteration in which it has the published rank.
    origin: i64,
}

impl TestKey {
    /// How many keys are less than it in an iteration, which count from 1.
    pub const fn rank_in(&self, iteration: u32) -> i64 {
        self.rank + self.step * (iteration as i64 - self.origin)
    }
}

const fn up(index: u64, rank: i64, origin: i64) -> TestKey {
    TestKey { index, rank, step: 1, origin }
}

const fn down(index: u64, rank: i64, origin: i64) -> TestKey {
    TestKey { index, rank, step: -1, origin }
}

const fn sizes(keys_log2: u32, max_key_log2: u32, buckets_log2: u32, tests: [TestKey; TEST_KEYS]) -> Sizes {
    Sizes { keys_log2, max_key_log2, buckets_log2, tests }
}

const S: Sizes = sizes(
    16,
    11,
    9,
    [
        up(48_427, 0, 0),
        up(17_148, 18, 0),
        up(23_627, 346, 0),
        down(62_548, 64_917, 0),
        down(4_431, 65_463, 0),
    ],
);
const W: Sizes = sizes(
    20,
    16,
    10,
    [
        up(357_773, 1_249, 2),
        up(934_767, 11_698, 2),
        down(875_723, 1_039_987, 0),
        down(898_999, 1_043_896, 0),
        down(404_505, 1_048_018, 0),
    ],
);
const A: Sizes = sizes(
    23,
    19,
    10,
    [
        up(2_112_377, 104, 1),
        up(662_041, 17_523, 1),
        up(5_336_171, 123_928, 1),
        down(3_642_833, 8_288_932, 1),
        down(4_250_760, 8_388_264, 1),
    ],
);
const B: Sizes = sizes(
    25,
    21,
    10,
    [
        down(41_869, 33_422_937, 0),
        up(812_306, 10_244, 0),
        up(5_102_857, 59_149, 0),
        down(18_232_239, 33_135_281, 0),
        up(26_860_214, 99, 0),
    ],
);
const C: Sizes = sizes(
    27,
    23,
    10,
    [
        up(44_172_927, 61_147, 0),
        up(72_999_161, 882_988, 0),
        up(74_326_391, 266_290, 0),
        down(129_606_274, 133_997_595, 0),
        down(21_736_814, 133_525_895, 0),
    ],
);

impl Class {
    /// What makes it.
    pub const fn sizes(self) -> &'static Sizes {
        match self {
            Self::S => &S,
            Self::W => &W,
            Self::A => &A,
            Self::B => &B,
            Self::C => &C,
        }
    }
}

impl Sizes {
    /// The keys of all ranks together.
    pub const fn keys(&self) -> u64 {
        1 << self.keys_log2
    }

    /// What keys are less than.
    pub const fn max_key(&self) -> u32 {
        1 << self.max_key_log2
    }

    /// Stretches of keys that go to the same rank.
    pub const fn buckets(&self) -> usize {
        1 << self.buckets_log2
    }

    /// By how many bits a key is longer than its bucket's number.
    pub const fn bucket_shift(&self) -> u32 {
        self.max_key_log2 - self.buckets_log2
    }
}
