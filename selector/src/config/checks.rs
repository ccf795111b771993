//! What can be wrong between the rules of one file: empty ranges, rules that
//! overlap, rules that no message can reach.

use lmt_core::selection::{Reuse, Warmth};

use crate::rules::{Bound, Rule};
use crate::topology::Place;

/// Values of DMAmin for which rules are compared: it is not known when a file
/// is read, so only what holds for every value is called wrong.
pub(super) const DMA_MIN_SAMPLES: [u64; 5] = [1, 64 << 10, 1 << 20, 16 << 20, u64::MAX];

/// Lengths, both ends included; wide enough for the end behind the last.
pub(super) type Lengths = (u128, u128);

/// Something that is wrong; rules are told by their index.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Finding {
    /// No length is in its range.
    Empty {
        /// Which.
        rule: usize,
    },
    /// Both fit some messages, and the earlier is no exception of the later.
    Overlap {
        /// The one that would speak.
        earlier: usize,
        /// The one that would not.
        later: usize,
    },
    /// Earlier rules fit all that it fits.
    Unreachable {
        /// Which.
        rule: usize,
        /// Those that come before it and fit some of its messages.
        behind: Vec<usize>,
    },
}

/// The lengths between two bounds for one value of DMAmin; `None` when there
/// are none.
pub(super) fn lengths(above: Option<Bound>, up_to: Option<Bound>, dma_min: u64) -> Option<Lengths> {
    let bytes = |bound: Bound| match bound {
        Bound::Bytes(bytes) => u128::from(bytes),
        Bound::DmaMin => u128::from(dma_min),
    };
    let first = above.map_or(0, |above| bytes(above) + 1);
    let last = up_to.map_or(u128::from(u64::MAX), bytes);
    (first <= last).then_some((first, last))
}

/// Whether no length is in the range, whatever DMAmin is.
pub(super) fn is_empty(above: Option<Bound>, up_to: Option<Bound>) -> bool {
    DMA_MIN_SAMPLES.iter().all(|dma_min| lengths(above, up_to, *dma_min).is_none())
}

/// Everything that is wrong between these rules of one file.
pub(super) fn check(rules: &[Rule]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let is_empty = |rule: &Rule| is_empty(rule.above, rule.up_to);
    for (later, rule) in rules.iter().enumerate() {
        if is_empty(rule) {
            findings.push(Finding::Empty { rule: later });
            continue;
        }
        let earlier: Vec<usize> = (0..later)
            .filter(|at| conditions_meet(&rules[*at], rule) && ranges_meet(&rules[*at], rule))
            .collect();
        if is_unreachable(rule, rules, &earlier) {
            findings.push(Finding::Unreachable { rule: later, behind: earlier });
            continue;
        }
        let overlap =
            earlier.iter().find(|at| always_overlap(&rules[**at], rule) && !is_exception(&rules[**at], rule));
        findings.extend(overlap.map(|earlier| Finding::Overlap { earlier: *earlier, later }));
    }
    findings
}

fn agree<T: PartialEq>(one: &Option<T>, other: &Option<T>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => one == other,
        _ => true,
    }
}

/// Whether some message, lengths aside, fits both.
fn conditions_meet(one: &Rule, other: &Rule) -> bool {
    let places = one.places.is_empty()
        || other.places.is_empty()
        || one.places.iter().any(|place| other.places.contains(place));
    places
        && agree(&one.contiguous, &other.contiguous)
        && agree(&one.warmth, &other.warmth)
        && agree(&one.reuse, &other.reuse)
}

/// Whether some length is in both, for some value of DMAmin.
fn ranges_meet(one: &Rule, other: &Rule) -> bool {
    DMA_MIN_SAMPLES.iter().any(|dma_min| overlap_at(one, other, *dma_min) == Some(true))
}

/// Whether the ranges have lengths in common; `None` where one is empty, which
/// says nothing.
fn overlap_at(one: &Rule, other: &Rule, dma_min: u64) -> Option<bool> {
    let one = lengths(one.above, one.up_to, dma_min)?;
    let other = lengths(other.above, other.up_to, dma_min)?;
    Some(one.0.max(other.0) <= one.1.min(other.1))
}

/// Whether the ranges have lengths in common for every DMAmin for which both
/// have any.
fn always_overlap(one: &Rule, other: &Rule) -> bool {
    let mut each = DMA_MIN_SAMPLES.iter().filter_map(|dma_min| overlap_at(one, other, *dma_min)).peekable();
    each.peek().is_some() && each.all(|overlap| overlap)
}

/// Whether the conditions of `earlier`, lengths aside, are a strict subset of
/// those of `later`.
fn is_exception(earlier: &Rule, later: &Rule) -> bool {
    fn narrows<T: PartialEq>(earlier: &Option<T>, later: &Option<T>) -> Option<bool> {
        match (earlier, later) {
            (Some(_), None) => Some(true),
            (one, other) => (one == other).then_some(false),
        }
    }
    let (of_earlier, of_later) = (places(earlier), places(later));
    let within = of_earlier.iter().all(|place| of_later.contains(place));
    let by_places = within.then_some(of_earlier.len() < of_later.len());
    let processes = |rule: &Rule| rule.min_processes.unwrap_or(0);
    let by_processes =
        (processes(earlier) >= processes(later)).then(|| processes(earlier) > processes(later));
    let each = [
        by_places,
        narrows(&earlier.contiguous, &later.contiguous),
        narrows(&earlier.warmth, &later.warmth),
        narrows(&earlier.reuse, &later.reuse),
        by_processes,
    ];
    each.iter().all(Option::is_some) && each.contains(&Some(true))
}

/// The places that a rule fits, each once.
fn places(rule: &Rule) -> Vec<Place> {
    Place::ALL.into_iter().filter(|place| rule.places.is_empty() || rule.places.contains(place)).collect()
}

/// Whether the `earlier` rules together fit all that `rule` fits, whatever
/// DMAmin is.
fn is_unreachable(rule: &Rule, rules: &[Rule], earlier: &[usize]) -> bool {
    // A rule that asks for fewer processes speaks at its own least number
    // already, where those that ask for more do not.
    let processes = rule.min_processes.unwrap_or(0);
    let earlier: Vec<&Rule> =
        earlier.iter().map(|at| &rules[*at]).filter(|e| e.min_processes.unwrap_or(0) <= processes).collect();
    !earlier.is_empty()
        && DMA_MIN_SAMPLES.iter().all(|dma_min| {
            let Some(wanted) = lengths(rule.above, rule.up_to, *dma_min) else { return true };
            cells(rule, &earlier).all(|cell| {
                let fitting = earlier.iter().filter(|rule| cell.fits(rule));
                covers(fitting.filter_map(|rule| lengths(rule.above, rule.up_to, *dma_min)).collect(), wanted)
            })
        })
}

/// Whether the ranges together hold all of `wanted`.
fn covers(mut ranges: Vec<Lengths>, wanted: Lengths) -> bool {
    ranges.sort_unstable();
    let mut next = wanted.0;
    for (first, last) in ranges {
        if first <= next && last >= next {
            next = last + 1;
        }
    }
    next > wanted.1
}

/// A kind of message, lengths and processes aside.
struct Cell {
    place: Place,
    contiguous: bool,
    warmth: Warmth,
    reuse: Reuse,
}

impl Cell {
    fn fits(&self, rule: &Rule) -> bool {
        (rule.places.is_empty() || rule.places.contains(&self.place))
            && rule.contiguous.is_none_or(|contiguous| contiguous == self.contiguous)
            && rule.warmth.is_none_or(|warmth| warmth == self.warmth)
            && rule.reuse.is_none_or(|reuse| reuse == self.reuse)
    }
}

/// Every kind of message that a rule fits and the `others` could tell apart.
fn cells(rule: &Rule, others: &[&Rule]) -> impl Iterator<Item = Cell> {
    let tells = |condition: fn(&Rule) -> bool| others.iter().any(|other| condition(other));
    let segments = values(rule.contiguous, tells(|other| other.contiguous.is_some()), &[false, true]);
    let warmth = [Warmth::Unknown, Warmth::Warm, Warmth::Cold];
    let warmth = values(rule.warmth, tells(|other| other.warmth.is_some()), &warmth);
    let reuse = [Reuse::Unknown, Reuse::Once, Reuse::Again];
    let reuse = values(rule.reuse, tells(|other| other.reuse.is_some()), &reuse);
    let mut cells = Vec::new();
    for place in places(rule) {
        for contiguous in &segments {
            for warmth in &warmth {
                let with =
                    |reuse: &Reuse| Cell { place, contiguous: *contiguous, warmth: *warmth, reuse: *reuse };
                cells.extend(reuse.iter().map(with));
            }
        }
    }
    cells.into_iter()
}

/// The values of a condition that are to be tried: the one that the rule has, or
/// all, or any one where nobody tells them apart.
fn values<T: Copy>(own: Option<T>, is_told_apart: bool, all: &[T]) -> Vec<T> {
    match own {
        Some(value) => vec![value],
        None if is_told_apart => all.to_vec(),
        None => all[..1].to_vec(),
    }
}

#[cfg(test)]
#[path = "checks_tests.rs"]
mod tests;
