//! What single commands take.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::collectives::args::CollectiveArgs;
use crate::collectives::workload::Workload;
use crate::options::{
    Format, MeasuringArgs, Pin, SizeList, parse_group, parse_pin, parse_ranks, parse_size_list,
};
use crate::peers::args::PeersArgs;
use crate::sizes::parse_size;

/// The smallest working set: below, the clock is what is measured.
const MIN_WORKING_SET_BYTES: u64 = 4096;

/// `lmt bench`.
#[derive(Debug, Args)]
pub struct BenchArgs {
    /// latency, pingpong, pingping, exchange, ring, pairs, bw, bibw, limits, overlap, pollution or regions; a collective
    /// operation: barrier, bcast, scatter, gather, allgather, alltoall (with --mechanism by messages), reduce,
    /// allreduce, reduce_scatter, scan or exscan; or one-to-all, all-to-one or all-to-all.
    #[arg(value_parser = str::parse::<Workload>)]
    pub pattern: Workload,
    /// A mechanism's name, perhaps with who copies (cma:put), auto, all that work here, or several of
    /// these with commas; eager: all messages up to 1 MiB in cells; announced (all), announced:NAME: a
    /// mechanism for messages of any length, none in cells [default: auto, or all where there is no auto].
    #[arg(long, value_name = "NAME")]
    pub mechanism: Option<String>,
    /// Processes in the group.
    #[arg(short = 'n', long, default_value = "2", value_name = "RANKS", value_parser = parse_ranks)]
    pub ranks: u32,
    /// What pollution reads again and again, as a size [default: half the last-level cache].
    #[arg(long, value_name = "SIZE", value_parser = parse_working_set)]
    pub working_set: Option<u64>,
    /// Check every byte of an extra, untimed pass, between guard pages.
    #[arg(long)]
    pub verify: bool,
    /// How the results are written.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub format: Format,
    /// Collective operations.
    #[command(flatten)]
    pub collectives: CollectiveArgs,
    /// How it is measured.
    #[command(flatten)]
    pub measuring: MeasuringArgs,
}

/// `lmt compare`, which verifies always.
#[derive(Debug, Args)]
pub struct CompareArgs {
    /// Where the report goes.
    #[arg(long, default_value = "lmt-compare.html", value_name = "FILE")]
    pub output: PathBuf,
    /// Take longer: 15 repetitions and every power of two to 64 MiB.
    #[arg(long)]
    pub thorough: bool,
    /// Side by side with MPIs.
    #[command(flatten)]
    pub peers: PeersArgs,
    /// How it is measured.
    #[command(flatten)]
    pub measuring: MeasuringArgs,
}

/// `lmt doctor`.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// Ranks that are to run at once, for what depends on their number [default: 2].
    #[arg(short = 'n', long, value_name = "RANKS", value_parser = parse_group)]
    pub ranks: Option<u32>,
    /// Also say which paths a run's bytes took, by the file that it has written (LMT_STATS=FILE).
    #[arg(long, value_name = "FILE")]
    pub stats: Option<PathBuf>,
    /// How the findings are written.
    #[arg(long, value_enum, default_value_t = DoctorFormat::Table)]
    pub format: DoctorFormat,
    /// Read the folders proc, sys and dev below DIR instead of this machine's: for tests, and to
    /// study another machine's files. What is not told by files is found on this machine.
    #[arg(long, value_name = "DIR")]
    pub root: Option<PathBuf>,
}

/// How findings are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DoctorFormat {
    /// Lines for people.
    Table,
    /// One JSON object.
    Json,
}

/// `lmt tune`.
#[derive(Debug, Args)]
pub struct TuneArgs {
    /// Three minutes at most, with fewer repetitions.
    #[arg(long)]
    pub quick: bool,
    /// Where the calibration goes [default: lmt/calibration/<this machine>.toml in
    /// $XDG_CONFIG_HOME or ~/.config, where endpoints find it].
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Where the page that shows it goes [default: beside the calibration, .html].
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Where the page's first picture goes too, as SVG.
    #[arg(long, value_name = "FILE")]
    pub picture: Option<PathBuf>,
    /// The time for measuring at most [default: 1200, with --quick 150].
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub time: Option<u64>,
    /// Leave collective operations out: the library chooses their algorithms by the model.
    #[arg(long)]
    pub no_collectives: bool,
    /// Only these sizes: powers of two.
    #[arg(long, value_name = "LIST", value_parser = parse_size_list, hide = true)]
    pub sizes: Option<SizeList>,
}

/// `lmt run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// Ranks to start.
    #[arg(short = 'n', long, value_name = "RANKS", value_parser = parse_group)]
    pub ranks: u32,
    /// CPUs of ranks 0, 1, ... as 0,2 or 0-3, or none.
    #[arg(long, value_name = "LIST", value_parser = parse_pin)]
    pub pin: Option<Pin>,
    /// Write [rank] before each line of output.
    #[arg(long)]
    pub prefix: bool,
    /// The program and its arguments, behind --.
    #[arg(required = true, last = true, value_name = "PROGRAM")]
    pub program: Vec<std::ffi::OsString>,
}

fn parse_working_set(text: &str) -> Result<u64, String> {
    match parse_size(text) {
        Ok(bytes) if bytes < MIN_WORKING_SET_BYTES => {
            Err(format!("'{text}' is less than a page; take 4KiB at least"))
        }
        Ok(bytes) => Ok(bytes),
        Err(error) => Err(error.to_string()),
    }
}
