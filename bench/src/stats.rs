//! What is made of repeated measurements.

use serde::Serialize;

/// Median, smallest and largest of one quantity over the repetitions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// The middle one, or the mean of the two in the middle.
    pub median: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
}

impl Summary {
    /// Summarises `values`; `None` when there are none.
    ///
    /// ```
    /// let summary = lmt_bench::stats::Summary::of(&[3.0, 1.0, 2.0]).unwrap();
    /// assert_eq!((summary.median, summary.min, summary.max), (2.0, 1.0, 3.0));
    /// ```
    pub fn of(values: &[f64]) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let middle = sorted.len() / 2;
        let median =
            if sorted.len() % 2 == 1 { sorted[middle] } else { (sorted[middle - 1] + sorted[middle]) / 2.0 };
        Some(Self { median, min, max })
    }
}

/// The median of `numerators[i] / denominators[i]`.
///
/// The two of a pair were measured one after the other, so that what slows the
/// machine for a while slows both: the median of ratios is steadier than the
/// ratio of medians. `None` when there is no pair.
pub fn median_ratio(numerators: &[f64], denominators: &[f64]) -> Option<f64> {
    Summary::of(&ratios(numerators, denominators)).map(|summary| summary.median)
}

/// Median and quartiles of one quantity over the repetitions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// A quarter is below.
    pub lower: f64,
    /// The middle one, or the mean of the two in the middle.
    pub median: f64,
    /// A quarter is above.
    pub upper: f64,
}

impl Spread {
    /// Summarises `values`; between two of them the quartiles are interpolated.
    /// `None` when there are none.
    ///
    /// ```
    /// let spread = lmt_bench::stats::Spread::of(&[5.0, 1.0, 2.0, 4.0, 3.0]).unwrap();
    /// assert_eq!((spread.lower, spread.median, spread.upper), (2.0, 3.0, 4.0));
    /// ```
    pub fn of(values: &[f64]) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let last = sorted.len().checked_sub(1)?;
        let at = |part: f64| {
            let place = part * last as f64;
            // Between 0 and `last`: nothing is cut off but the fraction.
            let below = place as usize;
            let above = (below + 1).min(last);
            sorted[below] + (sorted[above] - sorted[below]) * place.fract()
        };
        Some(Self { lower: at(0.25), median: at(0.5), upper: at(0.75) })
    }
}

/// Fewer values have no quartiles that say something.
const MIN_FOR_QUARTILES: usize = 3;

impl Spread {
    /// The quartiles; `None` of too few values.
    ///
    /// ```
    /// use lmt_bench::stats::Spread;
    /// assert_eq!(Spread::quartiles(&[1.0, 2.0, 3.0]), Some((1.5, 2.5)));
    /// assert_eq!(Spread::quartiles(&[1.0, 2.0]), None);
    /// ```
    pub fn quartiles(values: &[f64]) -> Option<(f64, f64)> {
        let spread = Self::of(values).filter(|_| values.len() >= MIN_FOR_QUARTILES)?;
        Some((spread.lower, spread.upper))
    }
}

/// `numerators[i] / denominators[i]`; pairs without a denominator are left out.
pub fn ratios(numerators: &[f64], denominators: &[f64]) -> Vec<f64> {
    let pairs = numerators.iter().zip(denominators).filter(|&(_, &below)| below > 0.0);
    pairs.map(|(above, below)| above / below).collect()
}

/// The geometric mean; `None` when there are no values or one is not positive.
///
/// ```
/// assert_eq!(lmt_bench::stats::geometric_mean(&[0.5, 2.0]), Some(1.0));
/// ```
pub fn geometric_mean(values: &[f64]) -> Option<f64> {
    if values.is_empty() || values.iter().any(|&value| value.is_nan() || value <= 0.0) {
        return None;
    }
    let sum: f64 = values.iter().map(|value| value.ln()).sum();
    Some((sum / values.len() as f64).exp())
}

/// Megabytes (10^6 bytes, as IMB and OSU report) per second; 0 where the time
/// is too short to measure.
pub fn mb_per_s(bytes: f64, usec: f64) -> f64 {
    // A byte per microsecond is a megabyte per second.
    if usec > 0.0 { bytes / usec } else { 0.0 }
}

#[cfg(test)]
#[path = "stats_tests.rs"]
mod tests;
