//! The tables `[[collective]]` of a file.

use std::ops::Range;

use lmt_core::selection::Source;
use toml::de::DeTable;

use super::known::Known;
use super::problem::Mark;
use super::read_rule::MAX_RULES;
use super::reader::{Field, Reader, empty_range};
use super::table::{self, COLLECTIVES_VARIABLE};
use super::value::Wrong;
use crate::collectives::{ANY_OPERATION, CollectiveRule, Misnamed};
use crate::rules::Layer;

/// The most ranks that a rule may name, which is the most that a group has.
pub(super) const MAX_RANKS: u32 = 1024;

/// The rules of collective operations, checked one by one.
pub(super) fn collectives(
    reader: &mut Reader<'_>,
    layer: &Layer,
    field: Field<'_, '_>,
) -> Vec<CollectiveRule> {
    let tables = reader.tables(field, "[[collective]]");
    if let Some((span, _)) = tables.get(MAX_RULES) {
        let message = format!("the file has {} rules of collective operations", tables.len());
        reader.wrong(span.clone(), "one too many", message, format!("write at most {MAX_RULES}"));
        return Vec::new();
    }
    tables.into_iter().filter_map(|(span, table)| rule(reader, layer, span, table)).collect()
}

fn rule(
    reader: &mut Reader<'_>,
    layer: &Layer,
    header: Range<usize>,
    table: &DeTable<'_>,
) -> Option<CollectiveRule> {
    let problems = reader.problems.len();
    let mut rule = CollectiveRule::new("", "", layer.source(reader.line(header.start)));
    let mut places = RulePlaces::default();
    for field in table {
        one_key(reader, &mut rule, &mut places, field);
    }
    let (Some(operation), Some(algorithm)) = (&places.operation, &places.algorithm) else {
        let missing = if places.operation.is_none() { "operation" } else { "algorithm" };
        let message = format!("this rule has no `{missing}`");
        let help = format!("write {missing} = \"NAME\"; docs/collectives.md has the names");
        reader.wrong(header, &format!("`{missing}` is missing"), message, help);
        return None;
    };
    if reader.problems.len() > problems {
        return None;
    }
    ranges(reader, &rule, &places);
    if let Some(check) = reader.known.collectives
        && let Err(misnamed) = check(&rule)
    {
        let (span, label) = match misnamed {
            Misnamed::Operation(_) => (operation, "this name"),
            Misnamed::Algorithm(_) => (algorithm, "this name"),
            Misnamed::Lengths(_) => (places.lengths.first().unwrap_or(operation), "this bound"),
        };
        let (message, help) = misnamed.parts();
        reader.wrong(span.clone(), label, message.to_owned(), help);
    }
    (reader.problems.len() == problems).then_some(rule)
}

/// Where the values of a rule stand.
#[derive(Default)]
struct RulePlaces {
    operation: Option<Range<usize>>,
    algorithm: Option<Range<usize>>,
    lengths: Vec<Range<usize>>,
    ranks: Vec<Range<usize>>,
}

/// Reads a key of a rule.
fn one_key(
    reader: &mut Reader<'_>,
    rule: &mut CollectiveRule,
    places: &mut RulePlaces,
    field: Field<'_, '_>,
) {
    let span = field.1.span();
    match field.0.get_ref().as_ref() {
        "operation" => {
            places.operation = Some(span);
            rule.operation = name(reader, field, "the name of an operation, or \"*\"");
        }
        "algorithm" => {
            places.algorithm = Some(span);
            rule.algorithm = name(reader, field, "the name of an algorithm");
        }
        "above" => {
            places.lengths.push(span);
            rule.above = reader.size(field);
        }
        "up_to" => {
            places.lengths.push(span);
            rule.up_to = reader.size(field);
        }
        "min_ranks" => {
            places.ranks.push(span);
            rule.min_ranks = reader.count(field, 1, MAX_RANKS);
        }
        "max_ranks" => {
            places.ranks.push(span);
            rule.max_ranks = reader.count(field, 1, MAX_RANKS);
        }
        _ => reader.unknown_key(field.0, "[[collective]]", &table::names(table::COLLECTIVE)),
    }
}

/// Whether anything is in its ranges.
fn ranges(reader: &mut Reader<'_>, rule: &CollectiveRule, places: &RulePlaces) {
    if matches!((rule.above, rule.up_to), (Some(above), Some(up_to)) if above >= up_to) {
        empty_range(reader, &places.lengths);
    }
    if matches!((rule.min_ranks, rule.max_ranks), (Some(least), Some(most)) if least > most) {
        let label = |span: &Range<usize>| Mark { span: span.clone(), label: "bound of the range".to_owned() };
        let message = "no number of ranks is in this range".to_owned();
        let help = "`max_ranks` must be at least `min_ranks`".to_owned();
        reader.problem(places.ranks.iter().map(label).collect(), message, help);
    }
}

/// A name, without blanks around it.
fn name(reader: &mut Reader<'_>, field: Field<'_, '_>, rule: &str) -> String {
    let text = reader.text(field, rule).map(str::trim);
    if text == Some("") {
        let message = format!("`{}` is empty", field.0.get_ref());
        reader.wrong(field.1.span(), "this value", message, format!("it must be {rule}"));
    }
    text.unwrap_or_default().to_owned()
}

/// The rules that a variable has: `OPERATION=ALGORITHM`, with commas between several.
///
/// # Errors
/// What is wrong with it, and what would be right.
pub(super) fn of_variable(known: &Known, text: &str) -> Result<Vec<CollectiveRule>, Wrong> {
    text.split(',').map(|part| one_of_variable(known, part)).collect()
}

fn one_of_variable(known: &Known, part: &str) -> Result<CollectiveRule, Wrong> {
    let (operation, algorithm) = match part.split_once('=').map(|(one, other)| (one.trim(), other.trim())) {
        Some((operation, algorithm)) if !operation.is_empty() && !algorithm.is_empty() => {
            (operation, algorithm)
        }
        _ => {
            let help = format!(
                "write OPERATION=ALGORITHM, with commas between several; {ANY_OPERATION} is any operation"
            );
            return Err(Wrong::new(
                format!("has `{}`, which names no operation and algorithm", part.trim()),
                help,
            ));
        }
    };
    let source = Source::Environment { variable: COLLECTIVES_VARIABLE.to_owned() };
    let rule = CollectiveRule::new(operation, algorithm, source);
    if let Some(check) = known.collectives {
        check(&rule).map_err(|misnamed| {
            let (message, help) = misnamed.parts();
            Wrong::new(format!("has `{}`: {message}", part.trim()), help)
        })?;
    }
    Ok(rule)
}

#[cfg(test)]
#[path = "read_collective_tests.rs"]
mod tests;
