//! Measures a job, and shows its results as they come.

use std::io;
use std::io::Write;

use crate::console::{complain, to_output};
use crate::engine::LeftOut;
use crate::environment::Environment;
use crate::error::BenchError;
use crate::group;
use crate::interrupt::Interrupt;
use crate::job::{Event, Job, Row};
use crate::output::Results;
use crate::progress::Progress;

/// What a run has found.
pub(crate) struct Measured {
    /// Where and how.
    pub environment: Environment,
    /// All rows.
    pub rows: Vec<Row>,
    /// Mechanisms that failed on the way.
    pub left_out: Vec<LeftOut>,
}

/// Measures and shows. A mechanism that fails is left out, and the sizes that are
/// not shown yet are measured with the others. Where signals are requests,
/// `interrupt` has them.
///
/// # Errors
/// A rank failed, or the output cannot be written.
pub(crate) fn run(
    job: &Job,
    results: &mut dyn Results,
    interrupt: Option<&Interrupt>,
    progress: &Progress,
) -> Result<Measured, BenchError> {
    let environment = Environment::record(job);
    let (mut rows, mut left_out) = (Vec::new(), Vec::new());
    let mut shown = Shown { results, environment: &environment, job, has_begun: false, progress };
    let mut job = job.clone();
    let measured = loop {
        match run_once(&job, &mut shown, interrupt, &mut rows) {
            Err(BenchError::Mechanism { name, sentence }) if can_do_without(&job, &name) => {
                progress.suspend(|| complain(&format!("{name} is left out: {sentence}")));
                job.mechanisms.retain(|other| *other != name);
                job.sizes.retain(|bytes| !rows.iter().any(|row: &Row| row.bytes == *bytes));
                left_out.push(LeftOut { name, reason: sentence });
            }
            other => break other,
        }
    };
    measured?;
    shown.begin()?;
    shown.write(|results, out| results.end(out))?;
    Ok(Measured { environment, rows, left_out })
}

/// Whether others are left without this mechanism, and a size's rows come together.
fn can_do_without(job: &Job, name: &str) -> bool {
    job.pattern.figures().is_empty() && job.mechanisms.iter().any(|other| other != name)
}

/// Results as they are shown. Nothing is before something is measured: what
/// cannot be measured is told in a sentence alone.
struct Shown<'a> {
    results: &'a mut dyn Results,
    environment: &'a Environment,
    job: &'a Job,
    has_begun: bool,
    progress: &'a Progress,
}

impl Shown<'_> {
    /// Shows what stands above the rows, once.
    fn begin(&mut self) -> Result<(), BenchError> {
        if std::mem::replace(&mut self.has_begun, true) {
            return Ok(());
        }
        let (environment, job) = (self.environment, self.job);
        self.write(|results, out| results.begin(out, environment, job))
    }

    fn write(
        &mut self,
        write: impl FnOnce(&mut dyn Results, &mut dyn Write) -> io::Result<()>,
    ) -> Result<(), BenchError> {
        let results = &mut *self.results;
        self.progress.suspend(|| to_output(|out| write(results, out)))
    }
}

fn run_once(
    job: &Job,
    shown: &mut Shown<'_>,
    interrupt: Option<&Interrupt>,
    rows: &mut Vec<Row>,
) -> Result<(), BenchError> {
    group::run(job, &mut |event| {
        if let Some(signal) = interrupt.and_then(Interrupt::signal) {
            let sentence = "it was interrupted; nothing was written".to_owned();
            return Err(BenchError::Interrupted { signal: signal as u8, sentence });
        }
        match event {
            Event::Progress { done, total } => {
                shown.begin()?;
                shown.progress.show(done, total);
            }
            Event::Note(note) => shown.progress.suspend(|| complain(&note)),
            Event::Rows(new) => {
                shown.begin()?;
                shown.write(|results, out| results.rows(out, &new))?;
                rows.extend(new);
            }
            // Of use to other commands, or dealt with before.
            _ => {}
        }
        Ok(())
    })
}
