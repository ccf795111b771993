//! Tables for people. Lines that begin with `#` say where and how.

use std::io::{self, Write};

use super::Results;
use crate::engine::LeftOut;
use crate::environment::Environment;
use crate::job::{Job, LIMITS, Row};
use crate::limits::{METHODS, Method, Work, best};
use crate::report::{Report, name_of};
use crate::sizes::human;

pub(crate) fn head(out: &mut dyn Write, title: &str, environment: &Environment) -> io::Result<()> {
    writeln!(out, "# {title}")?;
    for (name, value) in environment.lines() {
        writeln!(out, "# {name}: {value}")?;
    }
    Ok(())
}

/// Microseconds with four digits that count.
pub(crate) fn usec(value: f64) -> String {
    match value {
        value if value < 10.0 => format!("{value:.3}"),
        value if value < 100.0 => format!("{value:.2}"),
        value if value < 1000.0 => format!("{value:.1}"),
        value => format!("{value:.0}"),
    }
}

fn throughput(row: &Row) -> String {
    row.mb_per_s.map_or_else(|| "-".to_owned(), |speed| format!("{speed:.1}"))
}

/// One line for each size and mechanism; the bare methods' times beside them.
#[derive(Debug, Default)]
pub struct Table {
    verify: bool,
}

impl Results for Table {
    fn begin(&mut self, out: &mut dyn Write, environment: &Environment, job: &Job) -> io::Result<()> {
        self.verify = job.verify;
        let definition = job.pattern.definition();
        head(out, &format!("lmt bench {}, {} ranks", definition.name, job.ranks), environment)?;
        writeln!(out, "# {}", definition.text)?;
        writeln!(out, "# times in microseconds, median, least and most of {} repetitions", job.repetitions)?;
        writeln!(
            out,
            "# sender %: where both ends copy, how much of what rank 0 received the sender copied (csv and json have the bytes)"
        )?;
        if job.limits {
            writeln!(
                out,
                "# bare methods: microseconds, and (where both are half round trips) their time as percent of the mechanism's"
            )?;
        }
        write!(
            out,
            "{:<10} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10} {:>9}",
            "mechanism", "bytes", "iterations", "median", "min", "max", "MB/s", "sender %"
        )?;
        if self.verify {
            write!(out, " {:>9}", "verified")?;
        }
        if job.limits {
            shown_with_mechanisms().try_for_each(|method| write!(out, " {:>LIMIT_WIDTH$}", method.name))?;
        }
        writeln!(out)
    }

    fn rows(&mut self, out: &mut dyn Write, rows: &[Row]) -> io::Result<()> {
        let (bare, mechanisms): (Vec<&Row>, Vec<&Row>) = rows.iter().partition(|row| row.pattern == LIMITS);
        for row in mechanisms {
            write!(
                out,
                "{:<10} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10} {:>9}",
                row.mechanism,
                row.bytes,
                row.iterations,
                usec(row.usec_median),
                usec(row.usec_min),
                usec(row.usec_max),
                throughput(row),
                row.sender_percent.map_or_else(|| "-".to_owned(), |percent| format!("{percent:.1}"))
            )?;
            if self.verify {
                write!(out, " {:>9}", row.verified_messages)?;
            }
            if !bare.is_empty() {
                shown_with_mechanisms().try_for_each(|method| {
                    write!(out, " {:>LIMIT_WIDTH$}", beside(row, &bare, method.name))
                })?;
            }
            writeln!(out)?;
        }
        Ok(())
    }
}

fn beside(row: &Row, bare: &[&Row], method: &str) -> String {
    let Some(limit) = bare.iter().find(|limit| limit.mechanism == method) else {
        return "-".to_owned();
    };
    let ratio = row.ratios.iter().find(|ratio| ratio.method == method);
    let percent = ratio.map(|ratio| format!(" ({:.0}%)", ratio.percent)).unwrap_or_default();
    format!("{}{percent}", usec(limit.usec_median))
}

/// One line for each size, one column for each bare method.
#[derive(Debug, Default)]
pub struct LimitsTable;

/// Which methods compete with one another.
type Counts = fn(Work) -> bool;

/// The fastest methods: what they are called, and which count.
const BESTS: [(&str, Counts); 2] = [("best", Work::is_contender), ("shared", Work::has_shared_buffers)];

impl Results for LimitsTable {
    fn begin(&mut self, out: &mut dyn Write, environment: &Environment, job: &Job) -> io::Result<()> {
        head(out, "lmt bench limits: what the machine allows", environment)?;
        writeln!(out, "# {}", job.pattern.definition().text)?;
        for method in METHODS {
            writeln!(out, "# {:<LIMIT_WIDTH$} {}", method.name, method.text)?;
        }
        writeln!(out, "# times in microseconds, median of {} interleaved repetitions", job.repetitions)?;
        writeln!(
            out,
            "# best: the fastest path between two processes' own buffers; shared: between buffers that both have mapped"
        )?;
        write!(out, "{:>10}", "bytes")?;
        for (name, _) in BESTS {
            write!(out, " {name:>10} {:<LIMIT_WIDTH$}", "by")?;
        }
        METHODS.iter().try_for_each(|method| write!(out, " {:>LIMIT_WIDTH$}", method.name))?;
        writeln!(out)
    }

    fn rows(&mut self, out: &mut dyn Write, rows: &[Row]) -> io::Result<()> {
        let Some(first) = rows.first() else { return Ok(()) };
        write!(out, "{:>10}", first.bytes)?;
        for (_, counts) in BESTS {
            let times = rows.iter().map(|row| (row.mechanism.as_str(), row.usec_median));
            let (name, time) =
                best(times, counts).map_or(("-", "-".to_owned()), |(name, time)| (name, usec(time)));
            write!(out, " {time:>10} {name:<LIMIT_WIDTH$}")?;
        }
        write_limits(out, rows, METHODS.iter())?;
        writeln!(out)
    }
}

/// Room for a bare method's name.
const LIMIT_WIDTH: usize = 14;

/// The methods that stand beside mechanisms.
fn shown_with_mechanisms() -> impl Iterator<Item = &'static Method> {
    METHODS.iter().filter(|method| method.is_shown_with_limits)
}

/// A column for each bare method's time.
fn write_limits(
    out: &mut dyn Write,
    rows: &[Row],
    mut methods: impl Iterator<Item = &'static Method>,
) -> io::Result<()> {
    methods.try_for_each(|method| {
        let row = rows.iter().find(|row| row.pattern == LIMITS && row.mechanism == method.name);
        let time = row.map_or_else(|| "-".to_owned(), |row| usec(row.usec_median));
        write!(out, " {time:>LIMIT_WIDTH$}")
    })
}

/// Least room for a way's name or time.
const TIME_WIDTH: usize = 10;

/// One line for each size: every way side by side.
#[derive(Debug, Default)]
pub struct CompareTable {
    left_out: Vec<LeftOut>,
    /// Each way, and how many of its messages were checked so far.
    ways: Vec<(String, u64)>,
    settings: Option<(Environment, Job)>,
}

impl CompareTable {
    /// A table above which stands what is not in it.
    pub fn new(left_out: Vec<LeftOut>) -> Self {
        Self { left_out, ..Self::default() }
    }
}

/// Room for a way's column.
fn width(way: &str) -> usize {
    TIME_WIDTH.max(name_of(way).len())
}

impl Results for CompareTable {
    fn begin(&mut self, out: &mut dyn Write, environment: &Environment, job: &Job) -> io::Result<()> {
        self.ways = job.mechanisms.iter().map(|name| (name.clone(), 0)).collect();
        self.settings = Some((environment.clone(), job.clone()));
        let mode = if job.in_use { "messages in use" } else { "unmodified messages" };
        head(out, &format!("lmt compare: ping-pong, each path by itself, {mode}"), environment)?;
        for LeftOut { name, reason } in &self.left_out {
            writeln!(out, "# left out: {name}: {reason}")?;
        }
        for (way, _) in self.ways.iter().filter(|(way, _)| job.buffers_of(way) != job.buffers) {
            writeln!(out, "# {}: {}", name_of(way), job.buffers_of(way).source())?;
        }
        writeln!(
            out,
            "# half the round trip in microseconds, median of {} repetitions that take turns; fastest: by more than the spreads",
            job.repetitions
        )?;
        if job.limits {
            writeln!(out, "# behind the fastest: bare methods with flags only, in microseconds")?;
        }
        write!(out, "{:>10}", "size")?;
        for (way, _) in &self.ways {
            write!(out, " {:>1$}", name_of(way), width(way))?;
        }
        write!(out, "  {:<14}", "fastest")?;
        if job.limits {
            shown_with_mechanisms().try_for_each(|method| write!(out, " {:>LIMIT_WIDTH$}", method.name))?;
        }
        writeln!(out)
    }

    fn rows(&mut self, out: &mut dyn Write, rows: &[Row]) -> io::Result<()> {
        let (Some(first), Some((environment, job))) = (rows.first(), &self.settings) else { return Ok(()) };
        write!(out, "{:>10}", human(first.bytes))?;
        for (way, checked) in &mut self.ways {
            let found = rows.iter().find(|row| row.pattern != LIMITS && row.mechanism == *way);
            let time = found.map_or_else(|| "-".to_owned(), |row| usec(row.usec_median));
            write!(out, " {time:>0$}", width(way))?;
            *checked += found.map_or(0, |row| row.verified_messages);
        }
        let report = Report::new(environment.clone(), job, rows, Vec::new());
        write!(out, "  {:<14}", report.winner(first.bytes).unwrap_or("-"))?;
        if rows.iter().any(|row| row.pattern == LIMITS) {
            write_limits(out, rows, shown_with_mechanisms())?;
        }
        writeln!(out)
    }

    fn end(&mut self, out: &mut dyn Write) -> io::Result<()> {
        let checked = self.ways.iter().filter(|(_, messages)| *messages > 0);
        let checked: Vec<String> =
            checked.map(|(way, messages)| format!("{} {messages}", name_of(way))).collect();
        if checked.is_empty() {
            return Ok(());
        }
        writeln!(out, "# messages checked byte by byte: {}", checked.join(", "))
    }
}
