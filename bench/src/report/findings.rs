//! What follows from the figures: which way is the fastest where, how far what the library
//! chooses is from it, and where one way becomes faster than another.
//!
//! One way is faster than another at a size if the medians differ by more than the quartiles
//! of either do. Two that took the same path are never compared: what they differ by is noise.

use super::{Kind, Point, Series, is_eager, sizes_of};
use crate::sizes::human;
use crate::stats::geometric_mean;

/// How much faster one must be besides: less is of no use, however well it was measured.
const MIN_GAIN: f64 = 0.03;
/// So many of those that are as good as the best are named.
const MAX_NAMED: usize = 3;
/// Messages are short up to so many bytes...
const SHORT_MAX_BYTES: u64 = 4 << 10;
/// ...of middle length up to so many, and long from there on.
const MIDDLE_MAX_BYTES: u64 = 256 << 10;

/// A size from which another way is the fastest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Crossover {
    /// The size.
    pub bytes: u64,
    /// The fastest below it.
    pub from: String,
    /// The fastest from it on.
    pub to: String,
    /// Others that are as fast there, within the spreads.
    pub equals: Vec<String>,
    /// Whether the one below has no longer messages.
    pub is_end: bool,
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// The best way for short, middle and long messages, and how far `auto` is from it.
    pub summary: Option<String>,
    /// Where the fastest way changes, by size.
    pub crossovers: Vec<Crossover>,
    /// The same and what else is to be said, in sentences.
    pub sentences: Vec<String>,
}

impl Findings {
    /// What these lines say.
    pub fn of(mechanisms: &[Series]) -> Self {
        let ways: Vec<&Series> = mechanisms.iter().filter(|series| series.kind == Kind::Way).collect();
        let sizes = sizes_of(mechanisms);
        let (first, crossovers) = crossovers(&ways, &sizes);
        let mut sentences: Vec<String> = of_eager(&ways, first, &crossovers).into_iter().collect();
        sentences.extend(crossovers.iter().map(Crossover::sentence));
        let others = mechanisms.iter().filter(|series| series.kind == Kind::OtherBuffers);
        sentences.extend(others.filter_map(|series| other_buffers(series, &ways, &sizes)));
        if ways.len() > 1 && sentences.is_empty() {
            sentences.push("No path is faster than another by more than their spreads.".to_owned());
        }
        Self { summary: summary(mechanisms, &ways), crossovers, sentences }
    }
}

impl Crossover {
    fn sentence(&self) -> String {
        let Self { bytes, from, to, equals, is_end } = self;
        let size = human(*bytes);
        let equals = match &equals[..] {
            [] => String::new(),
            equals => format!(" (as fast within the spreads: {})", equals.join(", ")),
        };
        match is_end {
            true => format!("From {size}, which is longer than {from} goes, {to} is the fastest{equals}."),
            false => format!("From {size}, {to} is faster than {from}{equals}."),
        }
    }
}

/// Whether one way is faster than another at a size, by more than both spreads.
pub(super) fn is_faster(one: &Point, other: &Point) -> bool {
    if one.path.is_some() && one.path == other.path {
        return false;
    }
    let (Some(own), Some(theirs)) = (one.quartiles, other.quartiles) else { return false };
    let gain = other.usec - one.usec;
    gain > own.1 - own.0 && gain > theirs.1 - theirs.0 && gain > MIN_GAIN * other.usec
}

/// The line that is faster than all others at a size, `auto` apart, which is none of the ways.
pub(super) fn winner(mechanisms: &[Series], bytes: u64) -> Option<&Series> {
    let there = || mechanisms.iter().filter(|series| series.kind != Kind::Auto);
    let points = || there().filter_map(|series| Some((series, series.at(bytes)?)));
    let (best, own) = points().min_by(|one, other| one.1.usec.total_cmp(&other.1.usec))?;
    let mut others = points().filter(|(series, _)| series.name != best.name).peekable();
    (others.peek().is_some() && others.all(|(_, other)| is_faster(own, other))).then_some(best)
}

fn is_faster_at(one: &Series, other: &Series, bytes: u64) -> bool {
    matches!((one.at(bytes), other.at(bytes)), (Some(one), Some(other)) if is_faster(one, other))
}

/// Whether one is faster at a size and at the next one.
fn is_faster_from(one: &Series, other: &Series, bytes: u64, next: Option<u64>) -> bool {
    is_faster_at(one, other, bytes) && next.is_some_and(|next| is_faster_at(one, other, next))
}

fn fastest_at<'a>(ways: impl Iterator<Item = &'a Series>, bytes: u64) -> Option<&'a Series> {
    let there = ways.filter_map(|series| Some((series, series.at(bytes)?.usec)));
    there.min_by(|one, other| one.1.total_cmp(&other.1)).map(|(series, _)| series)
}

/// The fastest way at the first size, and where it changes. One that is fastest stays so until
/// another is faster.
fn crossovers<'a>(ways: &[&'a Series], sizes: &[u64]) -> (Option<&'a Series>, Vec<Crossover>) {
    let mut found = Vec::new();
    let (mut first, mut fastest): (_, Option<&Series>) = (None, None);
    for (index, &bytes) in sizes.iter().enumerate() {
        let next = sizes.get(index + 1).copied();
        let there = || ways.iter().copied().filter(|series| series.at(bytes).is_some());
        let Some(old) = fastest else {
            // Cells, as long as nothing is faster.
            fastest = there().find(|series| is_eager(series)).or_else(|| fastest_at(there(), bytes));
            if let Some(usual) = fastest {
                let faster = there().filter(|series| is_faster_from(series, usual, bytes, next));
                fastest = fastest_at(faster, bytes).or(fastest);
            }
            first = fastest;
            continue;
        };
        let is_end = old.at(bytes).is_none();
        let able = |series: &&Series| is_end || is_faster_from(series, old, bytes, next);
        let Some(new) = fastest_at(there().filter(able), bytes) else { continue };
        let is_equal = |series: &&Series| {
            series.name != new.name && able(series) && !is_faster_from(new, series, bytes, next)
        };
        let equals = there().filter(is_equal).map(|series| series.name.clone()).collect();
        found.push(Crossover { bytes, from: old.name.clone(), to: new.name.clone(), equals, is_end });
        fastest = Some(new);
    }
    (first, found)
}

/// That cells are the best as far as they go, or that they are not from the first size on.
fn of_eager(ways: &[&Series], first: Option<&Series>, crossovers: &[Crossover]) -> Option<String> {
    let eager = ways.iter().find(|series| is_eager(series))?;
    let first = first?;
    if first.name != eager.name {
        let bytes = first.points.iter().map(|point| point.bytes).find(|&bytes| eager.at(bytes).is_some())?;
        return Some(format!("From {}, {} is faster than {}.", human(bytes), first.name, eager.name));
    }
    let is_compared = ways
        .iter()
        .filter(|series| series.name != eager.name)
        .any(|series| series.points.iter().any(|point| eager.at(point.bytes).is_some()));
    let is_left = crossovers.iter().any(|crossover| crossover.from == eager.name && !crossover.is_end);
    let last = eager.points.last()?;
    (is_compared && !is_left).then(|| {
        format!(
            "Nothing is better than {} up to {}: no path is faster by more than their spreads.",
            eager.name,
            human(last.bytes)
        )
    })
}

/// From where on a way between other buffers is faster than all the others.
fn other_buffers(series: &Series, ways: &[&Series], sizes: &[u64]) -> Option<String> {
    let compared = |bytes: u64| ways.iter().copied().filter(move |way| way.at(bytes).is_some());
    let from = sizes.iter().enumerate().find(|&(index, &bytes)| {
        let next = sizes.get(index + 1).copied();
        compared(bytes).next().is_some()
            && compared(bytes).all(|way| match next.filter(|&next| way.at(next).is_some()) {
                Some(next) => is_faster_from(series, way, bytes, Some(next)),
                // It has no longer messages.
                None => is_faster_at(series, way, bytes),
            })
            && compared(bytes).any(|way| is_faster_from(series, way, bytes, next))
    });
    let name = &series.name;
    Some(match from {
        Some((_, &bytes)) => {
            format!(
                "Between buffers of lmt::alloc, {name} is faster than each of the others from {}.",
                human(bytes)
            )
        }
        None => {
            format!("Between buffers of lmt::alloc, {name} is at no size faster than each of the others.")
        }
    })
}

/// Lengths of messages that belong together.
struct Class {
    name: &'static str,
    bytes: std::ops::RangeInclusive<u64>,
}

fn classes() -> [Class; 3] {
    [
        Class { name: "short", bytes: 0..=SHORT_MAX_BYTES },
        Class { name: "middle", bytes: SHORT_MAX_BYTES + 1..=MIDDLE_MAX_BYTES },
        Class { name: "long", bytes: MIDDLE_MAX_BYTES + 1..=u64::MAX },
    ]
}

/// One sentence: the best way of each class, and how far `auto` is from it.
fn summary(mechanisms: &[Series], ways: &[&Series]) -> Option<String> {
    let auto = mechanisms.iter().find(|series| series.kind == Kind::Auto);
    let sizes = sizes_of(mechanisms);
    let (mut parts, mut distances) = (Vec::new(), Vec::new());
    for Class { name, bytes } in classes() {
        let sizes: Vec<u64> = sizes.iter().copied().filter(|size| bytes.contains(size)).collect();
        let Some((names, best)) = best_of(ways, &sizes) else { continue };
        let (Some(first), Some(last)) = (sizes.first(), sizes.last()) else { continue };
        let range =
            if first == last { human(*first) } else { format!("{} to {}", human(*first), human(*last)) };
        let messages = if parts.is_empty() { "messages" } else { "ones" };
        parts.push(format!("{} for {name} {messages} ({range})", alternatives(&names)));
        distances.extend(auto.and_then(|auto| relative(auto, best, &sizes)));
    }
    if parts.is_empty() {
        return None;
    }
    let mut sentence = format!("The best path is {}", listed(&parts));
    if distances.len() == parts.len() {
        let times: Vec<String> = distances.iter().map(|times| format!("{times:.2}")).collect();
        sentence.push_str(&format!("; auto takes {} times as long as these", listed(&times)));
    }
    Some(sentence + ".")
}

/// The best of these ways at these sizes with those that are as good, and its line. Only those
/// that were measured at all of the sizes count.
fn best_of<'a>(ways: &[&'a Series], sizes: &[u64]) -> Option<(Vec<String>, &'a Series)> {
    if sizes.is_empty() {
        return None;
    }
    let whole = |series: &&&Series| sizes.iter().all(|&bytes| series.at(bytes).is_some());
    let whole: Vec<&Series> = ways.iter().filter(whole).copied().collect();
    let time = |series: &Series| {
        let times: Option<Vec<f64>> =
            sizes.iter().map(|&bytes| series.at(bytes).map(|point| point.usec)).collect();
        times.and_then(|times| geometric_mean(&times)).unwrap_or(f64::INFINITY)
    };
    let best = *whole.iter().min_by(|one, other| time(one).total_cmp(&time(other)))?;
    let is_beaten = |series: &Series| {
        let beaten = sizes.iter().filter(|&&bytes| is_faster_at(best, series, bytes));
        2 * beaten.count() >= sizes.len()
    };
    let equals = whole.iter().filter(|series| series.name != best.name && !is_beaten(series));
    let names = std::iter::once(best).chain(equals.copied()).map(|series| series.name.clone());
    Some((names.collect(), best))
}

/// The geometric mean of one line's times by another's.
fn relative(one: &Series, other: &Series, sizes: &[u64]) -> Option<f64> {
    let ratios: Option<Vec<f64>> =
        sizes.iter().map(|&bytes| Some(one.at(bytes)?.usec / other.at(bytes)?.usec)).collect();
    geometric_mean(&ratios?)
}

/// `a or b`; of many the first.
fn alternatives(names: &[String]) -> String {
    match names {
        [first @ .., _] if first.len() >= MAX_NAMED => {
            let (named, others) = names.split_at(MAX_NAMED);
            format!("{} or {} as good", named.join(", "), counted(others.len()))
        }
        names => names.join(" or "),
    }
}

fn counted(others: usize) -> String {
    if others == 1 { "another".to_owned() } else { format!("{others} others") }
}

/// `a, b and c`.
fn listed(parts: &[String]) -> String {
    match parts {
        [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        parts => parts.concat(),
    }
}

#[cfg(test)]
#[path = "findings_tests.rs"]
mod tests;
