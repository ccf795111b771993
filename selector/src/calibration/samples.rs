//! What was measured, and how sure it is.

use std::collections::BTreeMap;

use crate::rules::Figure;
use crate::topology::Place;

/// Half the width of a normal distribution's middle half, as a part of its
/// standard deviation: the median of absolute deviations by this is the
/// standard deviation, whatever a few outliers do.
const MAD_OF_NORMAL: f64 = 0.6745;
/// How much larger it is than of so few normal values (from two on): their own
/// median is nearer to them than the true one (Croux and Rousseeuw, 1992,
/// "Time-efficient algorithms for two highly robust estimators of scale").
const FEW_DEVIATIONS: [f64; 8] = [1.196, 1.495, 1.363, 1.206, 1.200, 1.140, 1.129, 1.107];
/// The standard error of a median of normal values, as a multiple of that of
/// their mean: the square root of pi / 2.
const MEDIAN_ERROR: f64 = 1.2533;
/// The same of a median of a few medians.
const MEDIANS_ERROR: f64 = 1.16;
/// What two ways are taken to drift against each other from pass to pass as
/// long as there are fewer: the standard deviation, 4 %.
const ASSUMED_DRIFT: f64 = 0.04;
/// Certainly: by so many standard errors. Noise alone makes one of two equal
/// ways look slower by more in one class of eighty.
pub(super) const CERTAINLY: f64 = 2.5;
/// Student's t of two to twenty degrees of freedom: what a mean of that few,
/// by their own spread, is beyond in one case of eighty. Of more it is about
/// the last.
const STUDENT: [f64; 19] = [
    8.86, 5.39, 4.31, 3.81, 3.52, 3.34, 3.21, 3.11, 3.04, 2.98, 2.93, 2.90, 2.86, 2.84, 2.81, 2.79, 2.77,
    2.76, 2.74,
];
/// The outermost of so many passes are drawn in to the next, one on either side,
/// so that a disturbed pass does not decide the spread ...
const PASSES_TO_DRAW_IN: usize = 8;
/// ... which is less for it: the variance of normal values by this for each part
/// drawn in on either side (found by simulation; within 4 %).
const DRAWN_IN_PART: f64 = 5.3;
/// The spread of a way's ratios is learnt from its neighbours too: classes up to
/// so many times as long or as short, since what makes ways drift between passes
/// (pages, positions in caches) does not stop at a power of two.
const NEIGHBOURS: u64 = 4;

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
    /// the ratio, 0 for the fastest. Where passes contradict each other so that
    /// none beats all others, it can be less than 0.
    pub regret: f64,
    /// The standard error of `regret`, widened for how few the passes are: of
    /// two ways that are equal, one lies beyond 2.5 of it in one case of eighty.
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

    /// The standard error of the logarithm of the median, from how far times
    /// are from the median of their own pass.
    fn error_within(&self) -> f64 {
        let mut deviations = Vec::new();
        for times in &self.passes {
            if let Some(middle) = median(times).filter(|_| times.len() > 1) {
                let few = FEW_DEVIATIONS.get(times.len() - 2).copied().unwrap_or(1.0);
                deviations.extend(times.iter().map(|ns| few * (ns / middle).ln().abs()));
            }
        }
        // Of a single time nothing is known; half as long again is possible.
        let deviation = median(&deviations).map_or(0.5, |mad| mad / MAD_OF_NORMAL);
        let passes = self.passes.iter().filter(|times| !times.is_empty()).count();
        let of_medians = if passes > 2 { MEDIANS_ERROR } else { 1.0 };
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

    /// The fastest way.
    pub fn best(&self) -> Option<&str> {
        self.best_among(|_| true)
    }

    /// As [`Self::best`], as if there were these ways only: the way against which
    /// the strongest of the others does worst, by the same ratios as the
    /// estimates. The least median over all passes may be another's, since it
    /// knows nothing of which times belong together.
    pub fn best_among(&self, counts: impl Fn(&str) -> bool) -> Option<&str> {
        let timed: Vec<(&str, Medians)> = self.medians(counts);
        let worst = |one: &Medians| {
            let against = timed.iter().filter_map(|(_, other)| other.regret(one));
            against.fold(f64::INFINITY, f64::min)
        };
        let rivals = timed.iter().map(|(way, medians)| (*way, worst(medians)));
        // Of equal ones the first.
        rivals.reduce(|best, other| if other.1 > best.1 { other } else { best }).map(|(way, _)| way)
    }

    fn medians(&self, counts: impl Fn(&str) -> bool) -> Vec<(&str, Medians)> {
        let counted = self.ways().filter(|(way, samples)| counts(way) && samples.count() > 0);
        counted.map(|(way, samples)| (way, Medians::of(samples))).collect()
    }

    /// How each way does against the best. The two are compared pass by pass,
    /// where they took turns: what slowed the machine slowed both, and drops
    /// out of the ratio.
    pub fn estimates(&self) -> BTreeMap<&str, Estimate> {
        self.estimates_among(|_| true)
    }

    /// As [`Self::estimates`], as if there were these ways only.
    pub fn estimates_among(&self, counts: impl Fn(&str) -> bool) -> BTreeMap<&str, Estimate> {
        self.estimates_beside(&[], counts)
    }

    /// The same, with what these classes tell of how ways drift.
    fn estimates_beside(
        &self,
        neighbours: &[&Class],
        counts: impl Fn(&str) -> bool,
    ) -> BTreeMap<&str, Estimate> {
        let Some(best) = self.best_among(&counts) else { return BTreeMap::new() };
        let timed = self.medians(counts);
        let Some((_, reference)) = timed.iter().find(|(way, _)| *way == best) else { return BTreeMap::new() };
        let error_within = |way: &str| self.samples(way).map_or(0.0, Samples::error_within);
        let beside = |way: &str| {
            let of = |class: &&Class| {
                let [one, other] = [way, best].map(|way| class.samples(way).map(Medians::of));
                Spread::of(&one?.ratios(&other?))
            };
            neighbours.iter().filter_map(of).collect::<Vec<Spread>>()
        };
        let estimate = |way: &str, medians: &Medians| {
            let regret = medians.regret(reference)?;
            let within = together(error_within(way), error_within(best));
            let error = match way == best {
                true => within,
                false => error_between(&medians.ratios(reference), &beside(way), within),
            };
            Some(Estimate { regret, error })
        };
        timed.iter().filter_map(|(way, medians)| Some((*way, estimate(way, medians)?))).collect()
    }
}

/// The logarithms of one way's medians, pass by pass.
struct Medians {
    of_pass: Vec<Option<f64>>,
    of_all: Option<f64>,
}

impl Medians {
    fn of(samples: &Samples) -> Self {
        let of_pass = samples.passes.iter().map(|times| median(times).map(f64::ln)).collect();
        Self { of_pass, of_all: samples.median_ns().map(f64::ln) }
    }

    /// How much longer it took than another in each pass that both were in.
    fn ratios(&self, other: &Self) -> Vec<f64> {
        let passes = self.of_pass.iter().zip(&other.of_pass);
        passes.filter_map(|(own, other)| Some((*own)? - (*other)?)).collect()
    }

    /// The median of these. Where the two were never in the same pass, their
    /// medians have to do.
    fn regret(&self, other: &Self) -> Option<f64> {
        median(&self.ratios(other)).or_else(|| Some(self.of_all? - other.of_all?))
    }
}

/// How far ratios are apart.
struct Spread {
    /// The sum of their squared distances from their mean.
    squares: f64,
    /// How many of them count as independent.
    freedom: usize,
}

impl Spread {
    /// `None` of fewer than two.
    fn of(ratios: &[f64]) -> Option<Self> {
        let count = ratios.len();
        let outer = count.checked_sub(1).filter(|others| *others > 0)? / PASSES_TO_DRAW_IN;
        let mut sorted = ratios.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let (least, most) = (*sorted.get(outer)?, *sorted.get(count - 1 - outer)?);
        sorted.iter_mut().for_each(|ratio| *ratio = ratio.clamp(least, most));
        let mean = sorted.iter().sum::<f64>() / count as f64;
        let squares: f64 = sorted.iter().map(|ratio| (ratio - mean).powi(2)).sum();
        let drawn_in = 1.0 + DRAWN_IN_PART * outer as f64 / count as f64;
        let freedom = count - 1 - 2 * outer;
        let variance = drawn_in * squares / (count - 1) as f64;
        Some(Self { squares: variance * freedom as f64, freedom })
    }

    fn variance(&self) -> f64 {
        self.squares / self.freedom.max(1) as f64
    }
}

/// The error of the median of the passes' ratios: by how far they are apart, in
/// this class and in those beside it, and at least what times within passes
/// scatter (`within`). Student's t says how little is known of the former.
fn error_between(ratios: &[f64], beside: &[Spread], within: f64) -> f64 {
    let passes = (ratios.len().max(1) as f64).sqrt();
    let own = Spread::of(ratios);
    let all = beside.iter().chain(&own);
    let all = all.fold(Spread { squares: 0.0, freedom: 0 }, |all, one| Spread {
        squares: all.squares + one.squares,
        freedom: all.freedom + one.freedom,
    });
    let student = all.freedom.checked_sub(2).and_then(|at| STUDENT.get(at).or(STUDENT.last()));
    let Some(student) = student else { return together(within, ASSUMED_DRIFT / passes) };
    // A class that is more disturbed than those beside it is not as sure as they.
    let variance = own.map_or(0.0, |own| own.variance()).max(all.variance());
    within.max(MEDIAN_ERROR * variance.sqrt() / passes * student / CERTAINLY)
}

/// Two errors that know nothing of each other. Not by hypot, which glibc 2.35 gave a
/// new version: packages are for older ones, too.
fn together(one: f64, other: f64) -> f64 {
    (one * one + other * other).sqrt()
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

    /// How each of these ways does against the best of them in one class, as
    /// [`Class::estimates_among`], with what the classes beside it tell of how
    /// far passes differ: after few passes each class by itself knows little of
    /// that.
    pub fn estimates_among(&self, bytes: u64, counts: impl Fn(&str) -> bool) -> BTreeMap<&str, Estimate> {
        let Some(class) = self.classes.get(&bytes) else { return BTreeMap::new() };
        let beside = self.classes.range(bytes / NEIGHBOURS..=bytes.saturating_mul(NEIGHBOURS));
        let beside: Vec<&Class> =
            beside.filter(|(other, _)| **other != bytes).map(|(_, class)| class).collect();
        class.estimates_beside(&beside, counts)
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
