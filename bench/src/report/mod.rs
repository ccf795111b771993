//! The HTML report: one file that needs nothing else.

mod html;
mod plot;

pub(crate) use html::{COLOUR_STYLE, PAGE_STYLE, colours, escaped, page};
pub(crate) use plot::{Chart, SERIES_COLOURS};

use crate::engine::LeftOut;
use crate::environment::Environment;
use crate::job::{LIMITS, Row};
use crate::limits::{METHODS, Work};

/// How much faster a mechanism must be to take over as the fastest: less is
/// noise, and lines that run side by side would cross at every size.
const CROSSOVER_MARGIN: f64 = 0.03;

/// One mechanism or bare method at one size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Message size.
    pub bytes: u64,
    /// One-way time, median.
    pub usec: f64,
    /// Fastest and slowest repetition.
    pub usec_range: (f64, f64),
    /// Throughput at the median.
    pub mb_per_s: f64,
}

/// A line of the plots.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// The mechanism or the bare method.
    pub name: String,
    /// By size, ascending.
    pub points: Vec<Point>,
    /// Messages of which every byte was checked.
    pub verified_messages: u64,
}

/// A size from which another mechanism is the fastest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Crossover {
    /// The size.
    pub bytes: u64,
    /// The fastest below it.
    pub from: String,
    /// The fastest from it on.
    pub to: String,
}

/// What a report shows: plain data.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// Where and how it was measured.
    pub environment: Environment,
    /// One line for each mechanism.
    pub mechanisms: Vec<Series>,
    /// The mechanisms that do not work here.
    pub left_out: Vec<LeftOut>,
    /// Thin lines: what the machine allows. May be empty.
    pub limits: Vec<Series>,
    /// Where the fastest mechanism changes, by size.
    pub crossovers: Vec<Crossover>,
}

impl Report {
    /// Puts the rows of one pattern, and of the bare methods if there are any,
    /// in the order of a report.
    pub fn new(environment: Environment, rows: &[Row], left_out: Vec<LeftOut>) -> Self {
        let plotted = |row: &&Row| {
            METHODS.iter().all(|method| method.name != row.mechanism || method.work.moves_bytes())
        };
        let limits = series(rows.iter().filter(|row| row.pattern == LIMITS).filter(plotted));
        let mechanisms = series(rows.iter().filter(|row| row.pattern != LIMITS));
        Self { left_out, ..Self::of_series(environment, mechanisms, limits) }
    }

    /// Lines as they are.
    pub(crate) fn of_series(environment: Environment, mechanisms: Vec<Series>, limits: Vec<Series>) -> Self {
        let crossovers = crossovers(&mechanisms);
        Self { environment, mechanisms, left_out: Vec::new(), limits, crossovers }
    }

    /// The limits that the plots show: bare ping-pongs, the pipelines drawn
    /// together into the fastest of them at each size. All are in the table.
    fn plotted_limits(&self) -> Vec<Series> {
        let work = |series: &Series| {
            METHODS.iter().find(|method| method.name == series.name).map(|method| method.work)
        };
        let (pipelines, others): (Vec<&Series>, Vec<&Series>) = self
            .limits
            .iter()
            // A line of no single method is drawn as it is.
            .filter(|series| work(series).is_none_or(Work::is_round_trip))
            .partition(|series| matches!(work(series), Some(Work::Pipeline { .. })));
        let mut best: Vec<Point> =
            pipelines.iter().flat_map(|series| series.points.iter().copied()).collect();
        best.sort_by(|one, other| one.bytes.cmp(&other.bytes).then(one.usec.total_cmp(&other.usec)));
        best.dedup_by_key(|point| point.bytes);
        let best = (!best.is_empty()).then(|| Series {
            name: "best pipeline".into(),
            points: best,
            verified_messages: 0,
        });
        others.into_iter().cloned().chain(best).collect()
    }
}

fn series<'a>(rows: impl Iterator<Item = &'a Row>) -> Vec<Series> {
    let mut all: Vec<Series> = Vec::new();
    for row in rows {
        let point = Point {
            bytes: row.bytes,
            usec: row.usec_median,
            usec_range: (row.usec_min, row.usec_max),
            mb_per_s: row.mb_per_s.unwrap_or(0.0),
        };
        let checked = row.verified_messages;
        match all.iter_mut().find(|series| series.name == row.mechanism) {
            Some(series) => {
                series.points.push(point);
                series.verified_messages += checked;
            }
            None => all.push(Series {
                name: row.mechanism.clone(),
                points: vec![point],
                verified_messages: checked,
            }),
        }
    }
    for series in &mut all {
        series.points.sort_by_key(|point| point.bytes);
    }
    all
}

/// The sizes at which the fastest mechanism changes. One that is fastest stays
/// so until another is faster by more than noise.
pub fn crossovers(mechanisms: &[Series]) -> Vec<Crossover> {
    let mut sizes: Vec<u64> =
        mechanisms.iter().flat_map(|series| series.points.iter().map(|point| point.bytes)).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let mut found = Vec::new();
    let mut reigning: Option<&str> = None;
    for bytes in sizes {
        let time =
            |series: &Series| series.points.iter().find(|point| point.bytes == bytes).map(|point| point.usec);
        let best = mechanisms
            .iter()
            .filter_map(|series| time(series).map(|usec| (usec, series.name.as_str())))
            .min_by(|one, other| one.0.total_cmp(&other.0));
        let Some((usec, best)) = best else { continue };
        let old = mechanisms.iter().find(|series| Some(series.name.as_str()) == reigning).and_then(time);
        if old.is_some_and(|old| usec >= old * (1.0 - CROSSOVER_MARGIN)) {
            continue;
        }
        if let Some(from) = reigning.filter(|&from| from != best) {
            found.push(Crossover { bytes, from: from.to_owned(), to: best.to_owned() });
        }
        reigning = Some(best);
    }
    found
}

#[cfg(test)]
#[path = "report_tests.rs"]
mod tests;
