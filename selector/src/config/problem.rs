//! What is wrong with a file or a variable, shown as compilers do.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};

/// A part of the text with a word on it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mark {
    /// Which bytes of the text.
    pub span: Range<usize>,
    /// What is said of it.
    pub label: String,
}

/// One thing that is wrong.
///
/// Written out it is one sentence: where, what, and what would be right.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Problem {
    /// The file, or `the environment`.
    pub path: PathBuf,
    /// The line, from 1; 0 when it is not about a place in a text.
    pub line: u32,
    /// The column in characters, from 1; 0 when it is not about a place.
    pub column: u32,
    /// What is wrong.
    pub message: String,
    /// What would be right.
    pub help: String,
    source: Arc<str>,
    /// The place first, then others that have to do with it.
    marks: Vec<Mark>,
}

impl Problem {
    /// Something about a file as a whole.
    pub fn of_file(path: &Path, message: String, help: &str) -> Self {
        let (source, marks) = (Arc::from(""), Vec::new());
        Self { path: path.to_owned(), line: 0, column: 0, message, help: help.to_owned(), source, marks }
    }

    /// Something about a place in a text; the first of `marks` is the place.
    pub fn at(path: &Path, source: &Arc<str>, marks: Vec<Mark>, message: String, help: String) -> Self {
        let marks: Vec<Mark> = marks.into_iter().map(|mark| mark.within(source)).collect();
        let start = marks.first().map_or(0, |mark| mark.span.start);
        let (line, column) = line_and_column(source, start);
        Self { path: path.to_owned(), line, column, message, help, source: source.clone(), marks }
    }

    /// Something about a variable of the environment, whose text is
    /// `NAME=value`; the mark is the value. It has no line.
    pub fn of_variable(path: &Path, source: &Arc<str>, mark: Mark, message: String, help: String) -> Self {
        Self { line: 0, column: 0, ..Self::at(path, source, vec![mark], message, help) }
    }

    /// The problem with its line of the text and carets below it.
    pub fn render(&self) -> String {
        let path = self.path.display().to_string();
        let title = Level::ERROR.primary_title(self.message.as_str());
        let help = Level::HELP.message(self.help.as_str());
        let Some((place, others)) = self.marks.split_first() else {
            let whole = title.element(annotate_snippets::Origin::path(path.as_str())).element(help);
            return Renderer::plain().render(&[whole]);
        };
        let place = AnnotationKind::Primary.span(place.span.clone()).label(place.label.as_str());
        let others = others
            .iter()
            .map(|mark| AnnotationKind::Context.span(mark.span.clone()).label(mark.label.as_str()));
        let snippet = Snippet::source(&*self.source).path(path.as_str()).annotation(place);
        let group = title.element(snippet.annotations(others)).element(help);
        Renderer::plain().render(&[group])
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path.display())?;
        if self.line > 0 {
            write!(f, ":{}:{}", self.line, self.column)?;
        }
        write!(f, ": {}; {}", self.message, self.help)
    }
}

impl Mark {
    /// The same on whole characters within the text, at least one long where
    /// there is one.
    fn within(mut self, source: &str) -> Self {
        let floor = |at: usize| (0..=at.min(source.len())).rev().find(|at| source.is_char_boundary(*at));
        let start = floor(self.span.start).unwrap_or_default();
        let end = floor(self.span.end.max(start)).unwrap_or_default().max(start);
        self.span = start..end;
        self
    }
}

/// Where in a text a byte stands: line and column from 1, the column in
/// characters.
pub(super) fn line_and_column(source: &str, at: usize) -> (u32, u32) {
    let before = source.get(..at).unwrap_or(source);
    let start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
    (count(line), count(before[start..].chars().count() + 1))
}

/// Why there is no configuration: everything that is wrong.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConfigFailure {
    problems: Vec<Problem>,
}

impl ConfigFailure {
    pub(super) fn new(problems: Vec<Problem>) -> Self {
        Self { problems }
    }

    /// A failure if there is a problem.
    pub(super) fn of(problems: Vec<Problem>) -> Result<(), Self> {
        if problems.is_empty() { Ok(()) } else { Err(Self { problems }) }
    }

    /// All that is wrong.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// The whole report, each problem with its line and carets.
    pub fn render(&self) -> String {
        let mut text = String::new();
        for problem in &self.problems {
            text.push_str(&problem.render());
            text.push_str("\n\n");
        }
        text
    }
}

/// One sentence: the first problem, and how many more there are.
impl fmt::Display for ConfigFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(first) = self.problems.first() {
            write!(f, "{first}")?;
        }
        match self.problems.len().saturating_sub(1) {
            0 => Ok(()),
            1 => f.write_str(" (and one more problem; `lmt config --check` shows both)"),
            more => write!(f, " (and {more} more problems; `lmt config --check` shows all)"),
        }
    }
}

impl std::error::Error for ConfigFailure {}

#[cfg(test)]
#[path = "problem_tests.rs"]
mod tests;
