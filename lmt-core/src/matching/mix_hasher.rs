//! The hash of small keys that are looked up for each message.

use std::hash::Hasher;

/// Mixes each word by two multiplications (the finalizer of splitmix64): enough
/// for tags that differ in any bits. Tags made to collide would slow
/// down the endpoint that accepts their sender, and nothing else.
#[derive(Default)]
pub(crate) struct MixHasher(u64);

impl Hasher for MixHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64((*byte).into()));
    }

    fn write_u64(&mut self, value: u64) {
        let mut x = (self.0 ^ value).wrapping_add(0x9e37_79b9_7f4a_7c15);
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        self.0 = x ^ (x >> 31);
    }
}
