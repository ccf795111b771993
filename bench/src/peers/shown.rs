//! How a comparison in rounds goes, as it is shown meanwhile.

use std::io::{self, Write};

use crate::console::{complain, to_output};
use crate::error::BenchError;
use crate::progress::Progress;

/// What writes a part of a table.
type Part<'a, R> = Box<dyn Fn(&mut dyn Write, &R) -> io::Result<()> + 'a>;

/// Shows it; rows as they come, if there is a table for people.
pub(crate) struct Shown<'a, R> {
    progress: &'a Progress,
    /// What stands above the rows, and a row.
    table: Option<(Part<'a, ()>, Part<'a, R>)>,
}

impl<'a, R> Shown<'a, R> {
    /// Progress and notes alone.
    pub fn new(progress: &'a Progress) -> Self {
        Self { progress, table: None }
    }

    /// With a table, if that is wanted.
    #[must_use]
    pub fn with_table(
        self,
        is_wanted: bool,
        head: impl Fn(&mut dyn Write) -> io::Result<()> + 'a,
        row: impl Fn(&mut dyn Write, &R) -> io::Result<()> + 'a,
    ) -> Self {
        let head: Part<'a, ()> = Box::new(move |out, &()| head(out));
        let row: Part<'a, R> = Box::new(row);
        Self { table: is_wanted.then_some((head, row)), ..self }
    }

    /// All have started.
    ///
    /// # Errors
    /// It cannot be shown.
    pub fn begin(&self) -> Result<(), BenchError> {
        self.table.as_ref().map_or(Ok(()), |(head, _)| self.write(|out| head(out, &())))
    }

    /// So many of all rounds are done.
    pub fn progress(&self, done: u64, total: u64) {
        self.progress.show(done, total);
    }

    /// Something worth a line.
    pub fn note(&self, sentence: &str) {
        self.progress.suspend(|| complain(sentence));
    }

    /// A size is done.
    ///
    /// # Errors
    /// It cannot be shown.
    pub fn size(&self, result: &R) -> Result<(), BenchError> {
        self.table.as_ref().map_or(Ok(()), |(_, row)| self.write(|out| row(out, result)))
    }

    /// What stands below the rows, if there are any.
    ///
    /// # Errors
    /// It cannot be shown.
    pub fn end(&self, tail: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), BenchError> {
        if self.table.is_none() { Ok(()) } else { self.write(tail) }
    }

    fn write(&self, part: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), BenchError> {
        self.progress.suspend(|| to_output(part))
    }
}
