//! What was measured, for people, for programs and as a picture.

use std::fmt::Write;

use lmt_selector::contention::Parameters;
use serde_json::{Value, json};

use super::figures::Pinned;
use crate::console;
use crate::environment::{cpu_model, join, kernel};
use crate::error::BenchError;
use crate::report::{Chart, Line, Pen, Scale};
use crate::sizes::human;

/// What so many readers of one process got together.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Throughput {
    /// Readers at once.
    pub readers: u32,
    /// Bytes of each copy.
    pub bytes: u64,
    /// What a copy took, in microseconds: the mean of the readers' medians.
    pub us: f64,
    /// All readers' bytes by time.
    pub mb_per_s: f64,
    /// The same as a multiple of what one reader gets.
    pub relative: f64,
}

/// All that `lmt contention` tells.
pub struct Findings {
    /// The CPUs of the readers.
    pub cpus: Vec<usize>,
    /// When it was measured.
    pub date: String,
    /// What single copy costs.
    pub parameters: Parameters,
    /// The times behind l and gamma.
    pub pinned: Vec<Pinned>,
    /// Readers that copy.
    pub throughput: Vec<Throughput>,
}

/// The parameters, a line each.
pub fn parameters_text(parameters: &Parameters) -> String {
    let Parameters { alpha_us, byte_ns, lock_us, page_bytes, gamma, line_us, copy_ns, combine_ns, .. } =
        parameters;
    let gb_per_s =
        |ns: f64| if ns > 0.0 { format!("{:.2} GB/s", 1.0 / ns) } else { "not to be told".to_owned() };
    let factors: Vec<String> =
        (1..).zip(gamma.measured.iter()).map(|(c, factor)| format!("gamma({c}) = {factor:.2}")).collect();
    let curve = match (gamma.fit, gamma.measured.len()) {
        (Some(fit), _) => format!("; curve {:.4} c^2 + {:.4} c", fit.squared, fit.linear),
        (None, 0) => String::new(),
        (None, points) => format!("; no curve is fitted to {points} of them"),
    };
    let mut text = String::new();
    // Writing into a String cannot fail.
    let _ = writeln!(text, "alpha, the start of a copy       {alpha_us:.3} us");
    let _ = writeln!(text, "1/beta, bytes of a copy          {}", gb_per_s(*byte_ns));
    let _ =
        writeln!(text, "l, locking and pinning a page    {lock_us:.4} us, pages of {}", human(*page_bytes));
    let _ = writeln!(text, "gamma, that with c at once       {}{curve}", factors.join(", "));
    let _ = writeln!(text, "a cache line to another core     {line_us:.3} us");
    let _ = writeln!(text, "a copy within a process          {}", gb_per_s(*copy_ns));
    let _ = writeln!(text, "combining bytes with others      {}", gb_per_s(*combine_ns));
    if let Some(message) = parameters.message {
        let _ = writeln!(text, "the shortest message             {:.3} us", message.start_us);
        let _ = writeln!(text, "bytes of a long message          {}", gb_per_s(message.byte_ns));
    }
    text
}

impl Findings {
    /// Columns for people.
    pub fn table(&self) -> String {
        let mut text = format!(
            "# lmt contention: readers of one process\n# kernel: {}\n# cpu: {}; CPUs of the readers {}\n# {}\n",
            kernel(),
            cpu_model(),
            join(&self.cpus),
            self.date
        );
        for line in parameters_text(&self.parameters).lines() {
            let _ = writeln!(text, "# {line}");
        }
        text.push_str("# all readers' bytes by time, in MB/s, and as a multiple of what one reader gets\n");
        let _ = write!(text, "{:>10}", "bytes");
        for readers in self.readers() {
            let _ = write!(text, " {:>22}", self.name(readers));
        }
        text.push('\n');
        let mut sizes: Vec<u64> = self.throughput.iter().map(|one| one.bytes).collect();
        sizes.sort_unstable();
        sizes.dedup();
        for bytes in sizes {
            let _ = write!(text, "{:>10}", human(bytes));
            for readers in self.readers() {
                let one = self.throughput.iter().find(|one| one.bytes == bytes && one.readers == readers);
                let shown = one.map(|one| format!("{:.0} ({:.2})", one.mb_per_s, one.relative));
                let _ = write!(text, " {:>22}", shown.unwrap_or_else(|| "-".to_owned()));
            }
            text.push('\n');
        }
        text
    }

    /// One line for each number of readers and length.
    pub fn csv(&self) -> String {
        let mut text = "readers,cpus,bytes,usec,mb_per_s,relative\n".to_owned();
        for Throughput { readers, bytes, us, mb_per_s, relative } in &self.throughput {
            let cpus = self.cpus.len();
            let _ = writeln!(text, "{readers},{cpus},{bytes},{us:.4},{mb_per_s:.1},{relative:.4}");
        }
        text
    }

    /// One object.
    ///
    /// # Errors
    /// A figure is no number.
    pub fn json(&self) -> Result<String, BenchError> {
        let document = json!({
            "environment": { "date": self.date, "kernel": kernel(), "cpu": cpu_model(), "cpus": self.cpus },
            "parameters": parameters_json(&self.parameters),
            "pinned": self.pinned,
            "throughput": self.throughput,
        });
        console::json(&document)
    }

    /// Throughput against message size, a line for each number of readers.
    ///
    /// # Errors
    /// There is nothing to draw.
    pub fn svg(&self) -> Result<String, BenchError> {
        let line = |(index, readers): (usize, u32)| {
            let of = self.throughput.iter().filter(|one| one.readers == readers);
            let points = of.map(|one| (one.bytes, one.relative)).collect();
            Line { name: self.name(readers), pen: Pen::Colour(index), points }
        };
        let lines: Vec<Line> = self.readers().into_iter().enumerate().map(line).collect();
        let axis = "all readers' throughput, one reader's = 1";
        let title = format!("Readers of one process, {}", cpu_model());
        let ends = lines.iter().filter_map(|line| Some((&line.name, line.points.last()?)));
        let text: Vec<String> =
            ends.map(|(name, last)| format!("{name}: {:.2} at {}", last.1, human(last.0))).collect();
        let text = format!("{title}: {axis}, against message size. {}.", text.join("; "));
        Chart { lines: &lines, marks: &[], axis, scale: Scale::Logarithmic }.draw_alone(&title, &text)
    }

    fn readers(&self) -> Vec<u32> {
        let mut all: Vec<u32> = self.throughput.iter().map(|one| one.readers).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Says where readers share CPUs, which is another thing than contention.
    fn name(&self, readers: u32) -> String {
        let cpus = self.cpus.len();
        match readers {
            1 => "1 reader".to_owned(),
            readers if readers as usize > cpus => format!("{readers} on {cpus} CPUs"),
            readers => format!("{readers} readers"),
        }
    }
}

/// The parameters for programs, by their keys in a file.
pub fn parameters_json(parameters: &Parameters) -> Value {
    json!({
        "alpha_us": parameters.alpha_us,
        "byte_ns": parameters.byte_ns,
        "lock_us": parameters.lock_us,
        "page_bytes": parameters.page_bytes,
        "gamma": parameters.gamma.measured,
        "gamma_fit": parameters.gamma.fit.map(|fit| [fit.squared, fit.linear]),
        "cpus": parameters.cpus,
        "line_us": parameters.line_us,
        "copy_ns": parameters.copy_ns,
        "combine_ns": parameters.combine_ns,
        "message_us": parameters.message.map(|message| message.start_us),
        "message_byte_ns": parameters.message.map(|message| message.byte_ns),
    })
}

#[cfg(test)]
#[path = "show_tests.rs"]
mod tests;
