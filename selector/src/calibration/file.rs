//! A calibration as a file: provenance, rules, figures.

use std::fmt::Write;

use super::samples::{Course, Load};
use crate::collectives::CollectiveRule;
use crate::config::{quoted, write_collective, write_figure, write_rule};
use crate::contention::{Parameters, write_contention};
use crate::rules::{Figure, Rule};

/// Where, when and how a calibration was made.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Provenance {
    /// When the measurements began, in UTC as RFC 3339 has it.
    pub date: String,
    /// The machine's fingerprint
    /// ([`fingerprint_of_this_machine`](crate::config::fingerprint_of_this_machine)).
    pub machine: String,
    /// The processor's model.
    pub cpu: String,
    /// The kernel's name and release.
    pub kernel: String,
    /// The CPUs that could be used, as `0-3,8`.
    pub cpus: String,
    /// The version of lmt.
    pub lmt: String,
    /// What hwloc says of the machine, where it describes it.
    pub hwloc: Option<String>,
    /// With which options it was measured, and how long that took.
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
    /// What is best copied by, as the key `copy_routine` has it.
    pub copy_routine: Option<String>,
    /// What single copy costs, where it is allowed.
    pub contention: Option<Parameters>,
    /// What collective operations are done by, where that gains.
    pub collectives: Vec<CollectiveRule>,
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
        Self { provenance, rules: rules.collect(), figures, ..Self::default() }
    }

    /// The same with what bytes are best copied by.
    #[must_use]
    pub fn with_copy_routine(self, copy_routine: String) -> Self {
        Self { copy_routine: Some(copy_routine), ..self }
    }

    /// The same with what single copy costs.
    #[must_use]
    pub fn with_contention(self, contention: Option<Parameters>) -> Self {
        Self { contention, ..self }
    }

    /// The same with rules of collective operations, whose sources do not count.
    #[must_use]
    pub fn with_collectives(self, collectives: Vec<CollectiveRule>) -> Self {
        Self { collectives, ..self }
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
        writeln!(text, "\n[calibration]")?;
        for (key, value) in [
            ("date", Some(&provenance.date)),
            ("machine", Some(&provenance.machine)),
            ("cpu", Some(&provenance.cpu)),
            ("kernel", Some(&provenance.kernel)),
            ("cpus", Some(&provenance.cpus)),
            ("lmt", Some(&provenance.lmt)),
            ("hwloc", provenance.hwloc.as_ref()),
            ("options", Some(&provenance.options)),
        ] {
            if let Some(value) = value {
                writeln!(text, "{key} = {}", quoted(value))?;
            }
        }
        writeln!(text, "complete = {}", provenance.complete)?;
        writeln!(text, "skipped = [")?;
        for sentence in &provenance.skipped {
            writeln!(text, "    {},", quoted(sentence))?;
        }
        writeln!(text, "]")?;
        if let Some(copy_routine) = &self.copy_routine {
            writeln!(text, "\n# By what bytes are copied in user space.\n[endpoint]")?;
            writeln!(text, "copy_routine = {}", quoted(copy_routine))?;
        }
        if let Some(contention) = &self.contention {
            write!(text, "\n{}", write_contention(contention))?;
        }
        let mut last: Option<Load> = None;
        for (load, rule) in &self.rules {
            if last != Some(*load) {
                writeln!(text, "\n# {}.", sentence(*load))?;
                last = Some(*load);
            } else {
                writeln!(text)?;
            }
            text.push_str(&write_rule(rule));
        }
        for (at, rule) in self.collectives.iter().enumerate() {
            let title = if at == 0 { "# Collective operations.\n" } else { "" };
            write!(text, "\n{title}{}", write_collective(rule))?;
        }
        writeln!(text, "\n# What was measured: the median time of one transfer.")?;
        for figure in &self.figures {
            writeln!(text, "{}", write_figure(figure))?;
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

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;
