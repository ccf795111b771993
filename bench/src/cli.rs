//! The command line.

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::apps::args::AppArgs;
use crate::args::{BenchArgs, CompareArgs, DoctorArgs, RunArgs, TuneArgs};
use crate::collectives::access::Access;
use crate::config::ConfigArgs;
use crate::contention::ContentionArgs;
use crate::error::BenchError;
use crate::explain::ExplainArgs;
use crate::model::ModelArgs;
use crate::mpirun::MpirunArgs;
use crate::mpirun_env::MpirunEnvArgs;
use crate::pages::PagesArgs;
use crate::patterns::DEFINITIONS;
use crate::programs::args::AppsArgs;

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
    /// Says which path messages between two places take, and why.
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
    /// Runs an MPI program over lmt: finds the MPI that is in use, and starts its mpiexec with all further
    /// arguments.
    Mpirun(MpirunArgs),
    /// Prints the environment in which an MPI's programs run over lmt, for eval in a shell.
    MpirunEnv(MpirunEnvArgs),
    /// Runs an application that uses collective operations, with each mechanism, and verifies it.
    App(AppArgs),
    /// Runs real MPI programs (Debian's, PyPI's) over lmt and over their MPI's own transport, in turns,
    /// checks their results, and writes one HTML page.
    Apps(AppsArgs),
    /// Starts a group of ranks that know each other, and ends them together.
    Run(RunArgs),
    /// Writes man pages and shell completions below a folder.
    Pages(PagesArgs),
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

/// What the command line turned out to be.
#[derive(Debug)]
pub enum Parsed {
    /// A command to carry out.
    Command(Command),
    /// Help or version: text to show.
    Text(String),
}

/// The command line as it is parsed, with the help of patterns.
pub fn command() -> clap::Command {
    Cli::command().mut_subcommand("bench", |bench| bench.after_help(pattern_help()))
}

/// Reads the command line.
///
/// # Errors
/// One line that says what is wrong and what would be right.
pub fn parse<I>(arguments: I) -> Result<Parsed, BenchError>
where
    I: IntoIterator<Item = std::ffi::OsString>,
{
    let matches = match command().try_get_matches_from(arguments) {
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

#[cfg(test)]
#[path = "cli_tests.rs"]
mod tests;
