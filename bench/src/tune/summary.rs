//! What a user reads at the end.

use std::fmt::Write;
use std::path::Path;

use lmt_selector::calibration::{Calibration, Chosen, CourseRules, LARGEST_BYTES, Load};

use crate::contention::show::parameters_text;
use crate::sizes::human;

/// What was found, for people.
pub struct Summary<'a> {
    /// What is written.
    pub calibration: &'a Calibration,
    /// The choices behind its rules.
    pub courses: &'a [CourseRules],
    /// What changed against the calibration before.
    pub changes: &'a [String],
    /// In how many cases collective operations were measured.
    pub collective_cases: usize,
    /// Whether endpoints find the calibration by themselves.
    pub is_found: bool,
}

/// One way over adjacent classes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// Messages longer than this.
    pub above: u64,
    /// Up to this; absent for the last, which has no end.
    pub up_to: Option<u64>,
    /// The way.
    pub way: String,
}

/// Draws adjacent classes with the same way together.
pub fn runs(chosen: &[Chosen]) -> Vec<Run> {
    let adjacent =
        |one: &Chosen, next: &Chosen| one.way == next.way && next.bytes == one.bytes.saturating_mul(2);
    let run = |classes: &[Chosen]| {
        let (first, last) = (classes.first()?, classes.last()?);
        let up_to = (last.bytes < LARGEST_BYTES).then_some(last.bytes);
        Some(Run { above: first.bytes / 2, up_to, way: first.way.clone() })
    };
    chosen.chunk_by(adjacent).filter_map(run).collect()
}

impl std::fmt::Display for Run {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.above, self.up_to) {
            (0, None) => write!(f, "all: {}", self.way),
            (above, None) => write!(f, "above {}: {}", human(above), self.way),
            (0, Some(up_to)) => write!(f, "up to {}: {}", human(up_to), self.way),
            (above, Some(up_to)) => write!(f, "{} to {}: {}", human(above), human(up_to), self.way),
        }
    }
}

/// A load in words.
pub fn load_in_words(load: Load) -> String {
    let cache = if load.off_cache { "off cache" } else { "on cache" };
    match load.pairs {
        1 => format!("{}, one pair, {cache}", load.place),
        pairs => format!("{}, {pairs} pairs at once, {cache}", load.place),
    }
}

/// A path as a shell takes it.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+,:@%".contains(c);
    match text.chars().all(is_plain) {
        true => text,
        false => format!("'{}'", text.replace('\'', "'\\''")),
    }
}

impl Summary<'_> {
    /// The whole text.
    pub fn text(&self, output: &Path, report: &Path, kept: Option<&Path>) -> String {
        let mut text = String::new();
        // Writing into a String cannot fail.
        let _ = self.write(&mut text, output, report, kept);
        text
    }

    fn write(
        &self,
        text: &mut String,
        output: &Path,
        report: &Path,
        kept: Option<&Path>,
    ) -> std::fmt::Result {
        self.write_paths(text)?;
        self.write_copies(text)?;
        self.write_collectives(text)?;
        let provenance = &self.calibration.provenance;
        if !provenance.skipped.is_empty() {
            write_list(text, "not measured:", &provenance.skipped)?;
        }
        if let Some((first, changes)) = self.changes.split_first() {
            write_list(text, first, changes)?;
        }
        if let Some(kept) = kept {
            writeln!(text, "the complete calibration that was there is kept as {}", kept.display())?;
        }
        let complete = if provenance.complete { "" } else { " (not complete)" };
        writeln!(text, "calibration: {}{complete}", output.display())?;
        writeln!(text, "report:      {}", report.display())?;
        match self.is_found {
            true => writeln!(text, "try it:      lmt explain --bytes 1MiB"),
            false => {
                writeln!(text, "try it:      lmt explain --bytes 1MiB --config {}", quoted(output))?;
                writeln!(text, "use it:      export LMT_CONFIG={}", quoted(output))
            }
        }
    }

    fn write_paths(&self, text: &mut String) -> std::fmt::Result {
        let mut measured = self.courses.iter().rev().filter(|course| !course.chosen.is_empty());
        measured.try_for_each(|course| {
            write_list(text, &format!("{}:", load_in_words(course.load)), runs(&course.chosen))
        })
    }

    fn write_copies(&self, text: &mut String) -> std::fmt::Result {
        if let Some(copy_routine) = &self.calibration.copy_routine {
            writeln!(text, "copies within a process: {copy_routine}")?;
        }
        if let Some(contention) = &self.calibration.contention {
            write_list(text, "copies out of another process:", parameters_text(contention).lines())?;
        }
        Ok(())
    }

    fn write_collectives(&self, text: &mut String) -> std::fmt::Result {
        if self.collective_cases == 0 {
            return Ok(());
        }
        let rules = &self.calibration.collectives;
        let what = match rules.is_empty() {
            true => "the library's choice is as good as any",
            false => "otherwise than chosen",
        };
        write_list(text, &format!("collective operations, {} cases: {what}", self.collective_cases), rules)
    }
}

/// A line, and others below it.
fn write_list<T: std::fmt::Display>(
    text: &mut String,
    first: &str,
    others: impl IntoIterator<Item = T>,
) -> std::fmt::Result {
    writeln!(text, "{first}")?;
    others.into_iter().try_for_each(|line| writeln!(text, "  {line}"))
}

#[cfg(test)]
#[path = "summary_tests.rs"]
mod tests;
