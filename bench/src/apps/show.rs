//! What came of an application's runs, written.

use std::io::{self, Write};

use serde::Serialize;

use super::job::{AppJob, Outcome, Turn};
use crate::console::{json, written};
use crate::environment::Environment;
use crate::error::BenchError;
use crate::options::Format;
use crate::output::{head, quoted};
use crate::stats::{Summary, median_ratio};

/// What others are compared with, if it is among them.
const BASE: &str = "shm";

/// One mechanism with one algorithm.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AppRow {
    /// The application's name.
    pub application: &'static str,
    /// Its class, or its vertices.
    pub size: String,
    /// The mechanism.
    pub mechanism: String,
    /// As it was asked for.
    pub asked_algorithm: String,
    /// By what the data was moved.
    pub algorithm: String,
    /// Processes in the group.
    pub ranks: u32,
    /// Runs.
    pub repetitions: usize,
    /// The slowest rank's time, median over the runs.
    pub seconds_median: f64,
    /// The fastest run.
    pub seconds_min: f64,
    /// The slowest run.
    pub seconds_max: f64,
    /// In collective operations: the mean over the ranks, median over the runs.
    pub communication_seconds: f64,
    /// What share of the time that is: the median over the runs.
    pub communication_percent: f64,
    /// Millions of operations per second at the median.
    pub mop_per_s: f64,
    /// How much faster than the base, in percent of its own time, as the paper's tables
    /// have it: the median over the runs' pairs.
    pub speedup_percent: f64,
    /// The same of the communication.
    pub communication_speedup_percent: f64,
    /// Results that were compared with known ones in each run.
    pub checks: u64,
    /// Whether all were right, and all else that is verified.
    pub verified: bool,
}

/// All rows, and what they are compared with.
pub struct Shown<'a> {
    job: &'a AppJob,
    base: String,
    rows: Vec<AppRow>,
}

/// The runs of one turn.
struct Runs<'a> {
    turn: Turn,
    outcomes: Vec<&'a Outcome>,
}

impl Runs<'_> {
    fn seconds(&self) -> Vec<f64> {
        self.outcomes.iter().map(|outcome| outcome.seconds).collect()
    }

    fn communication(&self) -> Vec<f64> {
        self.outcomes.iter().map(|outcome| outcome.communication_seconds).collect()
    }
}

impl<'a> Shown<'a> {
    /// The rows of these runs. Turns that had none are left out.
    pub fn new(job: &'a AppJob, outcomes: &[Outcome]) -> Self {
        let of = |(index, turn)| {
            let own = outcomes.iter().filter(|outcome| outcome.turn == index).collect();
            Runs { turn, outcomes: own }
        };
        let all: Vec<Runs<'_>> = job.turns().into_iter().enumerate().map(of).collect();
        let all: Vec<Runs<'_>> = all.into_iter().filter(|runs| !runs.outcomes.is_empty()).collect();
        let is_base = |runs: &&Runs<'_>| job.mechanisms[runs.turn.mechanism] == BASE;
        let base = all.iter().find(is_base).or_else(|| all.first());
        let rows = all.iter().filter_map(|runs| row(job, runs, base?)).collect();
        let base = base.map(|runs| name(job, runs.turn)).unwrap_or_default();
        Self { job, base, rows }
    }

    /// The rows as a text.
    ///
    /// # Errors
    /// They cannot be written.
    pub fn written(&self, format: Format, environment: &Environment) -> Result<String, BenchError> {
        match format {
            Format::Table => written(|out| self.table(out, environment)),
            Format::Csv => written(|out| self.csv(out)),
            Format::Json => self.json(environment),
        }
    }

    fn table(&self, out: &mut dyn Write, environment: &Environment) -> io::Result<()> {
        let AppJob { problem, ranks, repetitions, .. } = self.job;
        head(out, &format!("lmt app {}, {ranks} ranks: {}", problem.name(), problem.text()), environment)?;
        writeln!(
            out,
            "# seconds of the slowest rank: median, least and most of {repetitions} runs that take turns; \
             in communication: the mean of the ranks"
        )?;
        writeln!(
            out,
            "# faster: than {}, of all and of the communication; verified: results compared with known ones",
            self.base
        )?;
        writeln!(
            out,
            "{:<10} {:<22} {:>9} {:>9} {:>9} {:>8} {:>9} {:>6} {:>8} {:>9}  verified",
            "mechanism",
            "algorithm",
            "seconds",
            "min",
            "max",
            "faster",
            "comm s",
            "comm %",
            "faster",
            "Mop/s"
        )?;
        self.rows.iter().try_for_each(|row| {
            writeln!(
                out,
                "{:<10} {:<22} {:>9.4} {:>9.4} {:>9.4} {:>+7.1}% {:>9.4} {:>6.1} {:>+7.1}% {:>9.1}  {}",
                row.mechanism,
                chosen(row),
                row.seconds_median,
                row.seconds_min,
                row.seconds_max,
                row.speedup_percent,
                row.communication_seconds,
                row.communication_percent,
                row.communication_speedup_percent,
                row.mop_per_s,
                if row.verified { format!("{}, all right", row.checks) } else { "WRONG".to_owned() }
            )
        })
    }

    fn csv(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(
            out,
            "application,size,mechanism,asked_algorithm,algorithm,ranks,repetitions,seconds_median,seconds_min,\
             seconds_max,communication_seconds,communication_percent,mop_per_s,speedup_percent,\
             communication_speedup_percent,checks,verified"
        )?;
        self.rows.iter().try_for_each(|row| {
            writeln!(
                out,
                "{},{},{},{},{},{},{},{:.6},{:.6},{:.6},{:.6},{:.2},{:.3},{:.2},{:.2},{},{}",
                row.application,
                row.size,
                quoted(&row.mechanism),
                row.asked_algorithm,
                row.algorithm,
                row.ranks,
                row.repetitions,
                row.seconds_median,
                row.seconds_min,
                row.seconds_max,
                row.communication_seconds,
                row.communication_percent,
                row.mop_per_s,
                row.speedup_percent,
                row.communication_speedup_percent,
                row.checks,
                row.verified
            )
        })
    }

    fn json(&self, environment: &Environment) -> Result<String, BenchError> {
        #[derive(Serialize)]
        struct Document<'a> {
            environment: &'a Environment,
            settings: &'a AppJob,
            compared_with: &'a str,
            rows: &'a [AppRow],
        }
        let document =
            Document { environment, settings: self.job, compared_with: &self.base, rows: &self.rows };
        json(&document)
    }
}

fn chosen(row: &AppRow) -> String {
    if row.asked_algorithm == row.algorithm {
        return row.algorithm.clone();
    }
    format!("{}: {}", row.asked_algorithm, row.algorithm)
}

fn name(job: &AppJob, turn: Turn) -> String {
    format!("{} by {}", job.mechanisms[turn.mechanism], job.algorithms[turn.algorithm])
}

fn row(job: &AppJob, runs: &Runs<'_>, base: &Runs<'_>) -> Option<AppRow> {
    let (seconds, communication) = (runs.seconds(), runs.communication());
    let shares: Vec<f64> = seconds
        .iter()
        .zip(&communication)
        .map(|(all, part)| 100.0 * part / all.max(f64::MIN_POSITIVE))
        .collect();
    let summary = Summary::of(&seconds)?;
    let faster =
        |base: &[f64], own: &[f64]| median_ratio(base, own).map_or(0.0, |ratio| 100.0 * (ratio - 1.0));
    let last = runs.outcomes.last()?;
    Some(AppRow {
        application: job.problem.name(),
        size: job.problem.size(),
        mechanism: job.mechanisms[runs.turn.mechanism].clone(),
        asked_algorithm: job.algorithms[runs.turn.algorithm].clone(),
        algorithm: last.algorithm.clone(),
        ranks: job.ranks,
        repetitions: seconds.len(),
        seconds_median: summary.median,
        seconds_min: summary.min,
        seconds_max: summary.max,
        communication_seconds: Summary::of(&communication)?.median,
        communication_percent: Summary::of(&shares)?.median,
        mop_per_s: job.problem.operations() / summary.median / 1e6,
        speedup_percent: faster(&base.seconds(), &seconds),
        communication_speedup_percent: faster(&base.communication(), &communication),
        checks: last.checks,
        verified: runs.outcomes.iter().all(|outcome| outcome.verified),
    })
}

#[cfg(test)]
#[path = "show_tests.rs"]
mod tests;
