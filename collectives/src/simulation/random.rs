//! Random numbers that a seed repeats (splitmix64).

/// A stream of them.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Less than `end`, which is at least 1.
    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    pub fn coin(&mut self) -> bool {
        self.next() & 1 == 0
    }

    pub fn bytes(&mut self, count: u64) -> Vec<u8> {
        (0..count.div_ceil(8)).flat_map(|_| self.next().to_ne_bytes()).take(count as usize).collect()
    }

    /// 0 to `count`, in any order.
    pub fn order(&mut self, count: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..count).collect();
        for at in (1..count).rev() {
            order.swap(at, self.below(at as u64 + 1) as usize);
        }
        order
    }
}
