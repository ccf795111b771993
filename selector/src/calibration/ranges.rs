//! Choices drawn together into rules.

use lmt_core::selection::{PathName, Warmth};

use super::choice::{Chosen, choose};
use super::samples::{Course, Load};
use super::{EAGER, LARGEST_BYTES};
use crate::rules::{Bound, Rule, Take};
use crate::topology::Place;

/// From how many processes on rules for many pairs hold: more than one pair.
const MANY_PROCESSES: u32 = 3;

/// One load's choice and the rules that follow from it.
#[derive(Clone, PartialEq, Debug)]
pub struct CourseRules {
    /// The load.
    pub load: Load,
    /// The way of every class.
    pub chosen: Vec<Chosen>,
    /// The rules: fewer than the ranges of `chosen`, where those are an
    /// exception and say what holds without them too.
    pub rules: Vec<Rule>,
}

/// Makes the rules of all courses, the narrowest place first and exceptions
/// before what they are exceptions of.
///
/// - One pair, on cache: the rules of the place.
/// - Many pairs, on cache: rules for whoever knows at least three processes,
///   where another way is chosen than for one pair.
/// - One pair, off cache: rules for messages whose sender said that they are
///   cold, where another way is chosen than on cache. Where many pairs have a
///   rule there is none: rules of one file do not overlap unless one is an
///   exception of the other.
/// - Many pairs, off cache: rules for both.
///
/// How long messages travel in cells is decided once, by one pair on cache: a
/// message in cells is copied by both, whatever the sender says of it.
pub fn rules(courses: &[Course], order: &[String]) -> Vec<CourseRules> {
    let without_eager: Vec<String> = order.iter().filter(|way| *way != EAGER).cloned().collect();
    let mut all = Vec::new();
    for place in Place::ALL {
        let mut here: Vec<&Course> = courses.iter().filter(|course| course.load.place == place).collect();
        // What others are exceptions of comes first.
        here.sort_by_key(|course| (course.load.off_cache, course.load.pairs));
        let mut plain: Vec<Chosen> = Vec::new();
        let mut of_place: Vec<CourseRules> = Vec::new();
        for course in here {
            let load = course.load;
            if load.pairs == 1 && !load.off_cache {
                plain = choose(course, order, None);
                let rules = of_course(course, &plain, |_| false);
                of_place.push(CourseRules { load, rules, chosen: plain.clone() });
                continue;
            }
            let many = of_place.iter().filter(|other| other.load.pairs > 1);
            let many: Vec<Rule> = many.flat_map(|other| other.rules.iter().cloned()).collect();
            let is_said = |chosen: &Chosen| match (load.pairs, load.off_cache) {
                (1, _) => plain.contains(chosen) || many.iter().any(|rule| holds(rule, chosen.bytes)),
                (_, false) => plain.contains(chosen),
                (_, true) => false,
            };
            of_place.push(exception(course, &without_eager, &plain, is_said));
        }
        of_place.reverse();
        all.extend(of_place);
    }
    all
}

/// The way that these rules say is taken first under a load by messages of this
/// length; `None` where they say nothing.
pub fn taken(rules: &[Rule], load: Load, bytes: u64) -> Option<String> {
    let warmth = load.off_cache.then_some(Warmth::Cold);
    let speaks = |rule: &&Rule| {
        holds(rule, bytes)
            && (rule.places.is_empty() || rule.places.contains(&load.place))
            && rule.contiguous != Some(false)
            && rule.warmth.is_none_or(|asked| Some(asked) == warmth)
            && rule.reuse.is_none()
            && rule.min_processes.is_none_or(|least| least <= 2 * load.pairs)
    };
    match &rules.iter().find(speaks)?.take {
        Take::Eager => Some(EAGER.to_owned()),
        Take::Ways(ways) => ways.first().map(ToString::to_string),
    }
}

/// Whether a length is within a rule's; of bounds that are not sizes nothing is
/// known.
fn holds(rule: &Rule, bytes: u64) -> bool {
    let is_within = |bound: Option<Bound>, fits: &dyn Fn(u64) -> bool| match bound {
        None => true,
        Some(Bound::Bytes(bound)) => fits(bound),
        Some(Bound::DmaMin) => false,
    };
    is_within(rule.above, &|above| bytes > above) && is_within(rule.up_to, &|up_to| bytes <= up_to)
}

/// The choice of a course that is an exception of `plain`; where messages travel
/// in cells there, they do here.
fn exception(
    course: &Course,
    order: &[String],
    plain: &[Chosen],
    is_said: impl Fn(&Chosen) -> bool,
) -> CourseRules {
    let eager_up_to = plain.iter().filter(|chosen| chosen.way == EAGER).map(|chosen| chosen.bytes).max();
    let beyond = course.beyond(eager_up_to.unwrap_or(0));
    let mut chosen = choose(&beyond, order, Some(plain));
    let rules = of_course(&beyond, &chosen, is_said);
    let cells = plain.iter().filter(|chosen| chosen.way == EAGER);
    chosen.extend(cells.filter(|chosen| course.class(chosen.bytes).is_some()).cloned());
    chosen.sort_by_key(|chosen| chosen.bytes);
    CourseRules { load: course.load, chosen, rules }
}

/// The rules of adjacent classes with the same way; none for classes of which
/// other rules have said enough.
fn of_course(course: &Course, chosen: &[Chosen], is_said: impl Fn(&Chosen) -> bool) -> Vec<Rule> {
    let adjacent = |one: &Chosen, next: &Chosen| {
        one.way == next.way
            && (one.way == EAGER || next.bytes == one.bytes.saturating_mul(2))
            && is_said(one) == is_said(next)
    };
    let runs = chosen.chunk_by(adjacent);
    runs.filter(|run| !is_said(&run[0])).filter_map(|run| rule(course, run)).collect()
}

fn rule(course: &Course, run: &[Chosen]) -> Option<Rule> {
    let (first, last) = (run.first()?, run.last()?);
    let load = course.load;
    let shortest = course.classes().next()?.0;
    // The shortest message that was measured stands for all that are shorter
    // only where that is one byte; cells are for what is short anyway.
    let is_eager = first.way == EAGER;
    let from_nothing = is_eager || (first.bytes == shortest && shortest == 1);
    let above = (!from_nothing).then_some(Bound::Bytes(first.bytes / 2));
    let up_to = (is_eager || last.bytes < LARGEST_BYTES).then_some(Bound::Bytes(last.bytes));
    let take = match is_eager {
        true => Take::Eager,
        false => Take::Ways(ways(course, run)),
    };
    Some(Rule {
        above,
        up_to,
        places: vec![load.place],
        contiguous: None,
        warmth: load.off_cache.then_some(Warmth::Cold),
        reuse: None,
        min_processes: (load.pairs > 1).then_some(MANY_PROCESSES),
        // It has measured what the look is to guess.
        single_copy: None,
        take,
        max_readers: None,
        line: 0,
    })
}

/// The chosen way, then the others by how much longer they took over the run.
fn ways(course: &Course, run: &[Chosen]) -> Vec<PathName> {
    let mut regrets: Vec<(String, f64, u32)> = Vec::new();
    for class in run.iter().filter_map(|chosen| course.class(chosen.bytes)) {
        for (way, estimate) in class.estimates_among(|way| way != EAGER) {
            match regrets.iter_mut().find(|(known, ..)| known == way) {
                Some((_, sum, count)) => (*sum, *count) = (*sum + estimate.regret, *count + 1),
                None => regrets.push((way.to_owned(), estimate.regret, 1)),
            }
        }
    }
    let chosen = run.first().map(|chosen| chosen.way.as_str());
    let mean = |(way, sum, count): &(String, f64, u32)| match Some(way.as_str()) == chosen {
        true => -1.0,
        false => sum / f64::from(*count),
    };
    regrets.sort_by(|one, other| mean(one).total_cmp(&mean(other)));
    regrets.iter().filter_map(|(way, ..)| way.parse().ok()).collect()
}

impl Course {
    /// The classes of messages longer than this.
    fn beyond(&self, bytes: u64) -> Self {
        let mut course = self.clone();
        course.retain(|class_bytes| class_bytes > bytes);
        course
    }
}

#[cfg(test)]
#[path = "ranges_tests.rs"]
mod tests;
