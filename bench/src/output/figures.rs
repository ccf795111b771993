//! The table of the patterns that have figures of their own.

use std::io::{self, Write};

use super::Results;
use super::table::{head, usec};
use crate::environment::Environment;
use crate::job::{Details, Figure, Job, Row};
use crate::patterns::{FigureDefinition, Unit};
use crate::sizes::human;

/// One line for each size, mechanism and case; a column for each figure's
/// median. Who ran where stands above the lines to which it applies.
#[derive(Debug, Default)]
pub struct FiguresTable {
    figures: &'static [FigureDefinition],
    regions: bool,
    verify: bool,
    placement: String,
}

impl Results for FiguresTable {
    fn begin(&mut self, out: &mut dyn Write, environment: &Environment, job: &Job) -> io::Result<()> {
        let definition = job.pattern.definition();
        self.figures = job.pattern.figures();
        self.regions = self.figures.iter().any(|figure| figure.name.contains("lookup"));
        self.verify = job.verify;
        head(out, &format!("lmt bench {}", definition.name), environment)?;
        writeln!(out, "# {}", definition.text)?;
        if let Some(bytes) = job.working_set_bytes {
            writeln!(out, "# working set: {}", human(bytes))?;
        }
        writeln!(
            out,
            "# times in microseconds, medians of {} repetitions that take turns; a ratio is the median of theirs",
            job.repetitions
        )?;
        write!(out, "{:<10} {:<10} {:>10}", "mechanism", "case", "bytes")?;
        if self.regions {
            write!(out, " {:>10}", "regions")?;
        }
        write!(out, " {:>10}", "iterations")?;
        self.figures.iter().try_for_each(|figure| write!(out, " {:>10}", figure.heading))?;
        if self.verify {
            write!(out, " {:>9}", "verified")?;
        }
        writeln!(out)
    }

    fn rows(&mut self, out: &mut dyn Write, rows: &[Row]) -> io::Result<()> {
        for row in rows {
            let Some(details) = &row.details else { continue };
            self.say_placement(out, details)?;
            write!(out, "{:<10} {:<10} {:>10}", row.mechanism, details.case, row.bytes)?;
            if self.regions {
                write!(out, " {:>10}", details.regions.unwrap_or(0))?;
            }
            write!(out, " {:>10}", row.iterations)?;
            for (definition, figure) in self.figures.iter().zip(&details.figures) {
                write!(out, " {:>10}", shown(definition.unit, figure))?;
            }
            if self.verify {
                write!(out, " {:>9}", row.verified_messages)?;
            }
            writeln!(out)?;
        }
        Ok(())
    }
}

impl FiguresTable {
    fn say_placement(&mut self, out: &mut dyn Write, details: &Details) -> io::Result<()> {
        if self.placement != details.placement {
            self.placement.clone_from(&details.placement);
            writeln!(out, "# ran on: {}", self.placement)?;
        }
        Ok(())
    }
}

fn shown(unit: Unit, figure: &Figure) -> String {
    let Some(median) = figure.median else { return "-".to_owned() };
    match unit {
        Unit::Usec => usec(median),
        // What is not there can be less than nothing in a measurement only.
        Unit::Part => format!("{:.0}%", 100.0 * median.clamp(0.0, 1.0)),
        Unit::Ratio => format!("{median:.3}"),
        Unit::Count => format!("{median:.0}"),
    }
}
