//! What `lmt apps` can be asked.

use std::path::PathBuf;

use clap::Args;

use crate::options::parse_ranks;

/// Turns that each program takes unless it is said otherwise.
pub const TURNS: u32 = 7;
/// More say no more.
const MAX_TURNS: i64 = 1000;

/// `lmt apps`.
#[derive(Debug, Args)]
pub struct AppsArgs {
    /// Only these programs, by their names with commas [default: all that the table has].
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub programs: Vec<String>,
    /// With so many ranks, with commas [default: what the table has, or 2 and 4].
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = parse_ranks)]
    pub ranks: Vec<u32>,
    /// Turns: in each the program runs once over its MPI's own transport and once over lmt
    /// [default: 7, and 1 with --short].
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=MAX_TURNS))]
    pub turns: Option<u32>,
    /// Where the page, the results and what failed runs have left are put.
    #[arg(long, value_name = "FOLDER", default_value = "lmt-apps")]
    pub out: PathBuf,
    /// One turn of the programs that have a short form; over its own transport each runs only where
    /// its results are compared with that.
    #[arg(long)]
    pub short: bool,
    /// A program that cannot be run is a failure instead of being left out.
    #[arg(long)]
    pub require: bool,
    /// Another table of programs; the files that it names are looked for beside it first.
    #[arg(long, value_name = "FILE")]
    pub table: Option<PathBuf>,
    /// Install what the programs need from PyPI into the cache folder first, unless it is there:
    /// MPICH, Open MPI and Intel MPI, and Python's packages.
    #[arg(long)]
    pub fetch: bool,
    /// Where MPIs and Python's packages are kept [default: lmt in $XDG_CACHE_HOME or ~/.cache].
    #[arg(long, value_name = "FOLDER")]
    pub cache: Option<PathBuf>,
    /// The provider's library, a file that ends in -fi.so [default: liblmt-fi.so beside this command
    /// or in ../lib].
    #[arg(long, value_name = "FILE")]
    pub provider: Option<PathBuf>,
    /// Print the Debian packages that the programs are in, one a line, and run nothing.
    #[arg(long)]
    pub packages: bool,
}

impl AppsArgs {
    /// Turns of each program.
    pub fn turns(&self) -> u32 {
        self.turns.unwrap_or(if self.short { 1 } else { TURNS })
    }
}
