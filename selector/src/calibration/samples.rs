//! What was measured, and how sure it is.

use std::collections::BTreeMap;

use crate::rules::Figure;
use crate::topology::Place;

/// Half the width of a normal distribution's middle half, as a part of its
/// standard deviation: the median of absolute deviations by this is the
/// standard deviation, whatever a few outliers do.
const MAD_OF_NORMAL: f64 = 0.6745;
/// The standard error of a median of normal values, as a multiple of that of
/// their mean: the square root of pi / 2.
const MEDIAN_ERROR: f64 = 1.2533;
/// The same of a median of a few medians.
const MEDIANS_ERROR: f64 = 1.16;
/// Passes from which on the differences between them tell how far to trust them.
const PASSES_TO_COMPARE: usize = 3;

/// Under what circumstances times were measured.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct Load {
    /// What the two processes of a pair share.
    pub place: Place,
    /// How many pairs are at it at once.
    pub pairs: u32,
    /// Whether the buffers are out of the caches.
    pub off_cache: bool,
}

/// The times of one way at one length, pass by pass: within a pass the ways
/// took turns, between passes the processes were started anew.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Samples {
    passes: Vec<Vec<f64>>,
}

/// A time and how sure it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// How much longer than the fastest way it takes: the natural logarithm of
    /// the ratio, 0 for the fastest.
    pub regret: f64,
    /// The standard error of `regret`.
    pub error: f64,
}

/// The times of all ways at one length.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Class {
    ways: BTreeMap<String, Samples>,
}

/// All that was measured under one load.
#[derive(Clone, Debug, PartialEq)]
pub struct Course {
    /// The load.
    pub load: Load,
    classes: BTreeMap<u64, Class>,
}

/// The median; `None` of nothing.
fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let (below, above) = (sorted.get(sorted.len().checked_sub(1)? / 2)?, sorted.get(sorted.len() / 2)?);
    Some((below + above) / 2.0)
}

impl Samples {
    /// Adds times of one pass, counted from 0, in nanoseconds. What is no
    /// positive number is left out.
    pub fn add(&mut self, pass: usize, times_ns: &[f64]) {
        if self.passes.len() <= pass {
            self.passes.resize(pass + 1, Vec::new());
        }
        let usable = times_ns.iter().copied().filter(|ns| ns.is_finite() && *ns > 0.0);
        self.passes[pass].extend(usable);
    }

    /// How many times there are.
    pub fn count(&self) -> usize {
        self.passes.iter().map(Vec::len).sum()
    }

    /// The median over the passes of each pass's median, so that one pass in
    /// which the machine was busy does not count; `None` before anything is
    /// measured.
    pub fn median_ns(&self) -> Option<f64> {
        let medians: Vec<f64> = self.passes.iter().filter_map(|pass| median(pass)).collect();
        median(&medians)
    }

    fn pass_median_ln(&self, pass: usize) -> Option<f64> {
        self.passes.get(pass).and_then(|times| median(times)).map(f64::ln)
    }

    /// The standard error of the logarithm of the median, from how far times
    /// are from the median of their own pass.
    fn error_within(&self) -> f64 {
        let mut deviations = Vec::new();
        for times in &self.passes {
            if let Some(middle) = median(times).filter(|_| times.len() > 1) {
                deviations.extend(times.iter().map(|ns| (ns / middle).ln().abs()));
            }
        }
        // Of a single time nothing is known; half as long again is possible.
        let deviation = median(&deviations).map_or(0.5, |mad| mad / MAD_OF_NORMAL);
        let passes = self.passes.iter().filter(|times| !times.is_empty()).count();
        let of_medians = if passes >= PASSES_TO_COMPARE { MEDIANS_ERROR } else { 1.0 };
        of_medians * MEDIAN_ERROR * deviation / (self.count().max(1) as f64).sqrt()
    }
}

impl Class {
    /// Each way with its times, by name.
    pub fn ways(&self) -> impl Iterator<Item = (&str, &Samples)> {
        self.ways.iter().map(|(way, samples)| (way.as_str(), samples))
    }

    /// The times of one way.
    pub fn samples(&self, way: &str) -> Option<&Samples> {
        self.ways.get(way)
    }

    /// The way with the least median.
    pub fn best(&self) -> Option<&str> {
        self.best_among(|_| true)
    }

    fn best_among(&self, counts: impl Fn(&str) -> bool) -> Option<&str> {
        let counted = self.ways().filter(|(way, _)| counts(way));
        let timed = counted.filter_map(|(way, samples)| Some((samples.median_ns()?, way)));
        timed.min_by(|one, other| one.0.total_cmp(&other.0)).map(|(_, way)| way)
    }

    /// How each way does against the best. The two are compared pass by pass,
    /// where they took turns: what slowed the machine slowed both, and drops
    /// out of the ratio.
    pub fn estimates(&self) -> BTreeMap<&str, Estimate> {
        self.estimates_among(|_| true)
    }

    /// As [`Self::estimates`], as if there were these ways only.
    pub fn estimates_among(&self, counts: impl Fn(&str) -> bool) -> BTreeMap<&str, Estimate> {
        let best = self.best_among(&counts).and_then(|way| self.ways.get(way));
        let Some(best) = best else { return BTreeMap::new() };
        let estimate = |samples: &Samples| {
            let ratio = |pass| Some(samples.pass_median_ln(pass)? - best.pass_median_ln(pass)?);
            let ratios: Vec<f64> = (0..samples.passes.len()).filter_map(ratio).collect();
            let regret = match median(&ratios) {
                Some(regret) => regret,
                // Never in the same pass: the medians have to do.
                None => (samples.median_ns()? / best.median_ns()?).ln(),
            };
            let within = samples.error_within().hypot(best.error_within());
            let error = if std::ptr::eq(samples, best) { within } else { within.max(error_between(&ratios)) };
            Some(Estimate { regret: regret.max(0.0), error })
        };
        let counted = self.ways().filter(|(way, _)| counts(way));
        counted.filter_map(|(way, samples)| Some((way, estimate(samples)?))).collect()
    }
}

/// The standard error of the median of the passes' ratios.
fn error_between(ratios: &[f64]) -> f64 {
    let Some(middle) = median(ratios).filter(|_| ratios.len() >= PASSES_TO_COMPARE) else { return 0.0 };
    let deviations: Vec<f64> = ratios.iter().map(|ratio| (ratio - middle).abs()).collect();
    let deviation = median(&deviations).unwrap_or(0.0) / MAD_OF_NORMAL;
    MEDIAN_ERROR * deviation / (ratios.len() as f64).sqrt()
}

impl Course {
    /// Nothing is measured yet.
    pub fn new(load: Load) -> Self {
        Self { load, classes: BTreeMap::new() }
    }

    /// Adds times of `way` for messages of `bytes`, of one pass, in
    /// nanoseconds.
    pub fn add(&mut self, bytes: u64, way: &str, pass: usize, times_ns: &[f64]) {
        let class = self.classes.entry(bytes).or_default();
        class.ways.entry(way.to_owned()).or_default().add(pass, times_ns);
    }

    /// Forgets all times of a way.
    pub fn forget(&mut self, way: &str) {
        for class in self.classes.values_mut() {
            class.ways.remove(way);
        }
    }

    /// The classes that were measured, by length.
    pub fn classes(&self) -> impl Iterator<Item = (u64, &Class)> {
        let measured = self.classes.iter().filter(|(_, class)| class.best().is_some());
        measured.map(|(bytes, class)| (*bytes, class))
    }

    /// The class of one length.
    pub fn class(&self, bytes: u64) -> Option<&Class> {
        self.classes.get(&bytes)
    }

    /// Forgets the classes of which this does not hold.
    pub(super) fn retain(&mut self, keep: impl Fn(u64) -> bool) {
        self.classes.retain(|bytes, _| keep(*bytes));
    }

    /// Every median.
    pub fn figures(&self) -> Vec<Figure> {
        let Load { place, pairs, off_cache } = self.load;
        let mut figures = Vec::new();
        for (bytes, class) in self.classes() {
            let timed = class.ways().filter_map(|(way, samples)| Some((way, samples.median_ns()?)));
            figures.extend(timed.map(|(way, ns)| Figure {
                place,
                pairs,
                off_cache,
                bytes,
                way: way.to_owned(),
                // Positive, and far below 2^64 ns, which are centuries.
                median_ns: ns.round().max(1.0) as u64,
            }));
        }
        figures
    }
}

#[cfg(test)]
#[path = "samples_tests.rs"]
mod tests;
