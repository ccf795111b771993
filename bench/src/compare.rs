//! `lmt compare`: each way of moving messages by itself, with messages in use and with
//! unmodified ones, as one HTML report.

use lmt::mechanism::Reach;
use lmt_selector::calibration::{EAGER, EAGER_MAX_BYTES};

use crate::args::CompareArgs;
use crate::asked::{check_memory, job};
use crate::choice::{ANNOUNCED, AUTO};
use crate::console::{complain, print, say_report};
use crate::engine::{self, LeftOut, Mechanism};
use crate::error::BenchError;
use crate::interrupt::Interrupt;
use crate::job::{Job, Particular};
use crate::memory::Memory;
use crate::options::{MeasuringArgs, REPETITIONS, SizeList};
use crate::output::CompareTable;
use crate::patterns::Pattern;
use crate::peers;
use crate::progress::Progress;
use crate::report::{Report, name_of, to_html};
use crate::showing::{Measured, run};
use crate::sizes::{human, parse_sizes};
use crate::whole_file::WholeFile;

/// The shortest message that is announced to be measured; shorter ones go in cells.
pub(crate) const ANNOUNCED_MIN_BYTES: u64 = 1 << 10;

/// What is measured unless it is said otherwise.
struct Extent {
    sizes: &'static str,
    repetitions: u32,
}

const USUAL: Extent = Extent { sizes: "1..4MiB,16MiB", repetitions: 9 };
const THOROUGH: Extent = Extent { sizes: "1..64MiB", repetitions: REPETITIONS };

/// `lmt compare`.
///
/// # Errors
/// The report cannot be written, or a rank failed.
pub fn compare(args: &CompareArgs) -> Result<(), BenchError> {
    if args.peers.fetch_only {
        return peers::fetch_only(&args.peers);
    }
    if !args.peers.takes_mpis()
        && let Some(option) = args.peers.stray()
    {
        return Err(BenchError::Usage(format!(
            "{option} is for a comparison with MPIs; add --peers or --mpi"
        )));
    }
    // Found out before the minutes of measuring, not after.
    let file = WholeFile::create(&args.output, "--output")?;
    if args.peers.mpi {
        file.write(&peers::mpi::compare(&args.peers, &args.measuring)?.to_html()?)?;
        return if args.peers.as_table() { say_report(&args.output) } else { Ok(()) };
    }
    let prepare = || peers::prepare(&args.peers, &args.measuring);
    let prepared = args.peers.wanted().then(prepare).transpose()?;
    let prepared = match prepared {
        Some(prepared) if args.peers.only() => {
            file.write(&peers::compare(prepared, &args.peers)?.to_html()?)?;
            return if args.peers.as_table() { say_report(&args.output) } else { Ok(()) };
        }
        prepared => prepared,
    };
    let interrupt = prepared.as_ref().map(|prepared| &prepared.interrupt);
    let reports = reports(args, interrupt)?;
    let section = match prepared {
        Some(prepared) => peers::compare(prepared, &args.peers)?.section()?,
        None => String::new(),
    };
    file.write(&to_html(&reports, &section)?)?;
    say_report(&args.output)
}

/// Measures every way in each mode.
fn reports(args: &CompareArgs, interrupt: Option<&Interrupt>) -> Result<Vec<Report>, BenchError> {
    let measuring = with_extent(args)?;
    let mut ways = Ways::of(engine::mechanisms(), measuring.buffers);
    for LeftOut { name, reason } in &ways.left_out {
        complain(&format!("{name} is left out: {reason}"));
    }
    let modes = measuring.modes();
    let progress = Progress::new();
    let mut reports = Vec::new();
    for (stage, &in_use) in (0..).zip(&modes) {
        progress.enter(stage, modes.len() as u64);
        let measuring = MeasuringArgs { in_use, unmodified: !in_use, ..measuring.clone() };
        let job = ways.job(&measuring)?;
        let mut table = CompareTable::new(ways.left_out.clone());
        let measured = run(&job, &mut table, interrupt, &progress)?;
        let Measured { environment, rows, left_out } = measured;
        ways.leave_out(left_out);
        let report = Report::new(environment, &job, &rows, ways.left_out.clone());
        progress.suspend(|| print(&said(&report)))?;
        reports.push(report);
    }
    progress.end();
    Ok(reports)
}

/// What was asked for, with what a comparison takes where nothing was.
fn with_extent(args: &CompareArgs) -> Result<MeasuringArgs, BenchError> {
    let extent = if args.thorough { THOROUGH } else { USUAL };
    let mut measuring = args.measuring.clone();
    if measuring.sizes.is_none() {
        let sizes = parse_sizes(extent.sizes).map_err(|error| BenchError::Failure(error.to_string()))?;
        measuring.sizes = Some(SizeList(sizes));
    }
    measuring.repetitions = measuring.repetitions.or(Some(extent.repetitions));
    let mut asked = args.measuring.sizes.iter().flat_map(|sizes| &sizes.0);
    if asked.any(|&bytes| bytes < ANNOUNCED_MIN_BYTES) {
        complain(&format!(
            "messages below {} go in cells, so no mechanism is measured with them; \
             lmt bench pingpong --mechanism {ANNOUNCED} announces them all the same",
            human(ANNOUNCED_MIN_BYTES)
        ));
    }
    Ok(measuring)
}

/// The findings as they stand below a table.
fn said(report: &Report) -> String {
    let findings = &report.findings;
    let lines = findings.summary.iter().chain(&findings.sentences);
    lines.map(|line| format!("# {line}\n")).chain(["\n".to_owned()]).collect()
}

/// The ways there are here.
struct Ways {
    /// As a job names them.
    names: Vec<String>,
    particulars: Vec<Particular>,
    left_out: Vec<LeftOut>,
}

impl Ways {
    /// What the library chooses, cells, and each mechanism with every message announced.
    fn of(mechanisms: Vec<Mechanism>, buffers: Memory) -> Self {
        let cells =
            Particular { mechanism: EAGER.to_owned(), buffers, least_bytes: 0, most_bytes: EAGER_MAX_BYTES };
        let mut ways = Self {
            names: [AUTO, EAGER].map(str::to_owned).into(),
            particulars: vec![cells],
            left_out: Vec::new(),
        };
        for Mechanism { name, unavailable, reach } in mechanisms {
            if let Some(reason) = unavailable {
                ways.left_out.push(LeftOut { name, reason });
                continue;
            }
            let mechanism = format!("{ANNOUNCED}:{name}");
            let buffers = match reach {
                Reach::SharedBuffers => Memory::Shared,
                Reach::AnyMemory => buffers,
            };
            ways.names.push(mechanism.clone());
            ways.particulars.push(Particular {
                mechanism,
                buffers,
                least_bytes: ANNOUNCED_MIN_BYTES,
                most_bytes: u64::MAX,
            });
        }
        ways
    }

    /// What is measured of them in one mode.
    fn job(&self, measuring: &MeasuringArgs) -> Result<Job, BenchError> {
        let job = job(Pattern::Pingpong, self.names.clone(), 2, measuring, true)?;
        let job = Job { particulars: self.particulars.clone(), ..job };
        check_memory(&job)?;
        Ok(job)
    }

    /// Those that failed while they were measured fail in the next mode, too.
    fn leave_out(&mut self, failed: Vec<LeftOut>) {
        for LeftOut { name, reason } in failed {
            self.names.retain(|known| *known != name);
            self.left_out.push(LeftOut { name: name_of(&name).to_owned(), reason });
        }
    }
}

#[cfg(test)]
#[path = "compare_tests.rs"]
mod tests;
