//! What can be wrong between the rules of one file: empty ranges, rules that
//! overlap, rules and keys that speak of no message.
//!
//! Cells and ways do not compete for messages as two rules of ways do. An eager
//! rule says up to which length messages travel in cells; rules of ways speak of
//! what is announced, so such a rule may begin within the range of an eager one
//! before it. One that stands before an eager rule ends it where itself begins.

use lmt_core::selection::{Reuse, Warmth};

use super::known::Known;
use super::lengths::{Lengths, common, covers, dma_mins, lengths};
use crate::rules::{Bound, MechanismRange, Rule, SingleCopy, Take};
use crate::topology::Place;

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
    /// Other rules fit all that it fits.
    Unreachable {
        /// Which.
        rule: usize,
        /// Those that fit some of its messages.
        behind: Vec<usize>,
    },
    /// All that it fits is short enough to travel in cells.
    Short {
        /// Which.
        rule: usize,
        /// The rules that say so; where there is none, the key does.
        eager: Vec<usize>,
    },
    /// None of the ways that it takes may be taken for its lengths.
    OutOfRange {
        /// Which.
        rule: usize,
        /// The ranges that say so.
        ranges: Vec<usize>,
    },
    /// Rules say everywhere what the key `eager_max_bytes` says.
    KeyUnused {
        /// Those rules.
        eager: Vec<usize>,
    },
}

/// What of a file is compared.
pub(super) struct Subject<'a> {
    pub rules: &'a [Rule],
    pub ranges: &'a [MechanismRange],
    /// What the file sets `eager_max_bytes` to.
    pub eager_max_bytes: Option<u64>,
    /// What the file sets DMAmin to, if it is a size.
    pub dma_min: Option<u64>,
    pub known: &'a Known,
}

/// Two processes, as rules tell them apart.
#[derive(Clone, Copy)]
struct Pair {
    place: Place,
    processes: u32,
    single_copy: SingleCopy,
}

/// Everything that is wrong.
pub(super) fn check(subject: &Subject<'_>) -> Vec<Finding> {
    let rules = subject.rules;
    let mut findings = Vec::new();
    let mut silent = vec![false; rules.len()];
    for (later, rule) in rules.iter().enumerate() {
        if subject.is_empty(rule) {
            findings.push(Finding::Empty { rule: later });
            continue;
        }
        let earlier: Vec<usize> = (0..later)
            .filter(|at| conditions_overlap(&rules[*at], rule) && subject.ranges_overlap(&rules[*at], rule))
            .collect();
        if let Some(finding) = subject.never_applies(later, &earlier) {
            findings.push(finding);
            silent[later] = true;
            continue;
        }
        let overlap = earlier.iter().find(|at| {
            let earlier = &rules[**at];
            let compete = !silent[**at] && (!is_eager(earlier) || is_eager(rule));
            compete && subject.always_overlap(earlier, rule) && !is_exception(earlier, rule)
        });
        findings.extend(overlap.map(|earlier| Finding::Overlap { earlier: *earlier, later }));
        findings.extend(subject.out_of_range(later));
    }
    findings.extend(subject.unused_key());
    findings
}

impl Subject<'_> {
    /// Whether no length is in the rule's range, whatever DMAmin is.
    fn is_empty(&self, rule: &Rule) -> bool {
        self.is_empty_range(rule.above, rule.up_to)
    }

    /// Whether no length is in the range, whatever DMAmin is.
    pub fn is_empty_range(&self, above: Option<Bound>, up_to: Option<Bound>) -> bool {
        let values = dma_mins(self.dma_min, [above, up_to]);
        values.into_iter().all(|dma_min| lengths(above, up_to, dma_min).is_none())
    }

    /// Whether some length is in both, for some value of DMAmin.
    fn ranges_overlap(&self, one: &Rule, other: &Rule) -> bool {
        let values = dma_mins(self.dma_min, bounds(one).chain(bounds(other)));
        values.into_iter().any(|dma_min| overlap_at(one, other, dma_min) == Some(true))
    }

    /// Whether the ranges have lengths in common for every DMAmin for which both
    /// have any.
    fn always_overlap(&self, one: &Rule, other: &Rule) -> bool {
        let values = dma_mins(self.dma_min, bounds(one).chain(bounds(other)));
        let mut each = values.into_iter().filter_map(|dma_min| overlap_at(one, other, dma_min)).peekable();
        each.peek().is_some() && each.all(|overlap| overlap)
    }

    /// Every value of DMAmin that tells the rules of this file apart.
    fn all_dma_mins(&self) -> Vec<u64> {
        let key = self.eager_max_bytes.map(Bound::Bytes);
        dma_mins(self.dma_min, self.rules.iter().flat_map(bounds).chain([key]))
    }

    /// The pairs of processes that a rule fits and others could tell apart.
    fn pairs(&self, rule: &Rule) -> Vec<Pair> {
        let least = rule.min_processes.unwrap_or(1);
        let mut counts = vec![least];
        // More processes mean more rules of ways, which come before other ways
        // and end cells, those of a rule and those of the key.
        if self.eager_max_bytes.is_some() || self.rules.iter().any(is_eager) {
            counts.extend(self.rules.iter().filter_map(|rule| rule.min_processes).filter(|c| *c > least));
            counts.sort_unstable();
            counts.dedup();
        }
        let told_apart = self.rules.iter().any(|rule| rule.single_copy.is_some());
        let speeds = values(rule.single_copy, told_apart, &[SingleCopy::Slow, SingleCopy::Fast]);
        let mut pairs = Vec::new();
        for place in places(rule) {
            for &processes in &counts {
                let pair = |single_copy: &SingleCopy| Pair { place, processes, single_copy: *single_copy };
                pairs.extend(speeds.iter().map(pair));
            }
        }
        pairs
    }

    /// The rule that says what travels in cells between two processes.
    fn eager_rule(&self, pair: Pair) -> Option<usize> {
        self.rules.iter().position(|rule| is_eager(rule) && pair.fits(rule))
    }

    /// The lengths for which an eager rule holds: it ends where a rule of ways
    /// begins that stands before it, fits the pair, and asks for nothing of a
    /// message but its length.
    fn eager_lengths(&self, eager: usize, pair: Pair, dma_min: u64) -> Option<Lengths> {
        let (first, last) = lengths(self.rules[eager].above, self.rules[eager].up_to, dma_min)?;
        let ways = self.rules[..eager].iter();
        let ways = ways.filter(|rule| !is_eager(rule) && is_for_all_messages(rule) && pair.fits(rule));
        let begin =
            ways.filter_map(|rule| lengths(rule.above, rule.up_to, dma_min)).map(|range| range.0).min();
        match begin {
            Some(begin) if begin <= first => None,
            Some(begin) => Some((first, last.min(begin - 1))),
            None => Some((first, last)),
        }
    }

    /// The longest message that this file has travel in cells between two
    /// processes; the empty one always does.
    fn eager_limit(&self, pair: Pair, dma_min: u64) -> u128 {
        match self.eager_rule(pair) {
            Some(rule) => self.eager_lengths(rule, pair, dma_min).map_or(0, |range| range.1),
            None => self.key_limit(pair, dma_min),
        }
    }

    /// The same by the key, which every rule of its file outranks that says where
    /// it begins.
    fn key_limit(&self, pair: Pair, dma_min: u64) -> u128 {
        let says_so = |rule: &&Rule| rule.above.is_some() && is_for_all_messages(rule) && pair.fits(rule);
        let ways = self.rules.iter().filter(|rule| !is_eager(rule)).filter(says_so);
        let ends = ways.filter_map(|rule| lengths(rule.above, rule.up_to, dma_min)).map(|range| range.0 - 1);
        ends.chain([self.eager_max_bytes.unwrap_or(0).into()]).min().unwrap_or(0)
    }

    /// Whether a rule says nothing of any message, whatever DMAmin is, and why.
    fn never_applies(&self, at: usize, earlier: &[usize]) -> Option<Finding> {
        let rule = &self.rules[at];
        let pairs = self.pairs(rule);
        if is_eager(rule) {
            let dma_mins = self.all_dma_mins();
            let is_silent = pairs.iter().all(|pair| {
                self.eager_rule(*pair) != Some(at)
                    || dma_mins.iter().all(|dma_min| self.eager_lengths(at, *pair, *dma_min).is_none())
            });
            return is_silent.then(|| Finding::Unreachable { rule: at, behind: earlier.to_vec() });
        }
        let mut eager: Vec<usize> = pairs.iter().filter_map(|pair| self.eager_rule(*pair)).collect();
        eager.sort_unstable();
        eager.dedup();
        let ways: Vec<usize> = earlier.iter().copied().filter(|at| !is_eager(&self.rules[*at])).collect();
        if self.is_covered(rule, &pairs, &[]) {
            return Some(Finding::Short { rule: at, eager });
        }
        self.is_covered(rule, &pairs, &ways).then(|| {
            let mut behind: Vec<usize> = ways.into_iter().chain(eager).collect();
            behind.sort_unstable();
            Finding::Unreachable { rule: at, behind }
        })
    }

    /// Whether cells and the `earlier` rules of ways together have all that a
    /// rule of ways fits.
    fn is_covered(&self, rule: &Rule, pairs: &[Pair], earlier: &[usize]) -> bool {
        let earlier: Vec<&Rule> = earlier.iter().map(|at| &self.rules[*at]).collect();
        let kinds = kinds(rule, &earlier);
        self.all_dma_mins().into_iter().all(|dma_min| {
            let Some(wanted) = lengths(rule.above, rule.up_to, dma_min) else { return true };
            pairs.iter().all(|pair| {
                let limit = self.eager_limit(*pair, dma_min);
                kinds.iter().all(|kind| {
                    let fitting = earlier.iter().filter(|rule| pair.fits(rule) && kind.fits(rule));
                    let ranges = fitting.filter_map(|rule| lengths(rule.above, rule.up_to, dma_min));
                    covers(ranges.chain([(0, limit)]).collect(), wanted)
                })
            })
        })
    }

    /// Whether all that a rule takes is out of its own section's range for all
    /// that the rule fits.
    fn out_of_range(&self, at: usize) -> Option<Finding> {
        let rule = &self.rules[at];
        let Take::Ways(ways) = &rule.take else { return None };
        let mut ranges: Vec<usize> = Vec::new();
        for facts in ways.iter().flat_map(|way| self.known.meant(&way.name)) {
            ranges.push(self.range_of(facts.name)?);
        }
        ranges.sort_unstable();
        ranges.dedup();
        let all = ranges.iter().flat_map(|at| [self.ranges[*at].above, self.ranges[*at].up_to]);
        let is_out = dma_mins(self.dma_min, bounds(rule).chain(all)).into_iter().all(|dma_min| {
            let Some(wanted) = lengths(rule.above, rule.up_to, dma_min) else { return true };
            let of = |at: &usize| lengths(self.ranges[*at].above, self.ranges[*at].up_to, dma_min);
            ranges.iter().filter_map(of).all(|range| common(range, wanted).is_none())
        });
        (is_out && !ranges.is_empty()).then_some(Finding::OutOfRange { rule: at, ranges })
    }

    /// The range of this file that holds for a mechanism: the longest name that
    /// means it is the nearest.
    fn range_of(&self, mechanism: &str) -> Option<usize> {
        let means = |range: &MechanismRange| self.known.meant(&range.mechanism).any(|f| f.name == mechanism);
        let meant = self.ranges.iter().enumerate().filter(|(_, range)| means(range));
        meant.max_by_key(|(_, range)| range.mechanism.len()).map(|(at, _)| at)
    }

    fn unused_key(&self) -> Option<Finding> {
        self.eager_max_bytes?;
        let dma_mins = self.all_dma_mins();
        let mut eager = Vec::new();
        // Of more processes more rules hold.
        for pair in all_places_and_speeds() {
            let rule = self.eager_rule(pair)?;
            if dma_mins.iter().any(|dma_min| self.eager_lengths(rule, pair, *dma_min).is_none()) {
                return None;
            }
            eager.push(rule);
        }
        eager.sort_unstable();
        eager.dedup();
        Some(Finding::KeyUnused { eager })
    }
}

impl Pair {
    fn fits(self, rule: &Rule) -> bool {
        (rule.places.is_empty() || rule.places.contains(&self.place))
            && rule.min_processes.is_none_or(|least| self.processes >= least)
            && rule.single_copy.is_none_or(|wanted| wanted == self.single_copy)
    }
}

fn is_eager(rule: &Rule) -> bool {
    rule.take == Take::Eager
}

/// Whether a rule asks for nothing of a message but its length.
const fn is_for_all_messages(rule: &Rule) -> bool {
    rule.contiguous.is_none() && rule.warmth.is_none() && rule.reuse.is_none()
}

fn bounds(rule: &Rule) -> impl Iterator<Item = Option<Bound>> + use<> {
    [rule.above, rule.up_to].into_iter()
}

fn agree<T: PartialEq>(one: &Option<T>, other: &Option<T>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => one == other,
        _ => true,
    }
}

/// Whether some message, lengths aside, fits both.
fn conditions_overlap(one: &Rule, other: &Rule) -> bool {
    let places = one.places.is_empty()
        || other.places.is_empty()
        || one.places.iter().any(|place| other.places.contains(place));
    places
        && agree(&one.contiguous, &other.contiguous)
        && agree(&one.warmth, &other.warmth)
        && agree(&one.reuse, &other.reuse)
        && agree(&one.single_copy, &other.single_copy)
}

/// Whether the ranges have lengths in common; `None` where one is empty, which
/// says nothing.
fn overlap_at(one: &Rule, other: &Rule, dma_min: u64) -> Option<bool> {
    let one = lengths(one.above, one.up_to, dma_min)?;
    let other = lengths(other.above, other.up_to, dma_min)?;
    Some(common(one, other).is_some())
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
        narrows(&earlier.single_copy, &later.single_copy),
        by_processes,
    ];
    each.iter().all(Option::is_some) && each.contains(&Some(true))
}

/// The places that a rule fits, each once.
fn places(rule: &Rule) -> Vec<Place> {
    Place::ALL.into_iter().filter(|place| rule.places.is_empty() || rule.places.contains(place)).collect()
}

/// Every pair of two processes that know no others.
fn all_places_and_speeds() -> impl Iterator<Item = Pair> {
    let each = |single_copy| Place::ALL.map(|place| Pair { place, processes: 1, single_copy });
    [SingleCopy::Slow, SingleCopy::Fast].into_iter().flat_map(each)
}

/// What a message is, apart from its length.
struct MessageKind {
    contiguous: bool,
    warmth: Warmth,
    reuse: Reuse,
}

impl MessageKind {
    fn fits(&self, rule: &Rule) -> bool {
        rule.contiguous.is_none_or(|contiguous| contiguous == self.contiguous)
            && rule.warmth.is_none_or(|warmth| warmth == self.warmth)
            && rule.reuse.is_none_or(|reuse| reuse == self.reuse)
    }
}

/// Every kind of message that a rule fits and the `others` could tell apart.
fn kinds(rule: &Rule, others: &[&Rule]) -> Vec<MessageKind> {
    let tells = |condition: fn(&Rule) -> bool| others.iter().any(|other| condition(other));
    let segments = values(rule.contiguous, tells(|other| other.contiguous.is_some()), &[false, true]);
    let warmth = [Warmth::Unknown, Warmth::Warm, Warmth::Cold];
    let warmth = values(rule.warmth, tells(|other| other.warmth.is_some()), &warmth);
    let reuse = [Reuse::Unknown, Reuse::Once, Reuse::Again];
    let reuse = values(rule.reuse, tells(|other| other.reuse.is_some()), &reuse);
    let mut kinds = Vec::new();
    for contiguous in segments {
        for warmth in &warmth {
            let with = |reuse: &Reuse| MessageKind { contiguous, warmth: *warmth, reuse: *reuse };
            kinds.extend(reuse.iter().map(with));
        }
    }
    kinds
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
