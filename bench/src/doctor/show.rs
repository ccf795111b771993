//! The report for people.

use lmt::diagnostic::{Finding, State};

use super::Report;

/// Columns of a line, as of a terminal that was not asked.
const WIDTH: usize = 100;
/// Columns before the sentence: mark and name.
const MARK: usize = 10;
const NAME: usize = 26;

fn mark(state: State) -> &'static str {
    match state {
        State::Good => "[ok]",
        State::Limited => "[limited]",
        State::Missing => "[missing]",
        State::Blocked => "[blocked]",
        State::Unknown => "[unknown]",
    }
}

/// The escape sequence of a state's colour (ECMA-48, SGR).
fn colour_of(state: State) -> &'static str {
    match state {
        State::Good => "\x1b[32m",
        State::Limited => "\x1b[33m",
        State::Missing | State::Unknown => "\x1b[2m",
        State::Blocked => "\x1b[31m",
    }
}

/// All of it, with one sentence at the end.
pub(super) fn table(report: &Report, colour: bool) -> String {
    let mut text = String::new();
    if let Some(root) = &report.root {
        let note = format!(
            "Files are read below {}; whether mechanisms work is found out on this machine.",
            root.display()
        );
        text.push_str(&format!("{note}\n\n"));
    }
    heading(&mut text, "mechanisms, in order of preference");
    // What several have in common is told once.
    let mut told: Vec<&Finding> = Vec::new();
    for diagnosis in &report.mechanisms {
        let best = if diagnosis.is_best { " (of the best for this kernel)" } else { "" };
        let meaning = format!("{}{best}", diagnosis.meaning);
        let new: Vec<&Finding> =
            diagnosis.findings.iter().filter(|finding| !told.contains(finding)).collect();
        // The line's own fix is that of one of its findings, told just below.
        let below = diagnosis.fix.as_ref().is_some_and(|fix| new.iter().any(|f| f.fix.as_ref() == Some(fix)));
        let fix = diagnosis.fix.as_deref().filter(|_| !below);
        line(&mut text, 0, diagnosis.state, diagnosis.name, &meaning, fix, colour);
        for finding in &new {
            line(
                &mut text,
                2,
                finding.state,
                &finding.name,
                &finding.meaning,
                finding.fix.as_deref(),
                colour,
            );
        }
        told.extend(new);
    }
    let mut group = "";
    for grouped in &report.findings {
        if grouped.group != group {
            group = grouped.group;
            text.push('\n');
            heading(&mut text, group);
        }
        let finding = &grouped.finding;
        line(&mut text, 0, finding.state, &finding.name, &finding.meaning, finding.fix.as_deref(), colour);
    }
    text.push('\n');
    text.push_str(&wrap(&report.verdict, 0));
    text
}

fn heading(text: &mut String, heading: &str) {
    text.push_str(&format!("{heading}\n"));
}

fn line(
    text: &mut String,
    indent: usize,
    state: State,
    name: &str,
    meaning: &str,
    fix: Option<&str>,
    colour: bool,
) {
    let (on, off) = if colour { (colour_of(state), "\x1b[0m") } else { ("", "") };
    let name_width = NAME - indent;
    text.push_str(&format!("  {on}{:MARK$}{off}{:indent$}{name:name_width$}  ", mark(state), ""));
    let from = 2 + MARK + NAME + 2;
    // A name that is too long has a line of its own.
    if name.chars().count() > name_width {
        text.truncate(text.trim_end().len());
        text.push('\n');
        text.push_str(&" ".repeat(from));
    }
    text.push_str(wrap(meaning, from).trim_start());
    if let Some(fix) = fix {
        let fix = wrap(&format!("-> {fix}"), from);
        text.push_str(&fix);
    }
}

/// Lines of at most [`WIDTH`] columns, each indented; words stay whole.
fn wrap(sentence: &str, indent: usize) -> String {
    let mut text = String::new();
    let mut column = WIDTH;
    for word in sentence.split_whitespace() {
        let length = word.chars().count();
        if column + 1 + length > WIDTH {
            if !text.is_empty() {
                text.push('\n');
            }
            text.push_str(&" ".repeat(indent));
            column = indent;
        } else {
            text.push(' ');
            column += 1;
        }
        text.push_str(word);
        column += length;
    }
    text.push('\n');
    text
}

#[cfg(test)]
#[path = "show_tests.rs"]
mod tests;
