//! How results are written: for people, for spreadsheets, for programs.

mod figures;
mod table;

use std::io::{self, Write};

use serde::Serialize;

pub use figures::FiguresTable;
pub use table::{CompareTable, LimitsTable, Table};
pub(crate) use table::{head, usec};

use crate::environment::Environment;
use crate::job::{Details, Job, Row};
use crate::patterns::FigureDefinition;

/// Something that writes results as they come.
pub trait Results {
    /// Before the first row.
    ///
    /// # Errors
    /// The output cannot be written.
    fn begin(&mut self, out: &mut dyn Write, environment: &Environment, job: &Job) -> io::Result<()>;

    /// The rows of one size.
    ///
    /// # Errors
    /// The output cannot be written.
    fn rows(&mut self, out: &mut dyn Write, rows: &[Row]) -> io::Result<()>;

    /// After the last.
    ///
    /// # Errors
    /// The output cannot be written.
    fn end(&mut self, _out: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }
}

/// The columns that every CSV output begins with.
pub const CSV_COLUMNS: &str =
    "pattern,mechanism,ranks,bytes,iterations,usec_median,usec_min,usec_max,mb_per_s";
/// The columns behind them; the last three are empty but where both ends copied.
const MORE_CSV_COLUMNS: &str =
    "repetitions,in_use,off_cache,verified_messages,sender_percent,sender_bytes,receiver_bytes";

/// Comma-separated values: a header, then a line for each row.
#[derive(Debug, Default)]
pub struct Csv {
    in_use: bool,
    off_cache: bool,
    figures: &'static [FigureDefinition],
}

impl Results for Csv {
    fn begin(&mut self, out: &mut dyn Write, _: &Environment, job: &Job) -> io::Result<()> {
        (self.in_use, self.off_cache) = (job.in_use, job.rotation_bytes.is_some());
        self.figures = job.pattern.figures();
        write!(out, "{CSV_COLUMNS},{MORE_CSV_COLUMNS}")?;
        if !self.figures.is_empty() {
            write!(out, ",case,regions,placement")?;
        }
        for figure in self.figures {
            write!(out, ",{0},{0}_min,{0}_max", figure.name)?;
        }
        writeln!(out)
    }

    fn rows(&mut self, out: &mut dyn Write, rows: &[Row]) -> io::Result<()> {
        for row in rows {
            let throughput = row.mb_per_s.map(|speed| format!("{speed:.3}")).unwrap_or_default();
            let by_sender = row.sender_percent.map(|percent| format!("{percent:.1}")).unwrap_or_default();
            let [sent, received] = [row.sender_bytes, row.receiver_bytes]
                .map(|bytes| bytes.map(|bytes| bytes.to_string()).unwrap_or_default());
            write!(
                out,
                "{},{},{},{},{},{:.4},{:.4},{:.4},{throughput},{},{},{},{},{by_sender},{sent},{received}",
                quoted(&row.pattern),
                quoted(&row.mechanism),
                row.ranks,
                row.bytes,
                row.iterations,
                row.usec_median,
                row.usec_min,
                row.usec_max,
                row.repetitions,
                self.in_use,
                self.off_cache,
                row.verified_messages,
            )?;
            if let Some(details) = &row.details {
                write_details(out, details)?;
            }
            writeln!(out)?;
        }
        Ok(())
    }
}

/// The columns of a pattern with figures of its own; empty where one cannot be
/// measured.
fn write_details(out: &mut dyn Write, details: &Details) -> io::Result<()> {
    let regions = details.regions.map(|regions| regions.to_string()).unwrap_or_default();
    write!(out, ",{},{regions},{}", quoted(&details.case), quoted(&details.placement))?;
    for figure in &details.figures {
        for value in [figure.median, figure.min, figure.max] {
            write!(out, ",{}", value.map(|value| format!("{value:.4}")).unwrap_or_default())?;
        }
    }
    Ok(())
}

/// A field as RFC 4180 wants it.
pub(crate) fn quoted(field: &str) -> String {
    if field.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}

/// One JSON object: the environment, the settings and all rows.
#[derive(Debug, Default)]
pub struct Json {
    head: Option<(Environment, Job)>,
    rows: Vec<Row>,
}

#[derive(Serialize)]
struct Document<'a> {
    environment: &'a Environment,
    settings: &'a Job,
    rows: &'a [Row],
}

impl Results for Json {
    fn begin(&mut self, _: &mut dyn Write, environment: &Environment, job: &Job) -> io::Result<()> {
        self.head = Some((environment.clone(), job.clone()));
        Ok(())
    }

    fn rows(&mut self, _: &mut dyn Write, rows: &[Row]) -> io::Result<()> {
        self.rows.extend_from_slice(rows);
        Ok(())
    }

    fn end(&mut self, out: &mut dyn Write) -> io::Result<()> {
        if let Some((environment, settings)) = &self.head {
            let document = Document { environment, settings, rows: &self.rows };
            serde_json::to_writer_pretty(&mut *out, &document)?;
            writeln!(out)?;
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "output_tests.rs"]
pub(crate) mod tests;
