//! By how much more readers of one process hold each other up.

use std::borrow::Cow;

/// A curve through measured factors: `squared c^2 + linear c`, as table IV of
/// contention-aware-cma has it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Quadratic {
    /// Of the square of the number of readers.
    pub squared: f64,
    /// Of the number of readers.
    pub linear: f64,
}

impl Quadratic {
    /// The curve at this many readers.
    pub fn at(self, readers: f64) -> f64 {
        (self.squared * readers + self.linear) * readers
    }
}

/// How many times as long locking and pinning a page takes with so many readers,
/// or writers, of one process at once.
#[derive(Clone, PartialEq, Debug)]
pub struct Gamma {
    /// What was measured with 1, 2, ... at once; empty where only the curve is
    /// known. The first is 1.
    pub measured: Cow<'static, [f64]>,
    /// The curve, where there were enough points for one.
    pub fit: Option<Quadratic>,
}

impl Gamma {
    /// A curve alone.
    pub const fn curve(squared: f64, linear: f64) -> Self {
        Self { measured: Cow::Borrowed(&[]), fit: Some(Quadratic { squared, linear }) }
    }

    /// The factor. One reader has nobody to wait for, so that of one is 1,
    /// whatever the curve says there, and no other is less. The curve goes before
    /// what it was fitted to; without one, what was measured last holds for all
    /// beyond it.
    pub fn of(&self, readers: u32) -> f64 {
        match (self.fit, &self.measured[..]) {
            _ if readers <= 1 => 1.0,
            (Some(curve), _) => curve.at(f64::from(readers)).max(1.0),
            (None, []) => 1.0,
            (None, measured) => measured[(readers as usize).min(measured.len()) - 1].max(1.0),
        }
    }
}

#[cfg(test)]
#[path = "gamma_tests.rs"]
mod tests;
