//! The random numbers of the NAS Parallel Benchmarks (Bailey and others, NAS
//! technical report RNR-94-007, section 2.3): x' = a x mod 2^46 with a = 5^13, and
//! x / 2^46 uniform between 0 and 1.

/// The factor.
pub const FACTOR: u64 = 1_220_703_125;
/// Of the integer sort: what the sequence begins with.
pub const SEED: u64 = 314_159_265;
/// The numbers are taken modulo two to this power.
pub const MODULUS_LOG2: u32 = 46;

const MASK: u64 = (1 << MODULUS_LOG2) - 1;

/// The sequence from some place on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Randoms(u64);

impl Randoms {
    /// The sequence behind its first `skipped` numbers. As many steps as that number
    /// has bits, so each rank begins where its part does.
    ///
    /// ```
    /// use lmt_bench::apps::random::Randoms;
    /// let mut all = Randoms::behind(0);
    /// (0..1000).for_each(|_| drop(all.draw()));
    /// assert_eq!(all, Randoms::behind(1000));
    /// ```
    pub fn behind(skipped: u64) -> Self {
        Self(product(SEED, power(skipped)))
    }

    /// The next number, below 2^46.
    pub fn draw(&mut self) -> u64 {
        self.0 = product(self.0, FACTOR);
        self.0
    }
}

/// Modulo 2^46, which divides the 2^64 at which the machine's product wraps.
const fn product(left: u64, right: u64) -> u64 {
    left.wrapping_mul(right) & MASK
}

/// The factor to some power, by squaring.
pub fn power(mut exponent: u64) -> u64 {
    let (mut result, mut square) = (1, FACTOR);
    while exponent > 0 {
        if exponent & 1 == 1 {
            result = product(result, square);
        }
        square = product(square, square);
        exponent >>= 1;
    }
    result
}

#[cfg(test)]
#[path = "random_tests.rs"]
mod tests;
