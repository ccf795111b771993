//! Which way each class takes.
//!
//! One class at a time, the fastest median would do, but where two ways are
//! about as fast it is noise that chooses, and ranges would differ from run to
//! run. So all classes are chosen together: the ways of the classes in turn are
//! a path, and the path with the least cost is found by dynamic programming.

use std::collections::BTreeMap;

use super::samples::{CERTAINLY, Class, Course, Estimate};
use super::{EAGER, EAGER_MAX_BYTES};

/// A way that takes longer than the fastest by less than this, as a natural
/// logarithm, costs nothing: 1.5 %.
const TOLERANCE: f64 = 0.015;
/// However unsure the times are, no more than this costs nothing: 8 %.
const MAX_TOLERANCE: f64 = 0.08;
/// A way that takes certainly longer than the fastest by more than this is not
/// chosen: 3 %. What takes less longer than is certain costs nothing either.
const MAX_REGRET: f64 = 0.03;
/// What going over to another way costs: as much as taking 3 % longer, beyond
/// the tolerance, in one class.
const SWITCH_COST: f64 = 0.03;
/// What each place behind the first in the usual order costs, in each class, so
/// that of ways that are equal the same is taken each time ...
const ORDER_COST: f64 = 0.003;
/// ... up to this many places: the order is to decide between equal ways only.
const MAX_PLACES: usize = 4;
/// More than any path that stays within the limits can cost.
const FORBIDDEN: f64 = 1000.0;

/// The way of one class.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Chosen {
    /// The class: the longest message in it.
    pub bytes: u64,
    /// Its way.
    pub way: String,
}

/// Finds the way of each class that was measured.
///
/// `order` is the usual order of the ways, [`EAGER`] among them if it may be
/// chosen: messages travel in cells up to some length only, at most 1 MiB. A
/// way that is not in it is not chosen. With `like`, the choice for another
/// load, the way chosen there is the first in the order.
///
/// The cost of a path is, over its classes, what the way takes longer than the
/// fastest way (the logarithm of the ratio) as far as that exceeds both 1.5 %
/// and two and a half standard errors, at most 8 %; 0.03 for each change of way; and 0.003
/// for each of the first four places in the usual order. A way that is slower than the fastest by more than
/// 3 % and two and a half standard errors is out of the question. Without noise, a path
/// therefore costs at most 3 % in any class.
pub fn choose(course: &Course, order: &[String], like: Option<&[Chosen]>) -> Vec<Chosen> {
    let is_measured = |class: &Class, way: &str| class.samples(way).is_some_and(|times| times.count() > 0);
    let mut classes: Vec<(u64, &Class)> = course.classes().collect();
    classes.retain(|(_, class)| order.iter().any(|way| is_measured(class, way)));
    let mut paths: Vec<Vec<Step>> = Vec::with_capacity(classes.len());
    for (bytes, _) in &classes {
        let estimates = course.estimates_among(*bytes, |way| order.iter().any(|known| known == way));
        let liked = like.and_then(|like| like.iter().find(|chosen| chosen.bytes == *bytes));
        let costs = order.iter().enumerate().map(|(rank, way)| {
            let rank = if liked.is_some_and(|liked| liked.way == *way) { 0 } else { rank + 1 };
            cost(*bytes, way, &estimates) + ORDER_COST * rank.min(MAX_PLACES) as f64
        });
        let steps = costs.enumerate().map(|(way, cost)| step(cost, way, paths.last(), order)).collect();
        paths.push(steps);
    }
    let mut chosen = Vec::with_capacity(classes.len());
    let mut way = paths.last().and_then(|last| cheapest(last.iter().map(|step| step.cost)));
    for ((bytes, _), steps) in classes.iter().zip(&paths).rev() {
        let Some(at) = way else { break };
        chosen.push(Chosen { bytes: *bytes, way: order[at].clone() });
        way = steps[at].from;
    }
    chosen.reverse();
    // Where nothing that may be chosen was measured, nothing is.
    chosen.retain(|one| course.class(one.bytes).is_some_and(|class| is_measured(class, &one.way)));
    chosen
}

/// The end of the cheapest path to one way in one class.
struct Step {
    cost: f64,
    /// The way in the class before.
    from: Option<usize>,
}

fn step(own: f64, way: usize, before: Option<&Vec<Step>>, order: &[String]) -> Step {
    let Some(before) = before else { return Step { cost: own, from: None } };
    let ways = before.iter().enumerate().map(|(from, step)| match from == way {
        true => step.cost,
        // Cells are for short messages: nothing goes back to them.
        false if order[way] == EAGER => step.cost + FORBIDDEN,
        false => step.cost + SWITCH_COST,
    });
    let costs: Vec<f64> = ways.collect();
    let from = cheapest(costs.iter().copied());
    Step { cost: own + from.map_or(0.0, |from| costs[from]), from }
}

/// The first of the least.
fn cheapest(costs: impl Iterator<Item = f64>) -> Option<usize> {
    costs.enumerate().min_by(|one, other| one.1.total_cmp(&other.1)).map(|(at, _)| at)
}

fn cost(bytes: u64, way: &str, estimates: &BTreeMap<&str, Estimate>) -> f64 {
    if way == EAGER && bytes > EAGER_MAX_BYTES {
        return FORBIDDEN;
    }
    let Some(Estimate { regret, error }) = estimates.get(way) else { return FORBIDDEN };
    let certain = regret - CERTAINLY * error - MAX_REGRET;
    // The further beyond the limit, the worse, should there be nothing within.
    let beyond = if certain > 0.0 { 1.0 + 10.0 * certain } else { 0.0 };
    (regret - (CERTAINLY * error).clamp(TOLERANCE, MAX_TOLERANCE)).max(0.0) + beyond
}

#[cfg(test)]
#[path = "choice_tests.rs"]
mod tests;
