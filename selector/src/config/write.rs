//! Rules as a file has them.

use std::fmt::Write as _;

use lmt_core::selection::{Reuse, Warmth};

use crate::collectives::CollectiveRule;
use crate::rules::{Bound, Figure, MechanismRange, Rule, Take};

/// The text of a rule: what [`parse_file`](super::parse_file) reads back as the
/// same rule, whatever its line.
///
/// ```
/// use lmt_selector::config::write_rule;
/// use lmt_selector::rules::{Bound, Rule, Take};
///
/// let rule = Rule {
///     above: None,
///     up_to: Some(Bound::Bytes(65536)),
///     places: Vec::new(),
///     contiguous: None,
///     warmth: None,
///     reuse: None,
///     min_processes: None,
///     single_copy: None,
///     take: Take::Eager,
///     max_readers: None,
///     line: 1,
/// };
/// assert_eq!(write_rule(&rule), "[[rule]]\nup_to = \"64 KiB\"\ntake = \"eager\"\n");
/// ```
pub fn write_rule(rule: &Rule) -> String {
    let mut text = "[[rule]]\n".to_owned();
    range(&mut text, rule.above, rule.up_to);
    match &rule.places[..] {
        [] => {}
        [place] => line(&mut text, "place", &quoted(place.name())),
        places => {
            let names: Vec<&str> = places.iter().map(|place| place.name()).collect();
            line(&mut text, "place", &list(&names));
        }
    }
    if let Some(contiguous) = rule.contiguous {
        line(&mut text, "segments", if contiguous { "\"one\"" } else { "\"many\"" });
    }
    match rule.warmth {
        Some(Warmth::Warm) => line(&mut text, "sender", "\"warm\""),
        Some(Warmth::Cold) => line(&mut text, "sender", "\"cold\""),
        Some(Warmth::Unknown) | None => {}
    }
    match rule.reuse {
        Some(Reuse::Again) => line(&mut text, "reuse", "\"again\""),
        Some(Reuse::Once) => line(&mut text, "reuse", "\"once\""),
        Some(Reuse::Unknown) | None => {}
    }
    if let Some(processes) = rule.min_processes {
        line(&mut text, "min_processes", &processes.to_string());
    }
    if let Some(single_copy) = rule.single_copy {
        line(&mut text, "single_copy", &quoted(single_copy.name()));
    }
    match &rule.take {
        Take::Eager => line(&mut text, "take", "\"eager\""),
        Take::Ways(ways) => {
            let names: Vec<String> = ways.iter().map(ToString::to_string).collect();
            line(&mut text, "take", &list(&names));
        }
    }
    if let Some(readers) = rule.max_readers {
        line(&mut text, "max_readers", &readers.to_string());
    }
    text
}

/// The text of a mechanism's range.
pub fn write_range(range_of: &MechanismRange) -> String {
    let mut text = format!("[mechanism.{}]\n", range_of.mechanism);
    range(&mut text, range_of.above, range_of.up_to);
    text
}

/// The text of a rule of a collective operation, read back as the same one.
///
/// ```
/// use lmt_core::selection::Source;
/// use lmt_selector::collectives::CollectiveRule;
/// use lmt_selector::config::write_collective;
///
/// let rule = CollectiveRule::new("spread", "tree:4", Source::Call);
/// let rule = CollectiveRule { above: Some(65536), ..rule };
/// let text = "[[collective]]\noperation = \"spread\"\nabove = \"64 KiB\"\nalgorithm = \"tree:4\"\n";
/// assert_eq!(write_collective(&rule), text);
/// ```
pub fn write_collective(rule: &CollectiveRule) -> String {
    let mut text = "[[collective]]\n".to_owned();
    line(&mut text, "operation", &quoted(&rule.operation));
    range(&mut text, rule.above.map(Bound::Bytes), rule.up_to.map(Bound::Bytes));
    for (key, ranks) in [("min_ranks", rule.min_ranks), ("max_ranks", rule.max_ranks)] {
        if let Some(ranks) = ranks {
            line(&mut text, key, &ranks.to_string());
        }
    }
    line(&mut text, "algorithm", &quoted(&rule.algorithm));
    text
}

/// The text of a figure of a calibration.
pub fn write_figure(figure: &Figure) -> String {
    let mut text = "[[figure]]\n".to_owned();
    line(&mut text, "place", &quoted(figure.place.name()));
    line(&mut text, "pairs", &figure.pairs.to_string());
    line(&mut text, "off_cache", &figure.off_cache.to_string());
    line(&mut text, "bytes", &figure.bytes.to_string());
    line(&mut text, "way", &quoted(&figure.way));
    line(&mut text, "median_ns", &figure.median_ns.to_string());
    text
}

fn range(text: &mut String, above: Option<Bound>, up_to: Option<Bound>) {
    for (key, bound) in [("above", above), ("up_to", up_to)] {
        if let Some(bound) = bound {
            line(text, key, &quoted(&bound.to_string()));
        }
    }
}

fn line(text: &mut String, key: &str, value: &str) {
    // Writing to a String does not fail.
    let _ = writeln!(text, "{key} = {value}");
}

/// A text as a basic string of TOML.
pub(crate) fn quoted(text: &str) -> String {
    let mut quoted = "\"".to_owned();
    for character in text.chars() {
        match character {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            control if control.is_control() => {
                let _ = write!(quoted, "\\u{:04X}", u32::from(control));
            }
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

/// Texts as a list of TOML.
pub(super) fn list<T: AsRef<str>>(texts: &[T]) -> String {
    let texts: Vec<String> = texts.iter().map(|text| quoted(text.as_ref())).collect();
    format!("[{}]", texts.join(", "))
}

#[cfg(test)]
#[path = "write_tests.rs"]
mod tests;
