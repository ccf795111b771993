//! What `lmt compare --peers` can be asked.

use std::path::PathBuf;

use clap::Args;

use super::search::Search;
use crate::options::{Format, parse_ranks};
use crate::patterns::Pattern;

/// The patterns that the peers have too.
pub const PATTERNS: [Pattern; 7] = [
    Pattern::Latency,
    Pattern::Pingpong,
    Pattern::Pingping,
    Pattern::Exchange,
    Pattern::Bw,
    Pattern::Bibw,
    Pattern::Alltoall,
];

/// The options.
#[derive(Debug, Args)]
#[command(next_help_heading = "Side by side with MPIs")]
pub struct PeersArgs {
    /// Compare with the MPIs found on the PATH, too: in turns, with the same benchmark.
    #[arg(long)]
    pub peers: bool,
    /// As --peers, without the comparison of our mechanisms among themselves.
    #[arg(long)]
    pub peers_only: bool,
    /// Compare each MPI with itself: over lmt by the libfabric provider, over libfabric's shm provider
    /// and over its own transport, in turns; writes no comparison of our mechanisms.
    #[arg(long, conflicts_with_all = ["peers", "peers_only", "figures", "pattern", "all_modes", "ranks", "mechanism", "buffers", "limits"])]
    pub mpi: bool,
    /// With --mpi: the provider's library, a file that ends in -fi.so [default: liblmt-fi.so beside
    /// this command or in ../lib].
    #[arg(long, value_name = "FILE", requires = "mpi")]
    pub provider: Option<PathBuf>,
    /// Install MPICH, Open MPI and Intel MPI from PyPI into the cache folder first, unless they
    /// are there. Later runs find them there without it.
    #[arg(long)]
    pub fetch: bool,
    /// As --fetch, and nothing else: the folders of the MPIs that are there then, one a line.
    #[arg(long)]
    pub fetch_only: bool,
    /// The folder of one more MPI, in which bin/mpicc and bin/mpiexec are; may be repeated.
    #[arg(long = "mpi-folder", value_name = "FOLDER")]
    pub mpi_folders: Vec<PathBuf>,
    /// Where MPIs and the benchmarks built for them are kept [default: lmt in $XDG_CACHE_HOME or
    /// ~/.cache].
    #[arg(long, value_name = "FOLDER")]
    pub cache: Option<PathBuf>,
    /// The patterns to compare, with commas, or all: latency, pingpong, pingping, exchange, bw,
    /// bibw, alltoall [default: pingpong].
    #[arg(long, value_name = "LIST", value_parser = parse_patterns)]
    pub pattern: Option<PatternList>,
    /// Every combination of on and off cache, in use and unmodified.
    #[arg(long)]
    pub all_modes: bool,
    /// Processes in the group.
    #[arg(short = 'n', long, value_name = "RANKS", value_parser = parse_ranks)]
    pub ranks: Option<u32>,
    /// Ours: what lmt bench --mechanism takes; the first of several is compared with the best
    /// peer [default: auto].
    #[arg(long, value_name = "NAME")]
    pub mechanism: Option<String>,
    /// Measure what the project's figures need, and say of each whether it is met; implies
    /// --peers-only, and takes neither patterns, modes, sizes nor ranks.
    #[arg(long, conflicts_with_all = ["pattern", "all_modes", "ranks", "sizes", "in_use", "unmodified", "off_cache", "buffers"])]
    pub figures: bool,
    /// Fewer sizes and rounds.
    #[arg(long)]
    pub quick: bool,
    /// How the comparison with peers is written; csv and json imply --peers-only.
    #[arg(long, value_enum)]
    pub format: Option<Format>,
}

/// Patterns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatternList(pub Vec<Pattern>);

impl PeersArgs {
    /// Whether peers are compared with.
    pub fn wanted(&self) -> bool {
        self.peers || self.only()
    }

    /// Where they are looked for.
    pub fn search(&self) -> Search<'_> {
        Search { folders: &self.mpi_folders, cache: self.cache.as_deref(), fetch: self.fetch }
    }

    /// Whether MPIs take part in any way.
    pub fn takes_mpis(&self) -> bool {
        self.wanted() || self.mpi
    }

    /// Whether nothing else is done.
    pub fn only(&self) -> bool {
        self.peers_only || self.figures || !self.as_table()
    }

    /// Whether people read it.
    pub fn as_table(&self) -> bool {
        matches!(self.format, None | Some(Format::Table))
    }

    /// An option that makes no sense without peers.
    pub fn stray(&self) -> Option<&'static str> {
        let given = [
            ("--fetch", self.fetch),
            ("--mpi-folder", !self.mpi_folders.is_empty()),
            ("--cache", self.cache.is_some()),
            ("--pattern", self.pattern.is_some()),
            ("--all-modes", self.all_modes),
            ("--ranks", self.ranks.is_some()),
            ("--mechanism", self.mechanism.is_some()),
            ("--quick", self.quick),
            ("--format", self.format.is_some()),
        ];
        given.into_iter().find(|(_, given)| *given).map(|(name, _)| name)
    }
}

fn parse_patterns(text: &str) -> Result<PatternList, String> {
    if text == "all" {
        return Ok(PatternList(PATTERNS.to_vec()));
    }
    let mut patterns = Vec::new();
    for name in text.split(',').map(str::trim) {
        let pattern: Pattern = name.parse()?;
        if !PATTERNS.contains(&pattern) {
            return Err(format!(
                "'{name}' is no pattern that MPIs have; take latency, pingpong, pingping, exchange, bw, bibw or alltoall"
            ));
        }
        if !patterns.contains(&pattern) {
            patterns.push(pattern);
        }
    }
    Ok(PatternList(patterns))
}
