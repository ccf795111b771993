//! What ranks compare when they meet: whether they call the same.
#![forbid(unsafe_code)]

use std::fmt;

use crate::algorithm::{Algorithm, Kind};
use crate::call::Call;

/// What a call is, in a hash and in two words that say it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Signature {
    pub hash: u64,
    pub words: [u64; 2],
}

const WRONG: u64 = 0x3f;

impl Signature {
    /// That of a rank whose arguments are wrong: no other is like it.
    pub const fn of_wrong(rank: u32) -> Self {
        Self { hash: u64::MAX - rank as u64, words: [WRONG, 0] }
    }

    /// That of a call, by this algorithm and reduction.
    pub fn of(call: &Call, algorithm: Algorithm, reduction: u32, is_listed: bool) -> Self {
        let kind = Kind::ALL.iter().position(|&kind| kind == call.kind).unwrap_or(0) as u64;
        let (code, number) = algorithm.code();
        let root = u64::from(call.root);
        let first = kind
            | u64::from(is_listed) << 6
            | u64::from(code) << 8
            | root << 16
            | u64::from(number.min(0xffff)) << 48;
        let bytes = if is_listed { 0 } else { call.block_bytes() };
        let mut hash = Mixer(0);
        [first, bytes, reduction.into(), number.into()].into_iter().for_each(|word| hash.add(word));
        hash.add(call.element_bytes);
        // A root's own affair where there is one; else all are or none is.
        hash.add(u64::from(call.in_place && !call.kind.has_root()));
        if is_listed && matches!(call.kind, Kind::Allgather | Kind::ReduceScatter) {
            (0..call.size).for_each(|rank| hash.add(call.blocks.of(rank).bytes));
        }
        Self { hash: hash.0, words: [first, bytes] }
    }
}

/// Mixes a word by multiplications (the finalizer of splitmix64).
pub(crate) const fn mix(word: u64) -> u64 {
    let mut x = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

struct Mixer(u64);

impl Mixer {
    fn add(&mut self, word: u64) {
        self.0 = mix(self.0 ^ word);
    }
}

/// What a rank says that it calls, read from the two words; anything may stand there.
pub(crate) struct PostedSignature(pub [u64; 2]);

impl fmt::Display for PostedSignature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [first, bytes] = self.0;
        if first & WRONG == WRONG {
            return f.write_str("a call with wrong arguments, which its own error names");
        }
        let Some(kind) = Kind::ALL.get((first & 0x3f) as usize) else {
            return f.write_str("something unknown");
        };
        let listed = if first >> 6 & 1 == 1 { "v" } else { "" };
        write!(f, "{kind}{listed}")?;
        if kind.has_root() {
            write!(f, " with root {}", first >> 16 & 0xffff_ffff)?;
        }
        if listed.is_empty() {
            write!(f, " of {bytes} bytes")?;
        }
        match Algorithm::from_code((first >> 8) as u8, (first >> 48) as u32) {
            Some(algorithm) => write!(f, " by {algorithm}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
#[path = "signature_tests.rs"]
mod tests;
