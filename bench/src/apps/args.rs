//! What `lmt app` takes.

use clap::{Args, Subcommand, ValueEnum};
use lmt_collectives::Kind;

use super::asp::SERIAL_VERTICES;
use super::is::Class;
use super::job::Problem;
use crate::collectives::{self, args::name_of};
use crate::error::BenchError;
use crate::memory::Memory;
use crate::options::{Format, Pin, parse_count, parse_pin, parse_repetitions};

/// The most ranks of an application.
const MAX_RANKS: u32 = 1024;
/// The most vertices.
const MAX_VERTICES: u32 = 65_536;
/// Beyond, a serial run takes minutes, in which nothing is heard from the ranks.
const MAX_SERIAL_VERTICES: u32 = 4096;

/// `lmt app`.
#[derive(Debug, Args)]
pub struct AppArgs {
    /// Which application.
    #[command(subcommand)]
    pub app: App,
}

/// The applications.
#[derive(Debug, Subcommand)]
pub enum App {
    /// Sorts integers as the NAS Parallel Benchmarks do (kernel IS): large messages between all ranks in each
    /// of 10 iterations. Says how long these took, what share of that was communication, and whether the
    /// published ranks came out and all keys were sorted at last: status 1 if not.
    Is {
        /// The size: 2^16 (S), 2^20 (W), 2^23 (A), 2^25 (B) or 2^27 (C) keys.
        #[arg(long, value_enum, ignore_case = true, default_value_t = Class::A)]
        class: Class,
        /// How it is run.
        #[command(flatten)]
        running: RunningArgs,
    },
    /// Finds all shortest paths of a random graph (Floyd and Warshall's algorithm): one row of a matrix from
    /// one rank to all in each step. Says the same, verified against a serial run, of large graphs in parts:
    /// status 1 if a path is wrong.
    Asp {
        /// Vertices of the graph; messages are four bytes for each.
        #[arg(long, default_value = "1024", value_name = "N", value_parser = parse_vertices)]
        vertices: u32,
        /// What the paths are compared with: all of them with a serial run, or some of each rank with those that
        /// are found another way [default: serial up to 2048 vertices, else sample].
        #[arg(long, value_enum, value_name = "HOW")]
        check: Option<Check>,
        /// How it is run.
        #[command(flatten)]
        running: RunningArgs,
    },
}

/// What paths are compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Check {
    /// All, with a serial run.
    Serial,
    /// Some, with another algorithm's.
    Sample,
}

/// What both have.
#[derive(Clone, Debug, Args)]
pub struct RunningArgs {
    /// A mechanism's name, perhaps with who copies (cma:put), auto, all that work here, or several of these
    /// with commas, which take turns and are compared: all,auto [default: auto].
    #[arg(long, value_name = "NAME")]
    pub mechanism: Option<String>,
    /// How the data is moved, by alltoallv in is and by broadcast in asp: auto (the group's choice), an
    /// algorithm's name, all, or several with commas [default: auto].
    #[arg(long, value_name = "NAME")]
    pub algorithm: Option<String>,
    /// Processes in the group; any number.
    #[arg(short = 'n', long, default_value = "2", value_name = "RANKS", value_parser = parse_app_ranks)]
    pub ranks: u32,
    /// Runs of each mechanism, of which the median, least and most are shown.
    #[arg(long, default_value = "5", value_name = "N", value_parser = parse_repetitions)]
    pub repetitions: u32,
    /// What messages lie in: memory from malloc, or lmt's shared buffers.
    #[arg(long, value_enum, default_value_t = Memory::Private, value_name = "MEMORY")]
    pub buffers: Memory,
    /// CPUs of ranks 0, 1, ... as 0,2 or 0-3, or none [default: rank i on the i-th allowed CPU].
    #[arg(long, value_name = "LIST", value_parser = parse_pin)]
    pub pin: Option<Pin>,
    /// How the results are written.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub format: Format,
    /// Make a mistake before verifying, which must find it: for tests.
    #[arg(long, hide = true)]
    pub fault: bool,
}

impl App {
    /// What is run, and how.
    ///
    /// # Errors
    /// A serial run would take too long.
    pub fn parts(&self) -> Result<(Problem, &RunningArgs), BenchError> {
        match *self {
            Self::Is { class, ref running } => Ok((Problem::Is(class), running)),
            Self::Asp { vertices, check: Some(Check::Serial), .. } if vertices > MAX_SERIAL_VERTICES => {
                Err(BenchError::Usage(format!(
                    "a serial run with {vertices} vertices takes too long; take --check sample, or {MAX_SERIAL_VERTICES} at most"
                )))
            }
            Self::Asp { vertices, check, ref running } => {
                let serial = check.map_or(vertices <= SERIAL_VERTICES, |check| check == Check::Serial);
                Ok((Problem::Asp { vertices, serial }, running))
            }
        }
    }
}

/// The operation that moves an application's data.
const fn operation(problem: Problem) -> Kind {
    match problem {
        Problem::Is(_) => Kind::Alltoall,
        Problem::Asp { .. } => Kind::Broadcast,
    }
}

/// The names of the algorithms that a list with commas means, each once.
///
/// # Errors
/// There is no such algorithm, or it does not do the application's operation.
pub fn algorithms(problem: Problem, asked: Option<&str>) -> Result<Vec<String>, BenchError> {
    let meant = collectives::args::algorithms(operation(problem), asked)?;
    Ok(meant.into_iter().map(name_of).collect())
}

fn parse_app_ranks(text: &str) -> Result<u32, String> {
    parse_count(text, "an application's ranks", 1, MAX_RANKS.into()).map(|ranks| ranks as u32)
}

fn parse_vertices(text: &str) -> Result<u32, String> {
    parse_count(text, "vertices", 1, MAX_VERTICES.into()).map(|vertices| vertices as u32)
}
