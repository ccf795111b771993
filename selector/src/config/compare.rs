//! What the parts of a file say of each other: told once all of it is read.

use std::ops::Range;

use lmt_core::config_key::Value;

use super::checks::{self, Finding, Subject};
use super::parsed::Parsed;
use super::problem::Mark;
use super::reader::{Reader, empty_range};
use crate::configuration::DmaMinSetting;
use crate::rules::Rule;

const EAGER_KEY: &str = "eager_max_bytes";

/// Notes what is wrong between the parts of a file, each of which is right.
pub(super) fn compare(reader: &mut Reader<'_>, parsed: &Parsed) {
    let known = reader.known;
    let eager_max_bytes = parsed.endpoint.iter().find(|(key, ..)| *key == EAGER_KEY);
    let subject = Subject {
        rules: &parsed.layer.rules,
        ranges: &parsed.layer.ranges,
        eager_max_bytes: eager_max_bytes.and_then(|(_, value, _)| match value {
            Value::Number(bytes) => Some(*bytes),
            _ => None,
        }),
        dma_min: parsed.dma_min.and_then(|(setting, _)| match setting {
            DmaMinSetting::Bytes(bytes) => Some(bytes),
            _ => None,
        }),
        known,
    };
    for (at, range) in subject.ranges.iter().enumerate() {
        if subject.is_empty_range(range.above, range.up_to) {
            let bounds = reader.places.ranges[at].bounds.clone();
            empty_range(reader, &bounds);
        }
    }
    for finding in checks::check(&subject) {
        // What nobody can reach is only known beside all rules.
        let needs_all = !matches!(finding, Finding::Empty { .. } | Finding::Overlap { .. });
        if !(needs_all && reader.places.lacks_rules) {
            report(reader, subject.rules, finding);
        }
    }
    if parsed.calibration.is_some()
        && let Some(span) = key_place(reader, "mechanisms")
    {
        let message = "a calibration measures and leaves out no mechanism".to_owned();
        reader.wrong(span, "this key", message, "set `mechanisms` in a file of your own");
    }
}

fn key_place(reader: &Reader<'_>, key: &str) -> Option<Range<usize>> {
    reader.places.endpoint.iter().find(|(name, _)| *name == key).map(|(_, span)| span.clone())
}

fn rule_mark(reader: &Reader<'_>, rule: usize, label: &str) -> Mark {
    Mark { span: reader.places.rules[rule].header.clone(), label: label.to_owned() }
}

fn report(reader: &mut Reader<'_>, rules: &[Rule], finding: Finding) {
    match finding {
        Finding::Empty { rule } => {
            let bounds = reader.places.rules[rule].bounds.clone();
            empty_range(reader, &bounds);
        }
        Finding::Overlap { earlier, later } => overlap(reader, rules, earlier, later),
        Finding::Unreachable { rule, behind } => {
            let message =
                "no message reaches this rule: others that speak before it fit all that it fits".to_owned();
            let mut marks = vec![rule_mark(reader, rule, "never speaks")];
            marks.extend(behind.iter().map(|other| rule_mark(reader, *other, "speaks before it")));
            reader.problem(marks, message, "remove it, or put it before them".to_owned());
        }
        Finding::Short { rule, eager } => short(reader, rules, rule, &eager),
        Finding::OutOfRange { rule, ranges } => {
            let message = "nothing that this rule takes may be taken for its lengths".to_owned();
            let mut marks = vec![rule_mark(reader, rule, "takes what is out of its range")];
            let range = |at: &usize| Mark {
                span: reader.places.ranges[*at].header.clone(),
                label: "has it for other lengths".to_owned(),
            };
            marks.extend(ranges.iter().map(range));
            let help = "change the bounds of the one or of the other, or what the rule takes";
            reader.problem(marks, message, help.to_owned());
        }
        Finding::KeyUnused { eager } => {
            let message = format!(
                "`{EAGER_KEY}` has no effect: rules of this file that take \"eager\" speak for all processes, and before it"
            );
            let span = key_place(reader, EAGER_KEY).unwrap_or_default();
            let mut marks = vec![Mark { span, label: "this key".to_owned() }];
            marks.extend(eager.iter().map(|rule| rule_mark(reader, *rule, "speaks before it")));
            reader.problem(marks, message, "keep the key or the rules".to_owned());
        }
    }
}

fn overlap(reader: &mut Reader<'_>, rules: &[Rule], earlier: usize, later: usize) {
    let message = format!(
        "this rule and the one on line {} fit the same messages, and neither is an exception of the other",
        rules[earlier].line
    );
    let help = "let one begin where the other ends, or give the earlier one conditions (place, segments, sender, reuse, min_processes, single_copy) that the later one leaves open";
    let marks = vec![
        rule_mark(reader, later, "overlaps"),
        rule_mark(reader, earlier, "with this one, which would speak"),
    ];
    reader.problem(marks, message, help.to_owned());
}

/// A rule whose messages all travel in cells.
fn short(reader: &mut Reader<'_>, rules: &[Rule], rule: usize, eager: &[usize]) {
    let message =
        "no message reaches this rule: all that it fits is eager, and rules that take paths apply to rendezvous messages"
            .to_owned();
    let mut marks = vec![rule_mark(reader, rule, "never speaks")];
    for other in eager {
        let end = rules[*other].up_to.map(|bound| format!(" up to {bound}")).unwrap_or_default();
        marks.push(rule_mark(reader, *other, &format!("takes cells{end}")));
    }
    if eager.is_empty()
        && let Some(span) = key_place(reader, EAGER_KEY)
    {
        marks.push(Mark { span, label: "takes cells up to this".to_owned() });
    }
    let help = match marks.len() {
        1 => "only the empty message is in its range: let it reach further, or remove it",
        _ => "let it reach beyond what travels in cells, or let less travel in cells, or remove it",
    };
    reader.problem(marks, message, help.to_owned());
}
