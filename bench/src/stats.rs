//! What is made of repeated measurements.

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
    let ratios: Vec<f64> = numerators
        .iter()
        .zip(denominators)
        .filter(|&(_, &below)| below > 0.0)
        .map(|(above, below)| above / below)
        .collect();
    Summary::of(&ratios).map(|summary| summary.median)
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
