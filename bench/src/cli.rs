//! The command line.

use std::path::PathBuf;

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};

use crate::apps::args::AppArgs;
use crate::collectives::access::Access;
use crate::collectives::args::CollectiveArgs;
use crate::collectives::workload::Workload;
use crate::config::ConfigArgs;
use crate::contention::ContentionArgs;
use crate::error::BenchError;
use crate::explain::ExplainArgs;
use crate::memory::Memory;
use crate::model::ModelArgs;
use crate::mpirun_env::MpirunEnvArgs;
use crate::patterns::DEFINITIONS;
use crate::peers::args::PeersArgs;
use crate::sizes::{parse_size, parse_sizes};

/// The most ranks of a group.
const MOST_RANKS: u32 = 1024;
/// The smallest working set: below, the clock is what is measured.
const LEAST_WORKING_SET_BYTES: u64 = 4096;
/// The most repetitions.
const MOST_REPETITIONS: u32 = 10_000;

/// Moves messages between processes of one machine, and measures how fast.
#[derive(Debug, Parser)]
#[command(name = "lmt", version, subcommand_required = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Measures one communication pattern, what the machine allows (limits), or what else
    /// matters of a transfer (overlap, pollution, regions).
    Bench(BenchArgs),
    /// Runs ping-pong over each mechanism that works here by itself, with messages in use and unmodified,
    /// and with --peers side by side with the MPIs of this machine, or with --mpi each MPI over lmt against
    /// itself; writes one HTML report.
    Compare(Box<CompareArgs>),
    /// Says what works here, and what would make the rest work: status 0 when the best mechanisms
    /// for this kernel do, 1 when not.
    Doctor(DoctorArgs),
    /// Says which way messages between two places take, and why.
    Explain(ExplainArgs),
    /// Prints what is configured and where each part comes from, documents the keys, or checks files.
    Config(ConfigArgs),
    /// Measures which mechanism is the fastest for which messages on this machine, and writes
    /// that down for every endpoint to use.
    Tune(TuneArgs),
    /// Measures what it costs to copy out of another process's memory, and how much those who
    /// read one process at once hold each other up.
    Contention(ContentionArgs),
    /// Prints what collective operations are predicted to take, by each algorithm and with the best
    /// throttle, on this machine or on one that is described.
    Model(Box<ModelArgs>),
    /// Prints the environment in which an MPI's programs run over lmt, for eval in a shell.
    MpirunEnv(MpirunEnvArgs),
    /// Runs an application that uses collective operations, with each mechanism, and verifies it.
    App(AppArgs),
    /// Starts a group of ranks that know each other, and ends them together.
    Run(RunArgs),
    /// The other process when mechanisms are probed; started by lmt itself.
    #[command(name = crate::engine::endpoint::PROBE_COMMAND, hide = true)]
    Probe {
        /// The identity of the two.
        group: String,
    },
    /// The first process of two that meet apart from the command; started by lmt itself.
    #[command(name = crate::engine::endpoint::MEET_COMMAND, hide = true)]
    Meet,
    /// One rank of a benchmark; started by lmt itself.
    #[command(name = crate::group::RANK_COMMAND, hide = true)]
    Rank,
    /// One rank of an application; started by lmt itself.
    #[command(name = crate::apps::rank::RANK_COMMAND, hide = true)]
    AppRank,
    /// One rank while peers are compared; started by lmt itself.
    #[command(name = crate::peers::rank::RANK_COMMAND, hide = true)]
    PeersRank,
    /// One process while contention is measured; started by lmt itself.
    #[command(name = crate::contention::rank::RANK_COMMAND, hide = true)]
    ContentionRank,
    /// One rank while a machine is tuned; started by lmt itself.
    #[command(name = crate::tune::rank::RANK_COMMAND, hide = true)]
    TuneRank,
    /// One rank of a collective benchmark; started by lmt itself.
    #[command(name = crate::collectives::rank::RANK_COMMAND, hide = true)]
    CollectivesRank,
}

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
    /// What pollution reads again and again, as a size [default: half the last cache].
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
    /// Say also which way a run's bytes took, by the file that it has written (LMT_STATS=FILE).
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

/// What both have.
#[derive(Clone, Debug, Args)]
pub struct MeasuringArgs {
    /// Message sizes: 8,64KiB,1MiB or a range of powers of two, 1..16MiB.
    /// KiB, MiB, GiB and k, K, M, G are powers of 1024 [default: by pattern].
    #[arg(long, value_name = "LIST", value_parser = parse_size_list)]
    pub sizes: Option<SizeList>,
    /// Iterations of each repetition [default: as many as take about 4 ms].
    #[arg(long, value_name = "N", value_parser = parse_iterations)]
    pub iterations: Option<u64>,
    /// Measurements of each size, of which the median, least and most are shown [default: 15; lmt compare by
    /// itself 9, with --thorough 15].
    #[arg(long, value_name = "N", value_parser = parse_repetitions)]
    pub repetitions: Option<u32>,
    /// Rotate through buffers larger than the last cache.
    #[arg(long)]
    pub off_cache: bool,
    /// What messages lie in: memory from malloc, or lmt's shared buffers.
    #[arg(long, value_enum, default_value_t = Memory::Private, value_name = "MEMORY")]
    pub buffers: Memory,
    /// Write each message as a whole before it is sent, each unlike the one before, and read it as a whole
    /// after it was received, inside the timed part, as applications do. The default of lmt bench; with lmt
    /// compare this mode alone.
    #[arg(long, alias = "touch", conflicts_with = "unmodified")]
    pub in_use: bool,
    /// Send the same bytes again and again, as IMB and OSU do; with lmt compare this mode alone.
    #[arg(long)]
    pub unmodified: bool,
    /// CPUs of ranks 0, 1, ... as 0,2 or 0-3, or none [default: rank i on the i-th allowed CPU].
    #[arg(long, value_name = "LIST", value_parser = parse_pin)]
    pub pin: Option<Pin>,
    /// Measure in between what the machine allows, and show it beside the results.
    #[arg(long)]
    pub limits: bool,
}

/// Measurements of each size, where none are asked for.
pub(crate) const REPETITIONS: u32 = 15;

impl MeasuringArgs {
    /// Whether messages are in use where they are so in one way only.
    pub fn is_in_use(&self) -> bool {
        !self.unmodified
    }

    /// The modes of a comparison, as whether messages are in use: both, in use first, or the
    /// one that was asked for.
    pub fn modes(&self) -> Vec<bool> {
        [true, false]
            .into_iter()
            .filter(|&in_use| if in_use { !self.unmodified } else { !self.in_use })
            .collect()
    }

    /// Measurements of each size.
    pub fn repetitions(&self) -> u32 {
        self.repetitions.unwrap_or(REPETITIONS)
    }

    /// The mode's option, if one was given.
    pub fn mode_option(&self) -> Option<&'static str> {
        let given = [("--in-use", self.in_use), ("--unmodified", self.unmodified)];
        given.into_iter().find(|(_, given)| *given).map(|(name, _)| name)
    }
}

/// Sizes in ascending order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SizeList(pub Vec<u64>);

/// Where ranks run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pin {
    /// Where the scheduler likes.
    None,
    /// Rank i on the i-th of these.
    Cpus(Vec<usize>),
}

/// How results are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Columns for people.
    Table,
    /// Comma-separated values.
    Csv,
    /// One JSON object.
    Json,
}

/// What the command line turned out to be.
#[derive(Debug)]
pub enum Parsed {
    /// A command to carry out.
    Command(Command),
    /// Help or version: text to show.
    Text(String),
}

/// Reads the command line.
///
/// # Errors
/// One line that says what is wrong and what would be right.
pub fn parse<I>(arguments: I) -> Result<Parsed, BenchError>
where
    I: IntoIterator<Item = std::ffi::OsString>,
{
    let command = Cli::command().mut_subcommand("bench", |bench| bench.after_help(pattern_help()));
    let matches = match command.try_get_matches_from(arguments) {
        Ok(matches) => matches,
        Err(error) if !error.use_stderr() => return Ok(Parsed::Text(error.render().to_string())),
        Err(error) => return Err(BenchError::Usage(one_line(&error.render().to_string()))),
    };
    Cli::from_arg_matches(&matches)
        .map(|cli| Parsed::Command(cli.command))
        .map_err(|error| BenchError::Usage(one_line(&error.render().to_string())))
}

fn pattern_help() -> String {
    let mut text = "Patterns:\n".to_owned();
    for definition in DEFINITIONS {
        text.push_str(&format!(
            "  {:9} {} Sizes by default: {}.\n",
            definition.name, definition.text, definition.default_sizes
        ));
    }
    for access in Access::ALL {
        text.push_str(&format!("  {:10} {}\n", access.name(), access.text()));
    }
    text
}

/// Clap's message without its further paragraphs.
fn one_line(rendered: &str) -> String {
    let lines = rendered.lines().map(str::trim).filter(|line| {
        !line.is_empty() && !line.starts_with("Usage:") && !line.starts_with("For more information")
    });
    let line = lines.collect::<Vec<_>>().join("; ");
    let line = line.strip_prefix("error: ").unwrap_or(&line).replace(":; ", ": ");
    format!("{line}; see lmt --help")
}

pub(crate) fn parse_size_list(text: &str) -> Result<SizeList, String> {
    parse_sizes(text).map(SizeList).map_err(|error| error.to_string())
}

fn parse_working_set(text: &str) -> Result<u64, String> {
    match parse_size(text) {
        Ok(bytes) if bytes < LEAST_WORKING_SET_BYTES => {
            Err(format!("'{text}' is less than a page; take 4KiB at least"))
        }
        Ok(bytes) => Ok(bytes),
        Err(error) => Err(error.to_string()),
    }
}

pub(crate) fn parse_count(text: &str, what: &str, least: u64, most: u64) -> Result<u64, String> {
    let rule = || format!("{what} must be a whole number from {least} to {most}");
    let number = text.parse().map_err(|_| rule())?;
    if (least..=most).contains(&number) { Ok(number) } else { Err(rule()) }
}

pub(crate) fn parse_ranks(text: &str) -> Result<u32, String> {
    let ranks = parse_count(text, "a benchmark's ranks", 2, MOST_RANKS.into())?;
    u32::try_from(ranks).map_err(|error| error.to_string())
}

fn parse_group(text: &str) -> Result<u32, String> {
    let most = lmt::launch::Group::MAX_SIZE;
    let ranks = parse_count(text, "a group's ranks", 1, most.into())?;
    u32::try_from(ranks).map_err(|error| error.to_string())
}

pub(crate) fn parse_repetitions(text: &str) -> Result<u32, String> {
    let repetitions = parse_count(text, "repetitions", 1, MOST_REPETITIONS.into())?;
    u32::try_from(repetitions).map_err(|error| error.to_string())
}

fn parse_iterations(text: &str) -> Result<u64, String> {
    parse_count(text, "iterations", 1, 1_000_000_000)
}

pub(crate) fn parse_pin(text: &str) -> Result<Pin, String> {
    if text == "none" {
        return Ok(Pin::None);
    }
    let cpus = parse_cpus(text);
    cpus.map(Pin::Cpus)
        .ok_or_else(|| format!("'{text}' is neither none nor a list of CPUs such as 0,2 or 0-3"))
}

/// CPUs as `0,2` or `0-3`.
pub(crate) fn parse_cpus(text: &str) -> Option<Vec<usize>> {
    let mut cpus = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let first: u16 = first.trim().parse().ok()?;
        let last: u16 = last.trim().parse().ok()?;
        if last < first {
            return None;
        }
        cpus.extend(usize::from(first)..=usize::from(last));
    }
    Some(cpus)
}

#[cfg(test)]
#[path = "cli_tests.rs"]
mod tests;
