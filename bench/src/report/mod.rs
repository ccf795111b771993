//! The HTML report: one file that needs nothing else.

mod findings;
mod html;
mod labels;
mod pages;
mod plot;
mod style;

pub use findings::{Crossover, Findings};
pub(crate) use html::{document, figure, page, plot_figure};
pub use pages::to_html;
pub(crate) use plot::{Chart, Line, Mark, Pen, Scale};
pub(crate) use style::escaped;

use lmt_selector::calibration::EAGER;

use crate::choice::{AUTO, path_of};
use crate::engine::LeftOut;
use crate::environment::Environment;
use crate::job::{Job, LIMITS, Row};
use crate::limits::{METHODS, Work};
use crate::memory::Memory;

/// One mechanism or bare method at one size.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Message size.
    pub bytes: u64,
    /// One-way time, median.
    pub usec: f64,
    /// Fastest and slowest repetition.
    pub usec_range: (f64, f64),
    /// Quartiles of the repetitions; absent where there were too few to tell.
    pub quartiles: Option<(f64, f64)>,
    /// The path that most of the bytes took, where that was counted.
    pub path: Option<String>,
    /// Throughput at the median.
    pub mb_per_s: f64,
}

/// What a line of the plots stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// What the library chooses by itself.
    Auto,
    /// One way of moving messages: cells, or a mechanism with every message announced.
    Way,
    /// One way between other buffers than the others' are.
    OtherBuffers,
}

/// A line of the plots.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// The mechanism or the bare method.
    pub name: String,
    /// What it stands for.
    pub kind: Kind,
    /// By size, ascending.
    pub points: Vec<Point>,
    /// Messages of which every byte was checked.
    pub verified_messages: u64,
    /// Messages that were timed, and how many of them took the path that this line is of.
    pub moved: (u64, u64),
}

impl Series {
    /// A line without points.
    pub fn new(name: &str, kind: Kind) -> Self {
        Self { name: name.to_owned(), kind, points: Vec::new(), verified_messages: 0, moved: (0, 0) }
    }

    /// What was measured at a size.
    pub fn at(&self, bytes: u64) -> Option<&Point> {
        self.points.iter().find(|point| point.bytes == bytes)
    }

    /// Its name, and how its buffers differ from the others'.
    pub fn legend(&self) -> String {
        match self.kind {
            Kind::OtherBuffers => format!("{} (buffers of lmt::alloc)", self.name),
            Kind::Auto | Kind::Way => self.name.clone(),
        }
    }
}

/// What was measured in one mode: plain data.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// Whether messages were in use; else they were never modified.
    pub in_use: bool,
    /// Where and how it was measured.
    pub environment: Environment,
    /// How often each size was measured.
    pub repetitions: u32,
    /// One line for each mechanism.
    pub mechanisms: Vec<Series>,
    /// The mechanisms that do not work here.
    pub left_out: Vec<LeftOut>,
    /// Thin lines: what the machine allows. May be empty.
    pub limits: Vec<Series>,
    /// What follows from the figures.
    pub findings: Findings,
}

impl Report {
    /// Puts the rows of a job's pattern, and of the bare methods if there are any,
    /// in the order of a report.
    pub fn new(environment: Environment, job: &Job, rows: &[Row], left_out: Vec<LeftOut>) -> Self {
        let plotted = |row: &&Row| {
            METHODS.iter().all(|method| method.name != row.mechanism || method.work.moves_bytes())
        };
        let limits = series(job, rows.iter().filter(|row| row.pattern == LIMITS).filter(plotted));
        let mechanisms = series(job, rows.iter().filter(|row| row.pattern != LIMITS));
        let findings = Findings::of(&mechanisms);
        let (in_use, repetitions) = (job.in_use, job.repetitions);
        Self { in_use, environment, repetitions, mechanisms, left_out, limits, findings }
    }

    /// The way that is faster than all others at a size, if one is.
    pub fn winner(&self, bytes: u64) -> Option<&str> {
        findings::winner(&self.mechanisms, bytes).map(|series| series.name.as_str())
    }
}

/// The limits that plots show: bare ping-pongs, the pipelines drawn together into the fastest
/// of them at each size. All are in the table.
fn plotted_limits(limits: &[Series]) -> Vec<Series> {
    let work =
        |series: &Series| METHODS.iter().find(|method| method.name == series.name).map(|method| method.work);
    let (pipelines, others): (Vec<&Series>, Vec<&Series>) = limits
        .iter()
        // A line of no single method is drawn as it is.
        .filter(|series| work(series).is_none_or(Work::is_round_trip))
        .partition(|series| matches!(work(series), Some(Work::Pipeline { .. })));
    let mut best: Vec<Point> = pipelines.iter().flat_map(|series| series.points.iter().cloned()).collect();
    best.sort_by(|one, other| one.bytes.cmp(&other.bytes).then(one.usec.total_cmp(&other.usec)));
    best.dedup_by_key(|point| point.bytes);
    let best = (!best.is_empty()).then(|| Series { points: best, ..Series::new("best pipeline", Kind::Way) });
    others.into_iter().cloned().chain(best).collect()
}

/// How a line is called whose job calls it so: all ways are measured by themselves, which
/// their names need not repeat.
pub(crate) fn name_of(mechanism: &str) -> &str {
    path_of(mechanism).unwrap_or(mechanism)
}

fn kind_of(job: &Job, mechanism: &str) -> Kind {
    match job.buffers_of(mechanism) {
        _ if mechanism == AUTO => Kind::Auto,
        Memory::Shared if job.buffers == Memory::Private => Kind::OtherBuffers,
        Memory::Shared | Memory::Private => Kind::Way,
    }
}

fn series<'a>(job: &Job, rows: impl Iterator<Item = &'a Row>) -> Vec<Series> {
    let new = |mechanism: &str| Series::new(name_of(mechanism), kind_of(job, mechanism));
    let mut all: Vec<Series> = job.mechanisms.iter().map(|mechanism| new(mechanism)).collect();
    for row in rows {
        let most = row.paths.iter().max_by_key(|path| path.bytes);
        let point = Point {
            bytes: row.bytes,
            usec: row.usec_median,
            usec_range: (row.usec_min, row.usec_max),
            quartiles: row.usec_quartiles,
            path: most.map(|path| path.way.clone()),
            mb_per_s: row.mb_per_s.unwrap_or(0.0),
        };
        let name = name_of(&row.mechanism);
        let at = all.iter().position(|series| series.name == name).unwrap_or_else(|| {
            all.push(new(&row.mechanism));
            all.len() - 1
        });
        let series = &mut all[at];
        series.points.push(point);
        series.verified_messages += row.verified_messages;
        for path in &row.paths {
            series.moved.0 += path.messages;
            series.moved.1 += if path.way == name { path.messages } else { 0 };
        }
    }
    all.retain(|series| !series.points.is_empty());
    for series in &mut all {
        series.points.sort_by_key(|point| point.bytes);
    }
    all
}

/// Every size at which one of them was measured.
fn sizes_of(all: &[Series]) -> Vec<u64> {
    let mut sizes: Vec<u64> =
        all.iter().flat_map(|series| series.points.iter().map(|point| point.bytes)).collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

/// Whether a line is of cells.
fn is_eager(series: &Series) -> bool {
    series.name == EAGER
}

#[cfg(test)]
#[path = "report_tests.rs"]
pub(crate) mod tests;
