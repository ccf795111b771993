//! A calibration as a file: provenance, rules, figures.

use std::fmt::Write;

use super::samples::{Course, Load};
use crate::rules::{Figure, Rule, Take};

/// Where, when and how a calibration was made.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Provenance {
    /// When it ended, in UTC as RFC 3339 has it.
    pub date: String,
    /// The machine's [`fingerprint`].
    pub machine: String,
    /// The processor's model.
    pub cpu: String,
    /// The kernel's name and release.
    pub kernel: String,
    /// The CPUs that could be used, as `0-3,8`.
    pub cpus: String,
    /// The version of lmt.
    pub lmt: String,
    /// What hwloc says of the machine, in a line.
    pub hwloc: Option<String>,
    /// With which options it was made.
    pub options: String,
    /// Whether all that was to be measured was.
    pub complete: bool,
    /// What was not measured and why, a sentence each.
    pub skipped: Vec<String>,
}

/// A calibration: the whole content of its file.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Calibration {
    /// Where it comes from.
    pub provenance: Provenance,
    /// What follows from the figures, exceptions first.
    pub rules: Vec<(Load, Rule)>,
    /// What was measured.
    pub figures: Vec<Figure>,
}

/// The name of a machine in files: its processor's model in lower case, and how
/// many CPUs it has. Machines of one kind share it, so that a cluster needs one
/// calibration for each kind of node.
///
/// ```
/// use lmt_selector::calibration::fingerprint;
///
/// assert_eq!(fingerprint("Intel(R) Xeon(R) CPU E5345 @ 2.33GHz", 8), "intel-r-xeon-r-cpu-e5345-2-33ghz-8");
/// ```
pub fn fingerprint(cpu_model: &str, cpus: u32) -> String {
    let mut slug = String::new();
    for letter in cpu_model.chars() {
        match letter {
            letter if letter.is_ascii_alphanumeric() => slug.push(letter.to_ascii_lowercase()),
            _ if slug.is_empty() || slug.ends_with('-') => {}
            _ => slug.push('-'),
        }
    }
    let slug = slug.trim_end_matches('-');
    let slug = if slug.is_empty() { "unknown" } else { slug };
    format!("{slug}-{cpus}")
}

impl Calibration {
    /// The calibration of these courses.
    pub fn new(provenance: Provenance, courses: &[Course], order: &[String]) -> Self {
        let of_courses = super::rules(courses, order);
        let rules = of_courses.into_iter().flat_map(|course| {
            let load = course.load;
            course.rules.into_iter().map(move |rule| (load, rule))
        });
        let figures = courses.iter().flat_map(Course::figures).collect();
        Self { provenance, rules: rules.collect(), figures }
    }

    /// The file's text.
    pub fn to_toml(&self) -> String {
        let mut text = String::new();
        // Writing into a String cannot fail.
        let _ = self.write(&mut text);
        text
    }

    fn write(&self, text: &mut String) -> std::fmt::Result {
        let provenance = &self.provenance;
        writeln!(text, "# Written by lmt tune. Measure again rather than change it; rules of your own belong")?;
        writeln!(text, "# into lmt.toml, which outranks this file. docs/tuning.md says how it is found.")?;
        writeln!(text, "\n[calibration]")?;
        for (key, value) in [
            ("date", &provenance.date),
            ("machine", &provenance.machine),
            ("cpu", &provenance.cpu),
            ("kernel", &provenance.kernel),
            ("cpus", &provenance.cpus),
            ("lmt", &provenance.lmt),
        ] {
            writeln!(text, "{key} = {}", quoted(value))?;
        }
        if let Some(hwloc) = &provenance.hwloc {
            writeln!(text, "hwloc = {}", quoted(hwloc))?;
        }
        writeln!(text, "options = {}", quoted(&provenance.options))?;
        writeln!(text, "complete = {}", provenance.complete)?;
        writeln!(text, "skipped = [")?;
        for sentence in &provenance.skipped {
            writeln!(text, "    {},", quoted(sentence))?;
        }
        writeln!(text, "]")?;
        let mut last: Option<Load> = None;
        for (load, rule) in &self.rules {
            if last != Some(*load) {
                writeln!(text, "\n# {}.", sentence(*load))?;
                last = Some(*load);
            } else {
                writeln!(text)?;
            }
            write_rule(text, rule)?;
        }
        writeln!(text, "\n# What was measured: the median time of one transfer.")?;
        for figure in &self.figures {
            writeln!(text, "[[figure]]")?;
            writeln!(text, "place = \"{}\"", figure.place.name())?;
            writeln!(text, "pairs = {}", figure.pairs)?;
            writeln!(text, "off_cache = {}", figure.off_cache)?;
            writeln!(text, "bytes = {}", figure.bytes)?;
            writeln!(text, "way = {}", quoted(&figure.way))?;
            writeln!(text, "median_ns = {}\n", figure.median_ns)?;
        }
        Ok(())
    }
}

/// A load in words.
fn sentence(load: Load) -> String {
    let cache = if load.off_cache { "off cache" } else { "on cache" };
    match load.pairs {
        1 => format!("{}: one pair, {cache}", load.place),
        pairs => format!("{}: {pairs} pairs at once, {cache}", load.place),
    }
}

fn write_rule(text: &mut String, rule: &Rule) -> std::fmt::Result {
    writeln!(text, "[[rule]]")?;
    for (key, bound) in [("above", rule.above), ("up_to", rule.up_to)] {
        if let Some(bound) = bound {
            writeln!(text, "{key} = \"{bound}\"")?;
        }
    }
    match rule.places.as_slice() {
        [] => {}
        [place] => writeln!(text, "place = \"{}\"", place.name())?,
        places => {
            let places: Vec<String> = places.iter().map(|place| quoted(place.name())).collect();
            writeln!(text, "place = [{}]", places.join(", "))?;
        }
    }
    if let Some(warmth) = rule.warmth {
        let word = if warmth == lmt_core::selection::Warmth::Cold { "cold" } else { "warm" };
        writeln!(text, "sender = \"{word}\"")?;
    }
    if let Some(processes) = rule.min_processes {
        writeln!(text, "min_processes = {processes}")?;
    }
    match &rule.take {
        Take::Eager => writeln!(text, "take = \"eager\"")?,
        Take::Ways(ways) => {
            let ways: Vec<String> = ways.iter().map(|way| quoted(&way.to_string())).collect();
            writeln!(text, "take = [{}]", ways.join(", "))?;
        }
    }
    Ok(())
}

/// A basic string of TOML.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            letter if letter.is_control() => quoted.push_str(&format!("\\u{:04X}", u32::from(letter))),
            letter => quoted.push(letter),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;
