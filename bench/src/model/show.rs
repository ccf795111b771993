//! Predictions for people, for programs and as a picture.

use std::fmt::Write;

use lmt_collectives::model::Counting;
use lmt_collectives::{Algorithm, Kind};
use lmt_selector::contention::Parameters;
use serde_json::json;

use super::Row;
use super::args::Shown;
use crate::console;
use crate::contention::show::parameters_json;
use crate::error::BenchError;
use crate::output::usec;
use crate::report::{Chart, Line, Mark, Pen, Scale};
use crate::sizes::human;

/// All that `lmt model` tells.
pub struct Predictions {
    /// The operation.
    pub kind: Kind,
    /// The machine, in words.
    pub machine: String,
    /// Its figures.
    pub parameters: Parameters,
    /// How many ranks.
    pub ranks: u32,
    /// Who is counted.
    pub counting: Counting,
    /// What is predicted.
    pub columns: Vec<Shown>,
    /// Of which lengths.
    pub rows: Vec<Row>,
}

/// What is predicted: without a number where the best is taken.
fn name(shown: Shown) -> String {
    match shown {
        Shown::Exactly(algorithm) => algorithm.to_string(),
        Shown::Best(algorithm) => {
            let text = algorithm.to_string();
            text.split(':').next().unwrap_or_default().to_owned()
        }
    }
}

/// The number of an algorithm, behind its colon.
fn number(algorithm: Algorithm) -> Option<String> {
    algorithm.to_string().split_once(':').map(|(_, number)| number.to_owned())
}

impl Predictions {
    fn counting(&self) -> &'static str {
        match self.counting {
            Counting::Ranks => "all ranks, as the paper's formulas do",
            Counting::Readers => "the ranks that copy, as groups do",
        }
    }

    /// Columns for people.
    pub fn table(&self) -> String {
        let mut text = format!("# lmt model {}: predicted times, {} ranks\n", self.kind, self.ranks);
        // Writing into a String cannot fail.
        let _ = writeln!(text, "# machine: {}", self.machine);
        let _ = writeln!(text, "# figures: {}", self.figures());
        let _ = writeln!(text, "# counted: {}", self.counting());
        text.push_str("# times in microseconds; in brackets the best throttle or piece; the reason is of the last line\n");
        let columns: Vec<String> = self.columns.iter().map(|shown| name(*shown)).collect();
        let width = |column: &String| column.len().max(15);
        let _ = write!(text, "{:>10}", "bytes");
        columns.iter().for_each(|column| {
            let _ = write!(text, " {column:>width$}", width = width(column));
        });
        let _ = writeln!(text, "  chosen");
        for row in &self.rows {
            let _ = write!(text, "{:>10}", human(row.bytes));
            for ((time, shown), column) in row.times.iter().zip(&self.columns).zip(&columns) {
                let shown = match (time, shown) {
                    (None, _) => "-".to_owned(),
                    (Some((algorithm, us)), Shown::Best(_)) => match number(*algorithm) {
                        Some(number) => format!("{} ({number})", usec(*us)),
                        None => usec(*us),
                    },
                    (Some((_, us)), Shown::Exactly(_)) => usec(*us),
                };
                let _ = write!(text, " {shown:>width$}", width = width(column));
            }
            let chosen =
                row.choice.as_ref().map_or_else(|| "-".to_owned(), |choice| choice.algorithm.to_string());
            let _ = writeln!(text, "  {chosen}");
        }
        if let Some(choice) = self.rows.last().and_then(|row| row.choice.as_ref()) {
            let _ = writeln!(text, "# {}", choice.reason);
        }
        text
    }

    fn figures(&self) -> String {
        let Parameters { alpha_us, byte_ns, lock_us, page_bytes, gamma, cpus, .. } = &self.parameters;
        let gamma = match (gamma.fit, &gamma.measured[..]) {
            (Some(fit), _) => format!("gamma {} c^2 + {} c", fit.squared, fit.linear),
            (None, measured) => {
                let factors: Vec<String> = measured.iter().map(|factor| format!("{factor:.2}")).collect();
                format!("gamma {} as measured", factors.join(", "))
            }
        };
        let cpus = cpus.map_or_else(|| "a CPU for each rank".to_owned(), |cpus| format!("{cpus} CPUs"));
        format!(
            "alpha {alpha_us:.3} us, beta {byte_ns:.4} ns/B, l {lock_us:.4} us for {}, {gamma}, {cpus}",
            human(*page_bytes)
        )
    }

    /// One line for each length and algorithm.
    pub fn csv(&self) -> String {
        let mut text = "operation,ranks,bytes,algorithm,usec,chosen\n".to_owned();
        for row in &self.rows {
            for (algorithm, us) in row.times.iter().flatten() {
                let chosen = row.choice.as_ref().is_some_and(|choice| choice.algorithm == *algorithm);
                let _ =
                    writeln!(text, "{},{},{},{algorithm},{us:.4},{chosen}", self.kind, self.ranks, row.bytes);
            }
        }
        text
    }

    /// One object.
    ///
    /// # Errors
    /// A figure is no number.
    pub fn json(&self) -> Result<String, BenchError> {
        let rows: Vec<_> = self.rows.iter().map(row_json).collect();
        let document = json!({
            "operation": self.kind.name(),
            "machine": self.machine,
            "parameters": parameters_json(&self.parameters),
            "ranks": self.ranks,
            "counted": self.counting(),
            "rows": rows,
        });
        console::json(&document)
    }

    /// The curves, with dashed lines where another algorithm becomes the fastest.
    ///
    /// # Errors
    /// There is nothing to draw.
    pub fn svg(&self) -> Result<String, BenchError> {
        let line = |(at, shown): (usize, &Shown)| {
            let point = |row: &Row| {
                let (_, usec) = row.times.get(at).copied().flatten()?;
                Some((row.bytes, usec))
            };
            let points = self.rows.iter().filter_map(point).collect();
            Line { name: name(*shown), pen: Pen::Colour(at), points }
        };
        let lines: Vec<Line> = self.columns.iter().enumerate().map(line).collect();
        let axis = "predicted time, µs";
        let title = format!("{}, {} ranks: {}", self.kind, self.ranks, self.machine);
        let ends = lines.iter().filter_map(|line| Some((&line.name, line.points.last()?)));
        let ends: Vec<String> =
            ends.map(|(name, last)| format!("{name}: {} at {}", usec(last.1), human(last.0))).collect();
        let text = format!("{title}: {axis}, against message size, both logarithmic. {}.", ends.join("; "));
        let marks = self.marks();
        Chart { lines: &lines, marks: &marks, axis, scale: Scale::Logarithmic }.draw_alone(&title, &text)
    }

    /// Where the fastest changes, whatever its number.
    pub(crate) fn marks(&self) -> Vec<Mark> {
        let chosen = |row: &Row| row.choice.as_ref().map(|choice| name(Shown::Best(choice.algorithm)));
        let pairs = self.rows.iter().zip(self.rows.iter().skip(1));
        let changed = pairs.filter_map(|(row, next)| {
            let (from, to) = (chosen(row)?, chosen(next)?);
            (from != to).then_some(Mark { bytes: next.bytes, word: to })
        });
        changed.collect()
    }
}

fn row_json(row: &Row) -> serde_json::Value {
    let times: Vec<_> = row
        .times
        .iter()
        .flatten()
        .map(|(algorithm, us)| json!({ "algorithm": algorithm.to_string(), "usec": us }))
        .collect();
    json!({
        "bytes": row.bytes,
        "predicted": times,
        "chosen": row.choice.as_ref().map(|choice| choice.algorithm.to_string()),
        "reason": row.choice.as_ref().map(|choice| &choice.reason),
    })
}
